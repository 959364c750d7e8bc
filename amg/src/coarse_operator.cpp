// SPDX-License-Identifier: Apache-2.0
#include <halocline/amg/coarse_operator.hpp>

#include "kernels.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <cstring>
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

/// Up to `systems`, so dense that an exchange of fewer fields sends at most half as many again: 1, 2, 3, 4, 6, 8, 12, ...
std::vector<int> fields_of_plans(int systems) {
    std::vector<int> sizes;
    for (int power = 1; power < systems; power *= 2) {
        sizes.push_back(power);
        if (const int between = power + power / 2; between > power && between < systems) sizes.push_back(between);
    }
    sizes.push_back(systems);
    return sizes;
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

/// Err: input_error: the matrices of one site are more numbers than a field has components.
void require_few_vectors(int vectors, std::int64_t reals_of_a_site) {
    if (reals_of_a_site > std::numeric_limits<int>::max())
        throw input_error("too many test vectors: " + std::to_string(vectors) +
                          " make the matrices of one coarse site " + std::to_string(reals_of_a_site) +
                          " numbers; at most " + std::to_string(std::numeric_limits<int>::max()) + " can be stored");
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
    : job_(j), order_(std::move(order)), rows_(2 * vectors), parities_(has_two_parities(coarse.global()) ? 2 : 1),
      systems_(systems), block_reals_(static_cast<std::ptrdiff_t>(kernels::matrix_reals(2 * vectors))) {
    const lattice::box box = coarse.local_box(j.rank());
    origin_ = box.origin;
    choose_directions(coarse.global());
    require_few_vectors(vectors, (static_cast<std::int64_t>(directions_.size()) + 1) * block_reals_);
    make_plans(coarse);
    j.collectively([&] {
        split_by_parity(box);
        list_sent_sites();
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
void coarse_operator::choose_directions(const coordinate& global) {
    for (int mu = 0; mu < dimensions; ++mu) {
        const face low{mu, lattice::side::low}, high{mu, lattice::side::high};
        const unsigned low_bit = 1U << low.index(), high_bit = 1U << high.index();
        if (global[mu] > 2) directions_.push_back({low, low_bit});
        if (global[mu] > 1) directions_.push_back({high, global[mu] > 2 ? high_bit : low_bit | high_bit});
    }
}

void coarse_operator::make_plans(const lattice::decomposition& coarse) {
    halo::plan_options options{.widths = {.low = {}, .high = {}}};
    for (const direction& d : directions_)
        (d.where.end == lattice::side::low ? options.widths.low : options.widths.high)[d.where.mu] = 1;
    options.bytes_per_site = static_cast<std::size_t>(components()) * sizeof(float);
    for (int p = 0; p < parities_; ++p) {
        const std::string name = parities_ == 1 ? "coarse" : p == 0 ? "coarse even" : "coarse odd";
        if (parities_ == 2) options.select = [p](const coordinate& x) { return lattice::parity(x) == p; };
        for (const int count : fields_of_plans(systems_)) {
            options.fields = count;
            options.name = count == 1 ? name : name + " x " + std::to_string(count);
            plans_[p].emplace_back(job_, coarse, options);
        }
    }
}

void coarse_operator::split_by_parity(const lattice::box& box) {
    const auto sites = static_cast<int>(box.volume());
    int even = 0; // order_ has the even sites first
    for (std::int64_t s = 0; s < sites; ++s) even += parities_ == 1 || lattice::parity(box.site(s)) == 0;
    sublattices_[0].last = even;
    sublattices_[1].first = even;
    sublattices_[1].last = sites;
}

void coarse_operator::list_sent_sites() {
    for (int p = 0; p < parities_; ++p) {
        std::vector<std::vector<int>>& messages = sent_positions_.emplace_back();
        for (const halo::plan_message& m : plans_[p].front().messages()) {
            std::vector<int>& positions = messages.emplace_back();
            for (const std::int32_t s : m.send_sites) positions.push_back(static_cast<int>(order_->position(s)));
        }
    }
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
                if (outside && plans_[0].front().message_of(f) >= 0) {
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

halo::plan& coarse_operator::plan_for(int source_parity, std::size_t systems) noexcept {
    std::vector<halo::plan>& plans = plans_[source_parity];
    return *std::ranges::find_if(
        plans, [&](const halo::plan& p) { return systems <= static_cast<std::size_t>(p.options().fields); });
}

void coarse_operator::start(int source_parity, std::span<const float* const> x) noexcept {
    halo::plan& plan = plan_for(source_parity, x.size());
    if (plan.messages().empty()) return;
    const std::ptrdiff_t n = components();
    const int x_first = sublattices_[source_parity].first;
    const std::vector<std::vector<int>>& sent = sent_positions_[source_parity];
    plan.start([&](int message, std::int64_t first, std::int64_t last, std::byte* target) {
        const std::vector<int>& positions = sent[message];
        const std::size_t site_bytes = static_cast<std::size_t>(n) * sizeof(float);
        for (std::size_t k = 0; k < x.size(); ++k, target += positions.size() * site_bytes)
            for (std::int64_t s = first; s < last; ++s)
                std::memcpy(target + static_cast<std::size_t>(s) * site_bytes, x[k] + (positions[s] - x_first) * n,
                            site_bytes);
    });
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
    halo::plan& plan = plan_for(source_parity, f.x.size());
    if (plan.messages().empty()) return comm::status::ok;
    const comm::status finished = plan.finish();
    if (finished == comm::status::ok) add_ghosts(now, plan, f.y); // else there may be no ghosts
    return finished;
}

void coarse_operator::add_ghosts(const sublattice& now, halo::plan& plan, std::span<float* const> y) noexcept {
    const std::ptrdiff_t n = components();
    std::array<const_pointers, lattice::faces> ghosts;
    for (const halo::plan_message& m : plan.messages())
        for (std::size_t k = 0; k < y.size(); ++k)
            ghosts[m.where.index()].push_back(plan.ghosts<float>(m.where, static_cast<int>(k)).data());
    std::array<kernels::product, lattice::faces> terms;
    for (const auto& [site, sources] : now.remote) {
        std::size_t count = 0;
        for (const sublattice::term& t : sources) {
            const const_pointers& behind = ghosts[directions_[t.direction].where.index()];
            terms[count++] = {matrix(site, t.direction), behind.values().data(), t.source * n};
        }
        kernels::multiply(rows_, {terms.data(), count}, y, (site - now.first) * n, true);
    }
}

comm::status coarse_operator::apply(fields y, const_fields x) noexcept {
    if (!takes(y.size(), x.size())) return comm::status::misused;
    for (lattice::field<float>* one : y) one->mark_written();
    const const_pointers even_x = sites_of(0, x);
    const pointers even_y = sites_of(0, y);
    start(0, even_x.values());
    if (parities_ == 1) return hop(0, {.y = even_y.values(), .x = even_x.values(), .own = even_x.values()});
    const const_pointers odd_x = sites_of(1, x);
    const pointers odd_y = sites_of(1, y);
    start(1, odd_x.values());
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
    start(0, even_x.values());
    const comm::status first = hop(1, {.y = hops.values(), .x = even_x.values()});
    // y_e = D_ee x_e - D_eo D_oo^-1 w_o
    minus_inverse(solved.values(), hops.values());
    start(1, solved.values());
    const comm::status second = hop(0, {.y = even_y.values(), .x = solved.values(), .own = even_x.values()});
    return first != comm::status::ok ? first : second;
}

comm::status coarse_operator::reduce(fields y, const_fields b) noexcept {
    if (!takes(y.size(), b.size())) return comm::status::misused;
    const pointers even_y = sites_of(0, y), solved = first_of(odd_solved_, b.size());
    minus_inverse(solved.values(), sites_of(1, b).values());
    start(1, solved.values());
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
    start(0, even_x.values());
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

halo::plan_statistics coarse_operator::statistics() const {
    halo::plan_statistics sum;
    for (const std::vector<halo::plan>& plans : plans_)
        for (const halo::plan& plan : plans) sum += plan.statistics();
    return sum;
}

void coarse_operator::reset_statistics() {
    for (std::vector<halo::plan>& plans : plans_)
        for (halo::plan& plan : plans) plan.reset_statistics();
}

} // namespace halocline::amg
