// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/packer.hpp>

#include "pack_kernels.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>

namespace halocline::halo {
namespace {

/// Reals that change their format together; a site must fit.
constexpr int chunk_reals = 2048;

/// phase * map, or phase alone on sites of so many components; no rows if that is the identity.
block_map with_phase(const block_map& map, std::complex<double> phase, int components) {
    block_map result = map;
    if (phase == 1.0) return result;
    if (map.empty()) result = {components, {{{0, 1}}}};
    for (auto& row : result.rows)
        for (block_map::term& t : row) t.coefficient *= phase;
    return result;
}

void check_map(const block_map& map, int components, const std::string& who) {
    const auto fail = [&](const std::string& what) { throw input_error(who + what); };
    if (map.block_reals < 1 || components % map.block_reals != 0)
        fail("blocks of " + std::to_string(map.block_reals) + " reals do not divide a site of " +
             std::to_string(components));
    for (const auto& row : map.rows)
        for (const block_map::term& t : row) {
            if (t.block < 0 || t.block >= components / map.block_reals)
                fail("block " + std::to_string(t.block) + " is not one of the " +
                     std::to_string(components / map.block_reals) + " of a site");
            if (t.coefficient.imag() != 0 && map.block_reals % 2 != 0)
                fail("a complex coefficient needs blocks of pairs (re, im), not of " + std::to_string(map.block_reals) +
                     " reals");
        }
}

} // namespace

std::size_t bytes_per_real(message_format format, std::size_t stored_bytes) {
    return format == message_format::as_stored ? stored_bytes : 2;
}

template <class T>
int packer<T>::reals_per_site(const packer_options& o) {
    const auto first =
        std::find_if(o.projections.begin(), o.projections.end(), [](const block_map& m) { return !m.empty(); });
    return first == o.projections.end() ? o.components : first->block_reals * static_cast<int>(first->rows.size());
}

template <class T>
std::size_t packer<T>::bytes_per_site(const packer_options& o) {
    return static_cast<std::size_t>(reals_per_site(o)) * bytes_per_real(o.format, sizeof(T));
}

template <class T>
packer<T>::packer(const plan& p, const lattice::decomposition& cut, std::shared_ptr<const lattice::site_order> order,
                  packer_options options)
    : options_(std::move(options)), reals_(reals_per_site(options_)), lanes_(order->lane_width()) {
    const std::string who = "packer for halo '" + p.options().name + "': ";
    check_options(who, p, cut, *order);
    for (const plan_message& sent : p.messages()) {
        const std::string where = who + lattice::to_string(sent.where) + ": ";
        const block_map map = map_of(sent.where, cut.wraps(p.owner().rank(), sent.where), where);
        message& m = messages_.emplace_back();
        std::vector<std::int64_t> from;
        for (const std::int32_t site : sent.send_sites) from.push_back(order->position(site));
        if (map.empty()) {
            m.copy = site_copy(from, lanes_, position_list::counted(std::ssize(from)), 1);
            continue;
        }
        check_map(map, options_.components, where);
        m.positions.assign(from.begin(), from.end());
        m.map = flat_map(map);
    }
}

/// Err: input_error: options that make no message, or that the plan or the site order does not fit.
template <class T>
void packer<T>::check_options(const std::string& who, const plan& p, const lattice::decomposition& cut,
                              const lattice::site_order& order) const {
    if (options_.components < 1)
        throw input_error(who + std::to_string(options_.components) + " components per site: must be 1 or more");
    if (sizeof(T) != 4 && options_.format != message_format::as_stored)
        throw input_error(who + "half and bfloat16 messages are made of fields of float, this one holds double");
    if (options_.format != message_format::as_stored && reals_ > chunk_reals)
        throw input_error(who + std::to_string(reals_) + " reals per site: a change of format takes up to " +
                          std::to_string(chunk_reals));
    if (!(options_.scale > 0))
        throw input_error(who + "scale " + std::to_string(options_.scale) + ": must be positive");
    if (p.options().bytes_per_site != bytes_per_site(options_))
        throw input_error(who + "a site of the message has " + std::to_string(bytes_per_site(options_)) +
                          " bytes, the plan was made for " + std::to_string(p.options().bytes_per_site) +
                          "; say packer::bytes_per_site in plan_options");
    if (p.options().fields != 1)
        throw input_error(who + "it packs one field, the plan was made for " + std::to_string(p.options().fields));
    const int rank = p.owner().rank();
    if (order.extents() != cut.local_box(rank).extents)
        throw input_error(who + "the site order is of a box of " + lattice::to_string(order.extents()) +
                          ", the local box of rank " + std::to_string(rank) + " is " +
                          lattice::to_string(cut.local_box(rank).extents));
}

/// What is done to a site that leaves through this face: projection and phase; no rows if that is nothing.
/// Err: input_error: not as many reals as through the other faces.
template <class T>
block_map packer<T>::map_of(face f, bool wraps, const std::string& where) const {
    const block_map& projection = options_.projections[static_cast<std::size_t>(f.index())];
    const bool projects =
        reals_ != options_.components || std::any_of(options_.projections.begin(), options_.projections.end(),
                                                     [](const block_map& m) { return !m.empty(); });
    const int reals = projection.block_reals * static_cast<int>(projection.rows.size());
    if (projects && reals != reals_)
        throw input_error(where + "its projection has " + std::to_string(reals) + " reals, another face's " +
                          std::to_string(reals_));
    std::complex<double> phase = 1;
    // What leaves through the low edge becomes the ghosts beyond the upper edge.
    if (wraps) phase = options_.phases[static_cast<std::size_t>(f.mu)];
    if (f.end == lattice::side::high) phase = std::conj(phase);
    return with_phase(projection, phase, options_.components);
}

template <class T>
packer<T>::flat_map::flat_map(const block_map& map) : block_reals(map.block_reals) {
    row_begin.push_back(0);
    for (const auto& row : map.rows) {
        for (const block_map::term& t : row) {
            block.push_back(t.block);
            re.push_back(static_cast<T>(t.coefficient.real()));
            im.push_back(static_cast<T>(t.coefficient.imag()));
            real = real && t.coefficient.imag() == 0;
        }
        row_begin.push_back(static_cast<std::int32_t>(block.size()));
    }
}

template <class T>
void packer<T>::gather(const message& m, const T* values, std::int64_t first, std::int64_t last,
                       T* out) const noexcept {
    if (m.map.row_begin.empty()) {
        // site_copy counts from the start of a message
        std::byte* start = reinterpret_cast<std::byte*>(out) -
                           static_cast<std::ptrdiff_t>(first * reals_) * static_cast<std::ptrdiff_t>(sizeof(T));
        m.copy.copy(reinterpret_cast<const std::byte*>(values), start, {options_.components, sizeof(T)}, first, last);
        return;
    }
    const kernels::map_view<T> map{.rows = static_cast<std::int32_t>(m.map.row_begin.size()) - 1,
                                   .block_reals = m.map.block_reals,
                                   .components = options_.components,
                                   .lanes = lanes_,
                                   .row_begin = m.map.row_begin.data(),
                                   .block = m.map.block.data(),
                                   .re = m.map.re.data(),
                                   .im = m.map.im.data(),
                                   .real = m.map.real};
    kernels::map_sites<T>(map, m.positions.data(), values, first, last, out);
}

template <class T>
void packer<T>::pack(int index, const T* values, std::int64_t first, std::int64_t last,
                     std::byte* target) const noexcept {
    const message& m = messages_[static_cast<std::size_t>(index)];
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
            if (options_.format == message_format::half)
                kernels::to_half(chunk, scale, count, out);
            else
                kernels::to_bfloat16(chunk, scale, count, out);
            out += count;
        }
    }
}

template <class T>
void packer<T>::unpack(const std::byte* ghost, std::int64_t first, std::int64_t last, T* out) const noexcept {
    const auto count = static_cast<std::size_t>((last - first) * reals_);
    const std::byte* from = ghost + static_cast<std::size_t>(first) * bytes_per_site(options_);
    if (options_.format == message_format::as_stored) {
        std::copy_n(reinterpret_cast<const T*>(from), count, out);
        return;
    }
    if constexpr (sizeof(T) == 4) {
        const auto inverse = static_cast<float>(1 / options_.scale);
        const auto* bits = reinterpret_cast<const std::uint16_t*>(from);
        if (options_.format == message_format::half)
            kernels::from_half(bits, inverse, count, out);
        else
            kernels::from_bfloat16(bits, inverse, count, out);
    }
}

template class packer<float>;
template class packer<double>;

} // namespace halocline::halo
