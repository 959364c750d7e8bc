// SPDX-License-Identifier: Apache-2.0
// The general exchange: any sites of any rank go to any sites of others, in place, any number of times. It is a list of
// transfers, and serves for halos inside a field (shell_plan), transposes, irregular unions of boxes.
// Each rank describes only its own ends. Both ends of a transfer list its sites in the same order. All transfers to a
// peer travel in one message.
// Contract: between start() and finish() sources are not written, and destinations neither read nor written. Both calls
// are noexcept and neither allocate nor lock. They are made by one thread, or by every member of a team, which shares
// large copies (without an OpenMP barrier); all other calls, including test() and completed(), are for member 0 alone.
// On the direct path the values for a peer leave once the peer has said that its field is free: in start(), test(),
// finish(), or in any other wait of this rank's job.
// Destinations of exchange k keep their values until a start() with a binding that has one of these destinations.
#pragma once

#include <halocline/base/checked_pointer.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/halo/field_view.hpp>
#include <halocline/halo/message_format.hpp>
#include <halocline/halo/path.hpp>
#include <halocline/halo/plan_statistics.hpp>
#include <halocline/halo/team.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>

#include <algorithm>
#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace halocline::halo {

/// Sites at equal distances along up to four dimensions, the first of which runs fastest: site i, with 0 <= i[mu] <
/// extents[mu], has index first + i[0] * strides[0] + … + i[3] * strides[3] in the field. Swapped dimensions transpose;
/// a stride may be negative, or 0 for a site that is sent several times.
struct strided_box {
    std::int64_t first = 0;
    lattice::coordinate extents{};
    std::array<std::int64_t, lattice::dimensions> strides{};

    [[nodiscard]] std::int64_t sites() const {
        return std::ranges::count(extents, 0) > 0 ? 0 : lattice::volume(extents);
    }
};

/// Every every[mu]-th site of `part`, from its origin on, in an array of these extents whose sites are consecutive in
/// the field, from index `first` on: the field's own box, or one of several boxes that it holds.
/// Err: input_error unless the array has these sites, and fewer than 2^31 in all.
strided_box box_in(const lattice::box& part, const lattice::coordinate& array,
                   const lattice::coordinate& every = {1, 1, 1, 1}, std::int64_t first = 0);

/// This rank's end of a transfer: sites that go to, or come from, one rank (possibly itself), as a list, as boxes, or
/// both. The other end may list them in another way.
struct transfer {
    int peer = 0;                      ///< the rank at the other end
    std::uint32_t tag = 0;             ///< equal at both ends; unique among the transfers from one rank to the other
    std::vector<std::int32_t> sites{}; ///< lexicographic indices in the field's box, in message order
    /// Follow `sites` in the message, one after the other. A plan keeps their rows, which take a few bytes each unless
    /// the site order scatters them, rather than their sites.
    std::vector<strided_box> boxes{};
    /// A receive multiplies what arrives by it before it is stored or added, as beyond a twisted boundary (-1:
    /// antiperiodic); a send has 1. Unless it is 1, fields are of float or double, with at most 8 KiB per site; unless
    /// it is real, their components are pairs (re, im).
    std::complex<double> phase = 1;
};

/// The sites of `part`, x fastest, as lexicographic indices in a box of these extents.
/// Pre: part lies inside the box; its origin counts from the box's first site.
std::vector<std::int32_t> sites_of(const lattice::box& part, const lattice::coordinate& extents);

/// The fields of one exchange: sites of source[i] go to sites of the peers' destination[i], for all i in one message.
/// If source and destination are the same field (halos), no site may be both sent and received.
struct binding {
    std::vector<field_view> source{};
    std::vector<field_view> destination{};
};
/// A binding of one field, or of several, to themselves.
template <class T, class... More>
binding bind(lattice::field<T>& x, lattice::field<More>&... more) {
    return {{view(x), view(more)...}, {view(x), view(more)...}};
}
/// A binding of memory of your own, or of several such views, to themselves.
template <std::same_as<field_view>... More>
binding bind(const field_view& x, const More&... more) {
    return {{x, more...}, {x, more...}};
}

/// How a region_plan moves its messages.
struct region_plan_options {
    std::string name = "regions";
    /// Equal on every rank. direct, streamed and joint write straight into the peer's destination; the fields must lie
    /// in slabs. joint: pieces may be copied by receivers that wait, if the sources lie in slabs, too, and the sender
    /// is no team. Over verbs and ofi, direct is for sites that lie in at most 64 runs, in fields without lanes, and
    /// nothing is streamed. automatic: sites in short runs may go to the peer's destination or through a slot by turns,
    /// as cores are moved together and apart.
    /// Err: input_error if direct, streamed or joint is asked for and writing in place is not possible.
    halo::path path = path::automatic;
    /// Adds what arrives to the destinations instead of storing it: once all is here, in the order of peers and tags,
    /// so the bits are the same each time. Always packed. Equal on every rank.
    bool add = false;
    /// How reals travel, equal on every rank. half and bfloat16 are made of fields of float, with at most 8 KiB per
    /// site: messages hold scale * value. They are always packed.
    message_format format = message_format::as_stored;
    double scale = 1;
    /// Each message carries a checksum, which is compared before anything is stored or added; finish() is wrong_data if
    /// it differs, and finish_or_throw() names the peer. Equal on every rank; also on if the job asks for it
    /// (job_options::checksums). Such messages are always packed, past the cache if that pays; path direct, streamed or
    /// joint is an error.
    bool checksums = false;
};

/// Lifetime: the fields must outlive the plan. Destroying a plan never blocks; a peer that still waits for an exchange
/// gets status::aborted.
class region_plan {
  public:
    /// Collective. Each exchange uses one of `bindings`: at least one, all of the same shape and site order. Ranks may
    /// have different numbers of bindings, if those that they use in one exchange belong together.
    /// Err:  on every rank: input_error (ends of a transfer that disagree, with both values; a site that the field does
    ///       not have; a destination that is filled twice; a phase or format that does not fit the fields);
    ///       slab_full; job_error.
    /// Cost: O(sites of this rank's transfers) time, O(their runs of adjacent sites) memory, whatever the size of the
    ///       fields, one message per peer, and one sum over the job. Over a network, fields that its device reads and
    ///       writes in place are registered whole.
    region_plan(const comm::job& j, std::vector<transfer> sends, std::vector<transfer> receives,
                std::vector<binding> bindings, region_plan_options options = {});
    region_plan(region_plan&&) noexcept;
    region_plan& operator=(region_plan&&) noexcept;
    ~region_plan();

    /// Starts an exchange of bindings[which]. In a team nothing is sent until every member has called it.
    /// Pre: 0 <= which < bindings; the last exchange is finished; the sources are complete for every member.
    void start(int which = 0, team t = {}) noexcept;
    /// Moves what can be moved now. True if finish() would not wait.
    [[nodiscard]] bool test() noexcept;
    /// Waits until everything is in place here, and everything this rank sends has left. In a team it returns when
    /// every member has called it.
    /// Err: aborted, usually within 0.1 s, if a peer of this node waits for another plan or sum, and neither rank has
    ///      begun what the other waits for; in a process with other threads, which might begin it, at nine tenths of
    ///      the deadline. After a bad status this rank copies nothing more, and its peers are told: theirs is aborted,
    ///      unless what they wait for had left. They begin no copy into its fields or out of them. A peer that is just
    ///      copying a message ends that: write the fields once you have met it, as in a barrier, or free them.
    [[nodiscard]] comm::status finish(team t = {}) noexcept;
    /// finish() that throws on a bad status. Not for members of a team: they call finish(t). If that is not ok, one
    /// thread calls this afterwards, and it throws the reason.
    /// Err: input_error: start() was given a binding that does not exist, or came before finish(), or finish() without
    ///      start() (finish() returns misused); job_error.
    void finish_or_throw();
    /// Indices of `receives` whose sites have been filled since the last call, each once per exchange: they can be used
    /// while others still travel. Moves what can be moved, like test(), which belongs in a loop around this call,
    /// because it also ends the loop when some rank has died. The list is valid until the next call.
    [[nodiscard]] std::span<const int> completed() noexcept;

    /// Number of finished exchanges.
    [[nodiscard]] std::uint64_t epoch() const;
    [[nodiscard]] const region_plan_options& options() const;
    [[nodiscard]] plan_statistics statistics() const;
    void reset_statistics();
    /// Bytes of the slab that the plan occupies in addition to the fields: slots and control lines.
    [[nodiscard]] std::size_t slab_bytes() const;
    /// A table for human readers: peer, transport, path, sites sent and received, and the reasons for that path.
    [[nodiscard]] std::string describe() const;

  private:
    friend class shell_plan; // drives the plans of which it is made

    struct state;
    checked_pointer<std::unique_ptr<state>> s_;
};

} // namespace halocline::halo
