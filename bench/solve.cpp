// SPDX-License-Identifier: Apache-2.0
// How long do set-up and solve of the multigrid take, and where does the time go?  scripts/bench.sh solve [--np N]
//
// Each round makes a new solver (construct_seconds: operators, plans, memory), sets it up and solves with a right-hand
// side of ones. --peer 'COMMAND' runs a foreign program between our rounds and extracts its seconds with regular
// expressions from its output (--peer-setup, --peer-solve); our ranks sleep meanwhile. JSON lines at the end: seconds
// of the slowest rank, least and median over the rounds.
#include "support/command_line.hpp"
#include "support/probed_facts.hpp"
#include "support/solver_problem.hpp"
#include "support/statistics.hpp"

#include <halocline/amg/solver.hpp>
#include <halocline/base/stopwatch.hpp>
#include <halocline/comm/processors.hpp>
#include <halocline_app/main.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <regex>
#include <string>
#include <sys/wait.h>
#include <vector>

namespace halocline::app {
namespace {

/// Seconds of each round, by what was timed.
using timings = std::map<std::string, std::vector<double>>;

/// The command may use the processors of all ranks, even though this rank may be bound to one of them.
std::string output_of(const std::string& command, const std::vector<int>& processors) {
    const std::vector<int> mine = comm::usable_processors();
    comm::bind_to(processors);
    std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    comm::bind_to(mine);
    if (pipe == nullptr) throw error("--peer: can't start '" + command + "'");
    std::string text;
    std::array<char, 4096> part{};
    for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) text.append(part.data(), n);
    if (const int status = pclose(pipe); status != 0)
        throw error("--peer '" + command + "' ended with status " +
                    std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : status) +
                    ", its last words: " + text.substr(text.size() - std::min<std::size_t>(text.size(), 400)));
    return text;
}

/// Err: input_error: no regular expression, or one without a group.
std::regex expression_of(const std::string& flag, const std::string& pattern) {
    const auto refuse = [&](const std::string& why) { throw input_error(flag + " '" + pattern + "': " + why); };
    try {
        std::regex expression(pattern);
        if (expression.mark_count() == 0) refuse("expected a group, such as in 'took ([0-9.]+)'");
        return expression;
    } catch (const std::regex_error& e) {
        refuse(e.what());
    }
    return {};
}

/// The last match of group 1 in the text.  Err: error: none, or no positive number.
double seconds_in(const std::string& text, const std::string& flag, const std::string& pattern) {
    const std::regex expression = expression_of(flag, pattern);
    std::string last;
    for (std::sregex_iterator m(text.begin(), text.end(), expression), end; m != end; ++m) last = m->str(1);
    if (last.empty()) throw error("the peer's output has no match of '" + pattern + "'");
    char* rest = nullptr;
    const double seconds = std::strtod(last.c_str(), &rest);
    if (*rest != '\0' || !(seconds > 0) || !std::isfinite(seconds))
        throw error("the peer's '" + last + "', by " + flag + ", are no seconds to compare with: expected more than 0");
    return seconds;
}

struct arguments {
    bench::solver_problem_options problem;
    std::string peer, peer_setup, peer_solve, git = bench::measured_git();
    int rounds = 5;
};

arguments read_command_line(const program& p, int argc, const char* const* argv) {
    arguments a;
    CLI::App options("Times set-up and solve of the multigrid.");
    a.problem.add_to(options);
    bench::add_rounds(options, a.rounds, "set-ups and solves");
    options.add_option("--peer", a.peer, "foreign command that takes turns with ours");
    CLI::Option* const setup =
        options.add_option("--peer-setup", a.peer_setup, "regex on its output: group 1 is seconds of the set-up");
    CLI::Option* const solve = options.add_option("--peer-solve,--peer-seconds", a.peer_solve,
                                                  "regex on its output: group 1 is seconds of the solve");
    setup->needs("--peer");
    solve->needs("--peer");
    options.add_option("--git", a.git, "version to put on record (default: $HALOCLINE_BENCH_GIT)");
    p.parse(options, argc, argv);
    if (!a.peer_setup.empty()) (void)expression_of("--peer-setup", a.peer_setup);
    if (!a.peer_solve.empty()) (void)expression_of("--peer-solve", a.peer_solve);
    if (!a.peer.empty() && a.peer_setup.empty() && a.peer_solve.empty())
        throw input_error("--peer needs --peer-solve or --peer-setup: which part of its output are seconds?");
    return a;
}

/// One set-up and one solve.
amg::solver_report take_turn(const comm::job& j, amg::solver& solver, lattice::field<double>& x,
                             const lattice::field<double>& b, timings& ours) {
    j.barrier();
    solver.setup();
    amg::solver_report report = solver.solve(x, b);
    if (!report.converged()) throw error("the solve ended as " + std::string(solvers::to_string(report.outer.status)));
    ours["setup"].push_back(report.setup_seconds);
    ours["solve"].push_back(report.solve_seconds);
    ours["coarse"].push_back(report.coarse.seconds);
    ours["halo"].push_back(report.coarse.halo_seconds);
    ours["sums"].push_back(report.coarse.global_sum_seconds);
    return report;
}

/// One run of the peer; ranks other than 0 sleep meanwhile.
void give_turn(const comm::job& j, const arguments& a, timings& theirs) {
    if (a.peer.empty()) return;
    const std::vector<int> processors = bench::processors_of(j);
    j.collectively([&] {
        if (j.rank() != 0) return;
        const std::string text = output_of(a.peer, processors);
        if (!a.peer_setup.empty()) theirs["setup"].push_back(seconds_in(text, "--peer-setup", a.peer_setup));
        if (!a.peer_solve.empty()) theirs["solve"].push_back(seconds_in(text, "--peer-solve", a.peer_solve));
    });
}

/// "setup_seconds":{"min":…,"median":…} for each kind of values.
bench::json_line times_of(const timings& t, const std::string& unit) {
    bench::json_line line;
    for (const auto& [what, values] : t) {
        bench::json_line both;
        both.add("min", *std::ranges::min_element(values), 5).add("median", bench::median(values), 5);
        line.add_object(what + "_" + unit, both);
    }
    return line;
}

/// Round by round, because both saw the same machine within a round.
timings ratios(const timings& ours, const timings& theirs) {
    timings result;
    for (const auto& [what, seconds] : theirs)
        for (std::size_t i = 0; i < seconds.size(); ++i) result[what].push_back(ours.at(what)[i] / seconds[i]);
    return result;
}

int run(program& p, int argc, const char* const* argv) {
    arguments a = read_command_line(p, argc, argv);
    comm::job_options patient;
    patient.deadline = std::chrono::minutes(10); // for the peer's turn
    const comm::job& j = p.join(patient);
    const auto [cut, links] = bench::load(p, j, a.problem);
    const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
    lattice::field<double> b(order, lattice::spinor_components), x(order, lattice::spinor_components);
    for (std::int64_t site = 0; site < b.volume(); ++site)
        for (int c = 0; c < lattice::spinor_components; c += 2) b.at(site, c) = 1;

    bench::probed_facts facts(j);
    facts.measured(a.git);
    facts.probe();
    timings ours, theirs;
    amg::solver_report last;
    for (int round = 0; round < a.rounds; ++round) {
        j.barrier();
        const stopwatch construction;
        amg::solver solver(j, cut, links, a.problem.op, a.problem.solver);
        j.barrier();
        ours["construct"].push_back(construction.seconds());
        last = take_turn(j, solver, x, b, ours);
        give_turn(j, a, theirs);
    }

    const auto print = [&](const char* who, std::initializer_list<bench::json_line> members) {
        bench::json_line line;
        line.add("bench", "solve").add("who", who);
        for (const bench::json_line& m : members) line.add(m);
        p.print(line.add(facts.line()).text());
    };
    bench::json_line job, solve;
    job.add("ranks", j.ranks()).add("transport", j.transport()).add("rounds", a.rounds);
    solve.add("lattice", lattice::to_string(cut.global())).add("outer_iterations", last.outer.iterations);
    solve.add("coarse_iterations_average", last.coarse_iterations_average(), 2);
    print("ours", {job, times_of(ours, "seconds"), solve});
    if (theirs.empty()) return exit_success;
    print("peer", {job, times_of(theirs, "seconds")});
    print("ours/peer", {times_of(ratios(ours, theirs), "ratio")});
    return exit_success;
}

} // namespace
} // namespace halocline::app

int main(int argc, char** argv) { return halocline::app::run_program(argc, argv, halocline::app::run); }
