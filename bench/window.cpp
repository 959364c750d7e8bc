// SPDX-License-Identifier: Apache-2.0
// What does post() of a prepared window cost?  scripts/bench.sh window  (halocline-run -n 2 -- bench_window [--quick])
// Both ranks send to each other in each step, in the order of a halo exchange; zero-copy (the copy into the peer's
// buffer is part of the post), buffered (it was part of insert()), and an empty window: pure overhead.
#include "support/command_line.hpp"
#include "support/probed_facts.hpp"
#include "window_steps.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline/comm/window.hpp>

#include <memory_resource>

namespace {

using namespace halocline;
using namespace halocline::comm;

int run(app::program& program, int argc, const char* const* argv) {
    CLI::App cli("What does post() of a prepared window cost?");
    bool quick = false;
    cli.add_flag("--quick", quick, "2000 steps instead of 50 000");
    program.parse(cli, argc, argv);
    const int steps = quick ? 2000 : 50'000;
    const job& j = program.join();
    if (j.ranks() != 2) throw input_error("2 ranks are needed: halocline-run -n 2 -- bench_window");
    bench::probed_facts facts(j);
    std::size_t wrong = 0;
    for (const std::size_t bytes :
         {std::size_t{0}, bench::window_sizes[0], bench::window_sizes[1], bench::window_sizes[2]}) {
        std::pmr::vector<char> out(bytes, 0, &j.memory()), in(bytes, 0, &j.memory());
        connection c(j, 1 - j.rank());
        send_window<char> to(c, out);
        recv_window<char> from(c, in);
        buffered_send_window<char> packed(c, bytes);
        buffered_recv_window<char> unpacked(c, bytes);
        c.connect();
        facts.probe();
        const bench::line_head head{j.rank() == 0, "halocline over " + j.transport(), facts.line()};
        bench::print_post_times(head, "post", bytes, steps, [&](int n, auto timed) {
            std::fill(out.begin(), out.end(), static_cast<char>(n));
            from.init();
            to.init();
            timed([&] { to.post(); });
            from.post();
            from.wait_or_throw();
            to.wait_or_throw();
            if (bytes > 0) wrong += in.front() != static_cast<char>(n) || in.back() != static_cast<char>(n);
        });
        bench::print_post_times(head, "post, buffered", bytes, steps, [&](int n, auto timed) {
            std::fill(out.begin(), out.end(), static_cast<char>(n + 1));
            unpacked.init();
            if (const status s = packed.init(); s != status::ok) j.fail(s, "room for the next buffered message");
            packed.insert(out);
            timed([&] { packed.post(); });
            unpacked.post();
            unpacked.wait_or_throw();
            packed.wait_or_throw();
            if (bytes > 0) wrong += unpacked.received().back() != static_cast<char>(n + 1);
        });
        j.barrier();
    }
    if (wrong > 0) std::fprintf(stderr, "bench_window: %zu messages were not what was sent\n", wrong);
    return wrong > 0 ? 1 : 0;
}

} // namespace

int main(int argc, char** argv) { return bench::run_bench(argc, argv, run); }
