// SPDX-License-Identifier: Apache-2.0
// What a plan needs to copy its messages together with their receivers: where its fields lie, for the peers; and how a
// peer's fields are laid out, for this rank's help (docs/decisions/0049-joint-copies.md).
#pragma once

#include <halocline/comm/detail/joint_channel.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/halo/detail/site_copy.hpp>
#include <halocline/halo/field_view.hpp>
#include <halocline/lattice/site_order.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace halocline::halo {

class joint_faces {
  public:
    /// No message is joint.
    joint_faces() = default;
    /// The plan has `messages` messages, none of them joint yet, and fields in `order` (null: lexicographic) over
    /// `volume` sites, site_bytes each.
    joint_faces(const comm::job& j, std::size_t messages, const lattice::site_order* order, std::int64_t volume,
                std::size_t site_bytes);

    [[nodiscard]] bool any() const noexcept { return any_; }
    /// Is this message's channel joint?
    [[nodiscard]] bool is_joint(std::size_t message) const noexcept { return any_ && ends_[message].joint; }
    /// Is this message offered to its receiver if it can be?
    [[nodiscard]] bool is_offered(std::size_t message) const noexcept { return any_ && ends_[message].offered; }

    /// Makes a message's channel joint; `offered`: is it worth a receiver's help? Returns what the other end must know
    /// about `sites`, the local lexicographic indices that are sent.
    [[nodiscard]] std::string join(std::size_t message, bool offered, std::span<const std::int32_t> sites,
                                   const lattice::site_order* order);
    /// Reads what the other end's join() returned.  Err: error: another length.
    void read(std::size_t message, const std::string& note);

    /// Adds a field to what is offered. False if peers can't read it where it lies, or know nothing of its site order.
    [[nodiscard]] bool add(comm::joint_source& source, const source_field& x, bool order_known) const noexcept {
        const bool in_slab = x.values >= slab_ && x.values + field_bytes_ <= slab_ + slab_bytes_;
        const bool described = x.shape.component_bytes <= std::numeric_limits<std::uint32_t>::max();
        if (!in_slab || !order_known || !described || source.fields == comm::joint_source::most_fields) return false;
        source.component_bytes = static_cast<std::uint32_t>(x.shape.component_bytes);
        source.places[source.fields++] = static_cast<std::uint64_t>(x.values - slab_);
        return true;
    }
    /// Receiver: copies pieces of this message, the channel's of this epoch, if it is offered.
    template <class Channel>
    void help(Channel& channel, std::size_t message, std::uint64_t epoch) const noexcept {
        const site_copy& in = ends_[message].in;
        channel.help(epoch, in.sites(),
                     [&](std::int64_t first, std::int64_t last, const comm::joint_source& source,
                         const std::byte* memory) noexcept {
                         const site_shape shape{.components = static_cast<int>(site_bytes_ / source.component_bytes),
                                                .component_bytes = source.component_bytes};
                         std::byte* target = channel.slot(epoch);
                         for (std::uint32_t f = 0; f < source.fields; ++f) {
                             in.copy(memory + source.places[f], target, shape, first, last);
                             target += static_cast<std::size_t>(in.sites()) * site_bytes_;
                         }
                     });
    }

  private:
    struct end {
        bool joint = false, offered = false;
        site_copy in; // from the peer's field to the message
    };
    std::vector<end> ends_; // by message
    bool any_ = false;
    const std::byte* slab_ = nullptr; // this rank's
    std::size_t slab_bytes_ = 0, field_bytes_ = 0, site_bytes_ = 0;
};

} // namespace halocline::halo
