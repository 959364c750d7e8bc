// SPDX-License-Identifier: Apache-2.0
// Config files and variables that override what a program asks of its job. Ranks are processes of halocline-run.
#include "job/business_card.hpp"
#include "verbs/world.hpp"

#include <halocline_test/comma_locale.hpp>
#include <halocline_test/contains.hpp>
#include <halocline_test/environment_variable.hpp>
#include <halocline_test/refusal.hpp>
#include <halocline_test/run_command.hpp>

#include <halocline/comm/bad_input.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/option_keys.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline::comm;
using halocline_test::contains;
using halocline_test::environment_variable;

TEST(Configured, AnRdmaDeviceThatIsNamedMustBeThere) {
    job_options options;
    options.transports = {"verbs", "shm"};
    options.verbs.device = "no-such-device";
    const std::string text = halocline_test::refusal([&] { const job j = job::from_environment(options); });
    if (!verbs_is_built()) {
        EXPECT_TRUE(contains(text, "'verbs' is not built in")) << text;
    } else if (std::filesystem::exists("/sys/class/infiniband")) {
        for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband"))
            EXPECT_TRUE(contains(text, device.path().filename().string() + " (")) << text;
    } else {
        EXPECT_TRUE(contains(text, "no RDMA device 'no-such-device' with an active port 1 ")) << text;
        EXPECT_TRUE(contains(text, "; there is: none")) << text;
    }
}

/// A config file for the duration of a test, named by $HALOCLINE_CONFIG.
class config_file {
  public:
    explicit config_file(const std::string& text) { std::ofstream(path_) << text; }

  private:
    halocline_test::scratch_folder folder_;
    std::string path_ = folder_ / "job.toml";
    environment_variable variable_{config::file_variable, path_};
};

std::string refusal_of_the_environment() {
    std::string text = "joined";
    try {
        const job j = job::from_environment();
    } catch (const input_error& e) {
        text = e.what();
    }
    const job fine = job::from_environment({.fixed = true}); // after that error the ranks can still form a job
    fine.agree("the error", text);
    return text;
}

TEST(Configured, AConfigFileOverridesWhatTheProgramAsksFor) {
    const config_file file("[faults]\ndeadline_ms = 12345\n[comm]\npath = 'streamed'\n[hmc]\nsteps = 20\n");
    job_options options;
    options.deadline = std::chrono::seconds(7);
    options.spin_polls = 2000;

    const job j = job::from_environment(options);
    options.fixed = true;
    const job as_it_says = job::from_environment(options);

    EXPECT_EQ(j.options().deadline, std::chrono::milliseconds(12345));
    EXPECT_EQ(j.options().path, path::streamed);
    EXPECT_EQ(j.options().spin_polls, 2000);
    EXPECT_EQ(as_it_says.options().deadline, std::chrono::seconds(7));
    EXPECT_EQ(as_it_says.options().path, path::automatic);
}

TEST(Configured, ABadConfigFileOfOneRankIsTheErrorOfAll) {
    const bool bad = launched_rank() == 0;
    const config_file file(bad ? "[comm]\ntransprots = ['shm']\n" : "[comm]\ntransports = ['shm']\n");

    const std::string text = refusal_of_the_environment();

    EXPECT_NE(text.find("job.toml:2:14: unknown key '[comm] transprots'; the nearest known one is '[comm] transports'"),
              std::string::npos)
        << text;
}

/// It can be opened: reading it fails.
TEST(Configured, FilesThatDifferInThatOneCannotBeReadAreTheErrorOfAll) {
    const bool bad = launched_rank() == 1;
    const environment_variable file(config::file_variable,
                                    bad ? std::optional<std::string>("/proc/self/mem") : std::nullopt);
    const std::string text = halocline_test::refusal([] { const job j = job::from_environment(); });

    EXPECT_TRUE(text.starts_with("rank 1 on ")) << text;
    EXPECT_NE(text.find("config file '/proc/self/mem': can't be read"), std::string::npos) << text;
}

TEST(Configured, ConfigFilesThatDifferAreRefusedWithBothValues) {
    const config_file file("[faults]\ndeadline_ms = " + std::to_string(launched_rank() == 1 ? 60000 : 50000) + "\n");

    const std::string text = refusal_of_the_environment();

    for (const char* part : {"deadline 60000 ms", "deadline 50000 ms", "the file of $HALOCLINE_CONFIG"})
        EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Configured, VariablesOverrideTheFile) {
    const config_file file("[comm]\ntransports = ['ofi', 'shm']\nmay_sleep = true\nverbs_mtu = 2048\n");
    const environment_variable transports("HALOCLINE_COMM_TRANSPORTS", " shm, ofi ,");

    const job_options options = configured();

    EXPECT_EQ(options.transports, (std::vector<std::string>{"shm", "ofi"}));
    EXPECT_TRUE(options.may_sleep);
    EXPECT_EQ(options.verbs.mtu, 2048);
    EXPECT_TRUE(options.fixed);
}

TEST(Configured, TheShortVariablesOverrideTheFileAndTheLongOnesBoth) {
    const config_file file("[comm]\nnetwork = 'nosuch0'\nbootstrap = 'pmix'\n");
    const environment_variable network("HALOCLINE_NETWORK", "eth0"), bootstrap("HALOCLINE_BOOTSTRAP", "local");
    EXPECT_EQ(configured().network, "eth0");
    EXPECT_EQ(configured().bootstrap, "local");

    const environment_variable longer("HALOCLINE_COMM_NETWORK", "eth1"), also("HALOCLINE_COMM_BOOTSTRAP", "mpi");
    EXPECT_EQ(configured().network, "eth1");
    EXPECT_EQ(configured().bootstrap, "mpi");
}

TEST(Configured, AnEmptyLongVariableOverridesTheShortOne) {
    const environment_variable network("HALOCLINE_NETWORK", "10.0.0.0/99"), bootstrap("HALOCLINE_BOOTSTRAP", "pmix");
    EXPECT_NE(halocline_test::refusal([] { (void)job::from_environment(); }), "accepted");

    const environment_variable longer("HALOCLINE_COMM_NETWORK", ""), also("HALOCLINE_COMM_BOOTSTRAP", "");
    job::from_environment().barrier();
}

TEST(Configured, FixedOptionsStay) {
    const config_file file("[comm]\ntransprots = 1\n");
    const environment_variable spin("HALOCLINE_COMM_SPIN_POLLS", "17");
    job_options options;
    options.fixed = true;

    EXPECT_EQ(configured(options).spin_polls, 0);
}

/// The clock plus the longest possible time would overflow into the past.
TEST(Configured, ADeadlineOfAlwaysIsOneThatClocksCanTell) {
    job_options options;
    options.deadline = std::chrono::milliseconds::max();

    const job j = job::from_environment(options);
    j.barrier();

    EXPECT_EQ(j.options().deadline, std::chrono::milliseconds(1'000'000'000));
}

TEST(Configured, WhatAProgramAsksForIsCheckedToo) {
    using std::chrono::milliseconds;
    const std::string more = " ms: more than 0 is expected";
    for (const int deadline : {0, -1}) {
        const std::string text = "job_options::deadline is " + std::to_string(deadline) + more;
        EXPECT_EQ(halocline_test::refusal([&] { job::single({.deadline = milliseconds(deadline)}); }), text);
        EXPECT_EQ(halocline_test::refusal([&] { (void)configured({.deadline = milliseconds(deadline)}); }), text)
            << "before ranks wait";
    }
    const auto expect_refused = [](const job_options& options, const std::string& text) {
        EXPECT_EQ(halocline_test::refusal([&] { job::single(options); }), "job_options::" + text + " is expected");
        for (const bool fixed : {false, true}) {
            job_options given = options;
            given.fixed = fixed;
            EXPECT_EQ(halocline_test::refusal([&] { (void)configured(given); }),
                      "job_options::" + text + " is expected");
        }
    };
    expect_refused({.spin_polls = -1}, "spin_polls is -1: 0 (as the machine suggests) or more");
    for (const std::int64_t timeout : {std::int64_t{0}, std::int64_t{1} << 32})
        expect_refused({.link_timeout = milliseconds(timeout)},
                       "link_timeout is " + std::to_string(timeout) + " ms: 2000 to 3600000");
    expect_refused({.verbs = {.port = 257}}, "verbs.port is 257: 1 to 255");
    expect_refused({.verbs = {.gid_index = -2}}, "verbs.gid_index is -2: -1 to 255");
    expect_refused({.verbs = {.inline_bytes = -1}}, "verbs.inline_bytes is -1: 0 to 4096");
}

/// The ranks compare their options without those of verbs, which may differ.
TEST(Configured, AnOptionOutOfRangeOnOneRankIsTheErrorOfAll) {
    const bool bad = launched_rank() == 0;
    const std::string text = halocline_test::refusal(
        [&] { (void)job::from_environment({.verbs = {.port = bad ? 257 : 1}, .fixed = true}); });
    EXPECT_NE(text.find("verbs.port is 257: 1 to 255 is expected"), std::string::npos) << text;
}

/// For each key a value that is not its default.
const std::map<std::string, std::string>& other_values() {
    static const std::map<std::string, std::string> values{{"comm.transports", "ofi,shm"},
                                                           {"comm.ofi_provider", "tcp;ofi_rxm"},
                                                           {"comm.mpi_mode", "one-sided"},
                                                           {"comm.bootstrap", "pmix"},
                                                           {"comm.path", "packed"},
                                                           {"comm.network", "10.1.0.0/16"},
                                                           {"comm.slab_gib", "0.02"},
                                                           {"comm.spin_polls", "17"},
                                                           {"comm.may_sleep", "true"},
                                                           {"comm.verbs_device", "mlx5_0"},
                                                           {"comm.verbs_port", "2"},
                                                           {"comm.verbs_gid_index", "3"},
                                                           {"comm.verbs_mtu", "1024"},
                                                           {"comm.verbs_largest_write", "65536"},
                                                           {"comm.verbs_inline_bytes", "0"},
                                                           {"faults.deadline_ms", "1234"},
                                                           {"faults.link_timeout_ms", "2345"},
                                                           {"faults.checksum", "true"}};
    return values;
}

/// What ranks compare, what reports leave out, and what may differ: one list.
TEST(Configured, OptionsOfAHostAreThoseThatRanksDoNotCompare) {
    const auto compared = [](const job_options& options) { return own_card({}, options, "", "").options; };
    for (const auto& k : option_keys()) {
        job_options options;
        const std::string before = compared(options), shown = k.show(options);

        k.read(options, other_values().at(k.path()));

        EXPECT_NE(k.show(options), shown) << k.path();
        EXPECT_EQ(compared(options) == before, k.of_host) << k.path();
    }
}

TEST(Configured, EveryOptionHasAKeyThatShowsWhatItReads) {
    job_options options;
    for (const auto& k : option_keys()) {
        ASSERT_TRUE(other_values().contains(k.path())) << k.path() << " is not tested";
        k.read(options, other_values().at(k.path()));
        EXPECT_EQ(k.show(options), other_values().at(k.path())) << k.path();
    }

    EXPECT_EQ(option_keys().size(), other_values().size());
    EXPECT_EQ(options.slab_bytes, static_cast<std::size_t>(0.02 * (1 << 30)));
    EXPECT_EQ(options.verbs.largest_write, 65536U);
    EXPECT_EQ(options.link_timeout, std::chrono::milliseconds(2345));
    EXPECT_TRUE(options.checksums);
}

TEST(Configured, WhatIsWrongIsSaidWithItsPlaceAndWhatWouldBeRight) {
    const struct {
        const char *file, *says;
    } cases[] = {
        {"[comm]\ntransports = ['smh']\n",
         "job.toml:2:14: [comm] transports = smh: unknown transport 'smh'; known are"},
        {"[comm]\ntransports = ['mock']\n", "expected transports that move something, unlike mock"},
        {"[comm]\nverbs_port = 0\n", "job.toml:2:14: [comm] verbs_port = '0': expected a whole number from 1 to 255"},
        {"[comm]\nverbs_mtu = 300\n",
         "job.toml:2:13: [comm] verbs_mtu = '300': expected 256, 512, 1024, 2048 or 4096, or 0"},
        {"[comm]\nbootstrap = 'slurm'\n", "job.toml:2:13: [comm] bootstrap = 'slurm': expected local, pmix or mpi"},
        {"\n[com]\ntransports = ['shm']\n", "job.toml:2:1: unknown section [com]; known are [comm], [faults]"},
        {"[Faults]\n", "unknown section [Faults]"},
        {"[[comm]]\n", "unknown section [[comm]] number 0"},
        {"transports = ['shm']\n", "job.toml:1:14: 'transports' stands in no section; write it below [comm]"},
        {"[comm]\npath = { a = 1 }\n", "[comm] path: expected a string, number, boolean or array"},
        {"[comm\n", "job.toml:1:"},
    };
    for (const auto& c : cases) {
        const config_file file(c.file);
        std::string text;
        try {
            (void)configured();
        } catch (const config_error& e) {
            text = e.what();
        }
        EXPECT_NE(text.find(c.says), std::string::npos) << c.file << text;
    }
}

TEST(Configured, OtherProgramsSectionsAreLeftAlone) {
    const config_file file("name = 'run 7'\n[hmc]\nsteps = 20\nmasses = [[1, 2], [3]]\n[[level]]\nblocks = 1\n"
                           "[faults]\nchecksum = true\n");

    EXPECT_TRUE(configured().checksums);
}

TEST(Configured, MisspeltVariablesAreRefusedWithTheNearest) {
    const environment_variable misspelt("HALOCLINE_COMM_TRANSPORT", "shm");
    try {
        (void)configured();
        ADD_FAILURE();
    } catch (const config_error& e) {
        EXPECT_NE(std::string(e.what()).find("nearest known one is 'HALOCLINE_COMM_TRANSPORTS'"), std::string::npos)
            << e.what();
        EXPECT_EQ(e.key(), "HALOCLINE_COMM_TRANSPORT");
    }
}

TEST(Configured, AFileThatIsNamedMustBeThere) {
    const environment_variable missing("HALOCLINE_CONFIG", "/nowhere/job.toml");
    const std::string text = halocline_test::refusal<config_error>([] { (void)configured(); });
    EXPECT_NE(text.find("/nowhere/job.toml"), std::string::npos) << text;
    EXPECT_NE(text.find("No such file or directory"), std::string::npos) << text;
}

TEST(Configured, SizesAreReadAndShownAlikeInEveryLocale) {
    const halocline_test::comma_locale foreign;
    if (!foreign.in_force()) GTEST_SKIP() << "localedef can make no locale here; Debian's package is 'locales'";
    const auto slab = std::ranges::find(option_keys(), "comm.slab_gib", [](const auto& k) { return k.path(); });
    job_options options;

    for (const char* gib : {"0.5", "0.3", "2.75", "64"}) {
        slab->read(options, gib);

        EXPECT_EQ(slab->show(options), gib);
    }
    EXPECT_EQ(options.slab_bytes, std::size_t{64} << 30);
}

TEST(Configured, AnEmptyNameIsNoFile) {
    const environment_variable empty("HALOCLINE_CONFIG", "");
    EXPECT_NO_THROW((void)configured());
}

} // namespace
