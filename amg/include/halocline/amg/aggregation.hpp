// SPDX-License-Identifier: Apache-2.0
// Aggregation: the interpolation P between the fine lattice and one coarse site per block. The columns of P are the
// test vectors cut to blocks and to chiralities (spins 0,1 | spins 2,3), orthonormal: P^dagger P = 1, gamma5 P = P
// Gamma5. All fp32. Ref: [Frommer2014] sec. 3.
#pragma once

#include <halocline/lattice/field.hpp>
#include <halocline/lattice/site_order.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace halocline::amg {

/// Component 2 * (chirality * vectors + i) + {re, im} of a coarse site is the coefficient of test vector i.
class aggregation {
  public:
    /// `fine` is blocked; `coarse` orders the blocks of this rank (lane width 1).
    /// Err: input_error if a block is too small for that many vectors: 6 * block volume < vectors, and as
    /// dirac::require_operator_lanes(); std::bad_alloc. All on this rank: nothing is collective.
    aggregation(std::shared_ptr<const lattice::site_order> fine, std::shared_ptr<const lattice::site_order> coarse,
                int vectors);

    /// Writes the spinor (24 reals) of a local site, lexicographic, that replaces a vector's there.
    using replacement = std::function<void(std::int64_t site, int vector, std::span<float> spinor)>;
    /// Columns <- test vectors, orthonormalised per block and chirality by Gram-Schmidt, twice, products in fp64.
    /// A vector that depends on those before it in a block and chirality is replaced there; returns how often that
    /// happened on this rank.  No communication.
    /// Err: input_error naming block and vector, if there is no replacement, or that depends on the others too.
    std::int64_t define(std::span<const lattice::field<float>> test_vectors, const replacement& replace = {});

    /// y = P x.  Cost: reads P once.
    void prolong(lattice::field<float>& y, const lattice::field<float>& x) noexcept { prolong({&y, 1}, {&x, 1}); }
    /// y = P x of each, of up to solvers::most_systems.  Cost: reads P once from memory, for each two fields once from
    /// the second-level cache.
    void prolong(std::span<lattice::field<float>> y, std::span<const lattice::field<float>> x) noexcept;
    /// x = P^dagger y.  Cost: reads P once.
    void restrict(lattice::field<float>& x, const lattice::field<float>& y) noexcept { restrict({&x, 1}, {&y, 1}); }
    /// x = P^dagger y of each, of up to solvers::most_systems.  Cost: reads P once from memory, for each 4 fields once
    /// from the second-level cache.
    void restrict(std::span<lattice::field<float>> x, std::span<const lattice::field<float>> y) noexcept;
    /// Up to 4 fields y, and their restrictions x. With `face_mask` != 0 the fields are known to vanish except at the
    /// sites next to those faces of the blocks (bit face.index()); only these are read.
    struct batch {
        std::span<lattice::field<float>> x;
        std::span<const lattice::field<float>> y;
        unsigned face_mask = 0;
    };
    static constexpr int most_batches = 1 + lattice::faces;
    /// x = P^dagger y for all fields of all batches, up to most_batches of them.  Cost: reads P once from memory, for
    /// each batch once from the second-level cache.
    void restrict(std::span<const batch> batches) noexcept;
    /// y = 0 at those sites that restrict() reads of a field with this mask.
    void clear(lattice::field<float>& y, unsigned face_mask) const noexcept;
    /// v = column i of one chirality, in all blocks at once: the other chirality is zero.
    void column(lattice::field<float>& v, int i, int chirality) const noexcept;

    /// Largest element of |P^dagger P - 1| on this rank.
    [[nodiscard]] double orthonormality_error();

    [[nodiscard]] int vectors() const { return vectors_; }
    /// Reals per coarse site: 2 chiralities x vectors x (re, im).
    [[nodiscard]] int coarse_components() const { return 4 * vectors_; }
    [[nodiscard]] const std::shared_ptr<const lattice::site_order>& fine() const { return fine_; }
    [[nodiscard]] const std::shared_ptr<const lattice::site_order>& coarse() const { return coarse_; }

  private:
    [[nodiscard]] const lattice::block_layout& blocks() const { return *fine_->blocks(); }
    [[nodiscard]] float* group(int g, int chirality);
    [[nodiscard]] const float* group(int g, int chirality) const;
    std::int64_t orthonormalise(int g, int chirality, const replacement& replace);
    void replace_lane(int g, int chirality, int vector, int lane, const replacement& replace);
    /// The sites of a group that are read of fields with this mask.
    [[nodiscard]] std::span<const std::int32_t> sites_read(unsigned face_mask) const noexcept {
        return face_mask == 0 ? all_sites_ : face_sites_[face_mask];
    }
    void restrict_group(int g, int chirality, std::span<const batch> batches) noexcept;
    /// lanes_ of this batch += the products with its fields, over the sites [first, last) of a group.
    void add_products(int g, int chirality, const batch& fields, int first, int last, std::size_t number) noexcept;
    void store_products(int g, int chirality, const batch& fields, std::size_t number) const noexcept;
    [[nodiscard]] std::size_t lanes_of_batch() const {
        return static_cast<std::size_t>(4 * 2 * vectors_ * blocks().lane_width); // 4 fields, re and im
    }
    void prolong_group(int g, int chirality, std::span<lattice::field<float>> ys,
                       std::span<const lattice::field<float>> xs) noexcept;
    /// Sites of a group whose columns of one chirality fit into the second-level cache, with room for more.
    [[nodiscard]] int cached_sites() const;

    std::shared_ptr<const lattice::site_order> fine_, coarse_;
    int vectors_;
    /// [group][site][chirality][vector][12][lane]: one stream for restrict and prolong.
    lattice::field<float> columns_;
    std::ptrdiff_t site_stride_ = 0;
    std::vector<std::int32_t> coarse_site_;             ///< by [group][block in group]; -1 for padding
    std::vector<std::int32_t> all_sites_;               ///< 0 ... sites per group - 1
    std::vector<std::vector<std::int32_t>> face_sites_; ///< sub-box sites next to the faces, by mask
    /// Scratch, per lane, of one group and chirality: the products of each batch; the coefficients of prolong().
    std::vector<float> lanes_;
};

} // namespace halocline::amg
