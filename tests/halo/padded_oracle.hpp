// SPDX-License-Identifier: Apache-2.0
// What every site of a field with ghosts must hold after an exchange, including ghosts that nobody fills.
#pragma once

#include "oracle.hpp"
#include "phase_oracle.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline/halo/shell_plan.hpp>

#include <algorithm>

namespace halocline_test {

using halo::shell_options;
using halo::shell_plan;
using lattice::site_order;

inline coordinate wrapped(coordinate x, const coordinate& global) {
    for (int mu = 0; mu < dimensions; ++mu) x[mu] = (x[mu] % global[mu] + global[mu]) % global[mu];
    return x;
}

/// Number of dimensions along which x lies outside the local box; also 0 if an open edge leaves no ghost.
inline int ghost_distance(const lattice::decomposition& cut, int rank, const shell_options& o, const coordinate& x) {
    const lattice::box local = cut.local_box(rank);
    int outside = 0;
    for (int mu = 0; mu < dimensions; ++mu) {
        outside += x[mu] < local.origin[mu] || x[mu] >= local.origin[mu] + local.extents[mu];
        if (o.boundaries[mu] == lattice::boundary::open && (x[mu] < 0 || x[mu] >= cut.global()[mu])) return 0;
    }
    return outside > 1 && o.shape == halo::shell::faces ? 0 : outside;
}

/// Is the site x of the grown box a ghost that the plan must fill? Determined from the receiver's side, site by site.
inline bool is_filled(const lattice::decomposition& cut, int rank, const shell_options& o, const coordinate& x) {
    const coordinate source = wrapped(x, cut.global());
    return ghost_distance(cut, rank, o, x) > 0 && (!o.parity || lattice::parity(source) == *o.parity) &&
           (!o.select || o.select(source));
}

/// Calls visit(global coordinate, index) for every site of a box, x fastest.
template <class Visit>
void for_each_site(const lattice::box& outer, Visit&& visit) {
    for (std::int64_t i = 0; i < outer.volume(); ++i) visit(outer.site(i), i);
}
/// Calls visit(global coordinate, index in the field) for every site of a field with ghosts: if padded, the grown box;
/// if appended, owned sites, then ghosts sorted by the rule that appended_sites promises.
template <class Visit>
void for_each_site(const lattice::decomposition& cut, int rank, const shell_options& o, Visit&& visit) {
    const lattice::box local = cut.local_box(rank), outer = halo::grown(local, o.widths);
    if (o.layout == halo::ghost_layout::padded) return for_each_site(outer, visit);
    std::vector<std::array<int, 2 * dimensions + 1>> ghosts; // distance, direction, coordinate; t before x
    for_each_site(outer, [&](const coordinate& x, std::int64_t) {
        const int n = ghost_distance(cut, rank, o, x);
        if (n == 0) return;
        std::array<int, 2 * dimensions + 1> key{n};
        for (int mu = 0; mu < dimensions; ++mu) {
            const int low = local.origin[mu], high = low + local.extents[mu];
            key[1 + 3 - mu] = x[mu] < low ? -1 : x[mu] >= high;
            key[5 + 3 - mu] = x[mu];
        }
        ghosts.push_back(key);
    });
    std::sort(ghosts.begin(), ghosts.end());
    for_each_site(local, visit);
    std::int64_t next = local.volume();
    for (const auto& g : ghosts) visit(coordinate{g[8], g[7], g[6], g[5]}, next++);
}

/// Below this, whole numbers travel without being rounded, multiplied by up to three phases on their way; 0: any bits.
inline std::uint64_t largest_number(const shell_options& o) {
    const bool twisted = has_phase(twists_of(o));
    switch (o.format) {
    case halo::message_format::as_stored: return twisted ? 1 << 20 : 0;
    case halo::message_format::half: return twisted ? 1 << 8 : 1 << 11;
    case halo::message_format::bfloat16: return twisted ? 1 << 5 : 1 << 8;
    }
    return 0;
}

/// Component c of phase * the site with this index in the global lattice: the oracle's bits, or a whole number up to
/// `largest`. Of a pair, the first is odd and the second even, so that no phase makes a 0 of them, which has two signs.
template <class T>
T value_of(std::int64_t index, std::complex<double> phase, std::uint64_t largest, int c, std::uint64_t epoch) {
    if constexpr (std::is_floating_point_v<T>)
        if (largest > 0)
            return times(phase, c, [&](int k) {
                const std::uint64_t pair = oracle_hash(index, k, epoch) % (largest / 2);
                return static_cast<T>(2 * pair + (k % 2 == 0 ? 1 : 2));
            });
    T value;
    const std::uint64_t bits = oracle_hash(index, c, epoch);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
/// What component c of the site x of the grown box must hold.
template <class T>
T value_at(const coordinate& x, const lattice::decomposition& cut, const shell_options& o, int c, std::uint64_t epoch) {
    return value_of<T>(lattice::lexicographic_index(wrapped(x, cut.global()), cut.global()),
                       phase_at(x, cut.global(), twists_of(o)), largest_number(o), c, epoch);
}

/// Owned sites hold the oracle's values, all others bits that no oracle value has.
template <class T>
void fill_own(lattice::field<T>& x, const lattice::decomposition& cut, int rank, const shell_options& o,
              std::uint64_t epoch) {
    const lattice::box local = cut.local_box(rank);
    for (T& v : x.values()) std::memset(&v, 0xA5, sizeof v);
    for_each_site(cut, rank, o, [&](const coordinate& site, std::int64_t i) {
        if (!local.contains(site)) return;
        for (int c = 0; c < x.components(); ++c) x.at(i, c) = value_at<T>(site, cut, o, c, epoch);
    });
}

/// Number of words of the storage that are not what they should be, including padding lanes.
template <class T>
std::int64_t wrong_words(lattice::field<T>& x, const lattice::decomposition& cut, int rank, const shell_options& o,
                         std::uint64_t epoch) {
    const lattice::box local = cut.local_box(rank);
    std::int64_t wrong = 0;
    T poison;
    std::memset(&poison, 0xA5, sizeof poison);
    for_each_site(cut, rank, o, [&](const coordinate& site, std::int64_t i) {
        const bool known = local.contains(site) || is_filled(cut, rank, o, site);
        for (int c = 0; c < x.components(); ++c) {
            const T value = known ? value_at<T>(site, cut, o, c, epoch) : poison;
            wrong += std::memcmp(&x.at(i, c), &value, sizeof value) != 0;
            x.at(i, c) = poison; // what is left must be padding
        }
    });
    for (const T& v : x.values()) wrong += std::memcmp(&v, &poison, sizeof v) != 0;
    return wrong;
}

template <class T>
void fill_padded(lattice::field<T>& x, const lattice::decomposition& cut, int rank, const halo::ghost_widths& widths,
                 std::uint64_t epoch) {
    fill_own(x, cut, rank, {.widths = widths}, epoch);
}

/// What a plan of fields with ghosts is made of; random_case.hpp draws such.
struct padded_case {
    lattice::decomposition cut;
    shell_options options;
    int order = 0; ///< 0: lexicographic, 1: even/odd, 2: blocked
    int lane_width = 1;
    std::vector<int> components; ///< of each field
    int component_bytes = 8;
    int bindings = 1;
    bool apart = false; ///< each binding has sources and destinations of its own
    int in_slab = 0;    ///< 0: no field, 1: all, 2: on odd ranks
    std::string text;
};

inline std::shared_ptr<const site_order> order_of(const lattice::box& sites, int order, int lane_width) {
    if (order == 0) return site_order::lexicographic(sites.extents);
    if (order == 1) return site_order::even_odd(sites);
    lattice::box at_zero = sites; // for blocks of one site any box will do
    at_zero.origin = {};
    return site_order::blocked(at_zero, sites.extents, {1, 1, 1, 1}, lane_width);
}
/// The site order of a case's fields on one rank.
inline std::shared_ptr<const site_order> order_of(const padded_case& c, int rank) {
    const lattice::box local = c.cut.local_box(rank);
    if (c.options.layout == halo::ghost_layout::padded)
        return order_of(halo::grown(local, c.options.widths), c.order, c.lane_width);
    return halo::appended_sites(c.cut, rank, c.options).order(*order_of(local, c.order, c.lane_width));
}

/// A small whole number for component c of the field site x of a rank, so that no sum is rounded.
template <class T>
T whole_value(const coordinate& x, int rank, int c, std::uint64_t epoch) {
    std::uint64_t hash = epoch;
    for (const int n : x) hash = mixed(hash + static_cast<std::uint64_t>(n + 64));
    return static_cast<T>(mixed(hash + static_cast<std::uint64_t>(64 * rank + c)) % 64);
}

/// <H x, y> = <x, H^T y>, exactly: the values are small whole numbers, so no sum is rounded. Ghosts keep their values.
template <class T>
void expect_reverse_is_the_adjoint(const comm::job& j, const padded_case& c) {
    const int rank = j.rank(), n = c.components.front();
    const lattice::box local = c.cut.local_box(rank);
    const auto order = order_of(c, rank);
    std::pmr::memory_resource* const memory = c.in_slab == 1 ? &j.memory() : std::pmr::get_default_resource();
    lattice::field<T> x(order, n), y(order, n), hx(order, n, memory), hty(order, n, memory);
    for_each_site(c.cut, rank, c.options, [&](const coordinate& at, std::int64_t i) {
        // Ghosts that H does not fill are not part of its image.
        const bool inside = local.contains(at), image = inside || is_filled(c.cut, rank, c.options, at);
        for (int k = 0; k < n; ++k) {
            x.at(i, k) = inside ? whole_value<T>(at, rank, k, 1) - 31 : 0;
            y.at(i, k) = image ? whole_value<T>(at, rank, k, 2) - 31 : 0;
        }
    });
    hx.copy_from(x);
    hty.copy_from(y);
    shell_plan plan(j, c.cut, c.options, {halo::bind(hx), halo::bind(hty)});
    plan.start(0);
    ASSERT_EQ(plan.finish(), comm::status::ok) << c.text;
    plan.start_reverse(1);
    ASSERT_EQ(plan.finish(), comm::status::ok) << c.text;

    std::array<double, 2> products{};
    std::int64_t changed = 0;
    for_each_site(c.cut, rank, c.options, [&](const coordinate& at, std::int64_t i) {
        const bool inside = local.contains(at);
        for (int k = 0; k < n; ++k) {
            products[0] += static_cast<double>(hx.at(i, k)) * static_cast<double>(y.at(i, k));
            if (inside) products[1] += static_cast<double>(x.at(i, k)) * static_cast<double>(hty.at(i, k));
            changed += !inside && hty.at(i, k) != y.at(i, k);
        }
    });
    std::array<double, 2> sums{};
    for (const std::string& of_rank : j.gather({reinterpret_cast<const char*>(products.data()), sizeof products})) {
        std::memcpy(products.data(), of_rank.data(), sizeof products);
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += products[i];
    }
    ASSERT_EQ(sums[0], sums[1]) << c.text;
    ASSERT_EQ(changed, 0) << c.text;
}

} // namespace halocline_test
