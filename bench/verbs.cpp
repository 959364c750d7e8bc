// SPDX-License-Identifier: Apache-2.0
// What does a small message over transport `verbs` cost?  scripts/bench.sh verbs
//   halocline-run -n 2 -- bench_verbs BYTES...   one way of a ping-pong, to be compared with ib_write_lat
//   bench_verbs --before-post                    our code before ibv_post_send; needs no device
#include "support/command_line.hpp"
#include "support/json_line.hpp"
#include "support/probed_facts.hpp"
#include "support/statistics.hpp"
#include "verbs_loop_device.hpp"

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/clock.hpp>

#include <cstring>

namespace {

using namespace halocline;
using namespace halocline::comm;

/// Nanoseconds of send() with an ibv_post_send that returns at once: batches, each a mean.
void time_before_post(std::size_t bytes) {
    constexpr int batches = 2000, calls = 64;
    halocline_test::loop_pair pair(bytes, {});
    halocline_test::loop_delivers = false;
    std::vector<double> ns;
    std::uint64_t epoch = 0;
    for (int b = 0; b < batches; ++b) {
        const std::uint64_t since = ticks();
        for (int i = 0; i < calls; ++i) pair.to.send(++epoch, 0);
        ns.push_back(seconds(ticks() - since) * 1e9 / calls);
    }
    halocline_test::loop_delivers = true;
    bench::json_line line;
    line.add("bench", "verbs").add("who", "halocline before ibv_post_send").add("bytes", bytes);
    line.add("ns_median", bench::median(ns))
        .add("ns_p10", bench::quantile(ns, 0.1))
        .add("ns_p90", bench::quantile(ns, 0.9))
        .add(bench::facts_of_process().line());
    std::printf("%s\n", line.text().c_str());
}

/// One way of messages that go back and forth; stamps at both ends of the payload are compared.
std::uint64_t time_one_way(const job& j, bench::probed_facts& facts, std::size_t bytes, int epochs) {
    channel_set set(j,
                    std::vector{channel_request{
                        .peer = 1 - j.rank(), .send_bytes = bytes, .receive_bytes = bytes, .label = "ball"}},
                    {"ping-pong", ""});
    facts.probe();
    std::uint64_t wrong = 0;
    const auto send = [&](std::uint64_t k) {
        set.for_each([&](auto& c) {
            std::memcpy(c.target(k), &k, sizeof k);
            std::memcpy(c.target(k) + bytes - sizeof k, &k, sizeof k);
            c.send(k, 0);
        });
    };
    std::vector<double> us;
    for (int i = 1; i <= epochs; ++i) {
        const auto k = static_cast<std::uint64_t>(i);
        const std::uint64_t since = ticks();
        bool answered = j.rank() == 0;
        if (answered) send(k);
        // The waits are those of an exchange; rank 1 answers during them.
        const status s = set.wait(k, [&]() noexcept {
            bool here = false;
            if (!answered) set.for_each([&](auto& c) { here = c.arrived(k); });
            if (here) send(k);
            answered = answered || here;
            return status::ok;
        });
        if (s != status::ok) j.fail(s, set.pending(k));
        set.for_each([&](auto& c) {
            wrong += std::memcmp(c.received(k), &k, sizeof k) != 0 ||
                     std::memcmp(c.received(k) + bytes - sizeof k, &k, sizeof k) != 0;
        });
        us.push_back(seconds(ticks() - since) * 1e6 / 2);
    }
    if (j.rank() == 0) {
        bench::json_line line;
        line.add("bench", "verbs").add("who", "halocline").add("bytes", bytes);
        line.add("us_median", bench::median(us))
            .add("us_p10", bench::quantile(us, 0.1))
            .add("us_p90", bench::quantile(us, 0.9))
            .add("transport", j.transport())
            .add(facts.line());
        std::printf("%s\n", line.text().c_str());
        std::fflush(stdout);
    }
    j.barrier();
    return wrong;
}

int run(app::program& program, int argc, const char* const* argv) {
    CLI::App cli("What does a small message over transport verbs cost?");
    bool before_post = false;
    std::vector<std::size_t> sizes;
    cli.add_flag("--before-post", before_post, "our code before ibv_post_send instead; needs no device");
    cli.add_option("bytes", sizes, "one way of messages of these sizes, on 2 ranks")->check(CLI::Range(8, 1 << 30));
    program.parse(cli, argc, argv);
    if (before_post && !sizes.empty()) throw input_error("--before-post takes no sizes: it has its own");
    if (!before_post && sizes.empty()) throw input_error("expected sizes, such as 8 64, or --before-post");
    if (before_post) {
        for (const std::size_t bytes : {8, 64, 4096}) time_before_post(bytes);
        return 0;
    }
    job_options options;
    options.transports = {"verbs"};
    const job& j = program.join(options);
    if (j.ranks() != 2) throw input_error("2 ranks are needed: halocline-run -n 2 -- bench_verbs 8 64");
    bench::require_transport(j, "verbs");
    bench::probed_facts facts(j);
    std::uint64_t wrong = 0;
    for (const std::size_t bytes : sizes) wrong += time_one_way(j, facts, bytes, 500);
    if (wrong > 0) throw error(std::to_string(wrong) + " messages were not what was sent");
    return 0;
}

} // namespace

int main(int argc, char** argv) { return bench::run_bench(argc, argv, run); }
