// SPDX-License-Identifier: Apache-2.0
#include "agreed_costs.hpp"
#include "measure_at_start.hpp"

#include "control/wire.hpp"
#include "job/job_core.hpp"

#include <halocline/comm/costs.hpp>

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/clock.hpp>
#include <halocline/comm/detail/claim_lines.hpp>
#include <halocline/comm/detail/stream_bytes.hpp>
#include <halocline/comm/detail/take_line.hpp>
#include <halocline/comm/processors.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory_resource>
#include <optional>
#include <utility>
#include <vector>

namespace halocline::comm {
namespace {

/// The least time of a few attempts: other load on the machine only adds.
template <class Work>
double least_seconds(int attempts, Work&& work) {
    std::uint64_t least = ~std::uint64_t{0};
    for (int i = 0; i < attempts; ++i) {
        const std::uint64_t before = ticks();
        work();
        least = std::min(least, ticks() - before);
    }
    return seconds(least);
}

/// How a message is written.
enum class writes {
    cached,   ///< lines claimed, then filled
    streamed, ///< lines filled by stores that bypass the cache
    /// A few lines of each page, filled by half, from the other halves of the lines that the peer writes meanwhile.
    scattered
};

/// Messages of at most `bytes` between this rank and its partner, if it has one; the larger ones in shared memory only.
class probe {
  public:
    /// Collective.  peer: -1: none.
    probe(const job& j, int peer, std::uint32_t messages, std::size_t bytes) : job_(j), source_(bytes) {
        std::vector<channel_request> requests;
        if (peer >= 0) {
            shared_ = j.members()[peer].transport == shm_channel::transport;
            if (!shared_) bytes = least;
            for (std::uint32_t m = 0; m < messages; ++m) requests.push_back({peer, m, m, bytes, bytes, "probe"});
        }
        set_ = channel_set(j, requests, {"costs", "", {}});
    }
    /// Time of an exchange of an empty message; 0 on a rank without a partner.
    [[nodiscard]] double exchange_seconds() {
        return set_.size() == 0 ? 0 : seconds_of([&] { step(0, writes::cached); });
    }
    [[nodiscard]] bool shares_memory() const { return shared_; }
    /// 0 if the partner shares no memory.
    [[nodiscard]] write_cost write_seconds(writes how) {
        if (!shared_) return {};
        // The large size exceeds a first-level cache. Lines that lie there, the writer's or the reader's, take the
        // other core half as long again (Xeon: 13 instead of 8 ns), which is irrelevant to faces that are worth
        // streaming.
        constexpr std::size_t small_bytes = 1024;
        const std::size_t large_bytes = how == writes::scattered ? 4096 : largest;
        const double small = seconds_of([&] { step(small_bytes, how); });
        const double large = seconds_of([&] { step(large_bytes, how); });
        write_cost cost;
        cost.line_seconds = std::max(0.0, large - small) / static_cast<double>((large_bytes - small_bytes) / line);
        cost.message_seconds = std::max(0.0, small - cost.line_seconds * static_cast<double>(small_bytes / line));
        return cost;
    }
    /// Time to get a line back from the partner, who has read it; 0 if the partner shares no memory.
    [[nodiscard]] double take_seconds() {
        if (!shared_) return 0;
        // The median over lines in different places: a prefetcher may already have fetched one half-way, and compared
        // with the least of all readings, those of a plan would look as if they came from far away.
        std::array<std::uint64_t, 9> readings{};
        for (std::size_t i = 0; i < readings.size(); ++i) {
            const std::size_t at = (i + 1) * largest / (readings.size() + 1);
            set_.for_each([&](auto& c) { readings[i] = ticks_to_take(c.target(epoch_ + 1) + at); });
            step(largest, writes::cached);
        }
        const auto middle = readings.begin() + readings.size() / 2;
        std::nth_element(readings.begin(), middle, readings.end());
        return seconds(*middle);
    }
    static constexpr std::size_t largest = std::size_t{64} << 10;

  private:
    static constexpr std::size_t line = 64, least = 8;
    static constexpr std::size_t leap = 15; ///< lines, as from row to row of a small box with ghosts
    template <class Step>
    double seconds_of(Step&& step) {
        constexpr int steps = 4;
        return least_seconds(6,
                             [&] {
                                 for (int i = 0; i < steps; ++i) step();
                             }) /
               steps;
    }
    /// The source changes, travels, and is read.
    void step(std::size_t bytes, writes how) {
        ++epoch_;
        for (std::size_t i = 0; i < bytes; i += line) source_[i] = static_cast<std::byte>(epoch_);
        set_.for_each([&](auto& c) {
            std::byte* const target = c.target(epoch_);
            if (how == writes::streamed) {
                stream_bytes(target, source_.data(), bytes);
                finish_streams();
            } else if (how == writes::cached) {
                claim_lines(target, target + bytes);
                std::memcpy(target, source_.data(), bytes);
            } else {
                const std::byte* const own = c.received(epoch_) + line / 2; // next to what the peer writes meanwhile
                for (std::size_t i = 0; i < bytes; i += line) std::memcpy(target + leap * i, own + leap * i, line / 2);
            }
            c.send(epoch_, 0);
        });
        if (const status s = set_.wait(epoch_); s != status::ok) job_.fail(s, set_.pending(epoch_));
        set_.for_each([&](auto& c) {
            auto* const message = const_cast<volatile std::byte*>(c.received(epoch_));
            for (std::size_t i = 0; i < bytes; i += line) {
                const std::size_t at = how == writes::scattered ? leap * i : i;
                (void)message[at];
                if (how == writes::scattered) message[at + line - 1] = static_cast<std::byte>(epoch_);
            }
        });
    }

    job job_;
    std::vector<std::byte> source_;
    channel_set set_;
    std::uint64_t epoch_ = 0;
    bool shared_ = false;
};

/// Messages of joint_bytes from one rank to its partner, which waits for them and answers with an empty epoch.
class joint_probe {
  public:
    /// Collective.  peer: -1: none.
    joint_probe(const job& j, int peer) : job_(j), sends_(j.rank() < peer), source_(&j.memory()) {
        std::vector<channel_request> requests;
        if (peer >= 0) {
            channel_request& r = requests.emplace_back(channel_request{peer, 0, 0, 0, 0, "probe"});
            (sends_ ? r.send_bytes : r.receive_bytes) = joint_bytes;
            r.joint = true;
        }
        j.collectively([&] {
            if (sends_) source_.resize(joint_bytes);
        });
        set_ = channel_set(j, requests, {"costs of joint copies", "", {}});
    }
    /// In smaller slabs there may be no room for it. All ranks have equal ones.
    static constexpr std::size_t least_slab = 64 * joint_bytes;
    /// Time of a message and its answer.
    [[nodiscard]] double seconds_of(bool joint) {
        step(joint); // the lines of slots and source are where they are from now on
        return least_seconds(3, [&] { step(joint); });
    }

  private:
    /// The source changes, travels, and is read.
    void step(bool joint) {
        constexpr std::size_t line = 64;
        constexpr auto lines = static_cast<std::int64_t>(joint_bytes / line);
        ++epoch_;
        set_.for_each([&]<class Channel>(Channel& c) {
            if constexpr (joint_channel<Channel>) {
                if (!sends_) return;
                std::byte* const from = source_.data();
                for (std::size_t i = 0; i < joint_bytes; i += line) from[i] = static_cast<std::byte>(epoch_);
                const auto copy = [&](std::int64_t first, std::int64_t last) noexcept {
                    std::memcpy(c.target(epoch_) + first * line, from + first * line,
                                static_cast<std::size_t>(last - first) * line);
                };
                if (joint) {
                    c.offer(epoch_, {.component_bytes = 1,
                                     .fields = 1,
                                     .places = {static_cast<std::uint64_t>(from - job_.memory().base())}});
                    c.copy_offered(epoch_, lines, copy);
                } else {
                    copy(0, lines);
                }
                c.send(epoch_, 0);
            }
        });
        auto help = [&] {
            set_.for_each([&]<class Channel>(Channel& c) {
                if constexpr (joint_channel<Channel>) {
                    if (sends_) return;
                    c.help(epoch_, lines,
                           [&](std::int64_t first, std::int64_t last, const joint_source& source,
                               const std::byte* memory) noexcept {
                               std::memcpy(c.slot(epoch_) + first * line, memory + source.places[0] + first * line,
                                           static_cast<std::size_t>(last - first) * line);
                           });
                }
            });
        };
        if (const status s = set_.wait(epoch_, help); s != status::ok) job_.fail(s, set_.pending(epoch_));
        if (sends_) return;
        set_.for_each([&](auto& c) {
            const auto* const message = const_cast<const volatile std::byte*>(c.received(epoch_));
            for (std::size_t i = 0; i < joint_bytes; i += line) (void)message[i];
            c.send(epoch_, 0); // the answer
        });
    }

    job job_;
    bool sends_;
    std::pmr::vector<std::byte> source_; // in the slab
    channel_set set_;
    std::uint64_t epoch_ = 0;
};

/// Until the end of its scope the calling thread has one core, and waits as if it had it to itself.
class core_for_now {
  public:
    core_for_now(job_core& core, int processor) : core_(core), waits_(std::exchange(core.spin, spinning({}, true))) {
        bound_ = bind_to({&processor, 1});
    }
    ~core_for_now() {
        if (bound_) bind_to(before_);
        core_.spin = waits_;
    }
    core_for_now(const core_for_now&) = delete;
    core_for_now& operator=(const core_for_now&) = delete;

  private:
    job_core& core_;
    spinning waits_;
    std::vector<int> before_ = usable_processors();
    bool bound_ = false;
};

/// A rank's description of itself before partners are chosen.
struct place {
    int node = 0;    // the lowest rank with which it shares memory
    int own = -1;    // the rank's own processor; -1: none
    int usable = 0;  // processors of `choice`
    int choice[2]{}; // as many as this rank needs, whatever its partner takes
};

place place_of(const job& j) {
    place mine;
    mine.node = std::find_if(j.members().begin(), j.members().end(), [&](const rank_info& m) {
                    return m.rank == j.rank() || m.transport == shm_channel::transport;
                })->rank;
    mine.own = j.core().processor;
    const std::vector<int> usable = usable_processors();
    mine.usable = std::min(2, static_cast<int>(usable.size()));
    std::copy_n(usable.begin(), mine.usable, mine.choice);
    return mine;
}

/// A processor for each of two ranks: their own; if either has none, any two. Empty if they share no memory, or may use
/// only one.
std::vector<int> processors_for(const place& one, const place& other) {
    if (one.node != other.node) return {};
    if (one.own >= 0 && other.own >= 0) return {one.own, other.own};
    std::vector<int> given =
        one_processor_each({{one.choice, one.choice + one.usable}, {other.choice, other.choice + other.usable}});
    if (given[0] < 0 || given[1] < 0) return {};
    return given;
}

/// The rank with which a rank times their writes to each other, and its processor meanwhile; -1: it times nothing.
struct timing {
    int partner = -1, processor = -1;
    bool own_cores = false; ///< has every rank a processor of its own?
};

/// Pairs the ranks 2i and 2i + 1 wherever they share memory and each has a processor of its own. If there is no such
/// pair, one pair of the job is lent two processors while the others sleep: the first possible one of a node, whatever
/// its ranks, because ranks that are bound may share a processor with their neighbours.
std::vector<timing> choose_timings(const std::vector<place>& places) {
    std::vector<timing> all(places.size());
    bool any = false;
    const auto pair = [&](std::size_t one, std::size_t other, const std::vector<int>& processors) {
        if (processors.empty()) return;
        all[one] = {static_cast<int>(other), processors[0]};
        all[other] = {static_cast<int>(one), processors[1]};
        any = true;
    };
    for (std::size_t even = 0; even + 1 < places.size(); even += 2)
        if (places[even].own >= 0 && places[even + 1].own >= 0)
            pair(even, even + 1, processors_for(places[even], places[even + 1]));
    // If the first rank of a node finds no partner, all of the node's ranks may use only the same processor.
    for (std::size_t other = 0; other < places.size() && !any; ++other) {
        const auto first = static_cast<std::size_t>(places[other].node);
        if (first != other) pair(first, other, processors_for(places[first], places[other]));
    }
    return all;
}

/// This rank's timing; none if no rank times anything. Collective: from gathered data, so that all choose alike.
std::optional<timing> timing_of(const job& j) {
    std::vector<place> places;
    for (const std::string& text : j.gather(wire_writer().number(place_of(j)).take()))
        places.push_back(wire_reader(text).number<place>());
    const std::vector<timing> all = choose_timings(places);
    if (std::all_of(all.begin(), all.end(), [](const timing& t) { return t.partner < 0; })) return {};
    timing mine = all[j.rank()];
    mine.own_cores = std::ranges::all_of(places, [](const place& p) { return p.own >= 0; });
    return mine;
}

measurement measure(const job& j) {
    constexpr std::size_t run = 96, stride = 16 * run, runs = 64;
    std::vector<char> from(runs * stride), to(runs * stride);
    const double whole = least_seconds(4, [&] {
        from[0] = static_cast<char>(from[0] + 1);
        std::memcpy(to.data(), from.data(), to.size());
    });
    const double strided = least_seconds(4, [&] {
        for (std::size_t i = 0; i < runs; ++i) std::memcpy(to.data() + i * run, from.data() + i * stride, run);
    });
    constexpr std::uint32_t many = 8;
    const int neighbour = (j.rank() ^ 1) < j.ranks() ? j.rank() ^ 1 : -1;
    // Kept until everything is timed: when their memory was reused, plans streamed faces that are better not streamed.
    probe one(j, neighbour, 1, 8), several(j, neighbour, many, 8);
    measurement mine{.seen = {}, .own_core = j.core().processor >= 0, .shares_memory = one.shares_memory()};
    costs& c = mine.seen;
    c.copy_seconds_per_byte = whole / static_cast<double>(to.size());
    c.run_seconds = std::max(0.0, strided / runs - run * c.copy_seconds_per_byte);
    c.flag_seconds = one.exchange_seconds();
    c.message_seconds = std::max(0.0, (several.exchange_seconds() - c.flag_seconds) / (many - 1));
    // Some rank has a peer over a network: across the middle of the job nodes differ, if they do anywhere.
    if (j.ranks() > 1 && j.core().networks.greet) {
        const int across = j.rank() ^ static_cast<int>(std::bit_floor(static_cast<unsigned>(j.ranks() - 1)));
        probe far(j, across < j.ranks() ? across : -1, 1, 8);
        const double seconds = far.exchange_seconds();
        if (!far.shares_memory()) c.far_flag_seconds = seconds;
    }
    std::byte own{};
    std::uint64_t keep = ~std::uint64_t{0};
    for (int i = 0; i < 8; ++i) keep = std::min(keep, ticks_to_take(&own));
    c.keep_seconds = seconds(keep);
    if (const std::optional<timing> t = timing_of(j)) {
        probe pair(j, t->partner, 1, probe::largest);
        std::optional<joint_probe> both;
        if (t->own_cores && j.memory().bytes() >= joint_probe::least_slab) both.emplace(j, t->partner);
        if (t->partner < 0) return mine;
        const core_for_now alone(j.core(), t->processor);
        c.cached = pair.write_seconds(writes::cached);
        c.streamed = pair.write_seconds(writes::streamed);
        c.scattered_line_seconds = pair.write_seconds(writes::scattered).line_seconds;
        c.take_seconds = pair.take_seconds();
        if (!both) return mine;
        c.alone_seconds = both->seconds_of(false);
        c.joint_seconds = both->seconds_of(true);
    }
    return mine;
}

} // namespace

const costs& measured_costs(const job& j) {
    job_core& core = j.core();
    if (core.measured) return *core.measured;
    const measurement mine = measure(j);
    std::vector<measurement> all;
    for (const std::string& text : j.gather(wire_writer().number(mine).take()))
        all.push_back(wire_reader(text).number<measurement>());
    core.sweep(); // frees the probes' memory: all ranks have closed theirs
    core.measured = agreed(all);
    return *core.measured;
}

void measure_at_start(const job& j) {
    if (j.ranks() > 1 && leaves_streaming(j.options().path) && j.core().all_share_memory) measured_costs(j);
}

void assume_costs(const job& j, const costs& c) { j.core().measured = c; }

} // namespace halocline::comm
