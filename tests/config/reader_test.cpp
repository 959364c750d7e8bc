// SPDX-License-Identifier: Apache-2.0
// Settings from files, variables and flags, by a table of keys. [comm] and [faults] are tested in
// tests/comm/configured_test.cpp.
#include <halocline_test/comma_locale.hpp>
#include <halocline_test/environment_variable.hpp>
#include <halocline_test/refusal.hpp>
#include <halocline_test/run_command.hpp>

#include <halocline/config/reader.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace halocline;
using config::other_sections;
using halocline_test::environment_variable;

struct run {
    int steps = 100;
    double beta = 6;
    std::string device{};
    bool hot = false;
    int coarse_steps = 1;
    std::vector<std::string> names{"a"};
};

const std::vector<config::key<run>>& keys() {
    using namespace config;
    static const std::vector<key<run>> all{
        integer_key<run>({"hmc", "steps", "trajectories"}, &run::steps, 1, 1000),
        real_key<run>({"hmc", "beta", "coupling"}, &run::beta, 0, 1e3, "a number from 0 to 1000"),
        switch_key<run>({"hmc", "hot", "start"}, &run::hot),
        text_key<run>({"hmc", "device", "of a host", "HALOCLINE_DEVICE"}, &run::device, may_differ::between_hosts),
        integer_key<run>({"level.0", "steps", "of the coarse level"}, &run::coarse_steps, 1, 1000),
        allow_array(make_key<run>({"level.0", "names", "of its vectors"}, &run::names, read_list, show_list)),
    };
    return all;
}

class Reader : public testing::Test {
  protected:
    void read(const std::string& text, other_sections others = other_sections::refused) {
        std::ofstream(path_) << text;
        reader_.read_file(path_, others);
    }
    std::string refused(const std::string& text, other_sections others = other_sections::refused) {
        try {
            read(text, others);
        } catch (const config_error& e) {
            const std::string what = e.what();
            return what.starts_with(path_) ? what.substr(path_.size()) : what;
        }
        return "";
    }

    halocline_test::scratch_folder folder_;
    std::string path_ = folder_ / "run.toml";
    config::reader<run> reader_{keys()};
};

TEST_F(Reader, LaterWordsOverrideEarlierOnesAndOriginsAreKept) {
    read("[hmc]\nsteps = 20\nbeta = 5.5\n[[level]]\nsteps = 3\n");
    const environment_variable beta("HALOCLINE_HMC_BETA", "5.7");
    reader_.read_environment();
    reader_.set("hmc.hot", "true", "--hot");

    EXPECT_EQ(reader_.values().steps, 20);
    EXPECT_EQ(reader_.values().beta, 5.7);
    EXPECT_EQ(reader_.values().coarse_steps, 3);
    EXPECT_TRUE(reader_.values().hot);
    EXPECT_EQ(reader_.origin("hmc.steps"), path_ + ":2:9");
    EXPECT_EQ(reader_.origin("hmc.beta"), "HALOCLINE_HMC_BETA");
    EXPECT_EQ(reader_.origin("hmc.device"), "default");
    EXPECT_EQ(reader_.as_given("hmc.hot"), "--hot true");
    EXPECT_EQ(reader_.as_given("level.0.steps"), path_ + ":5:9: [[level]] number 0, steps = 3");
}

TEST_F(Reader, AShortVariableOverridesTheFileAndTheLongOneBoth) {
    read("[hmc]\ndevice = 'of the file'\n");
    const auto device_with = [&](const std::string& brief, const std::optional<std::string>& full) {
        const environment_variable short_one("HALOCLINE_DEVICE", brief), long_one("HALOCLINE_HMC_DEVICE", full);
        reader_.read_environment();
        return reader_.values().device + " by " + reader_.origin("hmc.device");
    };

    EXPECT_EQ(device_with("", std::nullopt), "of the file by " + path_ + ":2:10");
    EXPECT_EQ(device_with("mlx5_0", std::nullopt), "mlx5_0 by HALOCLINE_DEVICE");
    EXPECT_EQ(device_with("mlx5_0", "mlx5_1"), "mlx5_1 by HALOCLINE_HMC_DEVICE");
}

TEST_F(Reader, WhatMustBeAlikeLeavesHostsOut) {
    reader_.set("hmc.device", "mlx5_0", "--device");

    EXPECT_EQ(reader_.effective(), "hmc.steps = 100\nhmc.beta = 6\nhmc.hot = false\nlevel.0.steps = 1\n"
                                   "level.0.names = a\n");
}

TEST_F(Reader, NumbersAreReadAndShownAlikeInEveryLocale) {
    const halocline_test::comma_locale foreign;
    if (!foreign.in_force()) GTEST_SKIP() << "localedef can make no locale here; Debian's package is 'locales'";

    read("[hmc]\nbeta = 5.75\n");
    EXPECT_EQ(reader_.values().beta, 5.75);
    reader_.set("hmc.beta", "2.5e-1", "--beta");
    EXPECT_EQ(reader_.values().beta, 0.25);
    EXPECT_NE(reader_.effective().find("hmc.beta = 0.25\n"), std::string::npos) << reader_.effective();
    reader_.set("hmc.beta", "+1", "--beta");
    EXPECT_EQ(reader_.values().beta, 1);
    for (const char* wrong : {"5,5", "", "+", "-", "+-1", " 1", "1 ", "0x10", "nan", "inf", "1e999", "1e3.5"})
        EXPECT_THROW(reader_.set("hmc.beta", wrong, "--beta"), config_error) << wrong;
}

TEST_F(Reader, ErrorsNameThePlaceAndWhatWouldBeRight) {
    EXPECT_EQ(refused("[hmc]\nstpes = 3\n"), ":2:9: unknown key '[hmc] stpes'; the nearest known one is '[hmc] steps'");
    EXPECT_EQ(refused("[hmc]\n  steps = 0\n"), ":2:11: [hmc] steps = '0': expected a whole number from 1 to 1000");
    EXPECT_EQ(refused("[hmc]\nbeta = [1.5, [2]]\n"), ":2:8: [hmc] beta: expected a flat array");
    EXPECT_EQ(refused("[hmc]\ndevice = \"a\\u0000b\"\n"), ":2:10: [hmc] device: expected a text without zero bytes");
    EXPECT_EQ(refused("[flow]\nsteps = 1\n"), ":1:1: unknown section [flow]; known are [hmc], [[level]]");
    EXPECT_EQ(refused("[[level]]\n[[level]]\nsteps = 1\n"),
              ":2:1: unknown section [[level]] number 1; there can be 1, from number 0");
    EXPECT_EQ(refused("seed = 1\n"), ":1:8: unknown key 'seed' at the top; keys stand in [hmc], [[level]]");
    EXPECT_NE(refused("[hmc\n").find(":1:"), std::string::npos);
}

/// Otherwise ["", "a"] would be read as a list of one.
TEST_F(Reader, NoItemOfAnArrayIsDroppedOrDivided) {
    for (const std::string list : {"['', 'a']", "['a', '']", "['']"})
        EXPECT_EQ(refused("[[level]]\nnames = " + list + "\n"),
                  ":2:9: [[level]] number 0, names: expected an array without empty texts");
    EXPECT_EQ(refused("[[level]]\nnames = ['a,b', 'c']\n"), // which would be three
              ":2:9: [[level]] number 0, names: expected an array of texts without commas, which separate its items");
    EXPECT_EQ(refused("[[level]]\nnames = ['b', 'c']\n"), "");
    EXPECT_EQ(reader_.values().names, (std::vector<std::string>{"b", "c"}));
}

/// Whether its value is whole or not.
TEST_F(Reader, ARealNumberIsNoWholeOne) {
    EXPECT_EQ(refused("[hmc]\nsteps = 1e2\n"), ":2:9: [hmc] steps = '100.0': expected a whole number from 1 to 1000");
    EXPECT_NE(refused("[hmc]\nsteps = 1e25\n"), "");
    EXPECT_NE(refused("[hmc]\nsteps = 2.5\n"), "");
    EXPECT_EQ(refused("[hmc]\nbeta = 1e2\n"), "");
    EXPECT_EQ(reader_.values().beta, 100);
    EXPECT_EQ(refused("[hmc]\nbeta = 5\n"), "");
    EXPECT_EQ(reader_.values().beta, 5);
}

TEST_F(Reader, AnAbbreviationIsNearWhatItStandsFor) {
    EXPECT_EQ(refused("[hmc]\ndev = 3\n"), ":2:7: unknown key '[hmc] dev'; the nearest known one is '[hmc] device'");
    EXPECT_EQ(refused("[hmc]\nhat = 3\n"), ":2:7: unknown key '[hmc] hat'; the nearest known one is '[hmc] hot'");
    const environment_variable abbreviated("HALOCLINE_HMC_DEV", "3");
    try {
        reader_.read_environment();
        ADD_FAILURE() << "not refused";
    } catch (const config_error& e) {
        EXPECT_NE(std::string(e.what()).find("nearest known one is 'HALOCLINE_HMC_DEVICE'"), std::string::npos)
            << e.what();
    }
}

TEST_F(Reader, VariablesThatAreNearlyOursAreRefusedAndOthersAreNot) {
    const auto refusal_of = [&](const std::string& variable) -> std::string {
        const environment_variable set(variable, "3");
        return halocline_test::refusal<config_error>([&] { reader_.read_environment(); });
    };
    const std::pair<const char*, const char*> nearly[] = {{"HALOCLINE_LEVELS_0_STEPS", "HALOCLINE_LEVEL_0_STEPS"},
                                                          {"HALOCLINE_LEVE_0_STEPS", "HALOCLINE_LEVEL_0_STEPS"},
                                                          {"HALOCLINE_HM_STEPS", "HALOCLINE_HMC_STEPS"},
                                                          {"HALOCLINE_HMCDEVICE", "HALOCLINE_HMC_DEVICE"},
                                                          {"HALOCLINE_GRACE", "HALOCLINE_GRACE_MS"},
                                                          {"HALOCLINE_STAL_MS", "HALOCLINE_STALL_MS"},
                                                          {"HALOCLINE_CHEKC", "HALOCLINE_CHECK"},
                                                          {"HALOCLINE_CONFIG_FILE", "HALOCLINE_CONFIG"},
                                                          {"HALOCLINE_hmc_steps", "HALOCLINE_HMC_STEPS"},
                                                          {"halocline_hmc_steps", "HALOCLINE_HMC_STEPS"}};
    for (const auto& [variable, meant] : nearly)
        EXPECT_NE(
            refusal_of(variable).find(std::string("'") + variable + "'; the nearest known one is '" + meant + "'"),
            std::string::npos)
            << refusal_of(variable);
    for (const char* other : {"HALOCLINE_RANK", "HALOCLINE_SIZE", "HALOCLINE_JOB", "HALOCLINE_BOOTSTRAP_FD",
                              "HALOCLINE_LIFELINES", "HALOCLINE_HOME", "HALOCLINE_TEST_SEEDS", "HALOCLINE_HM_NAME"})
        EXPECT_EQ(refusal_of(other), "accepted") << other;
}

TEST_F(Reader, WhatIsNearNoKeyIsToldTheKeysOfItsSection) {
    EXPECT_EQ(refused("[hmc]\nzzzzzz = 3\n"),
              ":2:10: unknown key '[hmc] zzzzzz'; known are [hmc] steps, beta, hot, device");
    EXPECT_EQ(refused("[hmc.x]\nsteps = 3\n"), ":1:1: unknown key '[hmc] x'; known are [hmc] steps, beta, hot, device");
    EXPECT_EQ(refused("[hmc]\n" + std::string(200, 'z') + " = 3\n"),
              ":2:204: unknown key '[hmc] " + std::string(74, 'z') + "...'; known are [hmc] steps, beta, hot, device");
}

/// The parser of TOML calls itself for each part of a name.
TEST_F(Reader, ADeepNameIsRefusedBeforeItsPartsFillTheStack) {
    std::string parts;
    for (int n = 0; n < 300'000; ++n) parts += "a.";
    const std::string why = ": a key or section with more than 16 dots in its name";

    EXPECT_EQ(refused("# deep\n" + parts + "a = 1\n"), ":2" + why);
    EXPECT_EQ(refused("[" + parts + "a]\n"), ":1" + why);
    EXPECT_EQ(refused("a = [\n{b = \"\"\"\n\\\"\"\"\"\"\", " + parts + "a = 1}]\n"), ":3" + why);
    EXPECT_EQ(refused("'\"'." + parts + "a = 1\n"), ":1" + why);
}

TEST_F(Reader, DotsInTextsCommentsAndListsAreNoDepth) {
    const std::string dots(1000, '.');
    std::string list = "1.5";
    for (int n = 0; n < 100; ++n) list += ", 1.5";

    EXPECT_EQ(refused("# " + dots + "\n[flow]\na = \"" + dots + "\"\nb = '''\n" + dots + "''''\nc = [" + list +
                          "]\nd = \"\\\"" + dots + "\" # '\n[hmc]\nsteps = 5\n",
                      other_sections::left_alone),
              "");
    EXPECT_EQ(reader_.values().steps, 5);
}

TEST_F(Reader, ErrorsAreOneLineThatNoTerminalObeys) {
    EXPECT_EQ(refused("[hmc]\nsteps = \"1\\n\\u001b[31m\\u007f\u00e9\"\n"),
              ":2:9: [hmc] steps = '1??[31m?\u00e9': expected a whole number from 1 to 1000");
    EXPECT_EQ(refused("[hmc]\n\"st\\teps\" = 3\n"),
              ":2:13: unknown key '[hmc] st?eps'; the nearest known one is '[hmc] steps'");
}

TEST_F(Reader, SectionsOfOthersMayStandInAFileThatAllReadUnlessTheyAreNearlyOurs) {
    EXPECT_EQ(refused("seed = 1\n[flow]\nsteps = {a = 1}\n[hmc]\nsteps = 5\n", other_sections::left_alone), "");
    EXPECT_EQ(reader_.values().steps, 5);
    EXPECT_EQ(refused("[hop]\nsteps = 1\n", other_sections::left_alone),
              ""); // two letters: another program's
    EXPECT_EQ(refused("[hcm]\nsteps = 1\n", other_sections::left_alone),
              ":1:1: unknown section [hcm]; known are [hmc], [[level]]"); // swapped
    EXPECT_EQ(refused("[HMC]\nsteps = 1\n", other_sections::left_alone),
              ":1:1: unknown section [HMC]; known are [hmc], [[level]]");
    EXPECT_EQ(refused("[[hmc]]\nsteps = 1\n", other_sections::left_alone),
              ":1:1: unknown section [[hmc]] number 0; known are [hmc], [[level]]");
    for (const std::string name : {"level", "levels", "Level"})
        EXPECT_EQ(refused("[" + name + "]\nsteps = 1\n", other_sections::left_alone),
                  ":1:1: unknown section [" + name + "]; known are [hmc], [[level]]");
    EXPECT_EQ(refused("[level.0]\nsteps = 1\n", other_sections::left_alone),
              ":1:1: unknown section [level]; known are [hmc], [[level]]");
    EXPECT_EQ(refused("[bevels]\nsteps = 1\n", other_sections::left_alone), "");
    EXPECT_EQ(refused("steps = 1\n", other_sections::left_alone),
              ":1:9: 'steps' stands in no section; write it below [hmc]");
}

TEST_F(Reader, WhatIsNoFileOfSettingsIsRefused) {
    const auto refusal = [&](const std::string& path) {
        try {
            reader_.read_file(path, other_sections::refused);
        } catch (const config_error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    std::ofstream(folder_ / "large.toml") << std::string((1 << 20) + 1, '#');

    EXPECT_NE(refusal("/nowhere/run.toml").find("No such file"), std::string::npos);
    EXPECT_NE(refusal("/dev/null").find("is not a regular file"), std::string::npos);
    EXPECT_EQ(refusal("/proc/self/mem"), "config file '/proc/self/mem': can't be read"); // opened, but not read
    EXPECT_NE(refusal(folder_ / "large.toml").find("1048577 bytes; the limit is 1048576"), std::string::npos);
}

} // namespace
