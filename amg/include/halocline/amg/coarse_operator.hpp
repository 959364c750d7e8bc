// SPDX-License-Identifier: Apache-2.0
// The coarse operator D_c = P^dagger D P: one site per block, dense links of N_c = 2 * vectors complex rows to the
// neighbouring blocks and to itself. fp32.
// If all global coarse extents are even, D_c couples even sites only with odd ones, apart from the diagonal, and the
// Schur complement on the even sites is available. Ref: [Frommer2014] sec. 3.
#pragma once

#include <halocline/amg/aggregation.hpp>
#include <halocline/amg/coarse_halo.hpp>
#include <halocline/base/short_list.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/dirac/wilson_clover.hpp>
#include <halocline/halo/plan_statistics.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/site_order.hpp>
#include <halocline/solvers/concepts.hpp>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace halocline::amg {

/// The coarse lattice of a decomposition: one site per block.
/// Err: input_error if a cut does not fall on a block boundary, listing the rank grids that do.
lattice::decomposition coarse_decomposition(const lattice::decomposition& cut, const lattice::coordinate& block);

/// Coarse sites of a rank: even ones first (global parity) if the lattice has two parities, else lexicographic.
std::shared_ptr<const lattice::site_order> coarse_site_order(const lattice::decomposition& coarse, int rank);

/// This rank's part of D_c. Fields have components() reals per site, in order(); half fields, of the even sites only,
/// in half_order().
class coarse_operator {
  public:
    /// Collective.  `coarse` is what coarse_decomposition() returned, `order` what coarse_site_order() returned.
    /// `systems`: the most fields that one call takes, 1 to solvers::most_systems.
    /// Err: on every rank: input_error: another number of systems; so many vectors that a site's matrices have more
    /// than 2^31 - 1 numbers (option_ranges::vectors are few enough); out_of_memory, slab_full; job_error.
    /// Memory: for each system two half fields; plans for up to four times as many.
    coarse_operator(const comm::job& j, const lattice::decomposition& coarse,
                    std::shared_ptr<const lattice::site_order> order, int vectors, int systems = 1);

    /// What define() computes with: the parts of D on up to 4 columns of P, by [part][column], and their restrictions.
    /// The parts are the diagonal and the directions.
    struct workspace {
        lattice::field<float> column;
        std::vector<std::vector<lattice::field<float>>> images, columns; ///< part of D v; P^dagger of that
        std::vector<aggregation::batch> batches;                         ///< [part]
    };
    /// Memory: for each part 4 spinor fields and 4 coarse fields.
    [[nodiscard]] workspace make_workspace(const aggregation& p) const;
    /// Galerkin: D_c = P^dagger D P. Collective.  Pre: make_workspace(p) returned `work`, on every rank.
    /// Err:  input_error: D does not take the columns of P; a bad status of an exchange.
    /// Cost: 2 * vectors applications of D; for each 4 of them one read of P, and a second one of the 4 columns.
    [[nodiscard]] comm::status define(aggregation& p, dirac::wilson_clover<float>& d, workspace& work);
    /// Inverts the odd diagonal blocks, which the Schur complement needs, after define(). No communication.
    /// Pre:  bipartite().
    /// Err:  input_error, on that rank, naming the global coordinate of a coarse site whose diagonal block is singular
    ///       in fp32.
    /// Cost: O(N_c^3) per odd site.
    void invert_odd();

    // On several fields at once, each of another system: they share messages and the reading of D_c. The bits of one
    // don't depend on the others.
    // Pre: all are distinct.  Err: misused: as many y as x (and b), 1 to `systems`, are needed.
    using fields = std::span<lattice::field<float>* const>;
    using const_fields = std::span<const lattice::field<float>* const>;

    /// y = D_c x on all sites. Collective; the exchange overlaps with the links that stay on this rank.
    [[nodiscard]] comm::status apply(fields y, const_fields x) noexcept;
    [[nodiscard]] comm::status apply(lattice::field<float>& y, const lattice::field<float>& x) noexcept {
        return apply(list{&y}, const_list{&x});
    }

    /// True if even and odd sites can be separated: every global extent is even.
    [[nodiscard]] bool bipartite() const { return parities_ == 2; }
    /// y_e = (D_ee - D_eo D_oo^-1 D_oe) x_e on half fields. Collective.  Pre: bipartite().
    [[nodiscard]] comm::status apply_schur(fields y, const_fields x) noexcept;
    [[nodiscard]] comm::status apply_schur(lattice::field<float>& y, const lattice::field<float>& x) noexcept {
        return apply_schur(list{&y}, const_list{&x});
    }
    /// y_e = b_e - D_eo D_oo^-1 b_o.  Shape: b full fields, y half fields.  Collective.  Pre: bipartite().
    [[nodiscard]] comm::status reduce(fields y, const_fields b) noexcept;
    [[nodiscard]] comm::status reduce(lattice::field<float>& y, const lattice::field<float>& b) noexcept {
        return reduce(list{&y}, const_list{&b});
    }
    /// x = (x_e, D_oo^-1 (b_o - D_oe x_e)).  Shape: x, b full fields, xe half fields.  Collective.  Pre: bipartite().
    [[nodiscard]] comm::status reconstruct(fields x, const_fields xe, const_fields b) noexcept;
    [[nodiscard]] comm::status reconstruct(lattice::field<float>& x, const lattice::field<float>& xe,
                                           const lattice::field<float>& b) noexcept {
        return reconstruct(list{&x}, const_list{&xe}, const_list{&b});
    }

    [[nodiscard]] const std::shared_ptr<const lattice::site_order>& order() const { return order_; }
    /// Site order of half fields: the even sites of this rank, or one site of zeros if it has none.
    [[nodiscard]] const std::shared_ptr<const lattice::site_order>& half_order() const { return half_; }
    /// Reals per site: 2 N_c.
    [[nodiscard]] int components() const { return 2 * rows_; }

    /// Element (row, column) of the matrix by which a coarse site of this rank (its lexicographic index) takes its
    /// neighbour behind face f (link = f.index()), or itself (link = -1). For tests. If both neighbours in a dimension
    /// are the same site (global extent 2), their links are added up in the high one; if the site is its own neighbour
    /// (extent 1), in the diagonal.
    [[nodiscard]] std::complex<float> element(std::int64_t site, int link, int row, int column) const;

    /// Of its exchanges, since the last reset.
    [[nodiscard]] halo::plan_statistics statistics() const { return halo_.statistics(); }
    void reset_statistics() { halo_.reset_statistics(); }

  private:
    using list = std::array<lattice::field<float>*, 1>;
    using const_list = std::array<const lattice::field<float>*, 1>;
    /// One pointer for each system.
    using pointers = short_list<float*, solvers::most_systems>;
    using const_pointers = short_list<const float*, solvers::most_systems>;

    /// A direction with links of its own: the faces whose hops it collects.
    struct direction {
        lattice::face where;
        unsigned face_mask = 0;
    };
    /// Sites of one parity, or all sites if there are no parities, and what the links to them multiply.
    struct sublattice {
        struct term {
            int direction; ///< index into directions_
            int source;    ///< storage position of the source, or its index among the ghosts behind the face
        };
        int first = 0, last = 0;              ///< storage positions
        std::vector<std::vector<term>> local; ///< per site, sources on this rank
        /// (site, sources behind faces), for sites that have any.
        std::vector<std::pair<int, std::vector<term>>> remote;
    };

    // Set-up.
    static std::vector<direction> directions_of(const lattice::coordinate& global);
    [[nodiscard]] coarse_halo::shape halo_shape(const lattice::box& box) const;
    void split_by_parity(const lattice::box& box);
    void list_terms(const lattice::decomposition& coarse, const lattice::box& box);

    // Steps of an application.
    [[nodiscard]] bool takes(std::size_t y, std::size_t x) const noexcept {
        return y == x && x >= 1 && x <= static_cast<std::size_t>(systems_);
    }
    /// The first site of a parity in each of these fields.
    [[nodiscard]] pointers sites_of(int parity, fields xs) const noexcept;
    [[nodiscard]] const_pointers sites_of(int parity, const_fields xs) const noexcept;
    /// Those of the first scratch fields.
    [[nodiscard]] static pointers first_of(std::vector<lattice::field<float>>& xs, std::size_t systems) noexcept;
    [[nodiscard]] float* matrix(std::int64_t site, int link) {
        return matrices_.outer(site) + (link + 1) * block_reals_;
    }
    [[nodiscard]] const float* matrix(std::int64_t site, int link) const {
        return matrices_.outer(site) + (link + 1) * block_reals_;
    }
    /// For each system; each pointer is to its parity's first site.
    struct hop_operands {
        std::span<float* const> y;
        std::span<const float* const> x;        ///< the neighbours
        std::span<const float* const> own = {}; ///< the sites themselves; empty: without the diagonal
        bool add = false;                       ///< to what y holds
    };
    /// y = [y +] links x [+ diagonal own] on the sites of one parity.
    /// Pre: the exchange of the other parity was started; that of all sites if there are no parities.
    [[nodiscard]] comm::status hop(int target_parity, const hop_operands& f) noexcept;
    void add_hops_from(const coarse_halo::ghosts& ghosts, const sublattice& now, std::span<float* const> y) noexcept;
    /// y = -D_oo^-1 x on odd sites.
    void minus_inverse(std::span<float* const> y, std::span<const float* const> x) const noexcept;
    comm::status apply_in_parts(std::span<std::vector<lattice::field<float>>> images, std::size_t i,
                                const aggregation& p, const lattice::field<float>& v,
                                dirac::wilson_clover<float>& d) const;
    void set_columns(std::span<const lattice::field<float>> columns, int first_column, int link) noexcept;

    std::shared_ptr<const lattice::site_order> order_, half_;
    int rows_ = 0;     ///< N_c
    int parities_ = 1; ///< 2: bipartite
    int systems_ = 1;  ///< the most fields of a call
    lattice::coordinate origin_{};
    std::vector<direction> directions_;
    std::ptrdiff_t block_reals_ = 0;
    coarse_halo halo_;
    lattice::field<float> matrices_; ///< [site][diagonal, directions]
    lattice::field<float> inverses_; ///< [odd site]: -D_oo^-1
    std::array<sublattice, 2> sublattices_;
    /// Scratch on odd sites, for each system: D_oe x_e; -D_oo^-1 of something.
    std::vector<lattice::field<float>> odd_hops_, odd_solved_;
};

} // namespace halocline::amg
