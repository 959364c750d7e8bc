// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/unpacker.hpp>

#include "box_layers.hpp"
#include "format_checks.hpp"
#include "format_kernels.hpp"
#include "message_start.hpp"
#include "packer_checks.hpp"

#include <halocline/base/error.hpp>
#include <halocline/halo/region_plan.hpp>

#include <algorithm>
#include <limits>

namespace halocline::halo {
namespace {

using lattice::dimensions;

/// Options of the unpacker that matches a packer, using the adjoint of the projection for face_before(f) on what lies
/// behind f.
unpacker_options beside(const packer_options& o, face (*face_before)(face)) {
    unpacker_options result{.components = o.components, .format = o.format, .scale = o.scale};
    for (int i = 0; i < lattice::faces; ++i) {
        const face f = lattice::face_of(i);
        const block_map& map = o.projections[face_before(f).index()];
        if (map.empty()) continue;
        check_map(map, o.components, lattice::to_string(face_before(f)) + ": ");
        result.expansions[i] = adjoint(map, o.components / map.block_reals);
    }
    return result;
}

/// Err: input_error, the same on every rank: some rank has more ghost layers behind a face than sites to add them to.
void check_widths(const std::string& who, const plan& p) {
    const lattice::decomposition& cut = p.cut();
    for (int i = 0; i < lattice::faces; ++i) {
        const face f = lattice::face_of(i);
        const int width = p.options().widths.behind(f);
        for_each_extent_along(cut, f.mu, [&](int rank, int extent) {
            if (width > extent && is_exchanged(cut, p.options(), rank, f))
                throw input_error(who + lattice::to_string(f) + ": " + std::to_string(width) +
                                  " ghost layers can't be added to the box of rank " + std::to_string(rank) + ", " +
                                  lattice::to_string(cut.local_box(rank).extents));
        });
    }
}

/// Number of reals of a message's site that a map reads: those of all blocks named by any of these maps.
int reals_read(const std::array<block_map, lattice::faces>& maps) {
    int reals = 0;
    for (const block_map& map : maps)
        for (const auto& row : map.rows)
            for (const block_map::term& t : row) reals = std::max(reals, (t.block + 1) * map.block_reals);
    return reals;
}

} // namespace

unpacker_options expansion_of(const packer_options& options) {
    return beside(options, [](face f) { return f.opposite(); });
}

unpacker_options adjoint_of(const packer_options& options) {
    unpacker_options result = beside(options, [](face f) { return f; });
    // What a packer sends through the low edge is multiplied by phase. What comes back there is multiplied by its
    // conjugate, like everything that comes from beyond the low edge.
    result.phases = options.phases;
    return result;
}

plan_options reversed(const plan_options& options, const lattice::decomposition& cut) {
    plan_options result = options;
    std::swap(result.widths.low, result.widths.high);
    if (options.select)
        throw input_error("reverse of halo '" + options.name +
                          "': a selection can't be reversed, because sites are "
                          "selected where they are sent from; use a region_plan");
    if (!options.parity) return result;
    std::array<bool, 2> seen{};
    for (int mu = 0; mu < dimensions; ++mu)
        for (const int width : {options.widths.low[mu], options.widths.high[mu]})
            if (width > 0 && has_messages_in(cut, options, mu)) seen[width % 2] = true;
    if (seen[0] && seen[1])
        throw input_error("reverse of halo '" + options.name + "': of one parity with widths low " +
                          lattice::to_string(options.widths.low) + " high " + lattice::to_string(options.widths.high) +
                          "; must be all even or all odd");
    for (int mu = 0; mu < dimensions; ++mu)
        if (cut.global()[mu] % 2 != 0 && has_messages_in(cut, options, mu) &&
            options.boundaries[mu] != lattice::boundary::open)
            throw input_error("reverse of halo '" + options.name + "': of one parity around " +
                              lattice::dimension_name[mu] + " of the lattice " + lattice::to_string(cut.global()) +
                              ": parities don't alternate across the edge of an odd extent; must be even, open or "
                              "without exchange");
    if (seen[1]) result.parity = 1 - *options.parity;
    return result;
}

template <class T>
int unpacker<T>::reals_per_site(const unpacker_options& o) {
    return has_maps(o.expansions) ? reals_read(o.expansions) : o.components;
}

template <class T>
std::size_t unpacker<T>::bytes_per_site(const unpacker_options& o) {
    return static_cast<std::size_t>(reals_per_site(o)) * bytes_per_real(o.format, sizeof(T));
}

template <class T>
unpacker<T>::unpacker(const plan& p, unpacker_options options, std::shared_ptr<const lattice::site_order> order)
    : options_(std::move(options)), order_(order_for(p, std::move(order))), reals_(reals_per_site(options_)),
      lanes_(order_->lane_width()) {
    const std::string who = "unpacker for halo '" + p.options().name + "': ";
    check_options(who, p);
    const lattice::decomposition& cut = p.cut();
    const int rank = p.job().rank();
    const lattice::box local = cut.local_box(rank);
    auto parts = std::make_shared<std::array<part, lattice::faces>>();
    for (const plan_message& m : p.messages()) {
        const face f = m.where;
        const int width = p.options().widths.behind(f);
        // The ghosts' sites in their owner's box, numbered by the owned sites to which they are added.
        const lattice::box own = layers(local, f, width), theirs = layers(cut.local_box(m.peer), f.opposite(), width);
        part& to = (*parts)[f.index()];
        to.sites = selected(sites_of(within(local, own), local.extents), theirs, cut.global(), p.options().parity,
                            p.options().select);
        to.fingerprint = m.fingerprint;
        shared_.insert(shared_.end(), to.sites.begin(), to.sites.end());

        // A plan in one direction adds nothing here, and needs no expansion.
        const block_map map = width > 0 ? map_of(f, cut.wraps(rank, f), who) : block_map{};
        if (!map.empty()) to.expansion = site_map<T>(map, reals_);
        require_positions(who, *order_, to.sites);
        const auto sites = static_cast<std::int64_t>(to.sites.size());
        if (map.empty() || lanes_ > 1) // only adds
            to.copy =
                site_copy(position_list::counted(sites), 1, stored_positions(to.sites, order_.get()), lanes_, true);
        else
            for (const std::int32_t site : to.sites)
                to.positions.push_back(static_cast<std::int32_t>(order_->position(site)));
    }
    std::sort(shared_.begin(), shared_.end());
    parts_.pointer() = std::move(parts);
}

/// The map applied to the ghosts behind this face: expansion and phase; no rows if it is the identity.
/// Err: input_error: a map that doesn't fit the message or the field.
template <class T>
block_map unpacker<T>::map_of(face f, bool wraps, const std::string& who) const {
    const std::string where = who + lattice::to_string(f) + ": ";
    const block_map& expansion = options_.expansions[f.index()];
    if (!expansion.empty()) check_map(expansion, reals_, where);
    if (has_maps(options_.expansions) && expansion.reals() != options_.components)
        throw input_error(where + "its expansion makes " + std::to_string(expansion.reals()) + " reals, a site has " +
                          std::to_string(options_.components));
    std::complex<double> phase = 1;
    if (wraps) phase = options_.phases[f.mu];
    if (f.end == lattice::side::low) phase = std::conj(phase);
    block_map map = with_phase(expansion, phase, options_.components);
    if (!map.empty()) check_map(map, reals_, where);
    return map;
}

/// Err: input_error: options that no message fits, or that do not fit the plan or the site order. Maps are checked for
///      every face behind which any rank has ghosts, so that a wrong one is refused on every rank.
template <class T>
void unpacker<T>::check_options(const std::string& who, const plan& p) const {
    check_format_and_box(who, options_.format, options_.scale, p, *order_);
    if (options_.components < 1)
        throw input_error(who + std::to_string(options_.components) + " components per site: must be 1 or more");
    if (sizeof(T) != 4 && options_.format != message_format::as_stored)
        throw input_error(who + "half and bfloat16 messages are read into fields of float, this one holds double");
    check_chunk(who, std::max(reals_, options_.components), options_.format, options_.expansions, options_.phases);
    if (p.options().bytes_per_site != bytes_per_site(options_))
        throw input_error(who + "it reads " + std::to_string(bytes_per_site(options_)) +
                          " bytes of a site in a message, the plan was made for " +
                          std::to_string(p.options().bytes_per_site));
    check_widths(who, p);
    for (int i = 0; i < lattice::faces; ++i) {
        const face f = lattice::face_of(i);
        const bool is_added = p.options().widths.behind(f) > 0;
        if (is_added && is_exchanged_anywhere(p.cut(), p.options(), f)) (void)map_of(f, wraps_anywhere(p, f), who);
    }
}

template <class T>
template <class Use>
void unpacker<T>::decoded(const std::byte* ghosts, std::int64_t first, std::int64_t last, std::int64_t most_sites,
                          Use&& use) const noexcept {
    if (options_.format == message_format::as_stored) {
        const T* reals = reinterpret_cast<const T*>(ghosts);
        for (std::int64_t end = 0; first < last; first = end) {
            end = std::min(last, first + most_sites);
            use(first, end, reals + first * reals_);
        }
    } else if constexpr (sizeof(T) == 4) {
        alignas(64) float chunk[chunk_reals];
        const auto scale = static_cast<float>(options_.scale);
        const auto* bits = reinterpret_cast<const std::uint16_t*>(ghosts);
        const std::int64_t step = std::min<std::int64_t>(most_sites, chunk_reals / reals_);
        for (std::int64_t end = 0; first < last; first = end) {
            end = std::min(last, first + step);
            kernels::decode(options_.format, bits + first * reals_, scale,
                            static_cast<std::size_t>((end - first) * reals_), chunk);
            use(first, end, static_cast<const T*>(chunk));
        }
    }
}

template <class T>
void unpacker<T>::add_to(const part& p, const std::byte* ghosts, std::int64_t first, std::int64_t last,
                         T* y) const noexcept {
    const site_shape shape{options_.components, sizeof(T), sizeof(T) == 4 ? scalar::float32 : scalar::float64};
    auto* const to = reinterpret_cast<std::byte*>(y);
    const std::int64_t in_chunk = chunk_reals / options_.components;
    if (p.expansion.empty())
        decoded(ghosts, first, last, last - first, [&](std::int64_t begin, std::int64_t end, const T* x) {
            p.copy.add(message_start(x, begin, shape.bytes()), to, shape, begin, end);
        });
    else if (lanes_ == 1)
        decoded(ghosts, first, last, last - first, [&](std::int64_t begin, std::int64_t end, const T* x) {
            p.expansion.add(x, y, p.positions.data() + begin, end - begin);
        });
    else // expanded site by site, then moved to their lanes
        decoded(ghosts, first, last, in_chunk, [&](std::int64_t begin, std::int64_t end, const T* x) {
            alignas(64) T expanded[chunk_reals];
            p.expansion.assign(x, expanded, end - begin);
            p.copy.add(message_start(expanded, begin, shape.bytes()), to, shape, begin, end);
        });
}

template <class T>
void unpacker<T>::expand(face f, const std::byte* ghosts, std::int64_t first, std::int64_t last,
                         T* out) const noexcept {
    const site_map<T>& map = part_behind(f).expansion;
    decoded(ghosts, first, last, last - first, [&](std::int64_t begin, std::int64_t end, const T* x) {
        if (map.empty())
            std::copy_n(x, (end - begin) * reals_, out);
        else
            map.assign(x, out, end - begin);
        out += (end - begin) * options_.components;
    });
}

template <class T>
void unpacker<T>::add(const plan& p, lattice::field<T>& y, team t) const {
    lattice::field<T>* const one = &y;
    add_all(p, std::span<lattice::field<T>* const>(&one, 1), t);
}

template <class T>
void unpacker<T>::add(const plan& p, lattice::field<std::complex<T>>& y, team t) const {
    lattice::field<std::complex<T>>* const one = &y;
    add_all(p, std::span<lattice::field<std::complex<T>>* const>(&one, 1), t);
}

template <class T>
void unpacker<T>::add(const plan& p, std::span<lattice::field<T>* const> ys, team t) const {
    add_all(p, ys, t);
}

template <class T>
void unpacker<T>::add(const plan& p, std::span<lattice::field<std::complex<T>>* const> ys, team t) const {
    add_all(p, ys, t);
}

template <class T>
template <class C>
void unpacker<T>::add_all(const plan& p, std::span<lattice::field<C>* const> ys, team t) const {
    (void)*parts_; // throws if this was moved from, here, where an exception can leave
    if (!t.is_member())
        throw input_error("unpacker for halo '" + p.options().name + "': add(): " + comm::wrong_call(t).text());
    check_fields(p, ys);
    // Each member has a range of sites in local lexicographic order, which is that of every message, so its share of
    // each face is a range too.
    const auto from = [&](int index) {
        const auto share = shared_.size() * static_cast<std::size_t>(index) / static_cast<std::size_t>(t.size);
        return index == 0 ? 0 : share < shared_.size() ? shared_[share] : std::numeric_limits<std::int32_t>::max();
    };
    const std::int32_t begin = from(t.index),
                       end = t.index + 1 < t.size ? from(t.index + 1) : std::numeric_limits<std::int32_t>::max();
    for (const plan_message& m : p.messages()) add_between(p, m.where, ys, begin, end);
    if (t.index == 0)
        for (lattice::field<C>* y : ys) y->mark_written();
}

/// Err: input_error: messages or fields of another shape than the unpacker was made for.
template <class T>
template <class C>
void unpacker<T>::check_fields(const plan& p, std::span<lattice::field<C>* const> ys) const {
    const auto refuse = [&](const std::string& text) {
        throw input_error("unpacker for halo '" + p.options().name + "': add(): " + text);
    };
    if (ys.size() != static_cast<std::size_t>(p.options().fields))
        refuse("it was given " + std::to_string(ys.size()) + (ys.size() == 1 ? " field" : " fields") +
               ", the plan was made for " + std::to_string(p.options().fields));
    if (p.options().bytes_per_site != bytes_per_site(options_))
        refuse("the plan sends " + std::to_string(p.options().bytes_per_site) + " bytes per site, it reads " +
               std::to_string(bytes_per_site(options_)));
    if (std::ranges::find(ys, nullptr) != ys.end()) refuse("it was given a field that is null");
    for (const plan_message& m : p.messages()) {
        const std::int64_t sites = std::ssize(part_behind(m.where).sites);
        if (m.ghost_sites != sites)
            refuse("the plan has " + std::to_string(m.ghost_sites) + " ghosts behind " + lattice::to_string(m.where) +
                   ", it adds " + std::to_string(sites));
        if (m.fingerprint != part_behind(m.where).fingerprint)
            refuse("the plan has ghosts of other sites behind " + lattice::to_string(m.where) +
                   " than the one that it was made for");
        if (p.ghost(m.where) == nullptr) refuse("no exchange of the plan is finished");
    }
    for (const lattice::field<C>* y : ys) {
        if (y->components() * lattice::reals_of<C> != options_.components)
            refuse("it was given a field of " + std::to_string(y->components()) +
                   (lattice::reals_of<C> == 2 ? " complex components, and was made for reals: "
                                              : " components, and was made for ") +
                   std::to_string(options_.components));
        if (!y->shared_order() || !y->order().is_like(*order_))
            refuse("it was given a field in another site order than it was made for, which is of a box of " +
                   lattice::to_string(order_->extents()));
    }
}

template <class T>
template <class C>
void unpacker<T>::add_between(const plan& p, face f, std::span<lattice::field<C>* const> ys, std::int32_t begin,
                              std::int32_t end) const noexcept {
    const part& to = part_behind(f);
    const auto index_of = [&](std::int32_t site) {
        return std::lower_bound(to.sites.begin(), to.sites.end(), site) - to.sites.begin();
    };
    const std::int64_t first = index_of(begin), last = index_of(end);
    if (first >= last) return;
    for (std::size_t k = 0; k < ys.size(); ++k)
        add_to(to, p.ghost(f, static_cast<int>(k)), first, last, reinterpret_cast<T*>(ys[k]->data()));
}

template class unpacker<float>;
template class unpacker<double>;

} // namespace halocline::halo
