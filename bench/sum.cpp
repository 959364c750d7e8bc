// SPDX-License-Identifier: Apache-2.0
// What does a global sum cost, by the number of values?  scripts/bench.sh sum
//   (halocline-run -n N -- bench_sum [--values 1,2,8,64] [--seconds S] [--rounds N] [--groups 2,4] [--transport T]
//    [--json FILE] [--peer 'NAME[:CALL,CALL]=COMMAND']...)
// In turns: comm::global_sum, also with other groups than it chooses ("ours-4": of up to 4 ranks); "lines", a
// hand-written sum in memory that the ranks of a host share; the calls of each peer: "allreduce" and "allreduce-init",
// which is persistent, as far as it knows them (sum_mpi.cpp). One row per mode of the machine, medians in µs of the
// slowest rank; at its end the best MPI, as installed or tuned, ÷ ours.
#include "sum_steps.hpp"
#include "support/command_line.hpp"
#include "support/json_line.hpp"
#include "support/output_file.hpp"
#include "support/peer_names.hpp"
#include "support/peer_program.hpp"
#include "support/probed_facts.hpp"
#include "support/rounds.hpp"
#include "support/series_line.hpp"
#include "support/shared_pages.hpp"
#include "support/statistics.hpp"

#include <halocline/comm/global_sum.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline::bench;

struct bench_options {
    std::vector<std::size_t> values{1, 2, 8, 64};
    double seconds = 20;
    int rounds = 5;
    std::vector<int> groups;
    std::string transport, json;
    std::vector<std::string> peers;
};

/// Each rank writes its values and a flag into a place reserved for it at each other rank, and adds what is in its own
/// places: the least that a one-step sum can do.
class sum_by_lines {
  public:
    sum_by_lines(const comm::job& j, std::size_t most)
        : job_(j), slot_(128 + (most * sizeof(double) + 127) / 128 * 128),
          area_(j, 2 * slot_ * static_cast<std::size_t>(j.ranks())), spins_(spins_of(j)) {}
    void operator()(std::vector<double>& values) {
        ++epoch_;
        const std::size_t bytes = values.size() * sizeof(double);
        for (int r = 0; r < job_.ranks(); ++r) {
            std::byte* const place = place_at(r, job_.rank());
            std::memcpy(place + sizeof(std::uint64_t), values.data(), bytes);
            flag(place).store(epoch_, std::memory_order_release);
        }
        for (int r = 0; r < job_.ranks(); ++r) {
            std::byte* const place = place_at(job_.rank(), r);
            await(flag(place), epoch_, spins_);
            for (std::size_t i = 0; i < values.size(); ++i) {
                double part = 0;
                std::memcpy(&part, place + sizeof(std::uint64_t) + i * sizeof part, sizeof part);
                values[i] = r == 0 ? part : values[i] + part;
            }
        }
    }

  private:
    /// The place at which `rank` has the values of `from`; there are two, for a rank that is one sum ahead.
    std::byte* place_at(int rank, int from) const {
        return area_.of(rank) + slot_ * (2 * static_cast<std::size_t>(from) + (epoch_ & 1));
    }
    static std::atomic<std::uint64_t>& flag(std::byte* place) {
        return *reinterpret_cast<std::atomic<std::uint64_t>*>(place);
    }
    comm::job job_;
    std::size_t slot_;
    shared_pages area_;
    int spins_;
    std::uint64_t epoch_ = 0;
};

class driver {
  public:
    driver(const comm::job& j, const bench_options& o)
        : job_(j), options_(o), most_(*std::ranges::max_element(o.values)), probe_(j),
          sum_(j, static_cast<int>(most_)) {
        for (const int group : o.groups)
            grouped_.emplace_back(j, static_cast<int>(most_), std::span<const int>{}, group);
        const bool one_host =
            std::ranges::all_of(j.members(), [&](const comm::rank_info& m) { return m.host == j.members()[0].host; });
        if (one_host) lines_ = std::make_unique<sum_by_lines>(j, most_);
        j.collectively([&] {
            if (j.rank() == 0) json_ = output_file("--json", o.json);
        });
        peers_.emplace(j, o.peers, true);
        facts_ = facts_of(j);
    }
    void run(const app::program& program) {
        for (const std::size_t count : options_.values) {
            const std::vector<contender> all = contenders(count);
            const round_options rounds{.seconds = options_.seconds / static_cast<double>(options_.values.size()),
                                       .rounds = options_.rounds};
            const std::vector<outcome> results = take_turns(job_, probe_, all, rounds);
            if (job_.rank() != 0) continue;
            for (const auto speed : {outcome::fast, outcome::slow}) print(count, speed, all, results);
        }
        json_.close(program);
        peers_->leave();
    }

  private:
    std::vector<contender> contenders(std::size_t count) {
        std::vector<contender> all;
        const auto add = [&](const std::string& who, const std::string& transport, auto sum) {
            all.push_back({who, "", transport, [this, count, sum](double seconds) -> slice_times {
                               return {
                                   time_sums(job_.rank(), job_.ranks(), count, seconds, sum,
                                             [this](const std::vector<double>& mine) { return slowest(job_, mine); })};
                           }});
        };
        add("ours", job_.transport(), [this](std::vector<double>& values) { sum_.sum_or_throw(values); });
        for (std::size_t i = 0; i < grouped_.size(); ++i)
            add("ours-" + std::to_string(options_.groups[i]), job_.transport(),
                [&sum = grouped_[i]](std::vector<double>& values) { sum.sum_or_throw(values); });
        if (lines_) add("lines", "none", [this](std::vector<double>& values) { (*lines_)(values); });
        for (peer_program& peer : peers_->all())
            for (const std::string& call : peer.modes().empty() ? std::vector{sum_order().call} : peer.modes())
                all.push_back({peer.name(), call, transport_of_peer(peer.name()), [this, count, call, &peer](double s) {
                                   return peer.ask(job_, sum_order{count, s, call}.text(), 1);
                               }});
        return all;
    }
    void print(std::size_t count, outcome::speed speed, const std::vector<contender>& all,
               const std::vector<outcome>& results) {
        std::string row;
        double ours = 0, mpi = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (!results[i].has_figure(speed)) continue;
            const std::vector<double>& us = results[i].kept[speed].us[0];
            char cell[96];
            const std::string& who = all[i].who;
            const std::string name = all[i].mode.empty() ? who : who + " " + all[i].mode;
            std::snprintf(cell, sizeof cell, "  %s %.3f", name.c_str(), median(us));
            row += cell;
            if (who == "ours") ours = median(us);
            if (is_mpi(who) || !tuned_mpi(who).empty()) mpi = std::min(mpi, median(us));
            json_line line;
            line.add("bench", "sum").add("values", static_cast<int>(count)).add("ranks", job_.ranks());
            line.add("who", who)
                .add("mode", all[i].mode)
                .add("transport", all[i].transport)
                .add(facts_of(results[i], speed));
            line.add(times_of(us)).add(facts_.line());
            std::fprintf(options_.json.empty() ? stdout : json_.stream(), "%s\n", line.text().c_str());
        }
        json_.flush();
        std::fflush(stdout);
        if (row.empty()) return;
        std::fprintf(stderr, "%4zu values, %d ranks, %s%s", count, job_.ranks(), name_of(speed), row.c_str());
        if (ours > 0 && std::isfinite(mpi)) std::fprintf(stderr, " | mpi/ours %.2f", mpi / ours);
        std::fprintf(stderr, "\n");
    }

    comm::job job_;
    const bench_options& options_;
    std::size_t most_;
    output_file json_; ///< rank 0's
    flag_probe probe_;
    comm::global_sum sum_;
    std::deque<comm::global_sum> grouped_; ///< options_.groups
    std::unique_ptr<sum_by_lines> lines_;
    std::optional<peer_set> peers_; ///< started last
    run_facts facts_;
};

int measure(app::program& program, int argc, const char* const* argv) {
    bench_options o;
    CLI::App cli("what a global sum costs: medians in µs", "bench_sum");
    cli.add_option("--values", o.values, "doubles in a sum, 1 to 1024")
        ->delimiter(',')
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    add_seconds(cli, o.seconds, "in all");
    add_rounds(cli, o.rounds, "of turns, for each number of values");
    cli.add_option("--groups", o.groups, "sums in groups of up to so many ranks take turns too")
        ->delimiter(',')
        ->check(CLI::PositiveNumber);
    cli.add_option("--transport", o.transport, "the only one; default: shared memory where there is");
    cli.add_option("--json", o.json, "lines of JSON go here instead of standard output")->check(not_empty);
    cli.add_option("--peer", o.peers, "NAME[:CALL,CALL]=COMMAND: allreduce, allreduce-init of an MPI take turns")
        ->take_all();
    later_replaces_earlier(cli);
    program.parse(cli, argc, argv);
    require_distinct("--values", o.values);
    require_distinct("--groups", o.groups);
    comm::job_options options;
    if (!o.transport.empty()) options.transports = {o.transport};
    const comm::job& j = program.join(options);
    if (j.ranks() < 2) throw input_error("2 ranks or more are needed: halocline-run -n 2 -- bench_sum");
    if (!o.transport.empty()) require_transport(j, o.transport);
    driver(j, o).run(program);
    return 0;
}

} // namespace

int main(int argc, char** argv) { return run_bench(argc, argv, measure); }
