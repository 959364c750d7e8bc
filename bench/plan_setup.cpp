// SPDX-License-Identifier: Apache-2.0
// What does making a plan cost?   scripts/bench.sh plan_setup; for 2 ranks: halocline-run -n 2 -- bench_plan_setup
// 16^4 local sites of 96 bytes, all eight faces. One JSON line per kind of plan, in ms of the slowest rank:
//   ms_first    the first plan of a job that has made nothing yet; the process has (all but "appended" run second)
//   ms_median   the plans that follow in that job
//   costs_ms    measuring the job's costs (comm/costs.hpp), in another job that has made nothing yet. Where ranks share
//               memory a job does so when it starts, so ms_first lacks it; else its first plan does that needs them.
#include "support/command_line.hpp"
#include "support/json_line.hpp"
#include "support/making_times.hpp"
#include "support/probed_facts.hpp"
#include "support/statistics.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/halo/shell_plan.hpp>

namespace {

using namespace halocline;

constexpr int plans = 21, local_extent = 16, components = 24, site_bytes = components * sizeof(float);

/// Milliseconds that a job takes to measure its costs.  Collective.
double costs_ms() {
    const comm::job j = comm::job::from_environment({.path = comm::path::direct}); // else it would have done so by now
    return bench::making_times(
        j, 1, [&] { return comm::measured_costs(j); }, [](const comm::costs&) {})[0];
}

/// Reports plans of a job of their own. maker_for(job): what makes one.  Collective.
template <class MakerFor>
void report(bench::probed_facts& facts, const char* what, MakerFor&& maker_for) {
    const double costs = costs_ms();
    const comm::job j = comm::job::from_environment();
    auto make = maker_for(j);
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
    line.add("costs_ms", costs);
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
    report(facts, "appended", [&](const comm::job& own) {
        return [&] {
            return halo::plan(own, cut,
                              {.bytes_per_site = site_bytes,
                               .self_exchange = true,
                               .order = lattice::site_order::lexicographic(local.extents)});
        };
    });
    const auto padded = [&](halo::shell shape) {
        return [&, shape](const comm::job& own) {
            const auto order = lattice::site_order::lexicographic(halo::grown(local, {}).extents);
            return [&, shape, x = lattice::field<float>(order, components, &own.memory())]() mutable {
                return halo::shell_plan(own, cut, {.shape = shape}, {halo::bind(x)});
            };
        };
    };
    report(facts, "padded, faces", padded(halo::shell::faces));
    report(facts, "padded, corners", padded(halo::shell::box));
    return 0;
}

} // namespace

int main(int argc, char** argv) { return bench::run_bench(argc, argv, run); }
