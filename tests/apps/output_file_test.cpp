// SPDX-License-Identifier: Apache-2.0
// Texts that programs write piece by piece.
#include <halocline_app/output_file.hpp>

#include <halocline_test/run_command.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

namespace {

using namespace halocline;
using halocline_test::read_text;
using halocline_test::scratch_folder;

/// Each write replaces the file by all of the text.
TEST(OutputFile, IsLostOnlyIfTheLastWriteFailed) {
    app::program p("program");
    p.join();
    const scratch_folder scratch;
    const std::string path = scratch / "x", partial = path + ".partial";
    std::optional<app::text_output> text(std::in_place, p, "--json", path, app::run_files());

    std::filesystem::create_directory(partial);
    text->write("a\n");
    std::filesystem::remove(partial);
    text->write("b\n");
    text.reset();

    EXPECT_EQ(read_text(path), "a\nb\n");
    EXPECT_TRUE(p.lost_outputs().empty()) << p.lost_outputs().front();

    text.emplace(p, "--json", path, app::run_files());
    std::filesystem::create_directory(partial);
    text->write("c\n");
    text.reset();

    EXPECT_EQ(read_text(path), "a\nb\n");
    ASSERT_EQ(p.lost_outputs().size(), 1U);
    EXPECT_TRUE(p.lost_outputs().front().starts_with("--json: '" + path)) << p.lost_outputs().front();
}

} // namespace
