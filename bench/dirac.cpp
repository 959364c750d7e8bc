// SPDX-License-Identifier: Apache-2.0
// How fast is the Wilson-clover operator, and how fast are its block solves?
// One JSON line per measurement. On several ranks each has L^4 sites, cut in t, and another line gives the time that they
// take while all work independently (ranks: 1): the difference is the cost of the exchange.
#include "support/command_line.hpp"
#include "support/json_line.hpp"
#include "support/probed_facts.hpp"
#include "support/rounds.hpp"
#include "support/statistics.hpp"

#include <halocline/amg/sap_smoother.hpp>
#include <halocline/dirac/schwarz_blocks.hpp>
#include <halocline/dirac/wilson_clover.hpp>
#include <halocline/lattice/random.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <type_traits>
#include <vector>

using namespace halocline;
using lattice::field;

namespace {

/// Flop of D per site, as usually counted: 1320 of the hopping term, 504 of the clover term.
constexpr double flop_per_site = 1824;

/// Seconds per call, each on the rank that it took longest: the least and the median of as many calls as take 0.15 s.
struct call_seconds {
    double least, median;
};

/// Collective of all ranks, whether or not they work together: all make the same number of calls.
template <class Work>
call_seconds time_calls(const comm::job& all, Work&& work) {
    using clock = std::chrono::steady_clock;
    const auto seconds_of_one = [&] {
        const auto start = clock::now();
        work();
        return std::chrono::duration<double>(clock::now() - start).count();
    };
    work();
    const double first = bench::slowest(all, {seconds_of_one()})[0];
    std::vector<double> mine(static_cast<std::size_t>(std::clamp(0.15 / first, 5.0, 100'000.0)));
    for (double& s : mine) s = seconds_of_one();
    // By call, and only then over calls: a rank that waited in one call may not have in another.
    const std::vector<double> longest = bench::slowest(all, mine);
    return {bench::quantile(longest, 0), bench::median(longest)};
}

/// `flop`: per rank.
void print(const comm::job& j, const bench::json_line& facts, const char* what, const char* type, int extent, int block,
           int lanes, const call_seconds& s, double flop) {
    bench::json_line line;
    line.add("bench", "dirac").add("what", what).add("type", type).add("extent", extent).add("block", block);
    line.add("ranks", j.ranks()).add("lanes", lanes).add("seconds", s.least).add("seconds_median", s.median);
    line.add("gflop_per_second", flop / s.least * 1e-9); // of each rank
    line.add("transport", j.transport()).add(facts);
    std::puts(line.text().c_str());
}

/// The ranks of `j` together, which are `all` or one alone; rank 0 of all prints, with these facts.
template <class T>
void measure(const comm::job& j, const comm::job& all, const bench::json_line& facts, int extent, int block, int lanes,
             const char* type) {
    const lattice::coordinate global{extent, extent, extent, extent * j.ranks()}, blocks{block, block, block, block};
    const auto cut = lattice::decomposition::even(global, {1, 1, 1, j.ranks()}, blocks);
    const lattice::box local = cut.local_box(j.rank());
    lattice::gauge_field gauge(local.extents, lattice::gauge_components);
    for (std::int64_t site = 0; site < gauge.volume(); ++site) // unit links: the time does not depend on values
        for (int mu = 0; mu < lattice::dimensions; ++mu)
            for (int e = 0; e < 3; ++e) gauge.at(site, mu * lattice::link_components + 8 * e) = 1;
    const auto order = lattice::site_order::blocked(local, global, blocks, lanes);
    const dirac::padded_links links(j, cut, gauge);
    dirac::wilson_clover<T> d(j, cut, links, {}, order);
    dirac::schwarz_blocks<T> in_blocks(d, links);
    field<T> x(order, lattice::spinor_components), r(order, lattice::spinor_components),
        update(order, lattice::spinor_components), b(order, lattice::spinor_components);
    for (std::int64_t site = 0; site < b.volume(); ++site) {
        lattice::site_random random(1, 0, static_cast<std::uint64_t>(site));
        for (int c = 0; c < lattice::spinor_components; ++c) b.at(site, c) = static_cast<T>(random.normal());
    }
    const double sites = static_cast<double>(b.volume());
    const auto must = [](comm::status s) {
        if (s != comm::status::ok) std::abort();
    };

    const auto time = [&](const char* what, double flop, auto&& work) {
        const call_seconds s = time_calls(all, work);
        if (all.rank() == 0) print(j, facts, what, type, extent, block, lanes, s, flop);
    };
    time("apply", sites * flop_per_site, [&] { must(d.apply(x, b)); });
    time("apply_block", sites * flop_per_site * (1 - 0.72 / block), [&] { d.apply_block(x, b); });
    constexpr int steps = 4;
    const double solve_flop = sites * (steps + 1) * flop_per_site;
    time("block_solve", solve_flop, [&] {
        r.copy_from(b);
        in_blocks.solve(x, r, update, dirac::block_colour::all, steps);
    });
    if constexpr (std::is_same_v<T, float>) { // as the multigrid sweeps
        amg::sap_smoother smoother(in_blocks, steps);
        time("sap_sweep", solve_flop, [&] { must(smoother.from_zero(x, b, 1)); });
    }
}

int measure_all(app::program& program, int argc, const char* const* argv) {
    CLI::App cli("How fast is the Wilson-clover operator, and how fast are its block solves?");
    std::vector<int> extents{4, 8, 16};
    const auto multiple_of_4 = [](const std::string& text) {
        const int extent = std::atoi(text.c_str());
        return extent >= 4 && extent % 4 == 0 ? "" : "extents are multiples of 4, not " + text;
    };
    cli.add_option("extents", extents, "lattices of extent^4 on each rank")
        ->check(multiple_of_4)
        ->capture_default_str();
    program.parse(cli, argc, argv);
    const comm::job& j = program.join();
    const comm::job alone = comm::job::single();
    bench::probed_facts facts(j);
    for (const int extent : extents)
        for (const int lanes : {4, 8, 16}) {
            const int block = extent == 4 ? 2 : 4;
            facts.probe();
            measure<float>(j, j, facts.line(), extent, block, lanes, "float");
            measure<double>(j, j, facts.line(), extent, block, lanes, "double");
            if (j.ranks() == 1) continue;
            measure<float>(alone, j, facts.line(), extent, block, lanes, "float");
            measure<double>(alone, j, facts.line(), extent, block, lanes, "double");
        }
    return 0;
}

} // namespace

int main(int argc, char** argv) { return bench::run_bench(argc, argv, measure_all); }
