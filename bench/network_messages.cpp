// SPDX-License-Identifier: Apache-2.0
// What does a matched message over a network cost, as usual ("usual": default options, arrays in ordinary memory),
// straight into the receiver's memory ("slab", or "heap": registered for each message) and in frames (in one if it
// fits), compared with MPI?  scripts/bench.sh network_messages
//   (halocline-run -n 2 -- bench_network_messages [--transport ofi|mpi|verbs] [--provider NAME] [--seconds S]
//    [--rounds N] [--sizes 4096,...] [--peer 'NAME=COMMAND']...; mpi: under an mpirun)
// Half a round trip (p2p/patterns.hpp), in turns. Rows per size, mode of the machine and measure, medians in µs, on
// standard error: at their end the better MPI as installed ÷ usual. A line of JSON for each contender, size and mode.
#include "p2p/patterns.hpp"
#include "p2p/two_sided_endpoint.hpp"
#include "support/command_line.hpp"
#include "support/huge_pages.hpp"
#include "support/peer_names.hpp"
#include "support/peer_program.hpp"
#include "support/probed_facts.hpp"
#include "support/rounds.hpp"
#include "support/series_line.hpp"
#include "support/statistics.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/messenger.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/comm/two_sided.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline::bench;

constexpr std::size_t smallest_frame = 2048; // fits nothing but small messages
constexpr const char* usual_mode = "usual";
constexpr std::array measure_names{"alone", "step"}; // of p2p::measurement, as in README.md

struct bench_options {
    std::string transport = "ofi", provider;
    double seconds = 40;
    int rounds = 5;
    std::vector<std::size_t> sizes{1024, 4096, 8192, 16384, 32768, 65536, 262144, 1048576, 4194304};
    std::vector<std::string> peers;
};

/// A row of one measure, for readers.  times_of(outcome): its batches.
template <class Times>
void print_row(std::size_t bytes, const char* mode, const char* measure, const std::vector<contender>& all,
               const std::vector<outcome>& results, Times&& times_of) {
    std::fprintf(stderr, "%8zu B %-6s %-5s", bytes, mode, measure);
    double usual = 0, mpi = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::string& name = all[i].who == "ours" ? all[i].mode : all[i].who;
        const double us = median(times_of(results[i]));
        if (us > 0)
            std::fprintf(stderr, "  %s %.1f", name.c_str(), us);
        else
            std::fprintf(stderr, "  %s -", name.c_str());
        if (name == usual_mode) usual = us;
        if (is_mpi(name) && us > 0) mpi = std::min(mpi, us);
    }
    if (usual > 0 && std::isfinite(mpi)) std::fprintf(stderr, " | mpi/usual %.2f", mpi / usual);
    std::fprintf(stderr, "\n");
}

/// Rows for each mode of the machine in which every contender was seen; if there is none, for all slices, marked.
void print(std::size_t bytes, const std::vector<contender>& all, const std::vector<outcome>& results) {
    bool any = false;
    for (std::size_t m = 0; m < measure_names.size(); ++m) {
        for (const auto speed : {outcome::fast, outcome::slow}) {
            const auto seen = [&](const outcome& o) { return !o.noisy && o.has_figure(speed); };
            if (!std::ranges::all_of(results, seen)) continue;
            print_row(bytes, name_of(speed), measure_names[m], all, results,
                      [&](const outcome& o) { return o.kept[speed].us[m]; });
            any = true;
        }
        if (any) continue;
        print_row(bytes, "mixed?", measure_names[m], all, results, [&](const outcome& o) {
            std::vector<double> us;
            for (const series* s : {&o.kept[0], &o.kept[1], &o.dropped})
                if (s->us.size() > m) us.insert(us.end(), s->us[m].begin(), s->us[m].end());
            return us;
        });
    }
}

void print_json(std::size_t bytes, const std::vector<contender>& all, const std::vector<outcome>& results,
                const run_facts& facts) {
    for (std::size_t i = 0; i < all.size(); ++i)
        for (const auto speed : {outcome::fast, outcome::slow}) {
            if (!results[i].has_figure(speed)) continue;
            json_line line;
            line.add("bench", "network_messages").add("bytes", bytes).add("who", all[i].who).add("mode", all[i].mode);
            line.add("transport", all[i].transport).add(facts_of(results[i], speed));
            const slice_times& us = results[i].kept[speed].us;
            line.add(times_of(us[1])).add(times_of(us[0], "bare_")).add(facts.line());
            std::printf("%s\n", line.text().c_str());
        }
    std::fflush(stdout);
}

void run(const comm::job& j, const bench_options& o) {
    flag_probe probe(j);
    constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
    huge_memory ordinary; // as the peers' messages
    comm::two_sided::communicator by_default(j), straight(j, {.frame_bytes = smallest_frame, .direct_bytes = 1}),
        in_frames(j, {.direct_bytes = never});
    const auto slowest_of = [&](const std::vector<double>& mine) { return slowest(j, mine); };
    p2p::two_sided_endpoint usual(by_default, ordinary, slowest_of), slab(straight, j.memory(), slowest_of),
        heap(straight, ordinary, slowest_of), frames(in_frames, j.memory(), slowest_of);
    peer_set peers(j, o.peers);
    const run_facts facts = facts_of(j);
    if (j.rank() == 0) std::fputs(straight.messages().describe().c_str(), stderr);
    for (const std::size_t n : o.sizes) {
        std::vector<contender> all;
        const auto ours = [&](const char* mode, auto& e) {
            all.push_back({"ours", mode, j.transport(), [&e, n](double seconds) {
                               const p2p::order order{"latency", n, seconds};
                               return p2p::measurement(e, order).run();
                           }});
        };
        ours(usual_mode, usual);
        ours("slab", slab);
        ours("heap", heap);
        ours("frames", frames);
        for (peer_program& peer : peers.all())
            all.push_back({peer.name(), "two-sided", transport_of_peer(peer.name()), [&j, &peer, n](double seconds) {
                               return peer.ask(j, p2p::order{"latency", n, seconds}.text(), p2p::measure_count);
                           }});
        const auto results =
            take_turns(j, probe, all, {.seconds = o.seconds / static_cast<double>(o.sizes.size()), .rounds = o.rounds});
        if (j.rank() != 0) continue;
        print(n, all, results);
        print_json(n, all, results, facts);
    }
    peers.leave();
}

int measure(app::program& program, int argc, const char* const* argv) {
    bench_options o;
    CLI::App cli("what a large matched message over a network costs; half a round trip, medians in µs",
                 "bench_network_messages");
    cli.add_option("--transport", o.transport, "ofi, mpi or verbs")->capture_default_str();
    cli.add_option("--provider", o.provider, "of libfabric; default: its choice");
    add_seconds(cli, o.seconds, "in all");
    add_rounds(cli, o.rounds, "of turns, for each size");
    cli.add_option("--sizes", o.sizes, "of messages, in bytes")->delimiter(',')->check(whole_words);
    cli.add_option("--peer", o.peers, "NAME=COMMAND: the same messages by an MPI take turns")->take_all();
    later_replaces_earlier(cli);
    program.parse(cli, argc, argv);
    require_ofi_for_provider(o.transport, o.provider);
    require_distinct("--sizes", o.sizes);
    comm::job_options options;
    options.transports = {o.transport};
    options.ofi_provider = o.provider;
    const comm::job& j = program.join(options);
    if (j.ranks() != 2) throw input_error("2 ranks are needed: halocline-run -n 2 -- bench_network_messages");
    require_transport(j, o.transport);
    run(j, o);
    return 0;
}

} // namespace

int main(int argc, char** argv) { return run_bench(argc, argv, measure); }
