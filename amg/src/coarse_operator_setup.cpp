// SPDX-License-Identifier: Apache-2.0
// The matrices of the coarse operator, D_c = P^dagger D P, column by column.
#include <halocline/amg/coarse_operator.hpp>

#include "kernels.hpp"

#include <halocline/base/error.hpp>

#include <Eigen/LU>

#include <algorithm>
#include <limits>

namespace halocline::amg {

coarse_operator::workspace coarse_operator::make_workspace(const aggregation& p) const {
    workspace work;
    work.batches.resize(directions_.size() + 1);
    const auto make_fields = [&](const auto& order, int components) {
        std::vector<std::vector<lattice::field<float>>> made(work.batches.size());
        for (auto& part : made)
            for (int i = 0; i < kernels::most_right_hand_sides; ++i) part.emplace_back(order, components);
        return made;
    };
    work.images = make_fields(p.fine(), lattice::spinor_components);
    work.columns = make_fields(order_, components());
    work.column = lattice::field<float>(p.fine(), lattice::spinor_components);
    return work;
}

comm::status coarse_operator::define(aggregation& p, dirac::wilson_clover<float>& d, workspace& work) {
    // batches[k]: P^dagger (part k of D v) for some columns v of P; k = 0: the diagonal, then the directions
    auto& [v, images, columns, batches] = work;
    const int vectors = p.vectors();
    for (int chirality = 0; chirality < 2; ++chirality)
        for (int first = 0; first < vectors; first += kernels::most_right_hand_sides) {
            const auto count = static_cast<std::size_t>(std::min(kernels::most_right_hand_sides, vectors - first));
            for (std::size_t i = 0; i < count; ++i) {
                p.column(v, first + static_cast<int>(i), chirality);
                const comm::status finished = apply_in_parts(images, i, p, v, d);
                if (finished != comm::status::ok) return finished;
            }
            for (std::size_t k = 0; k < batches.size(); ++k)
                batches[k] = {
                    {columns[k].data(), count}, {images[k].data(), count}, k == 0 ? 0 : directions_[k - 1].face_mask};
            p.restrict(batches);
            for (std::size_t k = 0; k < batches.size(); ++k)
                set_columns(batches[k].x, chirality * vectors + first, static_cast<int>(k) - 1);
        }
    return comm::status::ok;
}

// images[k][i] = part k of D v
comm::status coarse_operator::apply_in_parts(std::span<std::vector<lattice::field<float>>> images, std::size_t i,
                                             const aggregation& p, const lattice::field<float>& v,
                                             dirac::wilson_clover<float>& d) const {
    unsigned self = (1U << lattice::faces) - 1; // faces behind which a block has itself as neighbour
    for (const direction& way : directions_) self &= ~way.face_mask;

    auto hops = d.start_surface(v);
    d.apply_block(images[0][i], v);
    const comm::status finished = hops.finish();
    if (finished != comm::status::ok) return finished; // then there may be no ghosts
    if (self) hops.add_to(images[0][i], dirac::block_colour::all, self);
    for (std::size_t k = 0; k < directions_.size(); ++k) {
        p.clear(images[k + 1][i], directions_[k].face_mask);
        hops.add_to(images[k + 1][i], dirac::block_colour::all, directions_[k].face_mask);
    }
    return comm::status::ok;
}

void coarse_operator::set_columns(std::span<const lattice::field<float>> columns, int first_column, int link) noexcept {
    for (std::int64_t site = 0; site < order_->volume(); ++site)
        for (std::size_t i = 0; i < columns.size(); ++i) {
            const float* const from = columns[i].outer(site);
            float* const to = matrix(site, link);
            for (int row = 0; row < rows_; ++row) {
                const kernels::element_place e =
                    kernels::place_of_element(rows_, row, first_column + static_cast<int>(i));
                to[e.real] = from[2 * row];
                to[e.imaginary] = from[2 * row + 1];
            }
        }
}

void coarse_operator::invert_odd() {
    // The matrix is known to fp32 precision: one closer than that to a singular one may be singular.
    constexpr double least_rcond = std::numeric_limits<float>::epsilon();
    Eigen::MatrixXcd a(rows_, rows_);
    Eigen::PartialPivLU<Eigen::MatrixXcd> lu(rows_);
    for (int site = sublattices_[1].first; site < sublattices_[1].last; ++site) {
        const float* const from = matrix(site, -1);
        for (int column = 0; column < rows_; ++column)
            for (int row = 0; row < rows_; ++row) {
                const kernels::element_place e = kernels::place_of_element(rows_, row, column);
                a(row, column) = {static_cast<double>(from[e.real]), static_cast<double>(from[e.imaginary])};
            }
        Eigen::MatrixXcf inverse;
        const bool finite = a.allFinite();
        if (finite) lu.compute(a);
        const bool invertible = finite && lu.rcond() > least_rcond;
        if (invertible) {
            a = lu.inverse();
            inverse = a.cast<std::complex<float>>();
        }
        if (!invertible || !inverse.allFinite()) { // fp32 may have no room for its numbers
            const lattice::coordinate at = lattice::box{origin_, order_->extents()}.site(order_->site(site));
            throw input_error("the diagonal block of the coarse operator at coarse site " + lattice::to_string(at) +
                              " is singular in single precision; is the gauge field, or are m0 and csw, what they "
                              "should be?");
        }
        float* const to = inverses_.outer(site - sublattices_[1].first);
        for (int column = 0; column < rows_; ++column)
            for (int row = 0; row < rows_; ++row) {
                const kernels::element_place e = kernels::place_of_element(rows_, row, column);
                to[e.real] = -inverse(row, column).real();
                to[e.imaginary] = -inverse(row, column).imag();
            }
    }
}

std::complex<float> coarse_operator::element(std::int64_t site, int link, int row, int column) const {
    int direction_index = -1;
    for (int k = 0; link >= 0 && k < static_cast<int>(directions_.size()); ++k)
        if (directions_[k].where.index() == link) direction_index = k;
    if (link >= 0 && direction_index < 0) return {};
    const kernels::element_place e = kernels::place_of_element(rows_, row, column);
    const float* const from = matrix(order_->position(site), direction_index);
    return {from[e.real], from[e.imaginary]};
}

} // namespace halocline::amg
