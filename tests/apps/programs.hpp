// SPDX-License-Identifier: Apache-2.0
// What tests of programs as a shell sees them have in common.
#pragma once

#include <halocline_test/contains.hpp>
#include <halocline_test/run_command.hpp>

#include <gtest/gtest.h>

#include <string>

namespace halocline_test {

inline const std::string bin = HALOCLINE_BIN "/";
inline const std::string run2 = bin + "halocline-run -n 2 -- " + bin;
/// The shortest solve; it does not converge.
inline const std::string short_solve = "coarse_solve --max-iterations 1 --setup 0 --vectors 4";

/// Runs a shell's command line, which contains no single quotes.
inline command_result shell(const std::string& line) { return run_command("sh -c '" + line + "'"); }

/// Expects that the program ended with this code and one line of error that contains `text`.
inline void expect_one_error(const command_result& run, int exit_code, const std::string& text) {
    EXPECT_EQ(run.exit_code, exit_code) << run.out << run.err;
    EXPECT_TRUE(contains(run.err, text)) << run.err << "\nhas not: " << text;
    EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << "more than one message, or none:\n" << run.err;
}

/// Runs the line where /mnt is a disk of 64 KiB. Exit code 0 of "true" means that this is possible here.
inline command_result on_small_disk(const std::string& line) {
    return shell("unshare -rm sh -c \"mount -t tmpfs -o size=64k none /mnt && " + line + "\"");
}

} // namespace halocline_test
