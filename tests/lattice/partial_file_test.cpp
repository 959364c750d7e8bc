// SPDX-License-Identifier: Apache-2.0
// Two runs that were given the same file: one writes it, the other is told which process does. Leftovers of killed runs
// are replaced.
#include <halocline/base/error.hpp>
#include <halocline/lattice/partial_file.hpp>
#include <halocline_test/run_command.hpp>

#include <gtest/gtest.h>

#include <sys/wait.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace halocline::lattice;
using halocline_test::read_text;
using halocline_test::scratch_folder;

std::string refusal(const std::string& path) {
    try {
        partial_file(path).create();
    } catch (const halocline::file_error& e) {
        return e.what();
    }
    return {};
}

TEST(PartialFile, OfTwoRunsTheSecondIsToldWhoWritesTheFile) {
    const scratch_folder scratch;
    const std::string path = scratch / "x";
    partial_file first(path);
    first.create();

    const std::string told = refusal(path);

    const std::string me = "process " + std::to_string(::getpid()) + " (";
    EXPECT_EQ(told.find("'" + path + "': is being written by " + me), 0U) << told;
    EXPECT_NE(told.find(first.name()), std::string::npos) << told;
    EXPECT_EQ(partial_writer(path).find(me), 0U) << partial_writer(path);
    first.publish(); // the first run's file is intact
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_EQ(partial_writer(path), "");
    EXPECT_EQ(refusal(path), "");
}

TEST(PartialFile, RunsThatEndAtOnceWriteInTurn) {
    const scratch_folder scratch;
    const std::string path = scratch / "x";
    std::vector<std::thread> runs;
    for (char who = 'a'; who < 'i'; ++who)
        runs.emplace_back([&path, who] {
            for (int i = 0; i < 5; ++i) write_text_file(path, std::string(1000, who));
        });
    for (auto& run : runs) run.join();

    const std::string text = read_text(path);
    EXPECT_EQ(text, std::string(1000, text.at(0)));
    EXPECT_FALSE(std::filesystem::exists(partial_name(path)));
}

TEST(PartialFile, OfAKilledRunIsNobodysAndReplaced) {
    const scratch_folder scratch;
    const std::string path = scratch / "x";
    const pid_t run = ::fork();
    if (run == 0) {
        partial_file left(path);
        left.create();
        std::ofstream(left.name()) << "half a file, and longer than the whole one";
        ::raise(SIGKILL);
    }
    ::waitpid(run, nullptr, 0);

    EXPECT_TRUE(std::filesystem::exists(partial_name(path)));
    EXPECT_EQ(partial_writer(path), "");
    write_text_file(path, "a whole file");

    EXPECT_EQ(read_text(path), "a whole file");
    EXPECT_FALSE(std::filesystem::exists(partial_name(path)));
}

TEST(PartialFile, ThatWasTakenAwayIsNotTakenForThisOne) {
    const scratch_folder scratch;
    const std::string path = scratch / "x";
    {
        partial_file mine(path);
        mine.create();
        std::filesystem::remove(mine.name());
        std::ofstream(mine.name()) << "of another run";

        EXPECT_THROW(mine.publish(), halocline::file_error);
    }
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_EQ(read_text(partial_name(path)), "of another run");
}

} // namespace
