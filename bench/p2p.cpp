// SPDX-License-Identifier: Apache-2.0
// What does a message between two cores cost, by size?  scripts/bench.sh p2p
//   (halocline-run -n 2 -- bench_p2p [--peer 'NAME=COMMAND'])
//
// Patterns (p2p/patterns.hpp): latency (half a round trip), one-way (a window of messages), both-ways, overhead (of
// isend and irecv). Contenders in turn: slot, copy and nomatch (p2p/limits.hpp); our matched messages; our channel, the
// path of plans; each MPI. What matching costs is 1 - time of nomatch / time of messages.
#include "p2p/limits.hpp"
#include "p2p/patterns.hpp"
#include "p2p/two_sided_endpoint.hpp"
#include "support/json_line.hpp"
#include "support/machine.hpp"
#include "support/peer_program.hpp"
#include "support/rounds.hpp"
#include "support/statistics.hpp"
#include "support/svg_chart.hpp"

#include <halocline/comm/channel_set.hpp>

#include <array>
#include <cstdio>
#include <deque>
#include <exception>
#include <functional>
#include <fstream>
#include <map>
#include <sstream>

namespace {

using namespace halocline;
using namespace halocline::bench;

struct bench_options {
    double seconds = 170;
    int rounds = 25; ///< of slices so short that the machine seldom changes its mode within a round
    std::vector<std::string> compare;
    std::vector<std::string> patterns{"latency", "one-way", "both-ways", "overhead"};
    std::vector<std::size_t> sizes{8, 64, 256, 512, 1024, 2048, 4096, 8192, 32768, 131072, 524288, 2097152, 8388608};
    std::string json, svg, git = "unknown";
    std::vector<std::string> peers;
    comm::messenger_options messages;
};

constexpr const char* usage_text = "usage: bench_p2p [--seconds S] [--patterns latency,one-way,both-ways,overhead] "
                                   "[--sizes 8,64,...] [--quick] [--json FILE] [--svg FILE] [--git HASH] "
                                   "[--peer NAME=COMMAND]... [--compare IMMEDIATE,SYNERGISTIC,STREAMED]...\n"
                                   "--compare: our messages with other thresholds take part, too";

[[noreturn]] void usage(const std::string& wrong) { throw input_error(wrong + "\n" + usage_text); }

std::size_t number(const std::string& text, std::size_t least, std::size_t most) {
    std::size_t end = 0, n = 0;
    try {
        n = std::stoul(text, &end);
    } catch (const std::exception&) {
        end = 0;
    }
    if (end != text.size() || n < least || n > most)
        usage("'" + text + "' is no number from " + std::to_string(least) + " to " + std::to_string(most));
    return n;
}

bench_options parse(int argc, char** argv) {
    bench_options o;
    for (int i = 1; i < argc; ++i) {
        const std::string flag = argv[i];
        if (flag == "--quick") { // a smoke test of everything
            o.seconds = 1;
            o.rounds = 1;
            o.sizes = {8, 131072};
            continue;
        }
        if (i + 1 == argc) usage("'" + flag + "' is unknown or lacks its value");
        const std::string value = argv[++i];
        const auto each = [&](auto&& take) {
            std::stringstream list(value);
            for (std::string item; std::getline(list, item, ',');) take(item);
        };
        if (flag == "--seconds")
            o.seconds = static_cast<double>(number(value, 1, 100'000));
        else if (flag == "--json")
            o.json = value;
        else if (flag == "--svg")
            o.svg = value;
        else if (flag == "--git")
            o.git = value;
        else if (flag == "--peer")
            o.peers.push_back(value);
        else if (flag == "--compare")
            o.compare.push_back(value);
        else if (flag == "--patterns") {
            o.patterns.clear();
            each([&](const std::string& item) {
                if (item != "latency" && item != "one-way" && item != "both-ways" && item != "overhead")
                    usage("no pattern '" + item + "'");
                o.patterns.push_back(item);
            });
        } else if (flag == "--sizes") {
            o.sizes.clear();
            each([&](const std::string& item) {
                o.sizes.push_back(number(item, 8, p2p::pair_memory::largest));
                if (o.sizes.back() % 8 != 0) usage("--sizes " + item + ": must be a multiple of 8");
            });
        } else
            usage("unknown option '" + flag + "'");
    }
    return o;
}

comm::messenger_options thresholds(const std::string& text) {
    std::vector<std::string> parts;
    std::stringstream list(text);
    for (std::string item; std::getline(list, item, ',');) parts.push_back(item);
    if (parts.size() != 3) usage("--compare " + text + ": expected IMMEDIATE,SYNERGISTIC,STREAMED");
    comm::messenger_options o;
    o.immediate_bytes = number(parts[0], 0, comm::messenger_options::largest_immediate);
    o.synergistic_bytes = number(parts[1], 1, 1 << 30);
    o.streamed_bytes = number(parts[2], 1, 1 << 30);
    return o;
}

/// The persistent path of plans: epochs instead of messages.
class channel_endpoint {
  public:
    channel_endpoint(const comm::job& j, std::size_t bytes)
        : job_(j), request_{1 - j.rank(), 0, 0, bytes, bytes, "pair"}, set_(j, {&request_, 1}, {"p2p", ""}),
          source_(bytes) {}
    [[nodiscard]] int rank() const { return job_.rank(); }
    std::byte* out(std::size_t) { return source_.data(); }
    std::byte* in(std::size_t bytes) {
        unused_.resize(bytes);
        return unused_.data();
    }
    std::vector<double> slowest(const std::vector<double>& mine) { return bench::slowest(job_, mine); }
    void send(const std::byte* p, std::size_t n) {
        set_.for_each([&](auto& c) {
            std::memcpy(c.target(sent_ + 1), p, n);
            c.send(sent_ + 1, 0);
        });
        ++sent_;
    }
    const std::byte* recv(std::byte*, std::size_t) {
        ++received_;
        if (const comm::status s = set_.wait(received_); s != comm::status::ok) job_.fail(s, set_.pending(received_));
        const std::byte* at = nullptr;
        set_.for_each([&](auto& c) { at = c.received(received_); });
        return at;
    }
    const std::byte* exchange(const std::byte* out, std::byte* in, std::size_t n) {
        send(out, n);
        return recv(in, n);
    }

  private:
    comm::job job_;
    comm::channel_request request_;
    comm::channel_set set_;
    std::vector<std::byte> source_, unused_;
    std::uint64_t sent_ = 0, received_ = 0;
};

class driver {
  public:
    driver(const comm::job& j, const bench_options& o)
        : job_(j), options_(o), probe_(j), pair_(j), ours_(j, o.messages),
          messages_(ours_, [this](std::vector<double> mine) { return slowest(job_, mine); }) {
        for (const std::string& text : o.compare) {
            others_.emplace_back(j, thresholds(text));
            other_messages_.emplace_back(others_.back(),
                                         [this](std::vector<double> mine) { return slowest(job_, mine); });
        }
        j.collectively([&] {
            for (const std::string& text : o.peers) {
                peers_.emplace_back(text);
                if (j.rank() == 0) peers_.back().start();
            }
        });
        pinned_ = pin(j.rank(), j.ranks());
    }

    void run() {
        std::vector<chart_panel> panels;
        for (const std::string& pattern : options_.patterns) {
            chart_panel panel{pattern == "overhead" ? "isend" : pattern, {}, {}};
            for (const std::size_t bytes : options_.sizes) measure(pattern, bytes, panel);
            panels.push_back(std::move(panel));
        }
        if (job_.rank() == 0 && !options_.svg.empty())
            std::ofstream(options_.svg) << svg_chart("Messages between two cores", "µs per message", panels);
        if (job_.rank() == 0) std::fputs(ours_.messages().describe().c_str(), stderr);
    }

  private:
    std::vector<contender> contenders(const std::string& pattern, std::size_t bytes) {
        std::vector<contender> all;
        const auto add = [&](const char* who, const char* mode, const char* transport, auto make) {
            all.push_back({who, mode, transport, [this, pattern, bytes, make](double seconds) {
                               const p2p::order order{pattern, bytes, seconds};
                               auto&& endpoint = make();
                               return p2p::measurement(endpoint, order).run();
                           }});
        };
        if (pattern == "latency" || pattern == "both-ways")
            add("limit", "slot", "none", [this] { return p2p::slot_endpoint(pair_); });
        if (pattern != "overhead") {
            add("limit", "copy", "none", [this] { return p2p::copy_endpoint(pair_); });
            add("limit", "nomatch", "none", [this] {
                return p2p::nomatch_endpoint(pair_, options_.messages.immediate_bytes,
                                             options_.messages.synergistic_bytes);
            });
        }
        add(
            "ours", "messages", "shm", [this]() -> auto& { return messages_; });
        for (std::size_t i = 0; i < other_messages_.size(); ++i)
            add(
                "ours", options_.compare[i].c_str(), "shm", [ this, i ]() -> auto& { return other_messages_[i]; });
        if (pattern == "latency" || pattern == "both-ways")
            add("ours", "channel", "shm", [this, bytes] { return channel_endpoint(job_, bytes); });
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
        if (job_.rank() != 0) return;
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

    /// One mode of the machine: a row for eyes, a line of JSON for each contender.
    void print(const std::string& pattern, std::size_t bytes, outcome::speed speed, const std::vector<contender>& all,
               const std::vector<outcome>& results) {
        const char* const name = speed == outcome::fast ? "fast" : "slow";
        std::map<std::string, std::array<double, 2>> us; // "who mode": bare, step
        for (std::size_t i = 0; i < all.size(); ++i) {
            const series& s = results[i].kept[speed];
            if (s.slices < (results[i].noisy ? 1 : outcome::fewest_slices)) continue;
            us[all[i].who + " " + all[i].mode] = {median(s.us[0]), median(s.us[1])};
            json_line line;
            line.add("bench", "p2p").add("pattern", pattern).add("bytes", static_cast<double>(bytes));
            line.add("who", all[i].who).add("mode", all[i].mode).add("transport", all[i].transport);
            line.add("speed", name)
                .add("flag_ns", median(s.flag_ns))
                .add("transfer_ns", median(s.transfer_ns))
                .add("slices", s.slices)
                .add("noisy", results[i].noisy);
            for (const std::size_t m : {0U, 1U}) {
                const std::string measure =
                    pattern == "overhead" ? (m == 0 ? "isend" : "irecv") : (m == 0 ? "bare" : "step");
                line.add(measure + "_us_min", quantile(s.us[m], 0)).add(measure + "_us_median", median(s.us[m]));
                line.add(measure + "_us_p95", quantile(s.us[m], 0.95));
            }
            line.add("pinned", pinned_)
                .add("host", job_.members()[0].host)
                .add("compiler", __VERSION__)
                .add("git", options_.git);
            write(line.text());
        }
        if (us.empty()) return;
        for (const std::size_t m : {0U, 1U}) {
            const std::string measure =
                pattern == "overhead" ? (m == 0 ? "isend" : "irecv") : (m == 0 ? "bare" : "step");
            std::fprintf(stderr, "%-9s %8zu B %s %-5s", pattern.c_str(), bytes, name, measure.c_str());
            double mpi = 0;
            for (std::size_t i = 0; i < all.size(); ++i) {
                const auto found = us.find(all[i].who + " " + all[i].mode);
                const double value = found == us.end() ? 0 : found->second[m];
                if (all[i].transport == "mpi" && value > 0) mpi = mpi > 0 ? std::min(mpi, value) : value;
                const std::string& label = all[i].transport == "mpi" ? all[i].who : all[i].mode;
                if (value > 0)
                    std::fprintf(stderr, " %s %.3f", label.c_str(), value);
                else
                    std::fprintf(stderr, " %s -", label.c_str());
            }
            const auto of = [&](const char* who) { return us.contains(who) ? us[who][m] : 0.0; };
            const double ours = of("ours messages");
            if (mpi > 0 && ours > 0) std::fprintf(stderr, " | ours/mpi %.2f", ours / mpi);
            if (of("limit nomatch") > 0 && ours > 0)
                std::fprintf(stderr, " | matching %.0f %%", 100 * (1 - of("limit nomatch") / ours));
            std::fprintf(stderr, "\n");
        }
    }
    void write(const std::string& line) {
        if (options_.json.empty())
            std::printf("%s\n", line.c_str()), std::fflush(stdout);
        else
            std::ofstream(options_.json, std::ios::app) << line << '\n';
    }

    comm::job job_;
    const bench_options& options_;
    flag_probe probe_;
    p2p::pair_memory pair_;
    comm::two_sided::communicator ours_;
    using messages_endpoint = p2p::two_sided_endpoint<std::function<std::vector<double>(std::vector<double>)>>;
    messages_endpoint messages_;
    std::deque<comm::two_sided::communicator> others_; ///< of --compare
    std::deque<messages_endpoint> other_messages_;
    std::deque<peer_program> peers_;
    bool pinned_ = false;
};

} // namespace

int main(int argc, char** argv) {
    if (argc == 2 && std::string_view(argv[1]) == "--help") return std::puts(usage_text) < 0;
    try {
        const bench_options o = parse(argc, argv);
        comm::job_options job_options;
        job_options.transports = {"shm"};
        const comm::job j = comm::job::from_environment(job_options);
        if (j.ranks() != 2)
            throw input_error("bench_p2p: " + std::to_string(j.ranks()) + " ranks; halocline-run -n 2 -- bench_p2p");
        if (j.rank() == 0 && !o.json.empty()) std::ofstream(o.json); // lines are appended to an empty file
        driver(j, o).run();
        return 0;
    } catch (const input_error& e) {
        std::fprintf(stderr, "bench_p2p: %s\n", e.what());
        return 2;
    } catch (const job_error& e) {
        std::fprintf(stderr, "bench_p2p: %s\n", e.what());
        return 3;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "bench_p2p: %s\n", e.what());
        return 1;
    }
}
