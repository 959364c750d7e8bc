// SPDX-License-Identifier: Apache-2.0
#include <halocline/amg/coarse_operator.hpp>

#include "kernels.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

namespace halocline::amg {
namespace {

using lattice::coordinate;
using lattice::dimensions;
using lattice::face;

std::shared_ptr<const lattice::site_order> row_of_sites(int sites) {
    return lattice::site_order::lexicographic({std::max(1, sites), 1, 1, 1});
}

bool has_two_parities(const coordinate& global) {
    for (int extent : global)
        if (extent % 2 != 0) return false;
    return true;
}

/// Index of x among the sites of a box with the same x_mu, lexicographic.
std::size_t index_in_plane(coordinate x, int mu, coordinate extents) {
    x[mu] = 0;
    extents[mu] = 1;
    return static_cast<std::size_t>(lattice::lexicographic_index(x, extents));
}

/// For each site of such a plane, how many of its parity come before it: ghosts behind a face are stored in that order,
/// the sender's, and all have one parity.
std::vector<int> ghost_places(coordinate plane, int mu, int parities) {
    plane[mu] = 1;
    std::vector<int> places;
    std::array<int, 2> before{};
    for (std::int64_t s = 0; s < lattice::volume(plane); ++s)
        places.push_back(before[parities == 2 ? lattice::parity(lattice::lexicographic_coordinate(s, plane)) : 0]++);
    return places;
}

/// Err: always input_error.  `at`: a cut in dimension mu that is not a block boundary.
[[noreturn]] void refuse_cut(const lattice::decomposition& cut, const coordinate& block, int mu, int at) {
    std::string grids;
    for (const coordinate& grid : lattice::admissible_rank_grids(cut.global(), cut.ranks(), block))
        grids += (grids.empty() ? "" : ", ") + lattice::to_string(grid);
    throw input_error("rank grid " + lattice::to_string(cut.rank_grid()) + " cuts " + lattice::dimension_name[mu] +
                      " at " + std::to_string(at) + ", inside a block of " + lattice::to_string(block) +
                      "; with multigrid, cuts fall on block boundaries. " +
                      (grids.empty() ? "No rank grid of " + std::to_string(cut.ranks()) + " ranks does that"
                                     : "Rank grids that do: " + grids));
}

/// Reals of a matrix.  Err: input_error: the matrices of one site are more numbers than a field has components.
std::ptrdiff_t reals_of_matrix(int vectors, std::size_t directions) {
    const auto one = static_cast<std::ptrdiff_t>(kernels::matrix_reals(2 * vectors)),
               all = (static_cast<std::ptrdiff_t>(directions) + 1) * one;
    if (all > std::numeric_limits<int>::max())
        throw input_error("too many test vectors: " + std::to_string(vectors) +
                          " make the matrices of one coarse site " + std::to_string(all) + " numbers; at most " +
                          std::to_string(std::numeric_limits<int>::max()) + " can be stored");
    return one;
}

/// Err: input_error.
int checked_systems(int systems) {
    if (systems < 1 || systems > solvers::most_systems)
        throw input_error("coarse_operator: " + std::to_string(systems) + " systems; must be from 1 to " +
                          std::to_string(solvers::most_systems));
    return systems;
}

/// The number of this box's sites of global parity 0.
int even_sites(const lattice::box& box) {
    int even = 0;
    for (std::int64_t s = 0; s < box.volume(); ++s) even += lattice::parity(box.site(s)) == 0;
    return even;
}

} // namespace

lattice::decomposition coarse_decomposition(const lattice::decomposition& cut, const coordinate& block) {
    coordinate global = cut.global();
    std::array<std::vector<int>, dimensions> cuts;
    for (int mu = 0; mu < dimensions; ++mu) {
        if (block[mu] < 1 || global[mu] % block[mu] != 0)
            throw input_error("blocks of " + lattice::to_string(block) + " do not divide the lattice " +
                              lattice::to_string(global) + ": in " + lattice::dimension_name[mu] +
                              " the block extent must be a divisor of " + std::to_string(global[mu]));
        global[mu] /= block[mu];
        for (int c : cut.cuts(mu)) {
            if (c % block[mu] != 0) refuse_cut(cut, block, mu, c);
            cuts[mu].push_back(c / block[mu]);
        }
    }
    return lattice::decomposition(global, cuts).with_rank_order(cut.rank_order());
}

std::shared_ptr<const lattice::site_order> coarse_site_order(const lattice::decomposition& coarse, int rank) {
    const lattice::box box = coarse.local_box(rank);
    return has_two_parities(coarse.global()) ? lattice::site_order::even_odd(box)
                                             : lattice::site_order::lexicographic(box.extents);
}

coarse_operator::coarse_operator(const comm::job& j, const lattice::decomposition& coarse,
                                 std::shared_ptr<const lattice::site_order> order, int vectors, int systems)
    : order_(std::move(order)), rows_(2 * vectors), parities_(has_two_parities(coarse.global()) ? 2 : 1),
      systems_(checked_systems(systems)), origin_(coarse.local_box(j.rank()).origin),
      directions_(directions_of(coarse.global())), block_reals_(reals_of_matrix(vectors, directions_.size())),
      halo_(j, coarse, *order_, halo_shape(coarse.local_box(j.rank()))) {
    const lattice::box box = coarse.local_box(j.rank());
    j.collectively([&] {
        split_by_parity(box);
        list_terms(coarse, box);
        const auto sites = static_cast<int>(order_->volume());
        const int odd = parities_ == 2 ? sites - sublattices_[0].last : 0;
        half_ = row_of_sites(parities_ == 2 ? sublattices_[0].last : sites);
        const int matrices = static_cast<int>(directions_.size()) + 1;
        matrices_ = lattice::field<float>(row_of_sites(sites), matrices * static_cast<int>(block_reals_));
        inverses_ = lattice::field<float>(row_of_sites(odd), static_cast<int>(block_reals_));
        for (int k = 0; k < systems; ++k) {
            odd_hops_.emplace_back(row_of_sites(odd), components());
            odd_solved_.emplace_back(row_of_sites(odd), components());
        }
    });
}

/// If both neighbours are the same site (global extent 2) they share one link, the high one; a site that is its own
/// neighbour (extent 1) has none.
std::vector<coarse_operator::direction> coarse_operator::directions_of(const coordinate& global) {
    std::vector<direction> directions;
    for (int mu = 0; mu < dimensions; ++mu) {
        const face low{mu, lattice::side::low}, high{mu, lattice::side::high};
        const unsigned low_bit = 1U << low.index(), high_bit = 1U << high.index();
        if (global[mu] > 2) directions.push_back({low, low_bit});
        if (global[mu] > 1) directions.push_back({high, global[mu] > 2 ? high_bit : low_bit | high_bit});
    }
    return directions;
}

coarse_halo::shape coarse_operator::halo_shape(const lattice::box& box) const {
    coarse_halo::shape s{.widths = {.low = {}, .high = {}},
                         .components = components(),
                         .parities = parities_,
                         .even_sites = parities_ == 2 ? even_sites(box) : static_cast<int>(box.volume()),
                         .systems = systems_};
    for (const direction& d : directions_)
        (d.where.end == lattice::side::low ? s.widths.low : s.widths.high)[d.where.mu] = 1;
    return s;
}

void coarse_operator::split_by_parity(const lattice::box& box) {
    const int sites = static_cast<int>(box.volume()), even = parities_ == 2 ? even_sites(box) : sites;
    sublattices_[0].last = even; // order_ has the even sites first
    sublattices_[1].first = even;
    sublattices_[1].last = sites;
}

void coarse_operator::list_terms(const lattice::decomposition& coarse, const lattice::box& box) {
    std::array<std::vector<int>, dimensions> places; // behind a face, by the site's index in its plane
    for (int mu = 0; mu < dimensions; ++mu) places[mu] = ghost_places(box.extents, mu, parities_);

    for (int p = 0; p < parities_; ++p) {
        sublattice& now = sublattices_[p];
        now.local.resize(static_cast<std::size_t>(now.last - now.first));
        for (int position = now.first; position < now.last; ++position) {
            const coordinate x = lattice::lexicographic_coordinate(order_->site(position), box.extents);
            std::vector<sublattice::term> remote;
            for (int d = 0; d < static_cast<int>(directions_.size()); ++d) {
                const face f = directions_[d].where;
                coordinate y = x;
                y[f.mu] += f.end == lattice::side::high ? 1 : -1;
                const bool outside = y[f.mu] < 0 || y[f.mu] >= box.extents[f.mu];
                if (outside && halo_.has_ghosts(f)) {
                    remote.push_back({d, places[f.mu][index_in_plane(x, f.mu, box.extents)]});
                    continue;
                }
                y = lattice::wrapped(y, coarse.global());
                now.local[position - now.first].push_back(
                    {d, static_cast<int>(order_->position(lattice::lexicographic_index(y, box.extents)))});
            }
            if (!remote.empty()) now.remote.emplace_back(position, std::move(remote));
        }
    }
}

coarse_operator::pointers coarse_operator::sites_of(int parity, fields xs) const noexcept {
    pointers sites;
    for (lattice::field<float>* x : xs)
        sites.push_back(x->data() + std::ptrdiff_t{sublattices_[parity].first} * components());
    return sites;
}

coarse_operator::const_pointers coarse_operator::sites_of(int parity, const_fields xs) const noexcept {
    const_pointers sites;
    for (const lattice::field<float>* x : xs)
        sites.push_back(x->data() + std::ptrdiff_t{sublattices_[parity].first} * components());
    return sites;
}

coarse_operator::pointers coarse_operator::first_of(std::vector<lattice::field<float>>& xs,
                                                    std::size_t systems) noexcept {
    pointers data;
    for (std::size_t k = 0; k < systems; ++k) data.push_back(xs[k].data());
    return data;
}

comm::status coarse_operator::hop(int target_parity, const hop_operands& f) noexcept {
    const int source_parity = parities_ == 2 ? 1 - target_parity : 0;
    const sublattice& now = sublattices_[target_parity];
    const std::ptrdiff_t n = components(), x_first = sublattices_[source_parity].first;
    std::array<kernels::product, lattice::faces + 1> terms;
    for (int site = now.first; site < now.last; ++site) {
        const std::ptrdiff_t at = (site - now.first) * n;
        std::size_t count = 0;
        if (!f.own.empty()) terms[count++] = {matrix(site, -1), f.own.data(), at};
        for (const sublattice::term& t : now.local[site - now.first])
            terms[count++] = {matrix(site, t.direction), f.x.data(), (t.source - x_first) * n};
        kernels::multiply(rows_, {terms.data(), count}, f.y, at, f.add);
    }
    const comm::status finished = halo_.finish(source_parity, f.x.size());
    if (finished == comm::status::ok) add_hops_from(halo_.arrived(source_parity, f.x.size()), now, f.y);
    return finished; // else there may be no ghosts
}

void coarse_operator::add_hops_from(const coarse_halo::ghosts& ghosts, const sublattice& now,
                                    std::span<float* const> y) noexcept {
    const std::ptrdiff_t n = components();
    std::array<kernels::product, lattice::faces> terms;
    for (const auto& [site, sources] : now.remote) {
        std::size_t count = 0;
        for (const sublattice::term& t : sources) {
            const std::span<const float* const> behind = ghosts[directions_[t.direction].where.index()].values();
            terms[count++] = {matrix(site, t.direction), behind.data(), t.source * n};
        }
        kernels::multiply(rows_, {terms.data(), count}, y, (site - now.first) * n, true);
    }
}

comm::status coarse_operator::apply(fields y, const_fields x) noexcept {
    if (!takes(y.size(), x.size())) return comm::status::misused;
    for (lattice::field<float>* one : y) one->mark_written();
    const const_pointers even_x = sites_of(0, x);
    const pointers even_y = sites_of(0, y);
    halo_.start(0, even_x.values());
    if (parities_ == 1) return hop(0, {.y = even_y.values(), .x = even_x.values(), .own = even_x.values()});
    const const_pointers odd_x = sites_of(1, x);
    const pointers odd_y = sites_of(1, y);
    halo_.start(1, odd_x.values());
    const comm::status first = hop(1, {.y = odd_y.values(), .x = even_x.values(), .own = odd_x.values()});
    const comm::status second = hop(0, {.y = even_y.values(), .x = odd_x.values(), .own = even_x.values()});
    return first != comm::status::ok ? first : second;
}

void coarse_operator::minus_inverse(std::span<float* const> y, std::span<const float* const> x) const noexcept {
    for (int s = 0; s < sublattices_[1].last - sublattices_[1].first; ++s) {
        const std::ptrdiff_t at = std::ptrdiff_t{s} * components();
        const kernels::product term{inverses_.outer(s), x.data(), at};
        kernels::multiply(rows_, {&term, 1}, y, at, false);
    }
}

comm::status coarse_operator::apply_schur(fields y, const_fields x) noexcept {
    if (!takes(y.size(), x.size())) return comm::status::misused;
    for (lattice::field<float>* one : y) one->mark_written();
    const const_pointers even_x = sites_of(0, x);
    const pointers even_y = sites_of(0, y);
    const pointers hops = first_of(odd_hops_, x.size()), solved = first_of(odd_solved_, x.size());
    // w_o = D_oe x_e
    halo_.start(0, even_x.values());
    const comm::status first = hop(1, {.y = hops.values(), .x = even_x.values()});
    // y_e = D_ee x_e - D_eo D_oo^-1 w_o
    minus_inverse(solved.values(), hops.values());
    halo_.start(1, solved.values());
    const comm::status second = hop(0, {.y = even_y.values(), .x = solved.values(), .own = even_x.values()});
    return first != comm::status::ok ? first : second;
}

comm::status coarse_operator::reduce(fields y, const_fields b) noexcept {
    if (!takes(y.size(), b.size())) return comm::status::misused;
    const pointers even_y = sites_of(0, y), solved = first_of(odd_solved_, b.size());
    minus_inverse(solved.values(), sites_of(1, b).values());
    halo_.start(1, solved.values());
    for (std::size_t k = 0; k < y.size(); ++k) {
        y[k]->mark_written();
        std::copy_n(b[k]->data(), std::ptrdiff_t{sublattices_[0].last} * components(), y[k]->data());
    }
    return hop(0, {.y = even_y.values(), .x = solved.values(), .add = true});
}

comm::status coarse_operator::reconstruct(fields x, const_fields xe, const_fields b) noexcept {
    if (!takes(x.size(), xe.size()) || !takes(x.size(), b.size())) return comm::status::misused;
    const std::ptrdiff_t even_reals = std::ptrdiff_t{sublattices_[1].first} * components();
    const std::ptrdiff_t odd_reals = std::ptrdiff_t{sublattices_[1].last} * components() - even_reals;
    const const_pointers even_x = sites_of(0, xe);
    const pointers hops = first_of(odd_hops_, x.size());
    halo_.start(0, even_x.values());
    for (std::size_t k = 0; k < x.size(); ++k) {
        x[k]->mark_written();
        std::copy_n(xe[k]->data(), even_reals, x[k]->data());
        // w_o = D_oe x_e - b_o
        const float* const b_odd = b[k]->data() + even_reals;
        std::transform(b_odd, b_odd + odd_reals, odd_hops_[k].data(), std::negate<>());
    }
    const comm::status finished = hop(1, {.y = hops.values(), .x = even_x.values(), .add = true});
    // x_o = -D_oo^-1 w_o
    minus_inverse(sites_of(1, x).values(), hops.values());
    return finished;
}

} // namespace halocline::amg
