// SPDX-License-Identifier: Apache-2.0
#include "packed_clover.hpp"

#include "clover_of_site.hpp"
#include "wilson_clover_kernels.hpp"

#include <halocline/base/error.hpp>

#include <Eigen/Dense>

#include <array>
#include <complex>
#include <utility>

namespace halocline::dirac {
namespace {

using lattice::coordinate;

using matrix6 = Eigen::Matrix<std::complex<double>, 6, 6>;

/// The term's matrices of both chiralities at a site.
std::array<matrix6, 2> matrices_of_site(const padded_links& u, const coordinate& x, const wilson_parameters& p) {
    const auto blocks = clover_of_site(u, x, p);
    std::array<matrix6, 2> m;
    for (int chirality = 0; chirality < 2; ++chirality)
        for (int row = 0; row < 6; ++row)
            for (int column = 0; column < 6; ++column)
                m[chirality](row, column) = blocks[36 * chirality + 6 * row + column];
    return m;
}

/// Stores a Hermitian matrix in the kernels' form; `site` as in field::at().
template <class T>
void pack(lattice::field<T>& to, std::int64_t site, int chirality, const matrix6& m) {
    int c = chirality * kernels::chirality_reals;
    for (int row = 0; row < 6; ++row) to.at(site, c++) = static_cast<T>(m(row, row).real());
    for (int row = 0; row < 6; ++row)
        for (int column = 0; column < row; ++column) {
            to.at(site, c++) = static_cast<T>(m(row, column).real());
            to.at(site, c++) = static_cast<T>(m(row, column).imag());
        }
}

/// -1/m, m belonging to the site with this global coordinate.  Err: input_error when m is singular to working precision, or
/// not finite.
matrix6 negative_inverse(const matrix6& m, const coordinate& global_site) {
    if (!m.allFinite())
        throw input_error("the links around site " + lattice::to_string(global_site) +
                          ", m0 or csw are not finite numbers");
    const Eigen::PartialPivLU<matrix6> lu(m);
    if (!(lu.rcond() > 1e-14))
        throw input_error("the site-local term (4 + m0 + clover) is singular at site " +
                          lattice::to_string(global_site) +
                          ": odd-even preconditioning needs its inverse; change m0 or csw");
    return -lu.inverse();
}

} // namespace

template <class T>
lattice::field<T> packed_clover(std::shared_ptr<const lattice::site_order> order, const padded_links& u,
                                const wilson_parameters& p) {
    lattice::field<T> clover(std::move(order), kernels::site_clover_reals);
    for (std::int64_t site = 0; site < clover.volume(); ++site) {
        const auto m = matrices_of_site(u, lattice::lexicographic_coordinate(site, u.extents()), p);
        for (int chirality = 0; chirality < 2; ++chirality) pack(clover, site, chirality, m[chirality]);
    }
    return clover;
}

template <class T>
lattice::field<T> packed_schur(const lattice::field<T>& clover, const padded_links& u, const wilson_parameters& p) {
    const lattice::site_order& order = clover.order();
    const lattice::block_layout& blocks = *order.blocks();
    lattice::field<T> schur(clover.shared_order(), kernels::site_clover_reals);
    schur.copy_from(clover);
    for (std::int64_t site = 0; site < order.volume(); ++site) {
        const std::int64_t outer = order.position(site) / order.lane_width();
        if (outer % blocks.sites_per_group < blocks.even_sites) continue;
        const auto m = matrices_of_site(u, lattice::lexicographic_coordinate(site, u.extents()), p);
        for (int chirality = 0; chirality < 2; ++chirality)
            pack(schur, site, chirality, negative_inverse(m[chirality], u.local().site(site)));
    }
    return schur;
}

template lattice::field<float> packed_clover(std::shared_ptr<const lattice::site_order>, const padded_links&,
                                             const wilson_parameters&);
template lattice::field<double> packed_clover(std::shared_ptr<const lattice::site_order>, const padded_links&,
                                              const wilson_parameters&);
template lattice::field<float> packed_schur(const lattice::field<float>&, const padded_links&,
                                            const wilson_parameters&);
template lattice::field<double> packed_schur(const lattice::field<double>&, const padded_links&,
                                             const wilson_parameters&);

} // namespace halocline::dirac
