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
#include "support/peer_names.hpp"
#include "support/peer_program.hpp"
#include "support/probed_facts.hpp"
#include "support/rounds.hpp"
#include "support/series_line.hpp"
#include "support/statistics.hpp"
#include "support/svg_chart.hpp"

#include <array>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory_resource>
#include <optional>

namespace {

using namespace halocline;
using namespace halocline::bench;
using p2p::bench_options;

class driver {
  public:
    driver(const comm::job& j, const bench_options& o)
        : job_(j), options_(o), transport_(j.transport()), probe_(j), ours_(j, o.messages),
          messages_(endpoint(ours_, ours_.memory())),
          messages_elsewhere_(endpoint(ours_, *std::pmr::new_delete_resource())) {
        for (const std::string& text : o.compare) {
            others_.emplace_back(j, p2p::thresholds(text));
            other_messages_.push_back(endpoint(others_.back(), ours_.memory()));
        }
        if (transport_ == "shm") pair_.emplace(j);
        if (transport_ == "ofi" || transport_ == "mpi") socket_.emplace(j);
        j.collectively([&] {
            if (j.rank() != 0) return;
            json_ = output_file("--json", o.json);
            svg_ = output_file("--svg", o.svg);
        });
        peers_.emplace(j, o.peers);
        facts_ = facts_of(j);
        facts_.git = o.git;
    }

    void run(const app::program& program) {
        std::vector<chart_panel> panels;
        for (const std::string& pattern : options_.patterns) {
            chart_panel panel{pattern == "overhead" ? "isend" : pattern, {}, {}};
            for (const std::size_t bytes : options_.sizes) measure_point(pattern, bytes, panel);
            panels.push_back(std::move(panel));
        }
        if (svg_.stream() != nullptr)
            std::fputs(svg_chart("Messages between two cores, over " + transport_, "µs per message", panels).c_str(),
                       svg_.stream());
        json_.close(program);
        svg_.close(program);
        if (job_.rank() == 0) std::fputs(ours_.messages().describe().c_str(), stderr);
        peers_->leave();
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
        const char* const transport = transport_.c_str();
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
        for (peer_program& peer : peers_->all())
            all.push_back({peer.name(), "two-sided", transport_of_peer(peer.name()),
                           [this, pattern, bytes, &peer](double seconds) {
                               return peer.ask(job_, p2p::order{pattern, bytes, seconds}.text(), p2p::measure_count);
                           }});
        return all;
    }

    void measure_point(const std::string& pattern, std::size_t bytes, chart_panel& panel) {
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
        add_to(panel, pattern, bytes, all, results);
    }

    /// All contenders in the mode of the machine that most slices of the point saw.
    static void add_to(chart_panel& panel, const std::string& pattern, std::size_t bytes,
                       const std::vector<contender>& all, const std::vector<outcome>& results) {
        panel.categories.push_back(std::to_string(bytes));
        const outcome::speed speed = most_seen(results);
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (panel.lines.size() <= i) panel.lines.push_back({all[i].who + " " + all[i].mode, {}});
            const slice_times& us = results[i].kept[speed].us;
            panel.lines[i].values.push_back(results[i].has_figure(speed) ? median(us[pattern == "overhead" ? 0 : 1])
                                                                         : 0);
        }
    }

    /// Number m of what p2p::measurement gives, as keys of JSON begin.
    static const char* key_of_measure(const std::string& pattern, std::size_t m) {
        static constexpr const char* calls[]{"isend", "irecv"};
        static constexpr const char* exchanges[]{"bare", "step"};
        return pattern == "overhead" ? calls[m] : exchanges[m];
    }
    /// The name in README.md.
    static const char* measure_name(const std::string& pattern, std::size_t m) {
        return pattern != "overhead" && m == 0 ? "alone" : key_of_measure(pattern, m);
    }
    /// One mode of the machine: a row for human readers, a line of JSON for each contender.
    void print(const std::string& pattern, std::size_t bytes, outcome::speed speed, const std::vector<contender>& all,
               const std::vector<outcome>& results) {
        std::map<std::string, std::array<double, 2>> us; // "who mode": bare, step
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (!results[i].has_figure(speed)) continue;
            const series& s = results[i].kept[speed];
            us[all[i].who + " " + all[i].mode] = {median(s.us[0]), median(s.us[1])};
            write_json(pattern, bytes, speed, all[i], results[i]);
        }
        if (us.empty()) return;
        for (const std::size_t m : {0U, 1U}) {
            std::fprintf(stderr, "%-9s %8zu B %s %-5s", pattern.c_str(), bytes, name_of(speed),
                         measure_name(pattern, m));
            print_row(all, us, m);
        }
    }
    void write_json(const std::string& pattern, std::size_t bytes, outcome::speed speed, const contender& c,
                    const outcome& seen) {
        json_line line;
        line.add("bench", "p2p").add("pattern", pattern).add("bytes", bytes);
        line.add("who", c.who).add("mode", c.mode).add("transport", c.transport);
        line.add(facts_of(seen, speed));
        if (pair_ && c.who == "ours" && c.mode == "messages") {
            const char* const way = ways_.other_way();
            line.add("way", way == nullptr ? "as nomatch" : way);
        }
        for (const std::size_t m : {0U, 1U})
            line.add(times_of(seen.kept[speed].us[m], key_of_measure(pattern, m) + std::string("_")));
        if (c.who != "ours") line.add("beside", transport_);
        write(line.add(facts_.line()).text());
    }
    /// A measure of all contenders, "who mode" in `us`; then ours compared with the better MPI as installed, and the
    /// share of matching.
    void print_row(const std::vector<contender>& all, const std::map<std::string, std::array<double, 2>>& us,
                   std::size_t m) const {
        const auto of = [&](const std::string& who) {
            const auto found = us.find(who);
            return found == us.end() ? 0.0 : found->second[m];
        };
        double mpi = 0;
        for (const contender& c : all) {
            const double value = of(c.who + " " + c.mode);
            const bool other_program = c.who != "ours" && c.who != "limit";
            if (is_mpi(c.who) && value > 0) mpi = mpi > 0 ? std::min(mpi, value) : value;
            const std::string& label = other_program ? c.who : c.mode;
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
    std::string transport_;  ///< of ours
    output_file json_, svg_; ///< rank 0's
    flag_probe probe_;
    std::optional<p2p::pair_memory> pair_;       ///< for the limits of shared memory
    std::optional<p2p::socket_endpoint> socket_; ///< the limit of networks over TCP
    comm::two_sided::communicator ours_;
    messages_endpoint messages_, messages_elsewhere_;
    std::deque<comm::two_sided::communicator> others_; ///< for --compare
    std::deque<messages_endpoint> other_messages_;
    std::optional<peer_set> peers_; ///< started last
    p2p::message_ways ways_;        ///< of our messages at the current point
    run_facts facts_;
};

int run(app::program& program, int argc, const char* const* argv) {
    const bench_options o = p2p::parse(program, argc, argv);
    comm::job_options job_options;
    job_options.transports = {o.transport};
    job_options.ofi_provider = o.provider;
    const comm::job& j = program.join(job_options);
    if (j.ranks() != 2) throw input_error(std::to_string(j.ranks()) + " ranks; halocline-run -n 2 -- bench_p2p");
    require_transport(j, o.transport);
    driver(j, o).run(program);
    return 0;
}

} // namespace

int main(int argc, char** argv) { return run_bench(argc, argv, run); }
