// SPDX-License-Identifier: Apache-2.0
// How fast is a stencil beside the loop that one would write by hand?   scripts/bench.sh stencil [--seconds S]
// 4-D diffusion on one rank, interior sites of an L^4 box only: halo::stencil::for_interior against four nested loops
// over the same field; slices alternate, the median counts. One JSON line per point.
#include "support/command_line.hpp"
#include "support/json_line.hpp"
#include "support/statistics.hpp"

#include <halocline/halo/stencil.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using namespace halocline;
using lattice::field;

template <int Radius>
void by_hand(field<double>& next, const field<double>& u, const lattice::coordinate& e) {
    constexpr int r = Radius;
    const std::int64_t stride[4] = {1, e[0], std::int64_t{e[0]} * e[1], std::int64_t{e[0]} * e[1] * e[2]};
    const double* in = u.data();
    double* out = next.data();
    for (int t = r; t < e[3] - r; ++t)
        for (int z = r; z < e[2] - r; ++z)
            for (int y = r; y < e[1] - r; ++y) {
                const std::int64_t row = t * stride[3] + z * stride[2] + y * stride[1], end = row + e[0] - r;
                HALOCLINE_INDEPENDENT_ITERATIONS
                for (std::int64_t i = row + r; i < end; ++i) {
                    double sum = -8.0 * Radius * in[i];
                    for (int mu = 0; mu < 4; ++mu)
                        for (int k = 1; k <= Radius; ++k) sum += in[i - k * stride[mu]] + in[i + k * stride[mu]];
                    out[i] = in[i] + 0.05 * sum;
                }
            }
}

template <class Step>
double nanoseconds(Step&& step, int repetitions) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < repetitions; ++i) step();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / repetitions;
}

template <int Radius>
int compare(int extent, double seconds) {
    const auto job = comm::job::single();
    const lattice::coordinate e{extent, extent, extent, extent};
    halo::stencil_options options{.self_exchange = true}; // every dimension has ghosts, as if cut
    halo::stencil<double, halo::star{.radius = Radius}> stencil(job, lattice::decomposition::even(e, {1, 1, 1, 1}),
                                                                options);
    field<double> u = stencil.make_field(), next = stencil.make_field(), check = stencil.make_field();
    for (std::int64_t i = 0; i < u.volume(); ++i) u.values()[i] = static_cast<double>(i * 7919 % 1009) / 1009;
    stencil.start(u);
    stencil.finish_or_throw();

    const auto step = [&](const auto& n) {
        double sum = -8.0 * Radius * n.here();
        for (int mu = 0; mu < 4; ++mu)
            for (int k = 1; k <= Radius; ++k) sum += n.at(mu, -k) + n.at(mu, k);
        next.data()[n.index()] = n.here() + 0.05 * sum;
    };
    const auto run_ours = [&] { stencil.for_interior(step); };
    const auto run_theirs = [&] { by_hand<Radius>(next, u, e); };
    run_theirs();
    check.copy_from(next);
    std::fill(next.values().begin(), next.values().end(), 0.0);
    run_ours();
    if (std::memcmp(next.data(), check.data(), next.values().size_bytes()) != 0) {
        std::fprintf(stderr, "stencil and hand-written loop differ at L = %d, radius %d\n", extent, Radius);
        return 1;
    }

    constexpr int rounds = 21;
    const double slice = seconds * 1e9 / (2 * rounds);
    const int repetitions = std::max(1, static_cast<int>(slice / nanoseconds(run_theirs, 2)));
    std::vector<double> times_of_ours, times_of_theirs;
    for (int i = 0; i < rounds; ++i) {
        times_of_ours.push_back(nanoseconds(run_ours, repetitions));
        times_of_theirs.push_back(nanoseconds(run_theirs, repetitions));
    }
    const double ours = bench::median(times_of_ours), theirs = bench::median(times_of_theirs);
    const double sites = static_cast<double>((extent - 2 * Radius) * (extent - 2 * Radius)) *
                         ((extent - 2 * Radius) * (extent - 2 * Radius));
    const double boundary_ns = nanoseconds([&] { stencil.for_boundary(step); }, repetitions);
    bench::json_line line;
    line.add("bench", "stencil").add("L", extent).add("radius", Radius);
    line.add("ours_ns_per_site", ours / sites).add("by_hand_ns_per_site", theirs / sites).add("ratio", ours / theirs);
    line.add("boundary_ns_per_site", boundary_ns / (static_cast<double>(u.volume()) - sites));
    std::puts(line.text().c_str());
    return 0;
}

int measure_all(app::program& program, int argc, const char* const* argv) {
    CLI::App cli("How fast is a stencil beside the loop that one would write by hand?");
    double seconds = 5;
    bench::add_seconds(cli, seconds, "of the whole run, about");
    program.parse(cli, argc, argv);
    int failures = 0;
    for (int extent : {8, 16, 32}) failures += compare<1>(extent, seconds / 6) + compare<2>(extent, seconds / 6);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int main(int argc, char** argv) { return bench::run_bench(argc, argv, measure_all); }
