// SPDX-License-Identifier: Apache-2.0
#include <halocline/amg/aggregation.hpp>
#include <halocline/amg/options.hpp>

#include "kernels.hpp"
#include "norm_text.hpp"

#include <halocline/base/error.hpp>
#include <halocline/base/short_list.hpp>
#include <halocline/dirac/wilson_clover.hpp>
#include <halocline/solvers/concepts.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace halocline::amg {
namespace {

constexpr int half_spinor = lattice::spinor_components / 2; // reals of one chirality
// A vector that keeps less than this part of itself after the projection depends on the others, to fp32 precision.
constexpr double dependent_below = 1e-5;
// Number of sites summed in fp32 before the sum continues in fp64.
constexpr std::size_t fp32_run = 16;
// Of P, what several restrictions read while it is in the second-level cache.
constexpr std::ptrdiff_t cached_bytes = 256 << 10;

[[noreturn]] void throw_dependent(const lattice::block_layout& b, int block, int chirality, int vector, double before,
                                  double after) {
    lattice::coordinate at = lattice::lexicographic_coordinate(block, b.grid);
    for (int mu = 0; mu < lattice::dimensions; ++mu) at[mu] += b.grid_origin[mu];
    throw input_error("test vector " + std::to_string(vector) + " depends on those before it in block " +
                      lattice::to_string(at) + ", chirality " + std::to_string(chirality) + ": its norm is " +
                      norm_text(before) + " before, " + norm_text(after) +
                      " after the projection; take fewer vectors, or check m0 and csw");
}

/// Gram-Schmidt on the vectors of one chirality in one group of blocks: every block of the group on its own, in the
/// lanes that hold it.
class block_gram_schmidt {
  public:
    /// `sites`: all of a sub-box.
    block_gram_schmidt(const lattice::block_layout& b, int group, kernels::view<float> vectors, int count,
                       std::span<const std::int32_t> sites)
        : b_(b), group_(group), v_(vectors), sites_(sites), w_(static_cast<std::size_t>(b.lane_width)),
          sums_(static_cast<std::size_t>(count) * 2 * w_), before_(w_), c_(sums_.size()), factors_(sums_.size()) {}

    /// Makes v_j orthogonal to those before it, in the chosen lanes; the others keep it as it is.
    void orthogonalise(int j, const std::vector<bool>& chosen) {
        project(0, j, 0);
        std::copy_n(sums_.begin() + static_cast<std::ptrdiff_t>(2 * w_) * j, w_, before_.begin());
        for (int pass = 0; pass < 2; ++pass) { // the second pass removes what rounding left
            for (std::size_t k = 0; k < static_cast<std::size_t>(j) * 2 * w_; ++k)
                factors_[k] = chosen[k % w_] ? static_cast<float>(-sums_[k]) : 0.0F;
            project(pass == 0 ? 0 : j, j, j);
        }
    }
    /// v_j = v_j / ||v_j||, after orthogonalise(j).
    void normalise(int j) {
        std::fill_n(c_.begin(), w_, 0.0F);
        for (int lane = 0; lane < b_.lane_width; ++lane)
            if (block_of(lane) >= 0) c_[static_cast<std::size_t>(lane)] = static_cast<float>(1 / norm(lane));
        const kernels::view<float> vj = from(j);
        for (int s = 0; s < b_.sites_per_group; ++s)
            for (int k = 0; k < half_spinor; ++k)
                for (int lane = 0; lane < b_.lane_width; ++lane)
                    vj.data[s * vj.stride + std::ptrdiff_t{k} * b_.lane_width + lane] *=
                        c_[static_cast<std::size_t>(lane)];
    }

    /// Norms of v_j in the block of a lane, before and after orthogonalise(j).
    [[nodiscard]] double norm_before(int lane) const { return std::sqrt(before_[static_cast<std::size_t>(lane)]); }
    [[nodiscard]] double norm(int lane) const { return std::sqrt(sums_[static_cast<std::size_t>(lane)]); }
    /// Whether v_j depends on those before it, in the block of a lane.
    [[nodiscard]] bool depends(int lane) const {
        const auto l = static_cast<std::size_t>(lane);
        return block_of(lane) >= 0 && !(sums_[l] > dependent_below * dependent_below * before_[l]);
    }
    /// -1: padding.
    [[nodiscard]] int block_of(int lane) const {
        return b_.block_of[static_cast<std::size_t>(group_ * b_.blocks_per_group + lane / b_.splits_per_block)];
    }

  private:
    /// The vectors from the first-th on.
    [[nodiscard]] kernels::view<float> from(int first) const {
        return {v_.data + std::ptrdiff_t{first} * half_spinor * b_.lane_width, v_.stride};
    }
    /// v_j += sum_{i < subtracted} factors_i v_i; then sums_{i - first} = <v_i, v_j> per block, for i in [first, j].
    /// Both in runs of sites, whose vectors the second finds in the cache.
    void project(int first, int j, int subtracted) {
        const int count = j - first + 1;
        const std::size_t n = static_cast<std::size_t>(count) * 2 * w_;
        std::fill_n(sums_.begin(), n, 0.0);
        const kernels::view<const float> vj{from(j).data, v_.stride}, vi{from(first).data, v_.stride};
        for (std::size_t s = 0; s < sites_.size(); s += fp32_run) {
            const std::size_t run = std::min(fp32_run, sites_.size() - s);
            if (subtracted > 0) {
                const auto shift = static_cast<std::ptrdiff_t>(s) * v_.stride;
                const kernels::view<float> target{from(j).data + shift, v_.stride};
                kernels::combine(b_.lane_width, {v_.data + shift, v_.stride}, subtracted, factors_.data(), {&target, 1},
                                 static_cast<int>(run), true);
            }
            std::fill_n(c_.begin(), n, 0.0F);
            kernels::dots(b_.lane_width, vi, count, {&vj, 1}, sites_.subspan(s, run), c_.data());
            for (std::size_t k = 0; k < n; ++k) sums_[k] += static_cast<double>(c_[k]);
        }
        sum_over_splits({sums_.data(), n});
    }
    /// Each of the lanes that hold one block gets the sum over them.
    void sum_over_splits(std::span<double> lanes) const {
        const auto splits = static_cast<std::size_t>(b_.splits_per_block);
        for (std::size_t l = 0; l < lanes.size(); l += splits) {
            double sum = 0;
            for (std::size_t s = 0; s < splits; ++s) sum += lanes[l + s];
            for (std::size_t s = 0; s < splits; ++s) lanes[l + s] = sum;
        }
    }

    const lattice::block_layout& b_;
    int group_;
    kernels::view<float> v_;
    std::span<const std::int32_t> sites_;
    std::size_t w_;
    std::vector<double> sums_, before_; ///< products [vector][re, im][lane]; ||v_j||^2 [lane]
    std::vector<float> c_, factors_;    ///< products of a run of sites, coefficients: [vector][re, im][lane]
};

} // namespace

aggregation::aggregation(std::shared_ptr<const lattice::site_order> fine,
                         std::shared_ptr<const lattice::site_order> coarse, int vectors)
    : fine_(std::move(fine)), coarse_(std::move(coarse)), vectors_(vectors) {
    dirac::require_operator_lanes(fine_->lane_width());
    const lattice::block_layout& b = blocks();
    const std::int64_t room = most_vectors(b.block);
    if (vectors < 1) throw input_error("test vectors: " + std::to_string(vectors) + "; at least 1 is needed");
    if (vectors > room)
        throw input_error("too many test vectors for a block: " + std::to_string(vectors) + ", but a block of " +
                          lattice::to_string(b.block) + " sites has " + std::to_string(room) +
                          " components per chirality; take fewer vectors or larger blocks");
    columns_ = lattice::field<float>(fine_, lattice::spinor_components * vectors_);
    site_stride_ = std::ptrdiff_t{lattice::spinor_components} * vectors_ * b.lane_width;
    coarse_site_.resize(b.block_of.size());
    for (std::size_t p = 0; p < b.block_of.size(); ++p)
        coarse_site_[p] = b.block_of[p] < 0 ? -1 : static_cast<std::int32_t>(coarse_->position(b.block_of[p]));

    // Coordinates of the sites of a sub-box in storage order, read from the first lane of a place that is not padding.
    std::size_t place = 0;
    while (b.block_of[place] < 0) ++place;
    const std::int64_t first = static_cast<std::int64_t>(place) / b.blocks_per_group * b.sites_per_group;
    const std::int64_t lane = static_cast<std::int64_t>(place) % b.blocks_per_group * b.splits_per_block;
    face_sites_.resize(1U << lattice::faces);
    for (int s = 0; s < b.sites_per_group; ++s) {
        all_sites_.push_back(s);
        const lattice::coordinate x =
            lattice::lexicographic_coordinate(fine_->site((first + s) * b.lane_width + lane), fine_->extents());
        unsigned touched = 0;
        for (int mu = 0; mu < lattice::dimensions; ++mu) {
            const int at = x[mu] % b.block[mu] % b.sub[mu];
            if (at == 0) touched |= 1U << (2 * mu);
            if (at == b.sub[mu] - 1) touched |= 2U << (2 * mu);
        }
        for (unsigned mask = 1; mask < face_sites_.size(); ++mask)
            if (mask & touched) face_sites_[mask].push_back(s);
    }
    lanes_.resize(static_cast<std::size_t>(most_batches) * lanes_of_batch());
}

float* aggregation::group(int g, int chirality) {
    return columns_.outer(std::int64_t{g} * blocks().sites_per_group) +
           std::ptrdiff_t{chirality} * vectors_ * half_spinor * blocks().lane_width;
}
const float* aggregation::group(int g, int chirality) const {
    return const_cast<aggregation*>(this)->group(g, chirality);
}

std::int64_t aggregation::define(std::span<const lattice::field<float>> test_vectors, const replacement& replace) {
    const lattice::block_layout& b = blocks();
    const std::ptrdiff_t w = b.lane_width;
    for (std::int64_t o = 0; o < fine_->outer_sites(); ++o)
        for (int c = 0; c < 2; ++c)
            for (int i = 0; i < vectors_; ++i)
                std::copy_n(test_vectors[i].outer(o) + c * half_spinor * w, half_spinor * w,
                            columns_.outer(o) + (c * vectors_ + i) * half_spinor * w);
    std::int64_t replaced = 0;
    for (int g = 0; g < b.groups[0] + b.groups[1]; ++g)
        for (int c = 0; c < 2; ++c) replaced += orthonormalise(g, c, replace);
    return replaced;
}

void aggregation::replace_lane(int g, int chirality, int vector, int lane, const replacement& replace) {
    const lattice::block_layout& b = blocks();
    const std::int64_t first = std::int64_t{g} * b.sites_per_group;
    float* const to = group(g, chirality) + std::ptrdiff_t{vector} * half_spinor * b.lane_width + lane;
    std::array<float, lattice::spinor_components> spinor{};
    for (int s = 0; s < b.sites_per_group; ++s) {
        replace(fine_->site((first + s) * b.lane_width + lane), vector, spinor);
        for (int k = 0; k < half_spinor; ++k)
            to[s * site_stride_ + std::ptrdiff_t{k} * b.lane_width] =
                spinor[static_cast<std::size_t>(chirality * half_spinor + k)];
    }
}

// Returns the number of columns that were replaced.
std::int64_t aggregation::orthonormalise(int g, int chirality, const replacement& replace) {
    block_gram_schmidt process(blocks(), g, {group(g, chirality), site_stride_}, vectors_, all_sites_);
    const auto refuse = [&](int lane, int j) {
        throw_dependent(blocks(), process.block_of(lane), chirality, j, process.norm_before(lane), process.norm(lane));
    };
    const int lanes = blocks().lane_width;
    std::vector<bool> chosen(static_cast<std::size_t>(lanes));
    std::int64_t replaced_lanes = 0;
    for (int j = 0; j < vectors_; ++j) {
        chosen.assign(chosen.size(), true);
        process.orthogonalise(j, chosen);
        for (int lane = 0; lane < lanes; ++lane) {
            const bool dependent = process.depends(lane);
            chosen[static_cast<std::size_t>(lane)] = dependent;
            if (!dependent) continue;
            if (!replace || !std::isfinite(process.norm(lane))) refuse(lane, j);
            replace_lane(g, chirality, j, lane, replace);
            ++replaced_lanes;
        }
        if (std::ranges::find(chosen, true) != chosen.end()) process.orthogonalise(j, chosen);
        for (int lane = 0; lane < lanes; ++lane)
            if (process.depends(lane)) refuse(lane, j);
        process.normalise(j);
    }
    return replaced_lanes / blocks().splits_per_block;
}

void aggregation::prolong(std::span<lattice::field<float>> y, std::span<const lattice::field<float>> x) noexcept {
    for (lattice::field<float>& one : y) one.mark_written();
    for (int g = 0; g < blocks().groups[0] + blocks().groups[1]; ++g)
        for (int c = 0; c < 2; ++c) prolong_group(g, c, y, x);
}

void aggregation::prolong_group(int g, int chirality, std::span<lattice::field<float>> ys,
                                std::span<const lattice::field<float>> xs) noexcept {
    const lattice::block_layout& b = blocks();
    const int w = b.lane_width, run = cached_sites();
    for (std::size_t i = 0; i < xs.size(); ++i)
        for (int place = 0; place < b.blocks_per_group; ++place) {
            const std::int32_t site = coarse_site_[g * b.blocks_per_group + place];
            const float* const from = site < 0 ? nullptr : xs[i].outer(site) + chirality * 2 * vectors_;
            float* const to = lanes_.data() + i * static_cast<std::size_t>(2 * vectors_ * w);
            for (int k = 0; k < 2 * vectors_; ++k)
                for (int s = 0; s < b.splits_per_block; ++s)
                    to[k * w + place * b.splits_per_block + s] = from ? from[k] : 0.0F;
        }
    for (int first = 0; first < b.sites_per_group; first += run) {
        short_list<kernels::view<float>, solvers::most_systems> targets;
        for (lattice::field<float>& y : ys)
            targets.push_back({y.outer(std::int64_t{g} * b.sites_per_group + first) + chirality * half_spinor * w,
                               std::ptrdiff_t{lattice::spinor_components} * w});
        kernels::combine(w, {group(g, chirality) + first * site_stride_, site_stride_}, vectors_, lanes_.data(),
                         targets.values(), std::min(run, b.sites_per_group - first), false);
    }
}

int aggregation::cached_sites() const {
    const std::ptrdiff_t site_bytes =
        std::ptrdiff_t{half_spinor} * vectors_ * blocks().lane_width * static_cast<std::ptrdiff_t>(sizeof(float));
    return static_cast<int>(std::max<std::ptrdiff_t>(1, cached_bytes / site_bytes));
}

void aggregation::restrict(std::span<lattice::field<float>> x, std::span<const lattice::field<float>> y) noexcept {
    constexpr std::size_t most = kernels::most_right_hand_sides;
    short_list<batch, (solvers::most_systems + most - 1) / most> batches;
    for (std::size_t first = 0; first < y.size(); first += most) {
        const std::size_t count = std::min(most, y.size() - first);
        batches.push_back({x.subspan(first, count), y.subspan(first, count)});
    }
    restrict(batches.values());
}

void aggregation::restrict(std::span<const batch> batches) noexcept {
    for (const batch& fields : batches)
        for (lattice::field<float>& x : fields.x) x.mark_written();
    for (int g = 0; g < blocks().groups[0] + blocks().groups[1]; ++g)
        for (int c = 0; c < 2; ++c) restrict_group(g, c, batches);
}

void aggregation::restrict_group(int g, int chirality, std::span<const batch> batches) noexcept {
    const int sites = blocks().sites_per_group, run = cached_sites();
    std::fill_n(lanes_.begin(), batches.size() * lanes_of_batch(), 0.0F);
    for (int first = 0; first < sites; first += run)
        for (std::size_t k = 0; k < batches.size(); ++k)
            add_products(g, chirality, batches[k], first, std::min(first + run, sites), k);
    for (std::size_t k = 0; k < batches.size(); ++k) store_products(g, chirality, batches[k], k);
}

void aggregation::add_products(int g, int chirality, const batch& fields, int first, int last,
                               std::size_t number) noexcept {
    const lattice::block_layout& b = blocks();
    const int w = b.lane_width;
    std::array<kernels::view<const float>, kernels::most_right_hand_sides> from{};
    for (std::size_t i = 0; i < fields.y.size(); ++i)
        from[i] = {fields.y[i].outer(std::int64_t{g} * b.sites_per_group) + chirality * half_spinor * w,
                   std::ptrdiff_t{lattice::spinor_components} * w};
    const std::span<const std::int32_t> sites = sites_read(fields.face_mask);
    const auto begin = std::ranges::lower_bound(sites, first), end = std::ranges::lower_bound(sites, last);
    kernels::dots(w, {group(g, chirality), site_stride_}, vectors_, {from.data(), fields.y.size()}, {begin, end},
                  lanes_.data() + number * lanes_of_batch());
}

void aggregation::store_products(int g, int chirality, const batch& fields, std::size_t number) const noexcept {
    const lattice::block_layout& b = blocks();
    const int w = b.lane_width;
    const float* const products = lanes_.data() + number * lanes_of_batch();
    for (std::size_t i = 0; i < fields.y.size(); ++i)
        for (int place = 0; place < b.blocks_per_group; ++place) {
            const std::int32_t site = coarse_site_[g * b.blocks_per_group + place];
            if (site < 0) continue;
            float* const to = fields.x[i].outer(site) + chirality * 2 * vectors_;
            for (int k = 0; k < 2 * vectors_; ++k) {
                const float* const lane =
                    products + (static_cast<std::ptrdiff_t>(i) * 2 * vectors_ + k) * w + place * b.splits_per_block;
                float sum = 0;
                for (int s = 0; s < b.splits_per_block; ++s) sum += lane[s];
                to[k] = sum;
            }
        }
}

void aggregation::clear(lattice::field<float>& y, unsigned face_mask) const noexcept {
    y.mark_written();
    const lattice::block_layout& b = blocks();
    for (std::int64_t first = 0; first < fine_->outer_sites(); first += b.sites_per_group)
        for (const std::int32_t site : sites_read(face_mask))
            std::fill_n(y.outer(first + site), std::ptrdiff_t{lattice::spinor_components} * b.lane_width, 0.0F);
}

void aggregation::column(lattice::field<float>& v, int i, int chirality) const noexcept {
    v.mark_written();
    const std::ptrdiff_t n = std::ptrdiff_t{half_spinor} * blocks().lane_width;
    for (std::int64_t o = 0; o < fine_->outer_sites(); ++o) {
        std::copy_n(columns_.outer(o) + (chirality * vectors_ + i) * n, n, v.outer(o) + chirality * n);
        std::fill_n(v.outer(o) + (1 - chirality) * n, n, 0.0F);
    }
}

double aggregation::orthonormality_error() {
    lattice::field<float> v(fine_, lattice::spinor_components), x(coarse_, coarse_components());
    double worst = 0;
    for (int chirality = 0; chirality < 2; ++chirality)
        for (int i = 0; i < vectors_; ++i) {
            column(v, i, chirality);
            restrict(x, v);
            for (std::int64_t site = 0; site < coarse_->volume(); ++site)
                for (int k = 0; k < coarse_components(); ++k) {
                    const double expected = k == 2 * (chirality * vectors_ + i) ? 1 : 0;
                    worst = std::max(worst, std::abs(static_cast<double>(x.at(site, k)) - expected));
                }
        }
    return worst;
}

} // namespace halocline::amg
