// SPDX-License-Identifier: Apache-2.0
// What every site of a field with ghosts must hold after an exchange, including ghosts that nobody fills.
#pragma once

#include "oracle.hpp"
#include "phase_oracle.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline/halo/shell_plan.hpp>

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
    const bool twisted = has_phase(o.phases);
    switch (o.format) {
    case halo::message_format::as_stored: return twisted ? 1 << 20 : 0;
    case halo::message_format::half: return twisted ? 1 << 8 : 1 << 11;
    case halo::message_format::bfloat16: return twisted ? 1 << 5 : 1 << 8;
    }
    return 0;
}

/// The value of component c at the site x of the grown box: the oracle's bits, or a number that nothing rounds where
/// boundaries are twisted or messages have another format.
template <class T>
T value_at(const coordinate& x, const lattice::decomposition& cut, const shell_options& o, int c, std::uint64_t epoch) {
    const coordinate source = wrapped(x, cut.global());
    const auto value = [&](int k) {
        T bits;
        std::memcpy(&bits, oracle_value<T>(source, cut.global(), k, epoch).data(), sizeof bits);
        return bits;
    };
    if constexpr (std::is_floating_point_v<T>)
        if (const std::uint64_t largest = largest_number(o); largest > 0) {
            const auto number = [&](int k) {
                std::uint64_t hash = 0;
                std::memcpy(&hash, oracle_value<std::uint64_t>(source, cut.global(), k, epoch).data(), sizeof hash);
                return static_cast<T>(1 + hash % largest);
            };
            return times(phase_at(x, cut.global(), o.phases), c, number);
        }
    return value(c);
}

/// Owned sites hold the oracle's values, all others bits that no oracle value has.
template <class T>
void fill_own(lattice::field<T>& x, const lattice::decomposition& cut, int rank, const shell_options& o,
              std::uint64_t epoch) {
    const lattice::box local = cut.local_box(rank);
    for (T& v : x.values()) std::memset(&v, 0xA5, sizeof v);
    for_each_site(cut, rank, o, [&](const coordinate& site, std::int64_t i) {
        if (!local.contains(site)) return;
        for (int c = 0; c < x.components(); ++c) {
            const T value = value_at<T>(site, cut, o, c, epoch);
            std::memcpy(&x.at(i, c), &value, sizeof value);
        }
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
            const bool equal = largest_number(o) > 0 && x.at(i, c) == value; // the sign of 0 may differ
            wrong += !equal && std::memcmp(&x.at(i, c), &value, sizeof(T)) != 0;
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

/// One random plan of fields with ghosts, the same on every rank that draws it from the same generator state: padded
/// and appended, faces or all ghosts, corners by each route, 1 to 4 used dimensions, widths 0 to 2 per side, 1 to 3
/// fields in 1 or 2 bindings, in the slab or not; a quarter of them in reverse, too.
struct padded_case {
    lattice::decomposition cut;
    shell_options options;
    int order = 0; ///< 0: lexicographic, 1: even/odd, 2: blocked
    int lane_width = 1;
    std::vector<int> components; ///< of each field
    int bindings = 1;
    int in_slab = 0; ///< 0: no field, 1: all, 2: on odd ranks
    std::string text;
};

/// The plan with this number among those drawn from g.
inline padded_case random_padded_case(std::mt19937& g, int ranks, bool may_be_direct = true, int number = 0) {
    const bool large = is_large(number);
    const coordinate grid = random_rank_grid(g, ranks);
    shell_options o;
    coordinate global{};
    std::array<std::vector<int>, dimensions> cuts;
    const int used = drawn(g, large ? 3 : 1, 4); // dimensions with a width
    const auto is_long = random_long_dimensions(g, large);
    for (int mu = 0; mu < dimensions; ++mu) {
        cuts[mu].push_back(0);
        int least = 1000;
        for (int i = 0; i < grid[mu]; ++i) {
            const int extent = is_long[mu] ? drawn(g, 4, 16) : drawn(g, 1, 3);
            least = std::min(least, extent);
            cuts[mu].push_back(cuts[mu].back() + extent);
        }
        global[mu] = cuts[mu].back();
        o.widths.low[mu] = mu < used ? drawn(g, 0, std::min(2, least)) : 0;
        o.widths.high[mu] = mu < used ? drawn(g, 0, std::min(2, least)) : 0;
        o.boundaries[mu] = static_cast<lattice::boundary>(drawn(g, 0, 2));
    }
    o.layout = static_cast<halo::ghost_layout>(drawn(g, 0, 1));
    o.shape = drawn(g, 0, 2) == 0 ? halo::shell::faces : halo::shell::box;
    o.corners = static_cast<halo::corner_route>(drawn(g, 0, 2));
    switch (drawn(g, 0, 4)) {
    case 0: o.parity = 0; break;
    case 1: o.parity = 1; break;
    case 2: o.select = [](const coordinate& x) { return (x[0] / 2 + x[1] / 2 + x[2] / 2 + x[3] / 2) % 2 == 1; }; break;
    default: break;
    }
    padded_case c{.cut = lattice::decomposition(global, cuts), .options = o, .components = {}, .text = {}};
    c.order = drawn(g, 0, 2);
    c.lane_width = std::array{1, 4, 8, 16}[drawn(g, 0, 3)];
    for (int f = drawn(g, 1, 3); f > 0; --f)
        c.components.push_back(large ? random_components(g, local_volumes(c.cut)) : drawn(g, 1, 7));
    c.bindings = drawn(g, 1, 2);
    c.options.reverse = drawn(g, 0, 3) == 0;
    c.in_slab = drawn(g, 0, 2);
    const int way = drawn(g, 0, 4); // direct can only be requested where it is possible
    c.options.path = way == 1                                      ? halo::path::packed
                     : way == 2 && c.in_slab == 1 && may_be_direct ? halo::path::direct
                     : way == 3 && c.in_slab == 1 && may_be_direct ? halo::path::streamed
                     : way == 4 && c.in_slab == 1 && may_be_direct ? halo::path::joint
                                                                   : halo::path::automatic;
    if (large && may_be_direct) {
        c.in_slab = 1;
        c.options.path = path_in_turn(
            number, std::array{halo::path::packed, halo::path::direct, halo::path::streamed, halo::path::joint});
        c.options.reverse = drawn(g, 0, 1) == 0;
    }
    if (number % 3 == 1) { // by a generator of its own, so that the other cases stay what they are
        std::mt19937 drawn_apart(static_cast<unsigned>(number) + 7919U * static_cast<unsigned>(ranks));
        const bool pairs = std::ranges::none_of(c.components, [](int n) { return n % 2 == 1; });
        c.options.phases = random_phases(drawn_apart, pairs);
    }
    if (number % 6 == 5 && !large) { // of fields of float
        std::mt19937 drawn_apart(static_cast<unsigned>(number) + 104729U * static_cast<unsigned>(ranks));
        const bool pairs = std::ranges::none_of(c.components, [](int n) { return n % 2 == 1; });
        if (drawn(drawn_apart, 0, 1) == 0) c.options.phases = random_phases(drawn_apart, pairs);
        c.options.format = static_cast<halo::message_format>(drawn(drawn_apart, 1, 2));
        c.options.scale = drawn(drawn_apart, 0, 1) == 0 ? 1 : 0.125;
        if (c.options.path != halo::path::packed) c.options.path = halo::path::automatic;
    }
    c.text = std::string(to_string(o.layout)) + ", lattice " + lattice::to_string(global) + " grid " +
             lattice::to_string(grid) + " low " + lattice::to_string(o.widths.low) + " high " +
             lattice::to_string(o.widths.high) +
             (o.shape == halo::shell::box ? " box, corners " + std::string(to_string(o.corners)) : " faces") +
             " order " + std::to_string(c.order) + " W " + std::to_string(c.lane_width) + " fields " +
             std::to_string(c.components.size()) + " of " + std::to_string(c.components.front()) + " in slab " +
             std::to_string(c.in_slab) + " path " + std::string(to_string(c.options.path)) + " as " +
             std::string(to_string(c.options.format));
    for (const auto& p : c.options.phases)
        c.text +=
            " " + std::to_string(static_cast<int>(p.real())) + "+" + std::to_string(static_cast<int>(p.imag())) + "i";
    return c;
}

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

/// What a reverse exchange must leave in the owned sites of a rank, [owned site][component]: each ghost of any rank,
/// times its conjugate phase, is added to the site that it is a copy of.
template <class T>
std::vector<T> expected_sums(const lattice::decomposition& cut, int rank, const shell_options& o, int components,
                             std::uint64_t epoch) {
    const lattice::box local = cut.local_box(rank);
    std::vector<T> sums(static_cast<std::size_t>(local.volume() * components));
    for (int r = 0; r < cut.ranks(); ++r)
        for_each_site(halo::grown(cut.local_box(r), o.widths), [&](const coordinate& x, std::int64_t) {
            const coordinate source = wrapped(x, cut.global());
            const bool own = r == rank && local.contains(x);
            if (!local.contains(source) || (!own && !is_filled(cut, r, o, x))) return;
            coordinate at = source;
            for (int mu = 0; mu < dimensions; ++mu) at[mu] -= local.origin[mu];
            const std::int64_t first = lattice::lexicographic_index(at, local.extents) * components;
            for (int c = 0; c < components; ++c)
                sums[first + c] += times(std::conj(phase_at(x, cut.global(), o.phases)), c,
                                         [&](int k) { return whole_value<T>(x, r, k, epoch); });
        });
    return sums;
}

/// Number of words that differ from what a reverse exchange of these fields must leave; ghosts keep their values.
template <class T>
std::int64_t reverse_and_count_wrong(shell_plan& plan, std::vector<lattice::field<T>>& fields, int which,
                                     const padded_case& c, std::uint64_t epoch) {
    const int rank = plan.job().rank();
    const lattice::box local = c.cut.local_box(rank);
    for (lattice::field<T>& x : fields)
        for_each_site(c.cut, rank, c.options, [&](const coordinate& at, std::int64_t i) {
            for (int k = 0; k < x.components(); ++k) x.at(i, k) = whole_value<T>(at, rank, k, epoch);
        });
    plan.start_reverse(which);
    if (plan.finish() != comm::status::ok) return -1;
    std::int64_t wrong = 0;
    for (lattice::field<T>& x : fields) {
        const std::vector<T> sums = expected_sums<T>(c.cut, rank, c.options, x.components(), epoch);
        for_each_site(c.cut, rank, c.options, [&](const coordinate& at, std::int64_t i) {
            coordinate inside = at;
            for (int mu = 0; mu < dimensions; ++mu) inside[mu] -= local.origin[mu];
            const auto first =
                local.contains(at)
                    ? static_cast<std::size_t>(lattice::lexicographic_index(inside, local.extents) * x.components())
                    : 0;
            for (int k = 0; k < x.components(); ++k)
                wrong += x.at(i, k) != (local.contains(at) ? sums[first + static_cast<std::size_t>(k)]
                                                           : whole_value<T>(at, rank, k, epoch));
        });
    }
    return wrong;
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

template <class T>
void exchange_padded(const comm::job& j, const padded_case& c, int exchanges) {
    const int rank = j.rank();
    const auto order = order_of(c, rank);
    const bool in_slab = c.in_slab == 1 || (c.in_slab == 2 && rank % 2 == 1);
    std::pmr::memory_resource* memory = in_slab ? &j.memory() : std::pmr::get_default_resource();
    std::vector<std::vector<lattice::field<T>>> fields(static_cast<std::size_t>(c.bindings));
    std::vector<halo::binding> bindings;
    for (auto& set : fields) {
        halo::binding b;
        for (const int n : c.components) {
            set.emplace_back(order, n, memory);
            b.source.push_back(halo::view(set.back()));
        }
        b.destination = b.source;
        bindings.push_back(b);
    }
    shell_plan plan(j, c.cut, c.options, bindings);
    for (std::uint64_t epoch = 1; epoch <= static_cast<std::uint64_t>(exchanges); ++epoch) {
        const int which = static_cast<int>((epoch + static_cast<std::uint64_t>(rank)) % fields.size()); // ranks differ
        auto& set = fields[which];
        for (std::size_t f = 0; f < set.size(); ++f) fill_own(set[f], c.cut, rank, c.options, 10 * epoch + f);

        plan.start(which);
        const comm::status status = plan.finish();

        ASSERT_EQ(status, comm::status::ok) << c.text;
        ASSERT_EQ(plan.epoch(), epoch);
        for (std::size_t f = 0; f < set.size(); ++f)
            ASSERT_EQ(wrong_words(set[f], c.cut, rank, c.options, 10 * epoch + f), 0)
                << "rank " << rank << ", field " << f << ", epoch " << epoch << ", " << c.text;
        if (c.options.reverse) {
            ASSERT_EQ(reverse_and_count_wrong(plan, set, which, c, epoch), 0)
                << "reverse, rank " << rank << ", epoch " << epoch << ", " << c.text;
        }
    }
    std::uint64_t messages = 0, bytes = 0;
    for (const comm::transport_counts& traffic : plan.statistics().by_transport) {
        messages += traffic.messages;
        bytes += traffic.bytes;
    }
    if (messages > 0) large_messages_seen().count(c.options.path, bytes / messages);
    if (c.options.reverse) expect_reverse_is_the_adjoint<T>(j, c);
}

/// `count` random padded plans on the ranks of j, drawn from `seed`.
inline void exchange_random_padded_cases(const comm::job& j, unsigned seed, int count, int exchanges) {
    std::mt19937 generator(seed);
    const bool shared = j.transport() == "shm" || j.transport() == "self";
    for (int i = 0; i < count; ++i) {
        const padded_case c = random_padded_case(generator, j.ranks(), shared, i);
        if (i % 2 == 0)
            exchange_padded<double>(j, c, exchanges);
        else
            exchange_padded<float>(j, c, exchanges);
        if (testing::Test::HasFatalFailure()) return j.abort("test failed");
    }
}

} // namespace halocline_test
