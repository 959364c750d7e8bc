// SPDX-License-Identifier: Apache-2.0
// What does a message between two cores cost, by size?  scripts/bench.sh p2p
//   (halocline-run -n 2 -- bench_p2p [--transport NAME] [--peer 'NAME=COMMAND']; mpi: under an mpirun)
//
// Patterns (p2p/patterns.hpp): latency (half a round trip), one-way (a window of messages), both-ways, overhead (of
// isend and irecv). Contenders in turn: the limits, over shm slot, copy and nomatch (p2p/limits.hpp), over libfabric
// and MPI a plain TCP socket (p2p/socket_endpoint.hpp); our matched messages and our windows, each between arrays in
// slabs and in ordinary memory ("-elsewhere"), where those of the MPIs lie, too; our channel, the path of plans; each
// MPI. Matching costs 1 - time of nomatch / time of messages, if both copy in the same way (p2p/message_ways.hpp).
#include "p2p/channel_endpoint.hpp"
#include "p2p/limits.hpp"
#include "p2p/message_ways.hpp"
#include "p2p/options.hpp"
#include "p2p/patterns.hpp"
#include "p2p/socket_endpoint.hpp"
#include "p2p/two_sided_endpoint.hpp"
#include "p2p/window_endpoint.hpp"
#include "support/command_line.hpp"
#include "support/json_line.hpp"
#include "support/machine.hpp"
#include "support/output_file.hpp"
#include "support/peer_program.hpp"
#include "support/probed_facts.hpp"
#include "support/rounds.hpp"
#include "support/statistics.hpp"
#include "support/svg_chart.hpp"

#include <array>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory_resource>
#include <optional>
#include <sstream>

namespace {

using namespace halocline;
using namespace halocline::bench;
using p2p::bench_options;

class driver {
  public:
    driver(const comm::job& j, const bench_options& o)
        : job_(j), options_(o), probe_(j), ours_(j, o.messages), messages_(endpoint(ours_, ours_.memory())),
          messages_elsewhere_(endpoint(ours_, *std::pmr::new_delete_resource())) {
        for (const std::string& text : o.compare) {
            others_.emplace_back(j, p2p::thresholds(text));
            other_messages_.push_back(endpoint(others_.back(), ours_.memory()));
        }
        if (o.transport == "shm") pair_.emplace(j);
        if (o.transport == "ofi" || o.transport == "mpi") socket_.emplace(j);
        const std::vector<int> processors = processors_of(j);
        j.collectively([&] {
            if (j.rank() == 0) {
                json_ = output_file("--json", o.json);
                svg_ = output_file("--svg", o.svg);
            }
            for (const std::string& text : o.peers) {
                peers_.emplace_back(text);
                if (j.rank() == 0) peers_.back().start(processors);
            }
        });
        pin_ranks(j);
        facts_ = facts_of(j);
        facts_.git = o.git;
    }

    void run(const app::program& program) {
        std::vector<chart_panel> panels;
        for (const std::string& pattern : options_.patterns) {
            chart_panel panel{pattern == "overhead" ? "isend" : pattern, {}, {}};
            for (const std::size_t bytes : options_.sizes) measure(pattern, bytes, panel);
            panels.push_back(std::move(panel));
        }
        if (svg_.stream() != nullptr)
            std::fputs(
                svg_chart("Messages between two cores, over " + options_.transport, "µs per message", panels).c_str(),
                svg_.stream());
        json_.close(program);
        svg_.close(program);
        if (job_.rank() == 0) std::fputs(ours_.messages().describe().c_str(), stderr);
    }

  private:
    using messages_endpoint = p2p::two_sided_endpoint<std::function<std::vector<double>(std::vector<double>)>>;
    messages_endpoint endpoint(comm::two_sided::communicator& c, std::pmr::memory_resource& memory) {
        return {c, memory, [this](std::vector<double> mine) { return slowest(job_, mine); }};
    }
    std::vector<contender> contenders(const std::string& pattern, std::size_t bytes) {
        std::vector<contender> all;
        const auto add = [&](const char* who, const char* mode, const char* transport, auto make) {
            all.push_back({who, mode, transport, [pattern, bytes, make](double seconds) {
                               const p2p::order order{pattern, bytes, seconds};
                               auto&& endpoint = make();
                               return p2p::measurement(endpoint, order).run();
                           }});
        };
        const bool by_message = pattern == "latency" || pattern == "both-ways"; // not by windows of messages
        if (pair_) {
            if (by_message) add("limit", "slot", "none", [this] { return p2p::slot_endpoint(*pair_); });
            if (pattern != "overhead") {
                add("limit", "copy", "none", [this] { return p2p::copy_endpoint(*pair_); });
                add("limit", "nomatch", "none", [this] {
                    return p2p::nomatch_endpoint(*pair_, options_.messages.immediate_bytes,
                                                 options_.messages.synergistic_bytes);
                });
            }
        }
        if (socket_ && by_message)
            add(
                "limit", "socket", "tcp", [this]() -> auto& { return *socket_; });
        const char* const transport = options_.transport.c_str();
        ways_ = {};
        all.push_back({"ours", "messages", transport, [this, pattern, bytes](double seconds) {
                           const p2p::order order{pattern, bytes, seconds};
                           const comm::message_counts before = ours_.messages().counts();
                           slice_times times = p2p::measurement(messages_, order).run();
                           ways_.add(before, ours_.messages().counts());
                           return times;
                       }});
        add(
            "ours", "messages-elsewhere", transport, [this]() -> auto& { return messages_elsewhere_; });
        for (std::size_t i = 0; i < other_messages_.size(); ++i)
            add(
                "ours", options_.compare[i].c_str(), transport, [ this, i ]() -> auto& { return other_messages_[i]; });
        // Over a network an end of a channel also waits for its own message, so it can't answer.
        if (pattern == "both-ways" || (pair_ && by_message))
            add("ours", "channel", transport, [this, bytes] { return p2p::channel_endpoint(job_, bytes); });
        if (by_message) {
            add("ours", "window", transport, [this, bytes] { return p2p::window_endpoint(job_, bytes, true); });
            add("ours", "window-elsewhere", transport,
                [this, bytes] { return p2p::window_endpoint(job_, bytes, false); });
        }
        for (peer_program& peer : peers_)
            all.push_back({peer.name(), "two-sided", "mpi", [this, pattern, bytes, &peer](double seconds) {
                               std::ostringstream order;
                               order << pattern << ' ' << bytes << ' ' << seconds;
                               return peer.ask(job_, order.str());
                           }});
        return all;
    }

    void measure(const std::string& pattern, std::size_t bytes, chart_panel& panel) {
        const std::vector<contender> all = contenders(pattern, bytes);
        round_options rounds;
        rounds.seconds = options_.seconds / static_cast<double>(options_.patterns.size() * options_.sizes.size());
        const double slices = rounds.seconds / (1.5 * 0.04 * static_cast<double>(all.size()));
        rounds.rounds = std::clamp(static_cast<int>(slices), 1, options_.rounds);
        const std::vector<outcome> results = take_turns(job_, probe_, all, rounds);
        const std::vector<double> ways = slowest(job_, {ways_.arrived, ways_.pushed, ways_.copied});
        if (job_.rank() != 0) return;
        ways_ = {ways[0], ways[1], ways[2]};
        for (const outcome::speed speed : {outcome::fast, outcome::slow}) print(pattern, bytes, speed, all, results);
        panel.categories.push_back(std::to_string(bytes));
        for (std::size_t i = 0; i < all.size(); ++i) {
            const auto& kept = results[i].kept;
            const series& most =
                kept[outcome::fast].slices > kept[outcome::slow].slices ? kept[outcome::fast] : kept[outcome::slow];
            const std::string name = all[i].who + " " + all[i].mode;
            if (panel.lines.size() <= i) panel.lines.push_back({name, {}});
            panel.lines[i].values.push_back(most.us.empty() ? 0 : median(most.us[pattern == "overhead" ? 0 : 1]));
        }
    }

    static const char* measure(const std::string& pattern, std::size_t m) {
        static constexpr const char* calls[]{"isend", "irecv"};
        static constexpr const char* exchanges[]{"bare", "step"};
        return pattern == "overhead" ? calls[m] : exchanges[m];
    }
    /// The name in README.md.
    static const char* measure_name(const std::string& pattern, std::size_t m) {
        return pattern != "overhead" && m == 0 ? "alone" : measure(pattern, m);
    }
    /// One mode of the machine: a row for human readers, a line of JSON for each contender.
    void print(const std::string& pattern, std::size_t bytes, outcome::speed speed, const std::vector<contender>& all,
               const std::vector<outcome>& results) {
        const char* const name = speed == outcome::fast ? "fast" : "slow";
        std::map<std::string, std::array<double, 2>> us; // "who mode": bare, step
        for (std::size_t i = 0; i < all.size(); ++i) {
            const series& s = results[i].kept[speed];
            if (!results[i].has_figure(speed)) continue;
            us[all[i].who + " " + all[i].mode] = {median(s.us[0]), median(s.us[1])};
            write_json(pattern, bytes, name, all[i], s, results[i].noisy);
        }
        if (us.empty()) return;
        for (const std::size_t m : {0U, 1U}) {
            std::fprintf(stderr, "%-9s %8zu B %s %-5s", pattern.c_str(), bytes, name, measure_name(pattern, m));
            print_row(all, us, m);
        }
    }
    void write_json(const std::string& pattern, std::size_t bytes, const char* speed, const contender& c,
                    const series& s, bool noisy) {
        json_line line;
        line.add("bench", "p2p").add("pattern", pattern).add("bytes", bytes);
        line.add("who", c.who).add("mode", c.mode).add("transport", c.transport);
        line.add("speed", speed).add("flag_ns", median(s.flag_ns)).add("transfer_ns", median(s.transfer_ns));
        line.add("slices", s.slices).add("noisy", noisy);
        if (pair_ && c.who == "ours" && c.mode == "messages") {
            const char* const way = ways_.other_way();
            line.add("way", way == nullptr ? "as nomatch" : way);
        }
        for (const std::size_t m : {0U, 1U}) { // statistics of batches, each the mean of many steps
            const std::string us = measure(pattern, m) + std::string("_us_");
            line.add(us + "min", quantile(s.us[m], 0)).add(us + "median", median(s.us[m]));
            line.add(us + "p95", quantile(s.us[m], 0.95));
        }
        write(line.add(facts_.line()).text());
    }
    /// A measure of all contenders, "who mode" in `us`; then ours compared with the better MPI, and the share of
    /// matching.
    void print_row(const std::vector<contender>& all, const std::map<std::string, std::array<double, 2>>& us,
                   std::size_t m) const {
        const auto of = [&](const std::string& who) {
            const auto found = us.find(who);
            return found == us.end() ? 0.0 : found->second[m];
        };
        double mpi = 0;
        for (const contender& c : all) {
            const double value = of(c.who + " " + c.mode);
            const bool is_mpi = c.who != "ours" && c.who != "limit"; // a separate program
            if (is_mpi && value > 0) mpi = mpi > 0 ? std::min(mpi, value) : value;
            const std::string& label = is_mpi ? c.who : c.mode;
            if (value > 0)
                std::fprintf(stderr, " %s %.3f", label.c_str(), value);
            else
                std::fprintf(stderr, " %s -", label.c_str());
        }
        const double ours = of("ours messages"), unmatched = of("limit nomatch");
        if (mpi > 0 && ours > 0) std::fprintf(stderr, " | ours/mpi %.2f", ours / mpi);
        if (unmatched > 0 && ours > 0) {
            if (const char* const way = ways_.other_way())
                std::fprintf(stderr, " | matching -, ours %s", way);
            else
                std::fprintf(stderr, " | matching %.0f %%", 100 * (1 - unmatched / ours));
        }
        std::fprintf(stderr, "\n");
    }
    void write(const std::string& line) {
        std::fprintf(options_.json.empty() ? stdout : json_.stream(), "%s\n", line.c_str());
        json_.flush();
        std::fflush(stdout);
    }

    comm::job job_;
    const bench_options& options_;
    output_file json_, svg_; ///< rank 0's
    flag_probe probe_;
    std::optional<p2p::pair_memory> pair_;       ///< for the limits of shared memory
    std::optional<p2p::socket_endpoint> socket_; ///< the limit of networks over TCP
    comm::two_sided::communicator ours_;
    messages_endpoint messages_, messages_elsewhere_;
    std::deque<comm::two_sided::communicator> others_; ///< for --compare
    std::deque<messages_endpoint> other_messages_;
    std::deque<peer_program> peers_;
    p2p::message_ways ways_; ///< of our messages at the current point
    run_facts facts_;
};

int measure(app::program& program, int argc, const char* const* argv) {
    if (argc == 2 && std::string_view(argv[1]) == "--help") return program.print(p2p::usage_text), 0;
    const bench_options o = p2p::parse(argc, argv);
    comm::job_options job_options;
    job_options.transports = {o.transport};
    job_options.ofi_provider = o.provider;
    const comm::job& j = program.join(job_options);
    if (j.ranks() != 2) throw input_error(std::to_string(j.ranks()) + " ranks; halocline-run -n 2 -- bench_p2p");
    driver(j, o).run(program);
    return 0;
}

} // namespace

int main(int argc, char** argv) { return run_bench(argc, argv, measure); }
