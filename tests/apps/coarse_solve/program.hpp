// SPDX-License-Identifier: Apache-2.0
// coarse_solve as a user starts it, and its JSON output.
#pragma once

#include <halocline_test/run_command.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <complex>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace coarse_solve_test {

using halocline_test::command_result;
using halocline_test::run_command;
using halocline_test::scratch_folder;
using nlohmann::json;
using complex = std::complex<double>;

inline const std::string bin = HALOCLINE_BIN;

inline std::string on_ranks(int ranks, const std::string& arguments) {
    return bin + "/halocline-run -n " + std::to_string(ranks) + " -- " + bin + "/coarse_solve " + arguments;
}

inline std::string under_mpi(const std::string& mpirun, int ranks, const std::string& arguments) {
    return "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 " +
           mpirun + " -n " + std::to_string(ranks) + " " + bin + "/coarse_solve " + arguments;
}

inline bool installed(const std::string& program) {
    return run_command("sh -c 'command -v " + program + "'").exit_code == 0;
}

/// Runs a solve with --json; expects `exit_code`. The results, by right-hand side.
inline std::vector<json> solve_all(const std::function<std::string(const std::string&)>& launch,
                                   const std::string& arguments, int exit_code = 0) {
    const scratch_folder scratch;
    const std::string file = scratch / "result.json";
    const command_result run = run_command(launch(arguments + " --json " + file));
    EXPECT_EQ(run.exit_code, exit_code) << run.out << run.err;
    std::ifstream lines(file);
    std::vector<json> results;
    for (std::string line; std::getline(lines, line);) results.push_back(json::parse(line));
    return results;
}

/// The same for one right-hand side; null if there is no result.
inline json solve(const std::function<std::string(const std::string&)>& launch, const std::string& arguments,
                  int exit_code = 0) {
    const std::vector<json> results = solve_all(launch, arguments, exit_code);
    EXPECT_LE(results.size(), 1);
    return results.empty() ? json() : results.front();
}

inline auto ranks(int n) {
    return [n](const std::string& a) { return on_ranks(n, a); };
}

inline complex number(const json& pair) { return {pair.at(0), pair.at(1)}; }

inline void expect_same_solution(const json& a, const json& b, double tolerance) {
    EXPECT_NEAR(a["solution_norm"], b["solution_norm"], tolerance * double(b["solution_norm"]));
    for (const char* key : {"solution_sum", "first_component"})
        EXPECT_LE(std::abs(number(a[key]) - number(b[key])), tolerance * std::abs(number(b[key]))) << key;
}

/// Compares everything that a solve reports about its solution and the way there, to the last bit.
inline void expect_same_bits(const json& a, const json& b, const std::string& what) {
    for (const char* key :
         {"solution_norm", "solution_sum", "first_component", "true_relative_residual", "outer_iterations", "history"})
        EXPECT_EQ(a[key], b[key]) << key << " " << what;
    if (a["at_once"] == b["at_once"]) { // it is of all that were iterated together
        EXPECT_EQ(a["coarse_iterations_average"], b["coarse_iterations_average"]) << what;
    }
}

} // namespace coarse_solve_test
