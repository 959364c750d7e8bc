// SPDX-License-Identifier: Apache-2.0
// What is gained by solving for several right-hand sides at once?  scripts/bench.sh propagator [--np N]
//
// Solves for the same right-hand sides with each number of them at once, in turn, round after round. Before each solve
// a set-up takes as many test vectors at once. The solutions must have the same bits. JSON lines: medians over the
// rounds of seconds for all right-hand sides, on the slowest rank, and of the ratios to the first number within a
// round.
#include "support/command_line.hpp"
#include "support/probed_facts.hpp"
#include "support/solver_problem.hpp"
#include "support/statistics.hpp"

#include <halocline/amg/solver.hpp>
#include <halocline/base/error.hpp>
#include <halocline/lattice/random.hpp>
#include <halocline_app/main.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace halocline::app {
namespace {

using field = lattice::field<double>;

struct arguments {
    bench::solver_problem_options problem;
    std::string transport, git = bench::measured_git();
    int rounds = 3, right_hand_sides = 12, block = 0;
    std::vector<int> at_once{1, 4, 8, 12};
};

arguments read_command_line(const program& p, int argc, const char* const* argv) {
    arguments a;
    CLI::App cli("What is gained by solving for several right-hand sides at once?");
    a.problem.add_to(cli);
    bench::add_rounds(cli, a.rounds, "set-ups and solves with each number at once");
    cli.add_option("--rhs", a.right_hand_sides, "random right-hand sides")->check(CLI::Range(1, 1000));
    cli.add_option("--at-once", a.at_once, "numbers to compare; ratios are to the first")
        ->check(CLI::Range(amg::ranges.at_once.least, amg::ranges.at_once.most));
    cli.add_option("--block", a.block, "extent of blocks in all dimensions (default: chosen)")
        ->check(CLI::Range(1, 64));
    cli.add_option("--transport", a.transport, "of all messages, such as ofi (default: the job's choice)");
    cli.add_option("--git", a.git, "version to put on record (default: $HALOCLINE_BENCH_GIT)");
    bench::later_replaces_earlier(cli);
    p.parse(cli, argc, argv);
    if (a.block > 0) a.problem.solver.blocks.emplace().fill(a.block);
    return a;
}

/// Random fields of this rank's box, the same on any cut.
std::vector<field> make_sources(const lattice::decomposition& cut, int rank, int count) {
    const lattice::box local = cut.local_box(rank);
    std::vector<field> sources;
    for (int k = 0; k < count; ++k) {
        field& b = sources.emplace_back(local.extents, lattice::spinor_components);
        for (std::int64_t site = 0; site < b.volume(); ++site) {
            const std::int64_t global_site = lattice::lexicographic_index(local.site(site), cut.global());
            lattice::site_random random(1, static_cast<std::uint32_t>(k), static_cast<std::uint64_t>(global_site));
            for (int c = 0; c < lattice::spinor_components; ++c) b.at(site, c) = random.normal();
        }
    }
    return sources;
}

template <class Field>
auto pointers_to(std::vector<field>& fields) {
    std::vector<Field*> pointers;
    for (field& one : fields) pointers.push_back(&one);
    return pointers;
}

/// Seconds of each round, by what was timed.
using timings = std::map<std::string, std::vector<double>>;

/// One set-up, and the solves for all right-hand sides.
std::vector<amg::solver_report> take_turn(const comm::job& j, amg::solver& solver, std::vector<field>& x,
                                          std::vector<field>& b, timings& seconds) {
    j.barrier();
    solver.setup();
    std::vector<amg::solver_report> reports = solver.solve(pointers_to<field>(x), pointers_to<const field>(b));
    std::map<std::string, double> sums;
    for (const amg::solver_report& r : reports) {
        if (!r.converged()) throw error("a solve ended as " + std::string(solvers::to_string(r.outer.status)));
        sums["solves"] += r.solve_seconds / r.at_once; // of all that it was with
        sums["coarse"] += r.coarse.seconds / r.at_once;
        sums["halo"] += r.coarse.halo_seconds / r.at_once;
        sums["sums"] += r.coarse.global_sum_seconds / r.at_once;
    }
    sums["setup"] = reports.front().setup_seconds;
    for (const auto& [what, value] : sums) seconds[what].push_back(value);
    return reports;
}

/// Err: error: solutions differ from those that were found with another number at once.
void require_same(const std::vector<field>& x, const std::vector<field>& first) {
    for (std::size_t k = 0; k < x.size(); ++k)
        if (!std::ranges::equal(x[k].values(), first[k].values()))
            throw error("solution " + std::to_string(k) + " depends on how many are solved for at once");
}

int run(program& p, int argc, const char* const* argv) {
    arguments a = read_command_line(p, argc, argv);
    comm::job_options of_job;
    if (!a.transport.empty()) of_job.transports = {a.transport};
    const comm::job& j = p.join(of_job);
    if (!a.transport.empty()) bench::require_transport(j, a.transport);
    const auto [cut, links] = bench::load(p, j, a.problem);
    amg::solver_options options = a.problem.solver;
    std::vector<field> b = make_sources(cut, j.rank(), a.right_hand_sides), x, first;
    for (int k = 0; k < a.right_hand_sides; ++k) {
        x.emplace_back(cut.local_box(j.rank()).extents, lattice::spinor_components);
        first.emplace_back(cut.local_box(j.rank()).extents, lattice::spinor_components);
    }

    bench::probed_facts facts(j);
    facts.measured(a.git);
    facts.probe();
    std::vector<timings> seconds(a.at_once.size());
    std::vector<amg::solver_report> last(a.at_once.size()); // of the first right-hand side
    for (int round = 0; round < a.rounds; ++round)
        for (std::size_t i = 0; i < a.at_once.size(); ++i) {
            options.at_once = a.at_once[i];
            amg::solver solver(j, cut, links, a.problem.op, options);
            std::vector<field>& to = round == 0 && i == 0 ? first : x;
            last[i] = take_turn(j, solver, to, b, seconds[i]).front();
            if (&to == &x) j.collectively([&] { require_same(x, first); });
        }

    for (std::size_t i = 0; i < a.at_once.size(); ++i) {
        bench::json_line line;
        line.add("bench", "propagator").add("who", "ours").add("at_once", a.at_once[i]);
        line.add("rhs", a.right_hand_sides).add("ranks", j.ranks()).add("transport", j.transport());
        line.add("rounds", a.rounds).add("lattice", lattice::to_string(cut.global()));
        line.add("blocks", lattice::to_string(*options.blocks)).add("m0", a.problem.op.m0);
        line.add("outer_iterations", last[i].outer.iterations);
        line.add("coarse_iterations_average", last[i].coarse_iterations_average(), 2);
        for (const auto& [what, values] : seconds[i]) {
            std::vector<double> ratios;
            for (std::size_t r = 0; r < values.size(); ++r) ratios.push_back(values[r] / seconds[0][what][r]);
            line.add(what + "_seconds", bench::median(values), 5);
            if (i > 0) line.add(what + "_ratio", bench::median(ratios), 3);
        }
        p.print(line.add(facts.line()).text());
    }
    return exit_success;
}

} // namespace
} // namespace halocline::app

int main(int argc, char** argv) { return halocline::app::run_program(argc, argv, halocline::app::run); }
