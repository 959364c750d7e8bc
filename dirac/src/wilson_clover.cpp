// SPDX-License-Identifier: Apache-2.0
#include <halocline/dirac/wilson_clover.hpp>

#include "block_stencil.hpp"
#include "clover_blocks.hpp"
#include "operator_input.hpp"
#include "surface_map.hpp"
#include "wilson_clover_kernels.hpp"

#include <halocline/lattice/field_shape.hpp>

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

struct aligned_delete {
    template <class T>
    void operator()(T* p) const {
        ::operator delete[](p, std::align_val_t{lattice::field_alignment});
    }
};
template <class T>
using aligned_array = std::unique_ptr<T[], aligned_delete>;
template <class T>
aligned_array<T> make_aligned(std::size_t size) {
    return aligned_array<T>(new (std::align_val_t{lattice::field_alignment}) T[size]());
}

/// Err: input_error: no order, not a blocked one, or of another box, which may have the same extents.
void require_order_of(const lattice::site_order* order, const lattice::box& local, const coordinate& global) {
    const block_layout* const b = order != nullptr ? order->blocks() : nullptr;
    if (b == nullptr || order->extents() != local.extents)
        throw input_error("wilson_clover needs a blocked site order of the local box " +
                          lattice::to_string(local.extents));
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

} // namespace

template <class T>
struct wilson_clover<T>::impl {
    impl(const comm::job& j, const lattice::decomposition& cut, const padded_links& links, const wilson_parameters& p,
         std::shared_ptr<const lattice::site_order> site_order);

    [[nodiscard]] const block_layout& blocks() const { return *order->blocks(); }
    /// Groups of one colour, or all for colour < 0: [first, last).
    [[nodiscard]] std::array<int, 2> groups(int colour) const {
        const int zero = blocks().groups[0], one = blocks().groups[1];
        if (colour < 0) return {0, zero + one};
        return colour == 0 ? std::array{0, zero} : std::array{zero, zero + one};
    }
    /// Whether blocks of this rank are sources, in this set, of hops into the blocks of a group.
    [[nodiscard]] bool has_sources_between(int set, int group) const {
        if (set == 0) return true;
        const int colour = set - 1; // that of the sources
        return blocks().two_colours ? colour != (group < blocks().groups[0] ? 0 : 1) : colour == 0;
    }
    /// First real of a group in a field of `components`.
    [[nodiscard]] std::int64_t group_offset(int group, int components) const {
        return std::int64_t{group} * blocks().sites_per_group * components * order->lane_width();
    }

    void fill_links(const padded_links& links, const wilson_parameters& p);

    std::shared_ptr<const lattice::site_order> order;
    kernels::table<T> kernel;
    kernels::block_stencil<T> stencil;
    kernels::lane_sources<T> between; ///< from blocks of this rank
    bool from_memory = false;         ///< apply() reads too much for a cache
    lattice::field<T> links_half;     ///< -1/2 U with boundary signs: [outer][mu][18][W]
    clover_blocks<T> local;           ///< the site-local term
    aligned_array<T> work;            ///< spinors of one group

    /// Everything that depends on which blocks are sources.
    struct surfaces {
        std::unique_ptr<halo::plan> plan;
        surface_lists lists;
    };
    std::array<surfaces, source_sets> sets;
    const char* wrong_field = nullptr; ///< for which a call was first refused; a literal

    [[nodiscard]] bool takes(const lattice::field<T>& x) const noexcept {
        return lattice::has_shape(x, kernels::spinor_reals, *order);
    }
    /// Err: input_error: a field of another shape; `what` names it.
    void require(const lattice::field<T>& x, std::string_view what) const {
        lattice::require_shape(x, what, kernels::spinor_reals, *order);
    }
    /// Makes the exchange of a set misused, unless its status is bad already; returns the status.
    comm::status refuse(int set, const char* field) noexcept {
        if (wrong_field == nullptr) wrong_field = field;
        sets[set].plan->refuse_start(field);
        return sets[set].plan->finish();
    }

    /// What hops are added to, and which of them.
    struct targets {
        lattice::field<T>& y;
        int first_group, last_group;
        unsigned faces;
        T scale;
    };
    [[nodiscard]] targets targets_of(lattice::field<T>& y, int colour, unsigned faces, T scale) const {
        const auto [first, last] = groups(colour);
        return {y, first, last, faces, scale};
    }
    void add_between(const targets& to, int set, const lattice::field<T>& x) const;
    void add_ghosts(const targets& to, int set) const;
};

template <class T>
wilson_clover<T>::impl::impl(const comm::job& j, const lattice::decomposition& cut, const padded_links& links,
                             const wilson_parameters& p, std::shared_ptr<const lattice::site_order> site_order)
    : order(std::move(site_order)) {
    j.collectively([&] { require_order_of(order.get(), cut.local_box(j.rank()), cut.global()); });
    j.agree("the blocks of the Wilson operator", lattice::to_string(blocks().block));
    std::optional<surface_map> map;
    j.collectively([&] {
        kernel = kernels::for_lane_width<T>(order->lane_width());
        stencil = make_stencil<T>(blocks(), kernel.vectors);
        between = sources_between<T>(blocks(), cut.rank_grid(), kernel.vectors);
        fill_links(links, p);
        from_memory = group_offset(blocks().groups[0] + blocks().groups[1], reals_per_site) *
                          static_cast<std::int64_t>(sizeof(T)) >
                      cached_bytes;
        work = make_aligned<T>(static_cast<std::size_t>(group_offset(1, kernels::spinor_reals)));
        map.emplace(cut, j.rank(), order);
    });
    try {
        j.collectively([&] { local = make_clover_blocks<T>(order, links, p); });
    } catch (const input_error& e) { // on every rank; all other input was checked before
        throw singular_local_term(e.what());
    }
    for (int set = 0; set < source_sets; ++set) {
        halo::plan_options options;
        options.name = set == 0 ? "surfaces" : set == 1 ? "surfaces of colour 0" : "surfaces of colour 1";
        options.bytes_per_site = kernels::half_spinor_reals * sizeof(T);
        if (set > 0) options.select = [b = blocks(), set](const coordinate& x) { return in_source_set(b, set, x); };
        sets[set].plan = std::make_unique<halo::plan>(j, cut, options);
        j.collectively([&] { sets[set].lists = map->lists(set, *sets[set].plan); });
    }
}

template <class T>
void wilson_clover<T>::impl::fill_links(const padded_links& links, const wilson_parameters& p) {
    const padded_links u = with_boundaries(links, p.boundaries);
    links_half = lattice::field<T>(order, kernels::site_link_reals);
    for (std::int64_t site = 0; site < order->volume(); ++site) {
        const coordinate x = lattice::lexicographic_coordinate(site, order->extents());
        for (int mu = 0; mu < dimensions; ++mu) {
            const su3& link = u(x, mu);
            for (int e = 0; e < 9; ++e) {
                const int component = kernels::link_reals * mu + 2 * e;
                links_half.at(site, component) = static_cast<T>(-0.5 * link[e].real());
                links_half.at(site, component + 1) = static_cast<T>(-0.5 * link[e].imag());
            }
        }
    }
}

template <class T>
wilson_clover<T>::wilson_clover(const comm::job& j, const lattice::decomposition& cut, const padded_links& links,
                                const wilson_parameters& p, std::shared_ptr<const lattice::site_order> order)
    : impl_((require_operator_input(j, cut, links, p), std::make_unique<impl>(j, cut, links, p, std::move(order)))) {}
template <class T>
wilson_clover<T>::~wilson_clover() = default;
template <class T>
wilson_clover<T>::wilson_clover(wilson_clover&&) noexcept = default;

template <class T>
const std::shared_ptr<const lattice::site_order>& wilson_clover<T>::order() const {
    return impl_->order;
}

template <class T>
void wilson_clover<T>::impl::add_between(const targets& to, int set, const lattice::field<T>& x) const {
    for (int g = to.first_group; g < to.last_group; ++g)
        if (has_sources_between(set, g))
            kernel.add_between(stencil, between, to.faces, g, links_half.data(), to.y.data(), x.data(), to.scale);
}

template <class T>
void wilson_clover<T>::impl::add_ghosts(const targets& to, int set) const {
    const surfaces& s = sets[set];
    // group by group, so that all faces of a group find its links and spinors in cache
    for (int g = to.first_group; g < to.last_group; ++g)
        for (int f = 0; f < lattice::faces; ++f)
            if ((to.faces >> f & 1) != 0 && s.plan->message_of(lattice::face_of(f)) >= 0)
                kernel.consume[f](s.lists.from_ghosts[f], g, g + 1, links_half.data(), to.y.data(),
                                  reinterpret_cast<const T*>(s.plan->ghost(lattice::face_of(f))), to.scale);
}

template <class T>
comm::status wilson_clover<T>::apply(lattice::field<T>& y, const lattice::field<T>& x) noexcept {
    impl& d = *impl_;
    if (!d.takes(x)) return d.refuse(source_set(-1), "x of apply()");
    if (!d.takes(y)) return d.refuse(source_set(-1), "y of apply()");
    y.mark_written();
    const auto [first, last] = d.groups(-1);
    surface hops = start_surface(x);
    for (int g = first; g < last; ++g) // while the messages travel
        d.kernel.apply(d.stencil, &d.between, g, d.links_half.data(), d.local.clover.data(), y.data(), x.data(),
                       d.from_memory);
    const comm::status arrived = hops.finish();
    if (arrived == comm::status::ok) d.add_ghosts(d.targets_of(y, -1, kernels::all_faces, T{1}), source_set(-1));
    return arrived;
}

template <class T>
void wilson_clover<T>::apply_block(lattice::field<T>& y, const lattice::field<T>& x) const {
    const impl& d = *impl_;
    d.require(x, "wilson_clover: x of apply_block()");
    d.require(y, "wilson_clover: y of apply_block()");
    y.mark_written();
    const auto [first, last] = d.groups(-1);
    for (int g = first; g < last; ++g)
        d.kernel.apply(d.stencil, nullptr, g, d.links_half.data(), d.local.clover.data(), y.data(), x.data(),
                       d.from_memory);
}

template <class T>
typename wilson_clover<T>::surface wilson_clover<T>::start_surface(const lattice::field<T>& x, int colour) noexcept {
    impl& d = *impl_;
    const int set = source_set(colour);
    if (!d.takes(x)) {
        (void)d.refuse(set, "x of start_surface()");
        return {d, nullptr, set};
    }
    typename impl::surfaces& s = d.sets[set];
    const auto [first_group, last_group] = d.groups(colour);
    s.plan->start([&](int message, std::int64_t first, std::int64_t last, std::byte* target) {
        const int f = s.plan->messages()[message].where.opposite().index();
        d.kernel.produce[f](s.lists.to_message[f], first_group, last_group, d.links_half.data(), x.data(),
                            reinterpret_cast<T*>(target), first, last);
    });
    return {d, &x, set};
}

template <class T>
comm::status wilson_clover<T>::surface::finish() noexcept {
    return d_->sets[set_].plan->finish();
}

template <class T>
void wilson_clover<T>::surface::add_to(lattice::field<T>& y, int target_colour, unsigned faces, T scale) const {
    d_->require(y, "wilson_clover: y of add_to()");
    y.mark_written();
    const auto to = d_->targets_of(y, target_colour, faces, scale);
    d_->add_between(to, set_, *x_);
    d_->add_ghosts(to, set_);
}

template <class T>
comm::status wilson_clover<T>::surface::finish_and_add_to(lattice::field<T>& y, int target_colour, T scale) noexcept {
    if (x_ == nullptr) return finish();
    if (!d_->takes(y)) return d_->refuse(set_, "y of finish_and_add_to()");
    y.mark_written();
    const auto to = d_->targets_of(y, target_colour, kernels::all_faces, scale);
    d_->add_between(to, set_, *x_);
    const comm::status arrived = finish();
    if (arrived == comm::status::ok) d_->add_ghosts(to, set_);
    return arrived;
}

template <class T>
void wilson_clover<T>::block_solve(lattice::field<T>& x, lattice::field<T>& r, lattice::field<T>& update, int colour,
                                   int steps) const {
    const impl& d = *impl_;
    d.require(x, "wilson_clover: x of block_solve()");
    d.require(r, "wilson_clover: r of block_solve()");
    d.require(update, "wilson_clover: update of block_solve()");
    for (lattice::field<T>* written : {&x, &r, &update}) written->mark_written();
    const auto [first, last] = d.groups(colour);
    for (int g = first; g < last; ++g) {
        const std::int64_t spinors = d.group_offset(g, kernels::spinor_reals);
        d.kernel.solve(d.stencil, d.links_half.data() + d.group_offset(g, kernels::site_link_reals),
                       d.local.schur.data() + d.group_offset(g, kernels::site_clover_reals), x.data() + spinors,
                       r.data() + spinors, update.data() + spinors, d.work.get(), steps, d.from_memory && g + 1 < last);
    }
}

template <class T>
std::string wilson_clover<T>::why_misused() const {
    if (impl_->wrong_field == nullptr) return {};
    return std::string(impl_->wrong_field) + " does not have 24 components in the operator's site order";
}

template <class T>
halo::plan_statistics wilson_clover<T>::statistics() const {
    halo::plan_statistics sum;
    for (const auto& s : impl_->sets) sum += s.plan->statistics();
    return sum;
}

template <class T>
void wilson_clover<T>::reset_statistics() {
    for (auto& s : impl_->sets) s.plan->reset_statistics();
}

template class wilson_clover<float>;
template class wilson_clover<double>;

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
