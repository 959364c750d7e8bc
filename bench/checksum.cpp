// SPDX-License-Identifier: Apache-2.0
// What does a checksum after each message cost?   scripts/bench.sh checksum [--seconds S]
// Exchanges of an L^4 box per rank, cut in t, 96 B per site: with and without, in turn. A step writes the field,
// exchanges and reads the ghosts; bare: only the exchange. Medians of slices, of which the slowest rank's time counts;
// one JSON line per point.
#include "support/command_line.hpp"
#include "support/json_line.hpp"
#include "support/probed_facts.hpp"
#include "support/rounds.hpp"
#include "support/statistics.hpp"

#include <halocline/base/stopwatch.hpp>
#include <halocline/halo/plan.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using namespace halocline;

struct step_times {
    double step = 0, bare = 0; // seconds for one
};

class contender {
  public:
    contender(const comm::job& j, const lattice::decomposition& cut, bool checksums)
        : field_(cut.local_box(j.rank()).extents, components),
          plan_(j, cut, halo::options_for(field_, {.name = checksums ? "with" : "without", .checksums = checksums})) {}

    step_times run(int steps) {
        step_times t;
        const stopwatch all;
        for (int i = 0; i < steps; ++i) {
            for (double& v : field_.values()) v += 1;
            const stopwatch exchange;
            plan_.start(field_);
            plan_.finish_or_throw();
            t.bare += exchange.seconds() / steps;
            for (const halo::plan_message& m : plan_.messages())
                for (const double ghost : plan_.ghosts<double>(m.where)) read_ += ghost;
        }
        t.step = all.seconds() / steps;
        return t;
    }
    [[nodiscard]] double read() const { return read_; }

  private:
    static constexpr int components = 12;
    lattice::field<double> field_;
    halo::plan plan_;
    double read_ = 0;
};

int run(app::program& program, int argc, const char* const* argv) {
    CLI::App cli("What does a checksum behind each message cost?");
    double seconds = 10;
    bench::add_seconds(cli, seconds, "of the whole run, about");
    program.parse(cli, argc, argv);
    const comm::job& j = program.join();
    bench::probed_facts facts(j);
    for (const int extent : {4, 8, 16}) {
        const auto cut =
            lattice::decomposition::even({extent, extent, extent, extent * j.ranks()}, {1, 1, 1, j.ranks()});
        contender with(j, cut, true), without(j, cut, false);
        facts.probe();
        constexpr int rounds = 11;
        // The same on every rank: roughly the time of a step, 1 ns per byte of the box.
        const double step_seconds = 1e-9 * 96 * extent * extent * extent * extent;
        const int steps = static_cast<int>(std::clamp(seconds / (3 * 2 * rounds) / step_seconds, 2.0, 1e9));
        std::array<std::vector<double>, 4> times; // step with and without, bare with and without
        for (int r = 0; r < rounds; ++r) {
            j.barrier();
            const step_times a = with.run(steps);
            j.barrier();
            const step_times b = without.run(steps);
            const std::vector<double> all = bench::slowest(j, {a.step, b.step, a.bare, b.bare});
            for (std::size_t k = 0; k < times.size(); ++k) times[k].push_back(all[k]);
        }
        if (with.read() != without.read()) {
            std::fprintf(stderr, "ghosts differ with and without checksums at L = %d\n", extent);
            return EXIT_FAILURE;
        }
        if (j.rank() != 0) continue;
        const auto us = [&](std::size_t k) { return 1e6 * bench::median(times[k]); };
        bench::json_line line;
        line.add("bench", "checksum").add("transport", j.transport()).add("ranks", j.ranks()).add("L", extent);
        line.add("step_us", us(0)).add("step_us_without", us(1)).add("step_ratio", us(0) / us(1));
        line.add("bare_us", us(2)).add("bare_us_without", us(3)).add("bare_ratio", us(2) / us(3));
        line.add(facts.line());
        std::puts(line.text().c_str());
    }
    return EXIT_SUCCESS;
}

} // namespace

int main(int argc, char** argv) { return bench::run_bench(argc, argv, run); }
