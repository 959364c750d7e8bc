// SPDX-License-Identifier: Apache-2.0
// How fast is the Wilson-clover operator, and how fast are its block solves, on one rank?
// One JSON line per measurement; seconds are the least of several repetitions. Arguments: extents (default 4 8 16).
#include "support/command_line.hpp"
#include "support/json_line.hpp"

#include <halocline/dirac/wilson_clover.hpp>
#include <halocline/lattice/random.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace halocline;
using lattice::field;

namespace {

/// Flop of D per site, as usually counted: 1320 of the hopping term, 504 of the clover term.
constexpr double flop_per_site = 1824;

template <class Work>
double least_seconds(Work&& work) {
    using clock = std::chrono::steady_clock;
    double least = 1e9;
    const auto end = clock::now() + std::chrono::milliseconds(300);
    for (int i = 0; i < 5 || clock::now() < end; ++i) {
        const auto start = clock::now();
        work();
        least = std::min(least, std::chrono::duration<double>(clock::now() - start).count());
    }
    return least;
}

void print(const char* what, const char* type, int extent, int block, int lanes, double seconds, double flop) {
    bench::json_line line;
    line.add("bench", "dirac").add("what", what).add("type", type).add("extent", extent).add("block", block);
    line.add("lanes", lanes).add("seconds", seconds).add("gflop_per_second", flop / seconds * 1e-9);
    std::puts(line.text().c_str());
}

template <class T>
void measure(const comm::job& j, int extent, int block, int lanes, const char* type) {
    const lattice::coordinate global{extent, extent, extent, extent}, blocks{block, block, block, block};
    const auto cut = lattice::decomposition::even(global, {1, 1, 1, 1}, blocks);
    lattice::gauge_field gauge(lattice::site_order::lexicographic(global), lattice::gauge_components);
    for (std::int64_t site = 0; site < gauge.volume(); ++site) // unit links: the time does not depend on values
        for (int mu = 0; mu < lattice::dimensions; ++mu)
            for (int e = 0; e < 3; ++e) gauge.at(site, mu * lattice::link_components + 8 * e) = 1;
    const auto order = lattice::site_order::blocked(cut.local_box(0), global, blocks, lanes);
    dirac::wilson_clover<T> d(j, cut, dirac::padded_links(j, cut, gauge), {}, order);
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

    print("apply", type, extent, block, lanes, least_seconds([&] { must(d.apply(x, b)); }), sites * flop_per_site);
    print("apply_block", type, extent, block, lanes, least_seconds([&] { d.apply_block(x, b); }),
          sites * flop_per_site * (1 - 0.72 / block));
    constexpr int steps = 4;
    const double solve_flop = sites * (steps + 1) * flop_per_site;
    print("block_solve", type, extent, block, lanes, least_seconds([&] {
              r.copy_from(b);
              d.block_solve(x, r, update, -1, steps);
          }),
          solve_flop);
    print("sap_sweep", type, extent, block, lanes, least_seconds([&] {
              r.copy_from(b);
              for (int colour = 0; colour < 2; ++colour) {
                  d.block_solve(x, r, update, colour, steps);
                  d.start_surface(update, colour);
                  must(d.finish_surface());
                  d.add_surface(r, -1, 0xff, T(-1));
              }
          }),
          solve_flop);
}

int measure_all(app::program& program, int argc, const char* const* argv) {
    CLI::App cli("How fast is the Wilson-clover operator, and how fast are its block solves, on one rank?");
    std::vector<int> extents{4, 8, 16};
    const auto multiple_of_4 = [](const std::string& text) {
        const int extent = std::atoi(text.c_str());
        return extent >= 4 && extent % 4 == 0 ? "" : "extents are multiples of 4, not " + text;
    };
    cli.add_option("extents", extents, "lattices of extent^4")->check(multiple_of_4)->capture_default_str();
    program.parse(cli, argc, argv);
    const comm::job j = comm::job::single();
    for (const int extent : extents) {
        for (const int lanes : {4, 8, 16}) {
            const int block = extent == 4 ? 2 : 4;
            measure<float>(j, extent, block, lanes, "float");
            measure<double>(j, extent, block, lanes, "double");
        }
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) { return bench::run_bench(argc, argv, measure_all); }
