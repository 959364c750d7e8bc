// SPDX-License-Identifier: Apache-2.0
#include "clover_blocks.hpp"

#include "wilson_clover_kernels.hpp"

#include <halocline/dirac/clover_term.hpp>

#include <Eigen/Dense>

#include <complex>

namespace halocline::dirac {
namespace {

using lattice::coordinate;

using matrix6 = Eigen::Matrix<std::complex<double>, 6, 6>;

/// One chirality of the term on a site, given by its lexicographic index in the local box, as in field::at().
matrix6 chirality_of(const lattice::field<double>& clover, std::int64_t site, int chirality) {
    matrix6 m;
    for (int row = 0; row < 6; ++row)
        for (int column = 0; column < 6; ++column) {
            const int c = 2 * (36 * chirality + 6 * row + column);
            m(row, column) = {clover.at(site, c), clover.at(site, c + 1)};
        }
    return m;
}

/// Stores a Hermitian matrix in the kernels' form; `site` as in chirality_of().
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

/// -1/m, m belonging to the site with this global coordinate.  Err: input_error when m is singular to working precision.
matrix6 negative_inverse(const matrix6& m, const coordinate& global_site) {
    const Eigen::PartialPivLU<matrix6> lu(m);
    if (!(lu.rcond() > 1e-14))
        throw input_error("the site-local term (4 + m0 + clover) is singular at site " +
                          lattice::to_string(global_site) +
                          ": odd-even preconditioning needs its inverse; change m0 or csw");
    return -lu.inverse();
}

} // namespace

template <class T>
clover_blocks<T> make_clover_blocks(std::shared_ptr<const lattice::site_order> order, const padded_links& links,
                                    const wilson_parameters& p) {
    const lattice::field<double> full = clover_term(links, p);
    const lattice::block_layout& blocks = *order->blocks();
    clover_blocks<T> made{lattice::field<T>(order, kernels::site_clover_reals),
                          lattice::field<T>(order, kernels::site_clover_reals)};
    for (std::int64_t site = 0; site < order->volume(); ++site) { // lexicographic in the local box
        const std::int64_t outer = order->position(site) / order->lane_width();
        const bool odd = outer % blocks.sites_per_group >= blocks.even_sites;
        for (int chirality = 0; chirality < 2; ++chirality) {
            const matrix6 m = chirality_of(full, site, chirality);
            pack(made.clover, site, chirality, m);
            pack(made.schur, site, chirality, odd ? negative_inverse(m, links.local().site(site)) : m);
        }
    }
    return made;
}

template clover_blocks<float> make_clover_blocks(std::shared_ptr<const lattice::site_order>, const padded_links&,
                                                 const wilson_parameters&);
template clover_blocks<double> make_clover_blocks(std::shared_ptr<const lattice::site_order>, const padded_links&,
                                                  const wilson_parameters&);

} // namespace halocline::dirac
