// SPDX-License-Identifier: Apache-2.0
// What every site of a padded field must hold after an exchange, ghosts that nobody fills included.
#pragma once

#include "oracle.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline/halo/padded_plan.hpp>

namespace halocline_test {

using halo::padded_options;
using halo::padded_plan;
using lattice::site_order;

inline coordinate wrapped(coordinate x, const coordinate& global) {
    for (int mu = 0; mu < dimensions; ++mu) x[mu] = (x[mu] % global[mu] + global[mu]) % global[mu];
    return x;
}

/// Is the site x of the grown box a ghost that the plan must fill? Said from the receiver's side, site by site.
inline bool is_filled(const lattice::decomposition& cut, int rank, const padded_options& o, const coordinate& x) {
    const lattice::box local = cut.local_box(rank);
    int outside = 0;
    for (int mu = 0; mu < dimensions; ++mu) {
        outside += x[mu] < local.origin[mu] || x[mu] >= local.origin[mu] + local.extents[mu];
        if (o.boundaries[mu] == lattice::boundary::open && (x[mu] < 0 || x[mu] >= cut.global()[mu])) return false;
    }
    if (outside == 0 || (outside > 1 && o.shape == halo::shell::faces)) return false;
    const coordinate source = wrapped(x, cut.global());
    return (!o.parity || lattice::parity(source) == *o.parity) && (!o.select || o.select(source));
}

/// Calls visit(global coordinate, index) for every site of the grown box.
template <class Visit>
void for_each_site(const lattice::box& outer, Visit&& visit) {
    for (std::int64_t i = 0; i < outer.volume(); ++i) {
        coordinate x = lattice::lexicographic_coordinate(i, outer.extents);
        for (int mu = 0; mu < dimensions; ++mu) x[mu] += outer.origin[mu];
        visit(x, i);
    }
}

/// Own sites hold the oracle's values, all others bits that no oracle value has.
template <class T>
void fill_padded(lattice::field<T>& x, const lattice::decomposition& cut, int rank, const halo::ghost_widths& widths,
                 std::uint64_t epoch) {
    const lattice::box local = cut.local_box(rank);
    for (T& v : x.values()) std::memset(&v, 0xA5, sizeof v);
    for_each_site(halo::grown(local, widths), [&](const coordinate& site, std::int64_t i) {
        if (!local.contains(site)) return;
        for (int c = 0; c < x.components(); ++c)
            std::memcpy(&x.at(i, c), oracle_value<T>(site, cut.global(), c, epoch).data(), sizeof(T));
    });
}

/// Words of the storage that are not what they should be, padding lanes included.
template <class T>
std::int64_t wrong_words(lattice::field<T>& x, const lattice::decomposition& cut, int rank, const padded_options& o,
                         std::uint64_t epoch) {
    const lattice::box local = cut.local_box(rank);
    std::int64_t wrong = 0;
    T poison;
    std::memset(&poison, 0xA5, sizeof poison);
    for_each_site(halo::grown(local, o.widths), [&](const coordinate& site, std::int64_t i) {
        const bool known = local.contains(site) || is_filled(cut, rank, o, site);
        for (int c = 0; c < x.components(); ++c) {
            const auto value = known ? oracle_value<T>(wrapped(site, cut.global()), cut.global(), c, epoch)
                                     : std::bit_cast<std::array<std::byte, sizeof(T)>>(poison);
            wrong += std::memcmp(&x.at(i, c), value.data(), sizeof(T)) != 0;
            x.at(i, c) = poison; // what is left must be padding
        }
    });
    for (const T& v : x.values()) wrong += std::memcmp(&v, &poison, sizeof v) != 0;
    return wrong;
}

/// One random padded plan; the same on every rank that draws it from the same generator state.
struct padded_case {
    lattice::decomposition cut;
    padded_options options;
    int order = 0; ///< 0 lexicographic, 1 even/odd, 2 blocked
    int lane_width = 1;
    std::vector<int> components; ///< of each field
    int bindings = 1;
    int in_slab = 0; ///< 0 no field, 1 all, 2 on odd ranks
    std::string text;
};

inline padded_case random_padded_case(std::mt19937& g, int ranks, bool may_be_direct = true) {
    coordinate grid{1, 1, 1, 1};
    for (int rest = ranks, p = 2; rest > 1;) {
        if (rest % p != 0) {
            ++p;
            continue;
        }
        grid[drawn(g, 0, 3)] *= p;
        rest /= p;
    }
    padded_options o;
    coordinate global{};
    std::array<std::vector<int>, dimensions> cuts;
    const int used = drawn(g, 1, 4); // dimensions with a width
    for (int mu = 0; mu < dimensions; ++mu) {
        cuts[mu].push_back(0);
        int least = 1000;
        for (int i = 0; i < grid[mu]; ++i) {
            const int extent = drawn(g, 1, 3);
            least = std::min(least, extent);
            cuts[mu].push_back(cuts[mu].back() + extent);
        }
        global[mu] = cuts[mu].back();
        o.widths.low[mu] = mu < used ? drawn(g, 0, std::min(2, least)) : 0;
        o.widths.high[mu] = mu < used ? drawn(g, 0, std::min(2, least)) : 0;
        o.boundaries[mu] = static_cast<lattice::boundary>(drawn(g, 0, 2));
    }
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
    c.lane_width = std::array{1, 4, 8, 16}[static_cast<std::size_t>(drawn(g, 0, 3))];
    for (int f = drawn(g, 1, 3); f > 0; --f) c.components.push_back(drawn(g, 1, 7));
    c.bindings = drawn(g, 1, 2);
    c.in_slab = drawn(g, 0, 2);
    const int way = drawn(g, 0, 2); // direct can only be asked for where it can be had
    c.options.way = way == 1                                      ? halo::path::packed
                    : way == 2 && c.in_slab == 1 && may_be_direct ? halo::path::direct
                                                                  : halo::path::automatic;
    c.text = "lattice " + lattice::to_string(global) + " grid " + lattice::to_string(grid) + " low " +
             lattice::to_string(o.widths.low) + " high " + lattice::to_string(o.widths.high) +
             (o.shape == halo::shell::box ? " box, corners " + std::string(to_string(o.corners)) : " faces") +
             " order " + std::to_string(c.order) + " W " + std::to_string(c.lane_width) + " fields " +
             std::to_string(c.components.size()) + " in slab " + std::to_string(c.in_slab);
    return c;
}

inline std::shared_ptr<const site_order> padded_order(const lattice::box& outer, int order, int lane_width) {
    if (order == 0) return site_order::lexicographic(outer.extents);
    if (order == 1) return site_order::even_odd(outer);
    lattice::box at_zero = outer; // blocks of one site: any box will do
    at_zero.origin = {};
    return site_order::blocked(at_zero, outer.extents, {1, 1, 1, 1}, lane_width);
}

template <class T>
void exchange_padded(const comm::job& j, const padded_case& c, int exchanges) {
    const int rank = j.rank();
    const auto order = padded_order(halo::grown(c.cut.local_box(rank), c.options.widths), c.order, c.lane_width);
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
    padded_plan plan(j, c.cut, c.options, bindings);
    for (std::uint64_t epoch = 1; epoch <= static_cast<std::uint64_t>(exchanges); ++epoch) {
        const int which = static_cast<int>((epoch + static_cast<std::uint64_t>(rank)) % fields.size()); // ranks differ
        auto& set = fields[static_cast<std::size_t>(which)];
        for (std::size_t f = 0; f < set.size(); ++f) fill_padded(set[f], c.cut, rank, c.options.widths, 10 * epoch + f);

        plan.start(which);
        const comm::status status = plan.finish();

        ASSERT_EQ(status, comm::status::ok) << c.text;
        ASSERT_EQ(plan.epoch(), epoch);
        for (std::size_t f = 0; f < set.size(); ++f)
            ASSERT_EQ(wrong_words(set[f], c.cut, rank, c.options, 10 * epoch + f), 0)
                << "rank " << rank << ", field " << f << ", epoch " << epoch << ", " << c.text;
    }
}

/// `count` random padded plans on the ranks of j, drawn from `seed`.
inline void exchange_random_padded_cases(const comm::job& j, unsigned seed, int count, int exchanges) {
    std::mt19937 generator(seed);
    const bool shared = j.transport() == "shm" || j.transport() == "self";
    for (int i = 0; i < count; ++i) {
        const padded_case c = random_padded_case(generator, j.ranks(), shared);
        if (i % 2 == 0)
            exchange_padded<double>(j, c, exchanges);
        else
            exchange_padded<float>(j, c, exchanges);
        if (testing::Test::HasFatalFailure()) return j.abort("test failed");
    }
}

} // namespace halocline_test
