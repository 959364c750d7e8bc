// SPDX-License-Identifier: Apache-2.0
// How fast is a stencil compared with the loop that one would write by hand?   scripts/bench.sh stencil [--threads N]
// On one rank, of one or several threads, only interior sites of an L^4 box: for_interior of a halo::stencil (4-D
// diffusion) and of a halo::box_stencil (the sum of the 27 sites around each in x, y, z) against four nested loops over
// the same field; slices alternate, the median counts. One JSON line per point.
#include "halo/thread_team.hpp"
#include "support/command_line.hpp"
#include "support/json_line.hpp"
#include "support/run_facts.hpp"
#include "support/statistics.hpp"

#include <halocline/halo/box_stencil.hpp>
#include <halocline/halo/detail/rendezvous.hpp>
#include <halocline/halo/stencil.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

namespace {

using namespace halocline;
using halo::team;
using lattice::field;

/// A thread's part of the loop over t: equal numbers of slices.
struct slices {
    int first, last;
};
slices slices_of(int first, int last, team t) {
    const int n = last - first;
    return {first + n * t.index / t.size, first + n * (t.index + 1) / t.size};
}

template <int Radius>
void star_by_hand(field<double>& next, const field<double>& u, const lattice::coordinate& e, team thread) {
    constexpr int r = Radius;
    const std::int64_t stride[4] = {1, e[0], std::int64_t{e[0]} * e[1], std::int64_t{e[0]} * e[1] * e[2]};
    const double* in = u.data();
    double* out = next.data();
    const slices mine = slices_of(r, e[3] - r, thread);
    for (int t = mine.first; t < mine.last; ++t)
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

/// The interior of a box of extent^4 sites, with a layer of ghosts around it in x, y and z.
void box_by_hand(field<double>& next, const field<double>& u, int extent, team thread) {
    const std::int64_t row = extent + 2, stride[4] = {1, row, row * row, row * row * row};
    const double* in = u.data();
    double* out = next.data();
    const slices mine = slices_of(0, extent, thread);
    for (int t = mine.first; t < mine.last; ++t)
        for (int z = 2; z < extent; ++z)
            for (int y = 2; y < extent; ++y) {
                const std::int64_t first = t * stride[3] + z * stride[2] + y * stride[1];
                HALOCLINE_INDEPENDENT_ITERATIONS
                for (std::int64_t i = first + 2; i < first + extent; ++i) {
                    double sum = 0;
                    for (int dz = -1; dz <= 1; ++dz)
                        for (int dy = -1; dy <= 1; ++dy)
                            for (int dx = -1; dx <= 1; ++dx) sum += in[i + dz * stride[2] + dy * stride[1] + dx];
                    out[i] = sum;
                }
            }
}

double start_value(std::int64_t i) { return static_cast<double>(i * 7919 % 1009) / 1009; }

using step_function = std::function<void(team)>;

/// The threads that share each step of either contender.
class timed_team {
  public:
    explicit timed_team(int threads) : threads_(0, 1, threads, [this](team t) { repeat(t); }) {}

    /// A step, on average; the next begins when all threads are done with the last.
    double nanoseconds(const step_function& step, int repetitions) {
        step_ = &step;
        repetitions_ = repetitions;
        done_before_ = done_.load();
        const bench::thread_team::work at_work(threads_);
        const auto begin = std::chrono::steady_clock::now();
        repeat(threads_.begin());
        return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / repetitions;
    }

  private:
    void repeat(team t) {
        std::int64_t all = done_before_; // threads that are done when the next step begins
        for (int i = repetitions_; i > 0; --i) {
            (*step_)(t);
            if (t.size == 1) continue;
            all += t.size;
            done_.fetch_add(1);
            halo::await_team([&] { return done_.load() >= all; });
        }
    }

    const step_function* step_ = nullptr;
    int repetitions_ = 0;
    std::int64_t done_before_ = 0;
    alignas(64) std::atomic<std::int64_t> done_{0}; // threads that are done with a step, over all steps and calls
    bench::thread_team threads_;                    // last, because it uses the others
};

/// One stencil: what is timed, and its field of results.
struct contest {
    const char* shape;
    int extent, radius;
    std::int64_t interior, boundary; // sites
    field<double>* result;
    step_function ours, by_hand, our_boundary;
};

/// Compares the results of both, bit by bit, then their times. Returns the number of failures.
int run(const contest& c, int threads, double seconds) {
    timed_team team(threads);
    std::span<double> result = c.result->values();
    (void)team.nanoseconds(c.by_hand, 1);
    const std::vector<double> right(result.begin(), result.end());
    std::ranges::fill(result, 0.0);
    (void)team.nanoseconds(c.ours, 1);
    if (std::memcmp(result.data(), right.data(), result.size_bytes()) != 0) {
        std::fprintf(stderr, "%s and hand-written loop differ at L = %d, radius %d\n", c.shape, c.extent, c.radius);
        return 1;
    }

    constexpr int rounds = 21;
    const double slice = seconds * 1e9 / (2 * rounds);
    const int repetitions = static_cast<int>(std::clamp(slice / team.nanoseconds(c.by_hand, 2), 1.0, 1e9));
    std::vector<double> times_of_ours, times_of_theirs;
    for (int i = 0; i < rounds; ++i) {
        times_of_ours.push_back(team.nanoseconds(c.ours, repetitions));
        times_of_theirs.push_back(team.nanoseconds(c.by_hand, repetitions));
    }
    const double ours = bench::median(times_of_ours), theirs = bench::median(times_of_theirs);
    const auto sites = static_cast<double>(c.interior);
    bench::json_line line;
    line.add("bench", "stencil").add("shape", c.shape).add("L", c.extent).add("radius", c.radius);
    line.add("threads", threads);
    line.add("ours_ns_per_site", ours / sites).add("by_hand_ns_per_site", theirs / sites).add("ratio", ours / theirs);
    line.add("boundary_ns_per_site", team.nanoseconds(c.our_boundary, repetitions) / static_cast<double>(c.boundary));
    std::puts(line.add(bench::facts_of_process().line()).text().c_str());
    return 0;
}

std::int64_t fourth_power(int n) { return std::int64_t{n} * n * n * n; }

template <int Radius>
int compare_stars(int extent, int threads, double seconds) {
    const auto job = comm::job::single();
    const lattice::coordinate e{extent, extent, extent, extent};
    halo::stencil_options options{.self_exchange = true}; // every dimension has ghosts, as if cut
    halo::stencil<double, halo::star{.radius = Radius}> stencil(job, lattice::decomposition::even(e, {1, 1, 1, 1}),
                                                                options);
    field<double> u = stencil.make_field(), next = stencil.make_field();
    for (std::int64_t i = 0; i < u.volume(); ++i) u.values()[i] = start_value(i);
    stencil.start(u);
    stencil.finish_or_throw();

    const auto step = [&](const auto& n) {
        double sum = -8.0 * Radius * n.here();
        for (int mu = 0; mu < 4; ++mu)
            for (int k = 1; k <= Radius; ++k) sum += n.at(mu, -k) + n.at(mu, k);
        next.data()[n.index()] = n.here() + 0.05 * sum;
    };
    const std::int64_t interior = fourth_power(extent - 2 * Radius);
    return run({.shape = "star",
                .extent = extent,
                .radius = Radius,
                .interior = interior,
                .boundary = u.volume() - interior,
                .result = &next,
                .ours = [&](team t) { stencil.for_interior(step, t); },
                .by_hand = [&](team t) { star_by_hand<Radius>(next, u, e, t); },
                .our_boundary = [&](team t) { stencil.for_boundary(step, t); }},
               threads, seconds);
}

int compare_boxes(int extent, int threads, double seconds) {
    const auto job = comm::job::single();
    const lattice::coordinate e{extent, extent, extent, extent};
    halo::box_stencil<double> stencil(job, lattice::decomposition::even(e, {1, 1, 1, 1}),
                                      {.widths = {{1, 1, 1, 0}, {1, 1, 1, 0}}});
    field<double>&u = stencil.field(0), &next = stencil.field(1);
    for (std::int64_t i = 0; i < u.volume(); ++i) u.values()[i] = start_value(i);
    stencil.start(0);
    stencil.finish_or_throw();

    double* const out = next.data();
    const auto step = [&](const auto& n) {
        double sum = 0;
        for (int z = -1; z <= 1; ++z)
            for (int y = -1; y <= 1; ++y)
                for (int x = -1; x <= 1; ++x) sum += n.at({x, y, z, 0});
        out[n.index()] = sum;
    };
    const std::int64_t interior = fourth_power(extent - 2) / (extent - 2) * extent;
    return run({.shape = "box",
                .extent = extent,
                .radius = 1,
                .interior = interior,
                .boundary = fourth_power(extent) - interior,
                .result = &next,
                .ours = [&](team t) { stencil.for_interior(step, t); },
                .by_hand = [&](team t) { box_by_hand(next, u, extent, t); },
                .our_boundary = [&](team t) { stencil.for_boundary(step, t); }},
               threads, seconds);
}

int measure_all(app::program& program, int argc, const char* const* argv) {
    CLI::App cli("How fast is a stencil beside the loop that one would write by hand?");
    double seconds = 5;
    int threads = 1;
    bench::add_seconds(cli, seconds, "of the whole run, about");
    app::add_integer_flag(cli, "--threads", threads, 1, 1024, "of each contender");
    program.parse(cli, argc, argv);
    if (threads > 1) bench::pin(0, threads);
    int failures = 0;
    for (int extent : {8, 16, 32})
        failures += compare_stars<1>(extent, threads, seconds / 9) + compare_stars<2>(extent, threads, seconds / 9) +
                    compare_boxes(extent, threads, seconds / 9);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int main(int argc, char** argv) { return bench::run_bench(argc, argv, measure_all); }
