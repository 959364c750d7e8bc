// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <halocline_app/settings.hpp>

namespace coarse_solve_test {
namespace {

constexpr auto refused = halocline::config::other_sections::refused;

TEST(Configs, EachShippedFileParses) {
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(HALOCLINE_SOURCE "/configs")) {
        if (entry.path().extension() != ".toml") continue;
        halocline::app::settings_reader reader;
        EXPECT_NO_THROW(reader.read_file(entry.path(), refused)) << entry.path();
        ++files;
    }
    EXPECT_GE(files, 3);
}

TEST(Configs, DemoNamesEveryKeyWithItsDefault) {
    const std::string text = halocline_test::read_text(HALOCLINE_SOURCE "/configs/demo.toml");
    halocline::app::settings_reader from_file, built_in;
    from_file.read_file(HALOCLINE_SOURCE "/configs/demo.toml", refused);

    EXPECT_EQ(from_file.effective(), built_in.effective());
    for (const auto& key : halocline::app::setting_keys())
        EXPECT_NE(text.find(key.name + " = "), std::string::npos) << key.path();
}

TEST(Configs, EnvironmentBeatsFileAndFlagBeatsEnvironment) {
    const auto run = run_command("env HALOCLINE_SOLVER_MAX_ITERATIONS=1 " + on_ranks(1, ""));
    const auto flag = run_command("env HALOCLINE_SOLVER_MAX_ITERATIONS=1 " + on_ranks(1, "--max-iterations 1000"));

    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_EQ(flag.exit_code, 0) << flag.err;
}

TEST(Configs, PathIsTheJobs) {
    using halocline::comm::path;
    const auto options = [](const char* name) {
        halocline::app::settings_reader reader;
        reader.set("comm.path", name, "--path");
        return job_options_of(reader.values());
    };

    for (const path p : {path::automatic, path::direct, path::streamed, path::joint, path::packed})
        EXPECT_EQ(options(to_string(p).data()).path, p);
}

} // namespace
} // namespace coarse_solve_test
