// SPDX-License-Identifier: Apache-2.0
// The cost model: which path a message takes, and which route edges and corners, by costs measured in the job.
//
// * direct: 2 flags, the peer's "free" and then "arrived", and 1 copy. Lines in which ghosts share space with sites of
//   the peer make one more round trip. Lines that a run fills in part can't bypass the cache.
// * packed: 1 flag and 2 copies, into the slot and out of it, whose lines come from the peer's core. All of them can
//   bypass the cache.
// * Over a network: direct 2 flags and no copy, packed 1 flag and 2 copies.
// * joint: direct, if both ends copying was measured to be faster than one, for a receiver that waits.
// * streamed: a fixed cost and one per cache line, as measured; compared with the same through the cache, which is also
//   how lines that a run fills partly are written.
// * corners: at once, 1 flag and 1 message per distinct neighbour; by dimension, 1 flag per dimension.
#pragma once

#include <halocline/comm/costs.hpp>
#include <halocline/comm/detail/claim_lines.hpp>
#include <halocline/comm/detail/joint_channel.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/transport_names.hpp>
#include <halocline/halo/detail/path_watch.hpp>
#include <halocline/halo/path.hpp>
#include <halocline/halo/shell.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace halocline::halo {

/// Is that another rank, whose messages go through memory that both map?
inline bool shares_memory(const comm::job& j, int peer) {
    return peer != j.rank() && comm::is_in_memory(j.members()[peer].transport);
}

/// A choice and the reason for it.
template <class Choice>
struct verdict {
    Choice choice;
    std::string why;
};

/// What an end knows about a message.
struct message_outline {
    std::size_t bytes = 0;        ///< that it sends, or that arrives, if that is more
    std::int64_t runs = 0;        ///< of contiguous bytes, in the same direction
    double shared_lines = 0;      ///< of its own, in which ghosts lie next to owned sites
    comm::written_lines filled{}; ///< of its own, by what arrives; none: unknown
    bool in_runs = false;         ///< are runs so short that they would fill a slot one by one?
};

/// Direct or packed, for the message between this rank and a peer. Direct if both ends choose it. An end chooses direct
/// if (1) the lines that ghosts share with sites cost less than a second copy, (2) draining a slot takes longer than a
/// free flag, and (3) writing one message past the cache, or by moves where these skip waits, and a second copy, don't
/// take less than filling the ghosts.
verdict<path> choose_path(const comm::costs& c, const message_outline& m);

/// Is that message direct while cores are near each other, and packed while they are far apart? Times of lines and
/// flags grow together, so (2) hardly depends on it. (3) does: bypassing the cache takes as long in both places.
bool depends_on_distance(const comm::costs& c, const message_outline& m);

/// Direct or packed over a network, whose device writes runs from field to field: direct saves packing here and
/// unpacking there, and costs a free flag and one write per run.
verdict<path> choose_network_path(const comm::costs& c, std::size_t bytes, std::int64_t runs);

/// The smallest piece of a copy that is worth another thread of a team: taking it and reporting its completion costs
/// two flags.
std::size_t least_piece_bytes(const comm::costs& c);

/// Should the lines of a message be claimed before they are filled (claim_lines.hpp)? A line that a run fills partly
/// may also hold a site of the peer, which packs it at that time: if claimed first, such a line is transferred twice.
inline bool claiming_pays(const comm::written_lines& lines) { return 2 * lines.whole >= 3 * lines.part; }

/// How a message is written into memory that the peer shares, what may change that later, and the reason.
struct writing {
    path_watch watch;
    std::string why = "the job asks for it";
};

/// The choice for a message when its plan is made; it may be empty.
writing choose_writing(path wish, const comm::costs& c, const comm::written_lines& lines);

/// What to add to the reason for a message's path: why both ends copy it, or can't although that was asked for.
std::string why_joint(path wish, const comm::costs& c, int fields, bool joint);

/// A message of a plan, for limit_claims().
struct watched_bytes {
    path_watch* watch = nullptr;
    std::size_t bytes = 0;
};
/// Disables claiming in all messages of a plan if it could affect more lines than pays (claim_lines.hpp).
void limit_claims(const std::vector<watched_bytes>& messages);

/// The route for edges and corners, judged for a rank with neighbours on all sides, so that all ranks choose the same.
verdict<corner_route> choose_route(const comm::costs& c, const lattice::coordinate& rank_grid,
                                   const ghost_widths& widths);

} // namespace halocline::halo
