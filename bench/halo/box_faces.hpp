// SPDX-License-Identifier: Apache-2.0
// One local box with its faces as they lie in memory, for everything in bench/halo except the library: the limit, the
// MPI programs, and the code that dirties, reads and verifies. x is fastest; ghosts are in separate buffers (appended)
// or in a shell of the field (padded, one layer in each dimension that is cut; no corners).
#pragma once

#include <halocline/lattice/decomposition.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace halocline::bench {

using lattice::coordinate;
using lattice::face;
using lattice::side;

/// One measured point.
struct point {
    coordinate extents{4, 4, 4, 4}; ///< of the local box
    coordinate grid{1, 1, 1, 1};    ///< of ranks
    int bytes_per_site = 96;
    bool padded = false;
    std::array<bool, 4> self{}; ///< dimensions that the rank exchanges with itself

    bool operator==(const point&) const = default;
    [[nodiscard]] bool cut(int mu) const {
        const auto m = static_cast<std::size_t>(mu);
        return self[m] || grid[m] > 1;
    }
    [[nodiscard]] const char* layout() const { return padded ? "padded" : "appended"; }
    /// "t", "xt": the dimensions that are cut.
    [[nodiscard]] std::string cut_name() const {
        std::string name;
        for (int mu = 0; mu < lattice::dimensions; ++mu)
            if (cut(mu)) name += lattice::dimension_name[mu];
        return name;
    }
    [[nodiscard]] lattice::decomposition decomposition() const {
        coordinate global = extents;
        for (std::size_t mu = 0; mu < lattice::dimensions; ++mu) global[mu] *= grid[mu];
        return lattice::decomposition::even(global, grid);
    }
};

/// Sites of a box in memory: extents[mu] of them, stride[mu] bytes apart, from byte `offset` on.
struct region {
    coordinate extents{};
    std::array<std::size_t, lattice::dimensions> stride{};
    std::size_t offset = 0;
    std::size_t site_bytes = 0;

    [[nodiscard]] std::size_t at(const coordinate& c) const {
        std::size_t position = offset;
        for (std::size_t mu = 0; mu < lattice::dimensions; ++mu)
            position += static_cast<std::size_t>(c[mu]) * stride[mu];
        return position;
    }
    [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(lattice::volume(extents)) * site_bytes; }
};

/// `part` of a box that is stored without gaps.
inline region region_of(const lattice::box& part, const coordinate& storage, int bytes_per_site) {
    region r{part.extents, {}, 0, static_cast<std::size_t>(bytes_per_site)};
    std::size_t stride = r.site_bytes;
    for (std::size_t mu = 0; mu < lattice::dimensions; ++mu) {
        r.stride[mu] = stride;
        r.offset += static_cast<std::size_t>(part.origin[mu]) * stride;
        stride *= static_cast<std::size_t>(storage[mu]);
    }
    return r;
}

/// A copy between two regions of equal extents, as one would write it by hand: dimensions that are contiguous in both
/// form one run, the others nested loops.
class strided_copy {
  public:
    struct loop {
        std::size_t count = 1, from = 0, to = 0; ///< strides in bytes
    };
    strided_copy() = default;
    strided_copy(const region& from, const region& to)
        : run_bytes_(from.site_bytes), from_(from.offset), to_(to.offset) {
        std::size_t used = 0;
        for (std::size_t mu = 0; mu < lattice::dimensions; ++mu) {
            const auto count = static_cast<std::size_t>(from.extents[mu]);
            if (count == 1) continue;
            if (used == 0 && from.stride[mu] == run_bytes_ && to.stride[mu] == run_bytes_) {
                run_bytes_ *= count;
            } else if (used > 0 && from.stride[mu] == loops_[used - 1].count * loops_[used - 1].from &&
                       to.stride[mu] == loops_[used - 1].count * loops_[used - 1].to) {
                loops_[used - 1].count *= count;
            } else {
                loops_[used++] = {count, from.stride[mu], to.stride[mu]};
            }
        }
    }
    void operator()(std::byte* to, const std::byte* from) const {
        switch (run_bytes_) { // whoever writes the loop by hand knows the size of a site
        case 96: return copy<96>(to + to_, from + from_);
        case 192: return copy<192>(to + to_, from + from_);
        default: return copy<0>(to + to_, from + from_);
        }
    }
    /// visit(offset in from, bytes) for each run.
    template <class Visit>
    void for_each_run(Visit&& visit) const {
        for (std::size_t c = 0; c < loops_[2].count; ++c)
            for (std::size_t b = 0; b < loops_[1].count; ++b)
                for (std::size_t a = 0; a < loops_[0].count; ++a)
                    visit(from_ + a * loops_[0].from + b * loops_[1].from + c * loops_[2].from, run_bytes_);
    }
    [[nodiscard]] std::size_t run_bytes() const { return run_bytes_; }
    [[nodiscard]] const std::array<loop, 3>& loops() const { return loops_; }
    [[nodiscard]] bool contiguous() const { return loops_[0].count == 1; }

  private:
    template <std::size_t Bytes>
    void copy(std::byte* to, const std::byte* from) const {
        for (std::size_t c = 0; c < loops_[2].count; ++c)
            for (std::size_t b = 0; b < loops_[1].count; ++b) {
                const std::byte* source = from + b * loops_[1].from + c * loops_[2].from;
                std::byte* target = to + b * loops_[1].to + c * loops_[2].to;
                for (std::size_t a = 0; a < loops_[0].count; ++a)
                    std::memcpy(target + a * loops_[0].to, source + a * loops_[0].from,
                                Bytes == 0 ? run_bytes_ : Bytes);
            }
    }

    std::size_t run_bytes_ = 0, from_ = 0, to_ = 0;
    std::array<loop, 3> loops_{}; // fastest first
};

/// One face that is exchanged.
struct box_face {
    face where; ///< sites at this face are sent, and arriving ghosts lie behind it
    int peer = 0;
    region send;   ///< in the field
    region ghosts; ///< in the field (padded), or in a separate buffer
};

/// The local box of one rank.
struct local_box {
    local_box(const point& p, int own_rank) : of(p), rank(own_rank) {
        coordinate first{};
        for (std::size_t mu = 0; mu < lattice::dimensions; ++mu) {
            const int shell = p.padded && p.cut(static_cast<int>(mu)) ? 1 : 0;
            storage[mu] = p.extents[mu] + 2 * shell;
            first[mu] = shell;
        }
        inner = {first, p.extents};
        const lattice::decomposition cut = p.decomposition();
        for (int f = 0; f < lattice::faces; ++f) {
            const face where = lattice::face_of(f);
            if (!p.cut(where.mu)) continue;
            const auto mu = static_cast<std::size_t>(where.mu);
            lattice::box sent = inner, arrived = inner;
            sent.extents[mu] = arrived.extents[mu] = 1;
            if (where.end == side::low) {
                arrived.origin[mu] -= 1;
            } else {
                sent.origin[mu] += p.extents[mu] - 1;
                arrived.origin[mu] += p.extents[mu];
            }
            const region send = region_of(sent, storage, p.bytes_per_site);
            const region ghosts = p.padded ? region_of(arrived, storage, p.bytes_per_site)
                                           : region_of({{}, sent.extents}, sent.extents, p.bytes_per_site);
            faces.push_back({where, cut.neighbour(rank, where), send, ghosts});
        }
    }
    [[nodiscard]] std::size_t bytes() const {
        return static_cast<std::size_t>(lattice::volume(storage)) * static_cast<std::size_t>(of.bytes_per_site);
    }
    /// Index in `faces` of the opposite face.
    [[nodiscard]] static std::size_t opposite(std::size_t f) { return f ^ 1; }

    point of;
    int rank;
    /// The fewest contiguous bytes that a copy from a face to its neighbour's ghosts moves, over all faces.
    [[nodiscard]] std::size_t shortest_run() const {
        std::size_t least = bytes();
        for (std::size_t f = 0; f < faces.size(); ++f)
            least = std::min(least, strided_copy(faces[f].send, faces[opposite(f)].ghosts).run_bytes());
        return least;
    }

    coordinate storage{}; ///< extents in memory
    lattice::box inner;   ///< the owned sites
    std::vector<box_face> faces;
};

} // namespace halocline::bench
