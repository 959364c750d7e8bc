// SPDX-License-Identifier: Apache-2.0
// What does making a plan cost?   scripts/bench.sh plan_setup; for 2 ranks: halocline-run -n 2 -- bench_plan_setup
// 16^4 local sites of 96 bytes, all eight faces. One JSON line per kind of plan: the first in the job, which measures
// the job's costs, and the median of the next ones; times of the slowest rank.
#include "support/command_line.hpp"
#include "support/json_line.hpp"
#include "support/making_times.hpp"
#include "support/probed_facts.hpp"
#include "support/statistics.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/halo/shell_plan.hpp>

namespace {

using namespace halocline;

constexpr int plans = 21, local_extent = 16, components = 24, site_bytes = components * sizeof(float);

template <class Make>
void report(const comm::job& j, bench::probed_facts& facts, const char* what, Make&& make) {
    std::size_t bytes = 0;
    facts.probe();
    std::vector<double> milliseconds =
        bench::making_times(j, 1 + plans, make, [&](const auto& plan) { bytes = plan.slab_bytes(); });
    if (j.rank() != 0) return;
    const double first = milliseconds.front();
    milliseconds.erase(milliseconds.begin());
    bench::json_line line;
    line.add("bench", "plan_setup").add("plan", what).add("ranks", j.ranks()).add("L", local_extent);
    line.add("bytes_per_site", site_bytes).add("ms_first", first).add("ms_median", bench::median(milliseconds));
    line.add("slab_bytes", static_cast<int>(bytes)).add("transport", j.transport()).add(facts.line());
    std::puts(line.text().c_str());
}

int run(app::program& program, int argc, const char* const* argv) {
    CLI::App cli("What does making a plan cost?");
    program.parse(cli, argc, argv);
    const comm::job& j = program.join();
    const auto cut = lattice::decomposition::even({local_extent, local_extent, local_extent, local_extent * j.ranks()},
                                                  {1, 1, 1, j.ranks()});
    const lattice::box local = cut.local_box(j.rank());
    bench::probed_facts facts(j);
    report(j, facts, "appended", [&] {
        return halo::plan(j, cut,
                          {.bytes_per_site = site_bytes,
                           .self_exchange = true,
                           .order = lattice::site_order::lexicographic(local.extents)});
    });
    lattice::field<float> x(lattice::site_order::lexicographic(halo::grown(local, {}).extents), components,
                            &j.memory());
    report(j, facts, "padded, faces", [&] { return halo::shell_plan(j, cut, {}, {halo::bind(x)}); });
    report(j, facts, "padded, corners",
           [&] { return halo::shell_plan(j, cut, {.shape = halo::shell::box}, {halo::bind(x)}); });
    return 0;
}

} // namespace

int main(int argc, char** argv) { return bench::run_bench(argc, argv, run); }
