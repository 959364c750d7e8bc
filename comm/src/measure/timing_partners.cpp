// SPDX-License-Identifier: Apache-2.0
#include "timing_partners.hpp"

#include "control/wire.hpp"
#include "job/job_core.hpp"

#include <halocline/comm/detail/shm_channel.hpp>
#include <halocline/comm/processors.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace halocline::comm {
namespace {

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

} // namespace

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

} // namespace halocline::comm
