// SPDX-License-Identifier: Apache-2.0
// Built-in unpack functions: a plan's ghosts are expanded (half-spinors), multiplied by a boundary phase, read from
// fewer bits than the field has, and added to the owned sites across the face. Compiled for every SIMD target;
// pack_reference.hpp has the same functions as plain loops.
//
// A ghost at coordinate c beyond a face with `width` ghost layers belongs to the owned site `width` steps inwards: with
// one layer, the site next to it. That is what the hopping term of a nearest-neighbour operator needs (expansion_of())
// and, for a plan that carries ghosts back (reversed()), the site that the sender's ghost is a copy of (adjoint_of()).
#pragma once

#include <halocline/base/checked_pointer.hpp>
#include <halocline/halo/block_map.hpp>
#include <halocline/halo/detail/site_copy.hpp>
#include <halocline/halo/detail/site_map.hpp>
#include <halocline/halo/packer.hpp>
#include <halocline/lattice/component.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/site_order.hpp>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace halocline::halo {

/// What a message holds of each site, and which part of it is added to a field.
struct unpacker_options {
    int components = 0;                                ///< reals per site of a field: of complex components two each
    message_format format = message_format::as_stored; ///< the packer's
    double scale = 1;                                  ///< the packer's: what half and bfloat16 hold is divided by it
    /// Expansion of the ghosts behind each face: from the blocks of a site in a message to those of a site of the
    /// field. All empty: whole sites.
    std::array<block_map, lattice::faces> expansions{};
    /// What comes from beyond the upper edge of the lattice is multiplied by phase, from beyond the lower edge by
    /// conj(phase). Leave them 1 if the sender has applied them (packer_options::phases).
    std::array<std::complex<double>, lattice::dimensions> phases{1, 1, 1, 1};
};

/// Options that expand what a packer with `options` sent, by the adjoint of its projection. With projections 1 -+
/// gamma_mu, y = 0 and a ghost of psi, add() gives (1 -+ gamma_mu) psi, the hop without its link.
/// Err: input_error: a projection that does not fit the components.
[[nodiscard]] unpacker_options expansion_of(const packer_options& options);
/// The transpose of pack and exchange, H: with messages of reversed() plans, which hold a value for each real of the
/// ghosts of H, add() is x += H^T y, conjugated if coefficients are complex: <Hx, y> = <x, adjoint y>.
/// Err: input_error: a projection that does not fit the components.
[[nodiscard]] unpacker_options adjoint_of(const packer_options& options);
/// Options of the plan that carries ghosts back to the sites that they are copies of: through each face as many sites
/// as the plan of `options` has ghosts behind it, in the same order. With equal widths at both ends of each dimension
/// these are `options` themselves, except for the parity, which an odd width changes. Fill the messages with
/// packer::write(), or with whatever fits plan::start().
/// Err: input_error: a selection; a parity with widths of which some are even and some odd, or with messages around a
///      dimension of odd extent, across whose edge parities don't alternate.
[[nodiscard]] plan_options reversed(const plan_options& options, const lattice::decomposition& cut);

/// Adds the ghosts of one plan to fields of one site order. Immutable: any number of threads may use it.
/// Except for the constructor, nothing here allocates, locks or calls virtual functions.
template <class T>
class unpacker {
  public:
    /// Reals and bytes of a site in a message.
    static int reals_per_site(const unpacker_options& options);
    static std::size_t bytes_per_site(const unpacker_options& options);

    /// `order`: of the fields; null: plan_options::order.
    /// Err: input_error: a map that does not fit the components, expansions of messages of different sizes, half or
    /// bfloat16 of doubles, a scale as for packers, a phase that is not finite, an order of another box, a plan with
    /// other bytes per site, more ghost layers than some local box has sites, more than 2048 reals of a site that are
    /// not added as they are. On every rank, if some rank has ghosts behind the face, except for the order.
    /// Cost: O(ghosts of the plan).
    unpacker(const plan& p, unpacker_options options, std::shared_ptr<const lattice::site_order> order = nullptr);

    /// y += all ghosts of p, face by face in the order of messages(), so that the bits do not depend on the order of
    /// arrival. In a team each member adds to its own sites, with the same bits: call it after finish(), and wait for
    /// the others before you read y. Marks y as written (member 0).
    /// Pre:  p is the plan that the unpacker was made for, or one with the same options; its ghosts are valid.
    /// Err:  input_error: y has other components than the unpacker was made for, or another site order (another object,
    ///       unless both are lexicographic); the plan has other messages, or has finished no exchange; an index outside
    ///       the team; the unpacker was moved from.
    /// Cost: one read of the ghosts, one read and write of the sites.
    void add(const plan& p, lattice::field<T>& y, team t = {}) const;
    void add(const plan& p, lattice::field<std::complex<T>>& y, team t = {}) const;
    /// add() to the fields of each message.  Err: also input_error unless there are p.options().fields of them.
    void add(const plan& p, std::span<lattice::field<T>* const> ys, team t = {}) const;
    void add(const plan& p, std::span<lattice::field<std::complex<T>>* const> ys, team t = {}) const;
    /// Adds only ghosts [first, last) behind f, for example of a face that plan::completed() names, or of an array of
    /// your own with the bytes of a message, which you have multiplied by links. Faces share the sites in their
    /// corners, so only one thread at a time may call this, unless the sites() differ. Does not mark y.
    /// Shape: ghosts: as plan::ghost(f, field), where ghost 0 starts.  Pre: the plan has a message behind f; y has the
    /// site order and components that the unpacker was made for.
    template <class C>
    requires std::is_same_v<lattice::real_of<C>, T>
    void add(face f, const std::byte* ghosts, std::int64_t first, std::int64_t last,
             lattice::field<C>& y) const noexcept {
        add_to(part_behind(f), ghosts, first, last, reinterpret_cast<T*>(y.data()));
    }
    /// Expands ghosts without adding them: out[0] is component 0 of ghost `first`; the next ghost follows `components`
    /// reals later.
    void expand(face f, const std::byte* ghosts, std::int64_t first, std::int64_t last, T* out) const noexcept;
    /// The owned sites (local lexicographic indices, ascending) to which the ghosts behind f are added; empty if the
    /// face is not exchanged.
    [[nodiscard]] std::span<const std::int32_t> sites(face f) const noexcept { return part_behind(f).sites; }

    [[nodiscard]] const unpacker_options& options() const { return options_; }

  private:
    struct part { // the part of the field to which a face's ghosts are added
        std::vector<std::int32_t> sites;
        std::vector<std::int32_t> positions; // in storage; for an expansion without lanes
        site_copy copy;                      // otherwise
        site_map<T> expansion;
        std::uint64_t fingerprint = 0; // as plan_message::fingerprint
    };
    [[nodiscard]] const part& part_behind(face f) const { return (*parts_)[f.index()]; }
    void check_options(const std::string& who, const plan& p) const;
    [[nodiscard]] block_map map_of(face f, bool wraps, const std::string& who) const;
    template <class C>
    void add_all(const plan& p, std::span<lattice::field<C>* const> ys, team t) const;
    template <class C>
    void check_fields(const plan& p, std::span<lattice::field<C>* const> ys) const;
    /// Reads sites [first, last) of a message as stored, a piece at a time: use(begin, end, reals of site `begin`).
    template <class Use>
    void decoded(const std::byte* ghosts, std::int64_t first, std::int64_t last, std::int64_t most_sites,
                 Use&& use) const noexcept;
    void add_to(const part& p, const std::byte* ghosts, std::int64_t first, std::int64_t last, T* y) const noexcept;
    /// y += ghosts of a face whose owned sites are in [begin, end), for all fields.
    template <class C>
    void add_between(const plan& p, face f, std::span<lattice::field<C>* const> ys, std::int32_t begin,
                     std::int32_t end) const noexcept;

    unpacker_options options_;
    std::shared_ptr<const lattice::site_order> order_; // of the fields
    int reals_ = 0, lanes_ = 1;
    checked_pointer<std::shared_ptr<const std::array<part, lattice::faces>>> parts_{"a halo::unpacker", nullptr};
    /// The sites of all faces, ascending, with repetitions; teams divide this list.
    std::vector<std::int32_t> shared_;
};

extern template class unpacker<float>;
extern template class unpacker<double>;

} // namespace halocline::halo
