// SPDX-License-Identifier: Apache-2.0
// How long do set-up and solve of the multigrid take, and where does the time go?  scripts/bench.sh solve [--np N]
//
// Each round makes a new solver, sets it up and solves for ones on the right-hand side. --peer 'COMMAND' runs a foreign
// program between our rounds and takes its seconds by regular expressions on its output (--peer-setup, --peer-solve);
// our ranks sleep meanwhile. JSON lines at the end: seconds of the slowest rank, least and median over the rounds.
#include <halocline/amg/solver.hpp>
#include <halocline/dirac/gauge_configuration.hpp>
#include <halocline_app/demo_configuration.hpp>
#include <halocline_app/main.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <regex>
#include <sched.h>
#include <string>
#include <sys/wait.h>
#include <vector>

namespace halocline::app {
namespace {

/// Seconds of each round, by what was timed.
using timings = std::map<std::string, std::vector<double>>;

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    const std::size_t half = v.size() / 2;
    return v.size() % 2 == 1 ? v[half] : (v[half - 1] + v[half]) / 2;
}

std::string output_of(const std::string& command) {
    // halocline-run has pinned this rank; the peer chooses its cores for itself.
    cpu_set_t mine, all;
    std::memset(&all, 0xff, sizeof all);
    sched_getaffinity(0, sizeof mine, &mine);
    sched_setaffinity(0, sizeof all, &all);
    std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    sched_setaffinity(0, sizeof mine, &mine);
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

/// The last match of group 1 in the text.
double seconds_in(const std::string& text, const std::string& pattern) {
    const std::regex expression(pattern);
    std::string last;
    for (std::sregex_iterator m(text.begin(), text.end(), expression), end; m != end; ++m) last = m->str(1);
    if (last.empty()) throw error("the peer's output has no match of '" + pattern + "'");
    return std::stod(last);
}

int bench(program& p, int argc, const char* const* argv) {
    std::string gauge, peer, peer_setup, peer_solve, git = "unknown";
    int rounds = 5, vectors = 28, setup_iterations = 4;
    dirac::wilson_parameters op;
    CLI::App options("Times set-up and solve of the multigrid.");
    options.add_option("--gauge", gauge, "gauge file (default: the demo configuration, 8.8.8.8 at beta 6.0)");
    options.add_option("--rounds", rounds, "set-ups and solves")->check(CLI::PositiveNumber);
    options.add_option("--vectors", vectors, "test vectors");
    options.add_option("--setup", setup_iterations, "bootstrap set-up iterations");
    options.add_option("--m0", op.m0, "bare mass");
    options.add_option("--csw", op.csw, "clover coefficient");
    options.add_option("--peer", peer, "foreign command that takes turns with ours");
    CLI::Option* const setup =
        options.add_option("--peer-setup", peer_setup, "regex on its output: group 1 is seconds of the set-up");
    CLI::Option* const solve = options.add_option("--peer-solve,--peer-seconds", peer_solve,
                                                  "regex on its output: group 1 is seconds of the solve");
    setup->needs("--peer");
    solve->needs("--peer");
    options.add_option("--git", git, "version to put on record");
    p.parse(options, argc, argv);
    if (!peer.empty() && peer_setup.empty() && peer_solve.empty())
        throw input_error("--peer needs --peer-solve or --peer-setup: which part of its output are seconds?");

    comm::job_options patient;
    patient.deadline = std::chrono::minutes(10); // for the peer's turn
    const comm::job& j = p.join(patient);
    if (gauge.empty()) gauge = demo_configuration(j, [&](std::string_view line) { p.print(line); });
    lattice::gauge_file file;
    j.collectively([&] { file = lattice::open_gauge_file(gauge); });
    amg::amg_options amg_options;
    amg_options.blocks = amg::default_blocks(file.extents);
    amg_options.vectors = vectors;
    amg_options.setup_iterations = setup_iterations;
    const auto grids = lattice::admissible_rank_grids(file.extents, j.ranks(), *amg_options.blocks);
    if (grids.empty())
        throw input_error("no rank grid of " + std::to_string(j.ranks()) + " ranks cuts " +
                          lattice::to_string(file.extents) + " between blocks of " +
                          lattice::to_string(*amg_options.blocks));
    const auto cut = lattice::decomposition::even(file.extents, grids.front(), *amg_options.blocks);
    const dirac::padded_links links(j, cut, dirac::read_configuration(j, cut, file).links);
    const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
    lattice::field<double> b(order, lattice::spinor_components), x(order, lattice::spinor_components);
    for (std::int64_t site = 0; site < b.volume(); ++site)
        for (int c = 0; c < lattice::spinor_components; c += 2) b.at(site, c) = 1;

    timings ours, theirs;
    amg::amg_report last;
    for (int round = 0; round < rounds; ++round) {
        amg::solver solver(j, cut, links, op, amg_options);
        j.barrier();
        solver.setup();
        last = solver.solve(x, b);
        if (!last.converged()) throw error("the solve ended as " + std::string(solvers::to_string(last.outer.status)));
        ours["setup"].push_back(last.setup_seconds);
        ours["solve"].push_back(last.solve_seconds);
        ours["coarse"].push_back(last.coarse.seconds);
        ours["halo"].push_back(last.coarse.halo_seconds);
        ours["sums"].push_back(last.coarse.global_sum_seconds);
        if (!peer.empty())
            j.collectively([&] { // the other ranks sleep
                if (j.rank() != 0) return;
                const std::string text = output_of(peer);
                if (!peer_setup.empty()) theirs["setup"].push_back(seconds_in(text, peer_setup));
                if (!peer_solve.empty()) theirs["solve"].push_back(seconds_in(text, peer_solve));
            });
    }

    const auto line = [&](const char* who, const timings& t) {
        char head[512];
        std::snprintf(head, sizeof head, R"({"bench":"solve","who":"%s","ranks":%d,"transport":"%s","rounds":%d)", who,
                      j.ranks(), j.transport().c_str(), rounds);
        std::string text = head;
        for (const auto& [what, seconds] : t) {
            std::snprintf(head, sizeof head, R"(,"%s_seconds":{"min":%.5f,"median":%.5f})", what.c_str(),
                          *std::min_element(seconds.begin(), seconds.end()), median(seconds));
            text += head;
        }
        return text;
    };
    char tail[512];
    std::snprintf(
        tail, sizeof tail,
        R"(,"lattice":"%s","outer_iterations":%d,"coarse_iterations_average":%.2f,"compiler":"%s","git":"%s"})",
        lattice::to_string(file.extents).c_str(), last.outer.iterations, last.coarse_iterations_average(), __VERSION__,
        git.c_str());
    p.print(line("ours", ours) + tail);
    if (theirs.empty()) return exit_success;
    p.print(line("peer", theirs) + "}");
    std::string ratios = R"({"bench":"solve","who":"ours/peer")";
    for (const auto& [what, seconds] : theirs) { // round by round: both saw the same machine
        std::vector<double> ratio;
        for (std::size_t i = 0; i < seconds.size(); ++i) ratio.push_back(ours[what][i] / seconds[i]);
        std::snprintf(tail, sizeof tail, R"(,"%s_ratio":{"min":%.3f,"median":%.3f})", what.c_str(),
                      *std::min_element(ratio.begin(), ratio.end()), median(ratio));
        ratios += tail;
    }
    p.print(ratios + "}");
    return exit_success;
}

} // namespace
} // namespace halocline::app

int main(int argc, char** argv) { return halocline::app::run_program(argc, argv, halocline::app::bench); }
