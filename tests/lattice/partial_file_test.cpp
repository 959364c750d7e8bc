// SPDX-License-Identifier: Apache-2.0
// Two runs that were given the same file: one writes it, the other is told which process does. Leftovers of killed runs
// are replaced.
#include <halocline/base/error.hpp>
#include <halocline/lattice/partial_file.hpp>
#include <halocline_test/contains.hpp>
#include <halocline_test/other_user.hpp>
#include <halocline_test/run_command.hpp>

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace halocline::lattice;
using halocline_test::can_drop_privileges;
using halocline_test::contains;
using halocline_test::drop_privileges;
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

/// In a process without root's rights, which ends with what `body` returns.
template <class Body>
bool holds_for_other_user(const Body& body) {
    const pid_t other = ::fork();
    if (other == 0) ::_exit(drop_privileges() && body() ? 0 : 1);
    int how = -1;
    return ::waitpid(other, &how, 0) == other && how == 0;
}

std::string looked(const std::string& path) {
    try {
        return partial_writer(path);
    } catch (const halocline::file_error& e) {
        return e.what();
    }
}

TEST(PartialFile, ThatCannotBeOpenedStaysWithTheRunThatWritesIt) {
    if (!can_drop_privileges()) GTEST_SKIP() << "there is no user but root, who can open every file";
    const scratch_folder scratch;
    const std::string path = scratch / "x";
    std::filesystem::permissions(scratch / "", std::filesystem::perms::all); // a folder of several users
    partial_file first(path);
    first.create();
    std::ofstream(first.name()) << "of the first run";

    ::chmod(first.name().c_str(), 0);
    EXPECT_TRUE(holds_for_other_user([&] {
        return contains(refusal(path), "can't be opened: Permission denied") &&
               contains(looked(path), "can't be opened to see whether a run is writing it: Permission denied");
    }));
    ::chmod(first.name().c_str(), 0444);
    EXPECT_TRUE(holds_for_other_user([&] {
        const std::string me = "process " + std::to_string(::getppid()) + " (";
        return contains(refusal(path), "is being written by " + me) && contains(looked(path), me);
    }));
    EXPECT_TRUE(holds_for_other_user([&] {
        const rlimit none{3, 3};
        return ::setrlimit(RLIMIT_NOFILE, &none) == 0 && contains(refusal(path), "can't be opened: Too many open") &&
               contains(looked(path), "Too many open files");
    }));

    EXPECT_EQ(read_text(first.name()), "of the first run");
    first.publish();
}

TEST(PartialFile, OfAnotherUsersKilledRunIsReplaced) {
    const scratch_folder scratch;
    const std::string path = scratch / "x";
    std::filesystem::permissions(scratch / "", std::filesystem::perms::all);
    for (const std::string left : {"", "half a file"}) { // it may have been killed before it wrote anything
        std::ofstream(partial_name(path)) << left;
        ::chmod(partial_name(path).c_str(), 0444);

        EXPECT_TRUE(holds_for_other_user([&] {
            write_text_file(path, "a whole file");
            return true;
        }));

        EXPECT_EQ(read_text(path), "a whole file");
        std::filesystem::remove(path);
    }
}

mode_t permissions_of(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
}

TEST(PartialFile, KeepsThePermissionsOfTheFileThatItReplaces) {
    const scratch_folder scratch;
    const std::string path = scratch / "x";
    std::filesystem::permissions(scratch / "", std::filesystem::perms::all);
    for (const mode_t mode : {0600, 0640, 0444, 0666}) {
        EXPECT_TRUE(holds_for_other_user([&] { // whom 0444 keeps from writing
            std::ofstream(path) << "old";
            ::chmod(path.c_str(), mode);
            partial_file file(path);
            file.create();
            if ((permissions_of(file.name()) & ~mode_t{S_IRUSR | S_IWUSR}) != (mode & ~mode_t{S_IRUSR | S_IWUSR}))
                return false;
            file.publish();
            write_text_file(path, "new");
            return true;
        }));

        EXPECT_EQ(permissions_of(path), mode);
        EXPECT_EQ(read_text(path), "new");
        std::filesystem::remove(path);
    }
}

TEST(PartialFile, OfALinkIsThatOfItsTargetThereOrNot) {
    const scratch_folder scratch;
    const std::string link = scratch / "link", target = scratch / "folder/target";
    std::filesystem::create_directory(scratch / "folder");
    std::filesystem::create_symlink("folder/second", link);
    std::filesystem::create_symlink(target, scratch / "folder/second");
    std::filesystem::create_symlink("ring", scratch / "ring");

    EXPECT_EQ(partial_name(link), target + ".partial");
    for (const std::string text : {"first", "second"}) {
        write_text_file(link, text);

        EXPECT_TRUE(std::filesystem::is_symlink(link));
        EXPECT_TRUE(std::filesystem::is_symlink(scratch / "folder/second"));
        EXPECT_FALSE(std::filesystem::is_symlink(target));
        EXPECT_EQ(read_text(target), text);
    }
    EXPECT_NE(refusal(scratch / "ring").find("Too many levels"), std::string::npos) << refusal(scratch / "ring");
    EXPECT_TRUE(std::filesystem::is_symlink(scratch / "ring"));
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
