// SPDX-License-Identifier: Apache-2.0
#include <halocline/dirac/wilson_clover.hpp>

#include "block_stencil.hpp"
#include "operator_input.hpp"
#include "packed_clover.hpp"
#include "wilson_clover_impl.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace halocline::dirac {

using lattice::block_layout;
using lattice::coordinate;
using lattice::dimensions;

namespace {

/// What D reads and writes per site, and how much of that, over all sites, stays in a cache from one D to the next:
/// measured with 8^4 in fp64 (6 MiB; prefetching makes it a tenth slower) and 12^4 in fp32 (16 MiB; takes half the
/// time).
constexpr int reals_per_site = kernels::site_link_reals + kernels::site_clover_reals + 2 * kernels::spinor_reals;
constexpr std::int64_t cached_bytes = std::int64_t{8} << 20;

/// Err: input_error: no order, not a blocked one, of 2 lanes, or of another box, which may have the same extents.
void require_order_of(const lattice::site_order* order, const lattice::box& local, const coordinate& global) {
    const block_layout* const b = order != nullptr ? order->blocks() : nullptr;
    if (b == nullptr || order->extents() != local.extents)
        throw input_error("wilson_clover needs a blocked site order of the local box " +
                          lattice::to_string(local.extents));
    require_operator_lanes(order->lane_width());
    lattice::box of{{}, order->extents()};
    coordinate of_global{};
    for (int mu = 0; mu < dimensions; ++mu) {
        of.origin[mu] = b->grid_origin[mu] * b->block[mu];
        of_global[mu] = b->global_grid[mu] * b->block[mu];
    }
    if (of != local || of_global != global)
        throw input_error("wilson_clover: the site order is of a box at " + lattice::to_string(of.origin) +
                          " of a lattice of " + lattice::to_string(of_global) + "; the operator is on one at " +
                          lattice::to_string(local.origin) + " of a lattice of " + lattice::to_string(global));
}

template <class T>
lattice::field<T> minus_half(std::shared_ptr<const lattice::site_order> order, const padded_links& u) {
    lattice::field<T> links(std::move(order), kernels::site_link_reals);
    for (std::int64_t site = 0; site < links.volume(); ++site) {
        const coordinate x = lattice::lexicographic_coordinate(site, u.extents());
        for (int mu = 0; mu < dimensions; ++mu) {
            const su3& link = u(x, mu);
            for (int e = 0; e < 9; ++e) {
                const int component = kernels::link_reals * mu + 2 * e;
                links.at(site, component) = static_cast<T>(-0.5 * link[e].real());
                links.at(site, component + 1) = static_cast<T>(-0.5 * link[e].imag());
            }
        }
    }
    return links;
}

} // namespace

template <class T>
wilson_clover<T>::impl::impl(const comm::job& j, const lattice::decomposition& of_cut, const padded_links& links,
                             const wilson_parameters& p, std::shared_ptr<const lattice::site_order> site_order)
    : job(j), cut(of_cut), parameters(p), order(std::move(site_order)) {
    require_operator_input(j, cut, links, p);
    j.collectively([&] { require_order_of(order.get(), cut.local_box(j.rank()), cut.global()); });
    j.agree("the blocks of the Wilson operator", lattice::to_string(blocks().block));
    j.collectively([&] {
        kernel = kernels::for_lane_width<T>(order->lane_width());
        stencil = make_stencil<T>(blocks(), kernel.vectors);
        between = sources_between<T>(blocks(), cut.rank_grid(), kernel.vectors);
        const padded_links u = with_boundaries(links, p.boundaries);
        minus_half_links = minus_half<T>(order, u);
        clover = packed_clover<T>(order, u, p);
        from_memory = group_offset(blocks().groups[0] + blocks().groups[1], reals_per_site) *
                          static_cast<std::int64_t>(sizeof(T)) >
                      cached_bytes;
    });
    surfaces = make_surface_exchange(j, cut, order, block_colour::all, kernels::half_spinor_reals * sizeof(T));
}

template <class T>
wilson_clover<T>::wilson_clover(const comm::job& j, const lattice::decomposition& cut, const padded_links& links,
                                const wilson_parameters& p, std::shared_ptr<const lattice::site_order> order)
    : impl_(std::make_unique<impl>(j, cut, links, p, std::move(order))) {}
template <class T>
wilson_clover<T>::~wilson_clover() = default;
template <class T>
wilson_clover<T>::wilson_clover(wilson_clover&&) noexcept = default;

template <class T>
const std::shared_ptr<const lattice::site_order>& wilson_clover<T>::order() const {
    return impl_->order;
}

template <class T>
void wilson_clover<T>::impl::add_between(const targets& to, block_colour sources, const lattice::field<T>& x) const {
    for (int g = to.first_group; g < to.last_group; ++g)
        if (has_sources_between(sources, g))
            kernel.add_between(stencil, between, to.faces, g, minus_half_links.data(), to.y.data(), x.data(), to.scale);
}

template <class T>
void wilson_clover<T>::impl::add_ghosts(const targets& to, const surface_exchange& exchange) const {
    // group by group, so that all faces of a group find its links and spinors in cache
    for (int g = to.first_group; g < to.last_group; ++g)
        for (int f = 0; f < lattice::faces; ++f)
            if ((to.faces >> f & 1) != 0 && exchange.plan.message_of(lattice::face_of(f)) >= 0)
                kernel.consume[f](exchange.lists.from_ghosts[f], g, g + 1, minus_half_links.data(), to.y.data(),
                                  reinterpret_cast<const T*>(exchange.plan.ghost(lattice::face_of(f))), to.scale);
}

template <class T>
comm::status wilson_clover<T>::apply(lattice::field<T>& y, const lattice::field<T>& x) noexcept {
    impl& d = *impl_;
    if (!d.takes(x)) return d.refuse(*d.surfaces, "x of apply()");
    if (!d.takes(y)) return d.refuse(*d.surfaces, "y of apply()");
    y.mark_written();
    const auto [first, last] = d.groups(block_colour::all);
    surface hops = start_surface(x);
    for (int g = first; g < last; ++g) // while the messages travel
        d.kernel.apply(d.stencil, &d.between, g, d.minus_half_links.data(), d.clover.data(), y.data(), x.data(),
                       d.from_memory);
    const comm::status arrived = hops.finish();
    if (arrived == comm::status::ok)
        d.add_ghosts(d.targets_of(y, block_colour::all, kernels::all_faces, T{1}), *d.surfaces);
    return arrived;
}

template <class T>
void wilson_clover<T>::apply_block(lattice::field<T>& y, const lattice::field<T>& x) const {
    const impl& d = *impl_;
    d.require(x, "wilson_clover: x of apply_block()");
    d.require(y, "wilson_clover: y of apply_block()");
    y.mark_written();
    const auto [first, last] = d.groups(block_colour::all);
    for (int g = first; g < last; ++g)
        d.kernel.apply(d.stencil, nullptr, g, d.minus_half_links.data(), d.clover.data(), y.data(), x.data(),
                       d.from_memory);
}

template <class T>
typename wilson_clover<T>::surface wilson_clover<T>::start_surface(const lattice::field<T>& x) noexcept {
    return {*impl_, *impl_->surfaces, x};
}

template <class T>
wilson_clover<T>::surface::surface(impl& d, surface_exchange& exchange, const lattice::field<T>& x) noexcept
    : d_(&d), exchange_(&exchange), x_(d.takes(x) ? &x : nullptr) {
    if (x_ == nullptr) {
        (void)d.refuse(exchange, "x of start_surface()");
        return;
    }
    const auto [first_group, last_group] = d.groups(exchange.sources);
    exchange.plan.start([&](int message, std::int64_t first, std::int64_t last, std::byte* target) {
        const int f = exchange.plan.messages()[message].where.opposite().index();
        d.kernel.produce[f](exchange.lists.to_message[f], first_group, last_group, d.minus_half_links.data(), x.data(),
                            reinterpret_cast<T*>(target), first, last);
    });
}

template <class T>
comm::status wilson_clover<T>::surface::finish() noexcept {
    return exchange_->plan.finish();
}

template <class T>
void wilson_clover<T>::surface::add_to(lattice::field<T>& y, block_colour targets, unsigned faces, T scale) const {
    if (x_ == nullptr)
        throw input_error("wilson_clover: add_to() after start_surface() of a field that D does not take");
    d_->require(y, "wilson_clover: y of add_to()");
    y.mark_written();
    const auto to = d_->targets_of(y, targets, faces, scale);
    d_->add_between(to, exchange_->sources, *x_);
    d_->add_ghosts(to, *exchange_);
}

template <class T>
comm::status wilson_clover<T>::surface::finish_and_add_to(lattice::field<T>& y, block_colour targets,
                                                          T scale) noexcept {
    if (x_ == nullptr) return finish();
    if (!d_->takes(y)) return d_->refuse(*exchange_, "y of finish_and_add_to()");
    y.mark_written();
    const auto to = d_->targets_of(y, targets, kernels::all_faces, scale);
    d_->add_between(to, exchange_->sources, *x_);
    const comm::status arrived = finish();
    if (arrived == comm::status::ok) d_->add_ghosts(to, *exchange_);
    return arrived;
}

template <class T>
std::string wilson_clover<T>::why_misused() const {
    if (impl_->wrong_field == nullptr) return {};
    return std::string(impl_->wrong_field) + " does not have 24 components in the operator's site order";
}

template <class T>
halo::plan_statistics wilson_clover<T>::statistics() const {
    return impl_->surfaces->plan.statistics();
}

template <class T>
void wilson_clover<T>::reset_statistics() {
    impl_->surfaces->plan.reset_statistics();
}

template class wilson_clover<float>;
template class wilson_clover<double>;

void require_operator_lanes(int lane_width) {
    if (lane_width == 2)
        throw input_error("lane width is 2: the Wilson-clover operator and its multigrid take 1, 4, 8 or 16");
}

int vector_lanes() { return std::clamp(kernels::vector_bytes() / static_cast<int>(sizeof(float)), 4, 16); }

std::int64_t blocked_places(const lattice::box& local, const coordinate& global, const coordinate& block,
                            int lane_width) {
    std::int64_t blocks = 1;
    bool two_colours = true;
    int most_splits = 1; // of a block over lanes
    for (int mu = 0; mu < dimensions; ++mu) {
        if (block[mu] < 1 || local.extents[mu] % block[mu] != 0)
            throw input_error("blocks of " + lattice::to_string(block) + " do not divide the local box " +
                              lattice::to_string(local.extents));
        blocks *= local.extents[mu] / block[mu];
        two_colours = two_colours && global[mu] / block[mu] % 2 == 0;
        if (block[mu] % 4 == 0) most_splits *= 2;
    }
    // The order splits blocks until nothing is gained: as many lanes stay empty as if it had split them most.
    const std::int64_t per_group = std::max(1, lane_width / most_splits);
    const std::int64_t of_one_colour = two_colours ? blocks / 2 : blocks; // of the other one: the rest
    const auto padded = [&](std::int64_t n) { return (n + per_group - 1) / per_group * per_group; };
    return (padded(of_one_colour) + padded(blocks - of_one_colour)) * lattice::volume(block);
}

int preferred_lane_width(const lattice::box& local, const coordinate& global, const coordinate& block) {
    const auto places = [&](int lanes) { return blocked_places(local, global, block, lanes); };
    int lanes = vector_lanes();
    if (lanes == 16 && places(16) > places(8)) lanes = 8;
    for (const int fewer : {4, 1})
        if (fewer < lanes && places(fewer) / fewer <= places(lanes) / lanes) lanes = fewer;
    return lanes;
}

} // namespace halocline::dirac
