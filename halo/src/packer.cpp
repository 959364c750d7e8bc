// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/packer.hpp>

#include "box_layers.hpp"
#include "format_checks.hpp"
#include "format_kernels.hpp"
#include "message_start.hpp"
#include "packer_checks.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>

namespace halocline::halo {

template <class T>
int packer<T>::reals_per_site(const packer_options& o) {
    const auto first = std::ranges::find_if(o.projections, [](const block_map& m) { return !m.empty(); });
    return first == o.projections.end() ? o.components : first->reals();
}

template <class T>
std::size_t packer<T>::bytes_per_site(const packer_options& o) {
    return static_cast<std::size_t>(reals_per_site(o)) * bytes_per_real(o.format, sizeof(T));
}

template <class T>
packer<T>::packer(const plan& p, packer_options options, std::shared_ptr<const lattice::site_order> order)
    : options_(std::move(options)), name_(p.options().name), order_(order_for(p, std::move(order))),
      reals_(reals_per_site(options_)), lanes_(order_->lane_width()), fields_(p.options().fields),
      bytes_(bytes_per_site(options_)) {
    const std::string who = "packer for halo '" + p.options().name + "': ";
    check_options(who, p);
    auto messages = std::make_shared<std::vector<message>>();
    for (const plan_message& sent : p.messages()) {
        // A plan in one direction packs nothing here, and needs no projection.
        const bool is_packed = p.options().widths.behind(sent.where.opposite()) > 0;
        const block_map map =
            is_packed ? map_of(sent.where, p.cut().wraps(p.job().rank(), sent.where), who) : block_map{};
        message& m = messages->emplace_back();
        m.where = sent.where;
        m.field_bytes = sent.send_sites.size() * bytes_;
        m.fingerprint = sent.fingerprint;
        if (!map.empty()) m.map = site_map<T>(map, options_.components);
        require_positions(who, *order_, sent.send_sites);
        if (map.empty() || lanes_ > 1)
            m.copy = site_copy(stored_positions(sent.send_sites, order_.get()), lanes_,
                               position_list::counted(std::ssize(sent.send_sites)), 1,
                               !map.empty() || options_.format != message_format::as_stored);
        else
            for (const std::int32_t site : sent.send_sites)
                m.positions.push_back(static_cast<std::int32_t>(order_->position(site)));
    }
    messages_.pointer() = std::move(messages);
}

/// Err: input_error: options that make no message, or that do not fit the plan or the site order. Maps are checked for
///      every face through which any rank sends, so that a wrong one is refused on every rank.
template <class T>
void packer<T>::check_options(const std::string& who, const plan& p) const {
    check_format_and_box(who, options_.format, options_.scale, p, *order_);
    if (options_.components < 1)
        throw input_error(who + std::to_string(options_.components) + " components per site: must be 1 or more");
    if (sizeof(T) != 4 && options_.format != message_format::as_stored)
        throw input_error(who + "half and bfloat16 messages are made of fields of float, this one holds double");
    check_chunk(who, std::max(reals_, options_.components), options_.format, options_.projections, options_.phases);
    if (p.options().bytes_per_site != bytes_)
        throw input_error(who + "a site of the message has " + std::to_string(bytes_) +
                          " bytes, the plan was made for " + std::to_string(p.options().bytes_per_site) +
                          "; say packer::bytes_per_site in plan_options");
    for (int i = 0; i < lattice::faces; ++i) {
        const face f = lattice::face_of(i);
        const bool is_packed = p.options().widths.behind(f.opposite()) > 0;
        if (is_packed && is_exchanged_anywhere(p.cut(), p.options(), f)) (void)map_of(f, wraps_anywhere(p, f), who);
    }
}

/// The map applied to a site that leaves through this face: projection and phase; no rows if it is the identity.
/// Err: input_error: a different number of reals than through the other faces, a map that does not fit the components.
template <class T>
block_map packer<T>::map_of(face f, bool wraps, const std::string& who) const {
    const std::string where = who + lattice::to_string(f) + ": ";
    const block_map& projection = options_.projections[f.index()];
    if (has_maps(options_.projections) && projection.reals() != reals_)
        throw input_error(where + "its projection has " + std::to_string(projection.reals()) +
                          " reals, another face's " + std::to_string(reals_));
    std::complex<double> phase = 1;
    // What leaves through the low edge becomes the ghosts beyond the upper edge.
    if (wraps) phase = options_.phases[f.mu];
    if (f.end == lattice::side::high) phase = std::conj(phase);
    block_map map = with_phase(projection, phase, options_.components);
    if (!map.empty()) check_map(map, options_.components, where);
    return map;
}

template <class T>
void packer<T>::refuse_count(std::size_t count) const {
    throw input_error("packer for halo '" + name_ + "': it was given " + std::to_string(count) +
                      (count == 1 ? " field" : " fields") + ", the plan was made for " + std::to_string(fields_));
}
template <class T>
void packer<T>::refuse_components(const site_shape& given) const {
    std::string components = std::to_string(given.components) + " components";
    if (given.component_bytes != sizeof(T))
        components += " of " + std::to_string(given.component_bytes) + " bytes instead of " + std::to_string(sizeof(T));
    throw input_error("packer for halo '" + name_ + "': it was given a field of " + components + ", and was made for " +
                      std::to_string(options_.components));
}
template <class T>
void packer<T>::refuse_element(const comm::element_type& given) const {
    throw input_error("packer for halo '" + name_ + "': it was given a field of " + comm::to_string(given) +
                      ", and was made for fields of " + comm::to_string(comm::element_type_of<T>()));
}
template <class T>
void packer<T>::refuse_order() const {
    throw input_error("packer for halo '" + name_ +
                      "': it was given a field in another site order than it was made "
                      "for, which is of a box of " +
                      lattice::to_string(order_->extents()));
}

template <class T>
void packer<T>::gather(const message& m, const T* values, std::int64_t first, std::int64_t last,
                       T* out) const noexcept {
    const auto copy = [&](std::int64_t begin, std::int64_t end, T* to) {
        const site_shape shape{options_.components, sizeof(T)};
        m.copy.copy(reinterpret_cast<const std::byte*>(values), message_start(to, begin, shape.bytes()), shape, begin,
                    end);
    };
    if (m.map.empty()) return copy(first, last, out);
    if (lanes_ == 1) return m.map.gather(values, m.positions.data() + first, out, last - first);
    alignas(64) T sites[chunk_reals]; // gathered from their lanes, then mapped
    for (const std::int64_t step = chunk_reals / options_.components; first < last; first += step) {
        const std::int64_t end = std::min(last, first + step);
        copy(first, end, sites);
        m.map.assign(sites, out, end - first);
        out += (end - first) * reals_;
    }
}

template <class T>
void packer<T>::pack(const message& m, const T* values, std::int64_t first, std::int64_t last,
                     std::byte* target) const noexcept {
    if (options_.format == message_format::as_stored) {
        gather(m, values, first, last, reinterpret_cast<T*>(target) + first * reals_);
        return;
    }
    if constexpr (sizeof(T) == 4) {
        alignas(64) float chunk[chunk_reals];
        const auto scale = static_cast<float>(options_.scale);
        auto* out = reinterpret_cast<std::uint16_t*>(target) + first * reals_;
        for (const std::int64_t step = chunk_reals / reals_; first < last; first += step) {
            const std::int64_t end = std::min(last, first + step);
            const auto count = static_cast<std::size_t>((end - first) * reals_);
            gather(m, values, first, end, chunk);
            kernels::encode(options_.format, chunk, scale, count, out);
            out += count;
        }
    }
}

template <class T>
void packer<T>::unpack(const std::byte* ghost, std::int64_t first, std::int64_t last, T* out) const noexcept {
    (void)*messages_; // if this was moved from, that ends the program and says so
    const auto count = static_cast<std::size_t>((last - first) * reals_);
    const std::byte* from = ghost + static_cast<std::size_t>(first) * bytes_;
    if (options_.format == message_format::as_stored)
        std::copy_n(reinterpret_cast<const T*>(from), count, out);
    else if constexpr (sizeof(T) == 4)
        kernels::decode(options_.format, reinterpret_cast<const std::uint16_t*>(from),
                        static_cast<float>(options_.scale), count, out);
}

template <class T>
void packer<T>::write(const T* reals, std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
    (void)*messages_; // if this was moved from, that ends the program and says so
    const auto count = static_cast<std::size_t>((last - first) * reals_);
    std::byte* to = target + static_cast<std::size_t>(first) * bytes_;
    if (options_.format == message_format::as_stored)
        std::copy_n(reals, count, reinterpret_cast<T*>(to));
    else if constexpr (sizeof(T) == 4)
        kernels::encode(options_.format, reals, static_cast<float>(options_.scale), count,
                        reinterpret_cast<std::uint16_t*>(to));
}

template class packer<float>;
template class packer<double>;

} // namespace halocline::halo
