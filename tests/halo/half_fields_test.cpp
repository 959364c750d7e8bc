// SPDX-License-Identifier: Apache-2.0
// Fields that hold the sites of one parity alone, as even/odd solvers have them: plans of that parity exchange them as
// they do whole fields.
#include "oracle.hpp"
#include "small_job.hpp"

#include <halocline/halo/packer.hpp>
#include <halocline/halo/shell_plan.hpp>
#include <halocline/halo/stencil.hpp>
#include <halocline/halo/unpacker.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace halocline_test;
using comm::status;
using lattice::decomposition;
using lattice::field;
using lattice::site_order;

namespace {

constexpr int components = 3;
const std::vector<coordinate> grids{{1, 1, 1, 2}, {2, 1, 1, 2}, {1, 3, 1, 1}};

/// Boxes of odd extents in x and t, which begin at sites of either parity.
decomposition cut_over(const coordinate& grid) { return decomposition::even({6, 9, 2, 10}, grid); }
int ranks_of(const coordinate& grid) { return static_cast<int>(lattice::volume(grid)); }

template <class T>
field<T> filled(const std::shared_ptr<const site_order>& order, const decomposition& cut, const comm::job& j,
                int number) {
    field<T> x(order, components, &j.memory()); // where receivers may copy them
    const lattice::box local = cut.local_box(j.rank());
    for (std::int64_t s = 0; s < local.volume(); ++s)
        for (int c = 0; c < components && order->position(s) >= 0; ++c)
            x.at(s, c) =
                static_cast<T>(lattice::lexicographic_index(local.site(s), cut.global()) * 8 + 4 * number + c + 1);
    return x;
}

template <class T>
std::vector<T> ghosts_of(const halo::plan& p) {
    std::vector<T> all;
    for (const halo::plan_message& m : p.messages())
        for (int f = 0; f < p.options().fields; ++f)
            all.insert(all.end(), p.ghosts<T>(m.where, f).begin(), p.ghosts<T>(m.where, f).end());
    return all;
}

TEST(HalfFields, HaveTheGhostsOfWholeOnes) {
    for (const coordinate& grid : grids)
        for (const halo::path path : {halo::path::direct, halo::path::streamed, halo::path::joint})
            for (const int parity : {0, 1}) {
                const decomposition cut = cut_over(grid);
                run(ranks_of(grid), [&](const comm::job& j) {
                    const auto whole = site_order::lexicographic(cut.local_box(j.rank()).extents);
                    const auto half = site_order::half(cut.local_box(j.rank()), parity);
                    halo::plan_options o{.bytes_per_site = components * sizeof(double),
                                         .self_exchange = true,
                                         .parity = parity,
                                         .fields = 2,
                                         .path = path};
                    halo::plan of_whole(j, cut, o);
                    o.order = half;
                    halo::plan of_half(j, cut, o);
                    for (int k = 0; k < 3; ++k) {
                        const std::array xs{filled<double>(whole, cut, j, k), filled<double>(whole, cut, j, 1)};
                        const std::array ys{filled<double>(half, cut, j, k), filled<double>(half, cut, j, 1)};
                        of_whole.start(std::array{&xs[0], &xs[1]});
                        of_half.start(std::array{&ys[0], &ys[1]});
                        of_whole.finish_or_throw();
                        of_half.finish_or_throw();
                        EXPECT_FALSE(ghosts_of<double>(of_half).empty());
                        EXPECT_EQ(ghosts_of<double>(of_half), ghosts_of<double>(of_whole));
                    }
                    j.barrier();
                });
            }
}

/// D_eo in short: what packers and unpackers do with half fields.
TEST(HalfFields, ArePackedAndAddedTo) {
    const decomposition cut = decomposition::even({4, 4, 2, 8}, {1, 1, 1, 2});
    for (const int parity : {0, 1})
        run(2, [&](const comm::job& j) {
            const lattice::box local = cut.local_box(j.rank());
            const auto whole = site_order::lexicographic(local.extents), from = site_order::half(local, parity),
                       to = site_order::half(local, 1 - parity);
            const halo::packer_options packing{.components = components,
                                               .format = halo::message_format::bfloat16,
                                               .projections = {},
                                               .phases = {1, 1, 1, -1}};
            const halo::plan_options o{.bytes_per_site = halo::packer<float>::bytes_per_site(packing),
                                       .self_exchange = true,
                                       .parity = parity};
            halo::plan plan(j, cut, o);
            const halo::packer<float> pack_whole(plan, packing, whole), pack_half(plan, packing, from);
            const halo::unpacker<float> add_whole(plan, halo::expansion_of(packing), whole),
                add_half(plan, halo::expansion_of(packing), to);
            field<float> sum_of_whole(whole, components), sum_of_half(to, components);
            plan.start(pack_whole.of(filled<float>(whole, cut, j, 0)));
            plan.finish_or_throw();
            add_whole.add(plan, sum_of_whole);
            plan.start(pack_half.of(filled<float>(from, cut, j, 0)));
            plan.finish_or_throw();
            add_half.add(plan, sum_of_half);

            double sum = 0;
            for (std::int64_t s = 0; s < local.volume(); ++s)
                for (int c = 0; c < components; ++c) {
                    const float wanted = sum_of_whole.at(s, c);
                    if (to->position(s) >= 0)
                        EXPECT_EQ(sum_of_half.at(s, c), wanted);
                    else
                        EXPECT_EQ(wanted, 0);
                    sum += std::abs(wanted);
                }
            EXPECT_GT(sum, 0);
            j.barrier();
        });
}

TEST(HalfFields, MayBeFollowedByTheirGhosts) {
    const decomposition cut = cut_over({1, 1, 1, 2});
    for (const int parity : {0, 1})
        run(2, [&](const comm::job& j) {
            const lattice::box local = cut.local_box(j.rank());
            const halo::shell_options o{.layout = halo::ghost_layout::appended, .parity = parity};
            const halo::appended_sites sites(cut, j.rank(), o);
            const auto order = sites.order(*site_order::half(local, parity));
            field<double> x(order, 1);
            for (std::int64_t s = 0; s < local.volume(); ++s)
                if (order->position(s) >= 0)
                    x.at(s, 0) = 1 + static_cast<double>(lattice::lexicographic_index(local.site(s), cut.global()));
            halo::shell_plan p(j, cut, o, {halo::bind(x)});
            p.start();
            p.finish_or_throw();

            std::int64_t found = 0;
            for (const halo::appended_sites::region& r : sites.ghosts())
                for (std::int64_t i = 0; i < r.sites.volume(); ++i) {
                    coordinate site = r.sites.site(i);
                    for (int mu = 0; mu < dimensions; ++mu) site[mu] = (site[mu] + cut.global()[mu]) % cut.global()[mu];
                    const bool exchanged = lattice::parity(site) == parity;
                    const double wanted =
                        exchanged ? 1 + static_cast<double>(lattice::lexicographic_index(site, cut.global())) : 0;
                    EXPECT_EQ(x.at(r.first + i, 0), wanted);
                    found += exchanged;
                }
            EXPECT_GT(found, 0);
            j.barrier();
        });
}

TEST(HalfFields, AreRefusedWhereASiteWithoutAValueIsNeeded) {
    const decomposition cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const comm::job j = comm::job::single(small_job());
    const auto even = site_order::half(cut.local_box(0), 0), odd = site_order::half(cut.local_box(0), 1);
    const auto plan_of = [&](const std::shared_ptr<const site_order>& order, std::optional<int> parity) {
        return halo::plan(j, cut,
                          {.name = "p", .bytes_per_site = 8, .self_exchange = true, .parity = parity, .order = order});
    };
    const auto contains = [](const std::string& text, const char* part) {
        EXPECT_NE(text.find(part), std::string::npos) << text;
    };

    contains(refusal([&] { plan_of(even, {}); }), "halo 'p': the site order holds sites of one parity alone, but a "
                                                  "message has site 0.1.0.0 of the local box, of the other; "
                                                  "plan_options::parity must be that of the order");
    contains(refusal([&] { plan_of(even, 1); }), "the site order holds sites of one parity alone");
    halo::plan whole = plan_of({}, 0);
    contains(refusal([&] { halo::packer<double>(whole, {.components = 1, .projections = {}}, odd); }),
             "packer for halo 'p': the site order holds sites of one parity alone");
    contains(
        refusal([&] { halo::unpacker<double>(whole, halo::expansion_of({.components = 1, .projections = {}}), even); }),
        "unpacker for halo 'p': the site order holds sites of one parity alone");

    field<double> x(even, 1);
    whole.start(x); // which might be of another parity
    EXPECT_EQ(whole.finish(), status::misused);
    contains(refusal([&] { whole.finish_or_throw(); }), "in an order of one parity that is not plan_options::order");

    halo::stencil<double> stencil(j, cut, {});
    contains(refusal([&] { stencil.start(x); }), "a field for it is lexicographic");
    field<double> y(odd, 1);
    contains(refusal([&] {
                 halo::region_plan(j, {{.peer = 0, .sites = {1}}}, {{.peer = 0, .sites = {1}}}, {halo::bind(x, y)});
             }),
             "site 1 has no value in the field, whose site order holds one parity alone");
    contains(
        refusal([&] {
            const halo::strided_box row{.first = 0, .extents = {3, 1, 1, 1}, .strides = {1, 4, 16, 64}};
            halo::region_plan(j, {{.peer = 0, .boxes = {row}}}, {{.peer = 0, .sites = {1, 3, 4}}}, {halo::bind(x, y)});
        }),
        "site 1 has no value in the field");
}

} // namespace
