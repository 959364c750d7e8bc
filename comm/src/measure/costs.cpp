// SPDX-License-Identifier: Apache-2.0
#include "agreed_costs.hpp"
#include "joint_probe.hpp"
#include "measure_at_start.hpp"
#include "timing_partners.hpp"
#include "write_probe.hpp"

#include "control/wire.hpp"
#include "job/job_core.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/costs.hpp>
#include <halocline/comm/detail/copy_bytes.hpp>
#include <halocline/comm/detail/take_line.hpp>
#include <halocline/comm/processors.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace halocline::comm {
namespace {

/// Until the end of its scope the calling thread has one core, and waits as if it had it to itself. If the system does
/// not give it the core, nothing changes.
class core_for_now {
  public:
    core_for_now(job_core& core, int processor) : core_(core), waits_(core.spin), bound_(bind_to({&processor, 1})) {
        if (bound_) core_.spin = spinning({}, true);
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
    bool bound_;
};

void measure_copies(costs& c) {
    constexpr std::size_t run = 96, stride = 16 * run, runs = 64;
    std::vector<std::byte> from(runs * stride), to(runs * stride);
    const double whole = least_seconds(4, [&] {
        from[0] = static_cast<std::byte>(std::to_integer<int>(from[0]) + 1);
        copy_bytes(to.data(), from.data(), to.size());
    });
    const double strided = least_seconds(4, [&] {
        for (std::size_t i = 0; i < runs; ++i) std::memcpy(to.data() + i * run, from.data() + i * stride, run);
    });
    c.copy_seconds_per_byte = whole / static_cast<double>(to.size());
    c.run_seconds = std::max(0.0, strided / runs - run * c.copy_seconds_per_byte);
}

/// An exchange with a rank across the middle of the job, where nodes differ if they do anywhere. Collective.
void measure_network_flag(const job& j, costs& c) {
    const int across = j.rank() ^ static_cast<int>(std::bit_floor(static_cast<unsigned>(j.ranks() - 1)));
    write_probe far(j, across < j.ranks() ? across : -1, 1, 8);
    const double seconds = far.exchange_seconds();
    if (!far.shares_memory()) c.network_flag_seconds = seconds;
}

double seconds_to_take_an_own_line() {
    std::byte own{};
    std::uint64_t keep = ~std::uint64_t{0};
    for (int i = 0; i < 8; ++i) keep = std::min(keep, ticks_to_take(&own));
    return seconds(keep);
}

/// Writes between two ranks with a core each, while other ranks wait. Collective.
void measure_writes(const job& j, measurement& mine) {
    const std::optional<timing> t = timing_of(j);
    if (!t) return;
    write_probe pair(j, t->partner, 1, write_probe::largest);
    std::optional<joint_probe> both;
    if (t->own_cores && j.memory().bytes() >= joint_probe::least_slab) both.emplace(j, t->partner);
    if (t->partner < 0) return;
    const core_for_now alone(j.core(), t->processor);
    costs& c = mine.seen;
    mine.claimed = pair.write_seconds(writes::claimed);
    c.cached = pair.write_seconds(writes::filled);
    c.run_line_seconds = pair.write_seconds(writes::in_runs).line_seconds;
    c.streamed = pair.write_seconds(writes::streamed);
    c.pulled_line_seconds = pair.write_seconds(writes::pulled).line_seconds;
    c.scattered_line_seconds = pair.write_seconds(writes::scattered).line_seconds;
    c.take_seconds = pair.take_seconds();
    if (!both) return;
    c.alone_seconds = both->seconds_of(false);
    c.joint_seconds = both->seconds_of(true);
}

measurement measure(const job& j) {
    measurement mine{.seen = unmeasured_costs()};
    costs& c = mine.seen;
    measure_copies(c);
    constexpr std::uint32_t many = 8;
    const int neighbour = (j.rank() ^ 1) < j.ranks() ? j.rank() ^ 1 : -1;
    // Kept until everything is timed: when their memory was reused, plans streamed faces that are better not streamed.
    write_probe one(j, neighbour, 1, 8), several(j, neighbour, many, 8);
    mine.own_core = j.core().processor >= 0;
    mine.shares_memory = one.shares_memory();
    c.flag_seconds = one.exchange_seconds();
    c.message_seconds = std::max(0.0, (several.exchange_seconds() - c.flag_seconds) / (many - 1));
    if (j.ranks() > 1 && j.core().networks.greet) measure_network_flag(j, c); // some rank has a peer over a network
    c.keep_seconds = seconds_to_take_an_own_line();
    measure_writes(j, mine);
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
    if (leaves_streaming(j.options().path) && j.core().some_share_memory) measured_costs(j);
}

costs unmeasured_costs() { return {.moves_skip_waits = moves_skip_waits()}; }

void assume_costs(const job& j, const costs& c) { j.core().measured = c; }

} // namespace halocline::comm
