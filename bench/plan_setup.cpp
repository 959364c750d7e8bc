// SPDX-License-Identifier: Apache-2.0
// What does making a plan cost?   scripts/bench.sh plan_setup; for 2 ranks: halocline-run -n 2 -- bench_plan_setup
// 16^4 local sites of 96 bytes, all eight faces. One JSON line per kind of plan: the first in the job, which measures
// the job's costs, and the median of the next ones; slowest rank each.
#include "support/command_line.hpp"

#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/halo/shell_plan.hpp>
#include <halocline/halo/plan.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>

namespace {

using namespace halocline;

template <class Make>
void report(const comm::job& j, comm::global_sum& slowest, const char* what, Make&& make) {
    std::vector<double> milliseconds;
    std::size_t bytes = 0;
    for (int i = 0; i < 22; ++i) {
        j.barrier();
        const auto before = std::chrono::steady_clock::now();
        const auto plan = make();
        double elapsed = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before).count();
        if (const comm::status s = slowest.maximum({&elapsed, 1}); s != comm::status::ok) j.fail(s, "the slowest rank");
        milliseconds.push_back(elapsed);
        bytes = plan.slab_bytes();
    }
    std::sort(milliseconds.begin() + 1, milliseconds.end());
    if (j.rank() == 0)
        std::printf(
            R"({"bench":"plan_setup","plan":"%s","ranks":%d,"L":[16,16,16,16],"bytes_per_site":96,"ms_first":%.3f,"ms_median":%.3f,"slab_bytes":%zu})"
            "\n",
            what, j.ranks(), milliseconds[0], milliseconds[11], bytes);
}

int run() {
    const comm::job j = comm::job::from_environment();
    const auto cut = lattice::decomposition::even({16, 16, 16, 16 * j.ranks()}, {1, 1, 1, j.ranks()});
    const lattice::box local = cut.local_box(j.rank());
    comm::global_sum slowest(j, 1);
    report(j, slowest, "appended", [&] {
        return halo::plan(
            j, cut,
            {.bytes_per_site = 96, .self_exchange = true, .order = lattice::site_order::lexicographic(local.extents)});
    });
    lattice::field<float> x(lattice::site_order::lexicographic(halo::grown(local, {}).extents), 24, &j.memory());
    report(j, slowest, "padded, faces", [&] { return halo::shell_plan(j, cut, {}, {halo::bind(x)}); });
    report(j, slowest, "padded, corners",
           [&] { return halo::shell_plan(j, cut, {.shape = halo::shell::box}, {halo::bind(x)}); });
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app("What does making a plan cost?");
    if (const auto over = bench::parse(app, argc, argv)) return *over;
    try {
        return run();
    } catch (const std::exception& e) {
        std::fprintf(stderr, "plan_setup: %s\n", e.what());
        return 1;
    }
}
