// SPDX-License-Identifier: Apache-2.0
// What surrounds an exchange in a program: sites of the faces change, ghosts are read. Words of a face encode rank,
// site and step, so that ghosts of a wrong site or another step are detected.
#pragma once

#include "halo/box_faces.hpp"

#include <cstdint>

namespace halocline::bench {

class tracked_field {
  public:
    /// Fills `field` (box.bytes() bytes).
    tracked_field(const local_box& box, std::byte* field)
        : box_(box), field_(field), words_(box.of.bytes_per_site / 8) {
        std::memset(field, 0, box.bytes());
        for (const box_face& f : box.faces) {
            faces_.push_back(sites_of(f.send));
            for (const site& s : faces_.back())
                for (int w = 0; w < words_; ++w)
                    put(s.offset + 8 * static_cast<std::size_t>(w), word(box.rank, s.index, w, 0));
            ghosts_.emplace_back(f.ghosts, f.ghosts);
        }
    }
    /// A new step: one word in eight of each face site changes, that is one per cache line.
    void dirty() noexcept {
        ++step_;
        for (const std::vector<site>& sites : faces_)
            for (const site& s : sites)
                for (int w = 0; w < words_; w += 8)
                    put(s.offset + 8 * static_cast<std::size_t>(w), word(box_.rank, s.index, w, step_));
    }
    /// Reads a word of every cache line of the ghosts of face f.
    void read(std::size_t f, const std::byte* ghosts) noexcept {
        std::uint64_t sum = 0;
        ghosts_[f].for_each_run([&](std::size_t offset, std::size_t bytes) {
            for (std::size_t i = 0; i < bytes; i += 64) sum += get(ghosts + offset + i);
        });
        sum_ = sum_ + sum;
    }
    /// Do the ghosts of face f hold what the peer sent in this step?
    [[nodiscard]] bool holds(std::size_t f, const std::byte* ghosts) const {
        const std::vector<site> arrived = sites_of(box_.faces[f].ghosts);
        const std::vector<site>& sent = faces_[local_box::opposite(f)]; // boxes are the same on all ranks
        for (std::size_t i = 0; i < arrived.size(); ++i)
            for (int w = 0; w < words_; ++w)
                if (get(ghosts + arrived[i].offset + 8 * static_cast<std::size_t>(w)) !=
                    word(box_.faces[f].peer, sent[i].index, w, step_))
                    return false;
        return true;
    }
    [[nodiscard]] const local_box& box() const { return box_; }
    [[nodiscard]] std::byte* data() const { return field_; }

  private:
    struct site {
        std::uint32_t index; ///< in its region, or in the field
        std::size_t offset;
    };
    // A site is identified by its place in memory, which is the same on all ranks.
    [[nodiscard]] static std::vector<site> sites_of(const region& r) {
        std::vector<site> sites;
        for (std::int64_t i = 0; i < lattice::volume(r.extents); ++i) {
            const std::size_t offset = r.at(lattice::lexicographic_coordinate(i, r.extents));
            sites.push_back({static_cast<std::uint32_t>(offset / r.site_bytes), offset});
        }
        return sites;
    }
    static std::uint64_t word(int rank, std::uint32_t site, int w, std::uint64_t step) {
        const auto constant =
            (std::uint64_t{site} << 12) + (static_cast<std::uint64_t>(w) << 4) + static_cast<std::uint64_t>(rank);
        return w % 8 == 0 ? constant + (step << 40) : constant;
    }
    static std::uint64_t get(const std::byte* at) noexcept {
        std::uint64_t value = 0;
        std::memcpy(&value, at, 8);
        return value;
    }
    void put(std::size_t offset, std::uint64_t value) noexcept { std::memcpy(field_ + offset, &value, 8); }

    const local_box& box_;
    std::byte* field_;
    int words_;
    std::vector<std::vector<site>> faces_; // sites that are sent, by face
    std::vector<strided_copy> ghosts_;     // runs that arrive, by face
    std::uint64_t step_ = 0;
    volatile std::uint64_t sum_ = 0;
};

} // namespace halocline::bench
