// SPDX-License-Identifier: Apache-2.0
// Two plans of one team in flight at once over a network: whoever waits for the first calls the network's library
// while others still pack the second.
#pragma once

#include "oracle.hpp"

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

namespace halocline_test {

inline void exchange_two_plans_at_once(const comm::job& j, int members) {
    constexpr int components = 24, epochs = 40;
    const auto cut = lattice::decomposition::even({4, 4, 4, 4 * j.ranks()}, {1, 1, 1, j.ranks()});
    const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
    halo::plan first(j, cut, {.name = "first", .bytes_per_site = 8 * components, .order = order}),
        second(j, cut, {.name = "second", .bytes_per_site = 8 * components, .order = order});
    lattice::field<double> x(order, components);
    std::barrier meet(members);
    std::atomic<int> bad{0}, wrong{0};
    const auto member = [&](int index) {
        const halo::team me{index, members};
        const auto pause = [](int microseconds) {
            std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
        };
        const auto pack_late = [&](int message, std::int64_t from, std::int64_t to, std::byte* target) {
            if (index != 0) pause(500);
            const std::span sites = second.messages()[static_cast<std::size_t>(message)].send_sites;
            for (std::int64_t i = from; i < to; ++i)
                for (int c = 0; c < components; ++c) {
                    const double value = x.at(sites[static_cast<std::size_t>(i)], c);
                    std::memcpy(target + 8 * (components * i + c), &value, 8);
                }
        };
        for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
            if (index == 0) {
                fill_with_oracle(x, cut, j.rank(), epoch);
                if (static_cast<int>(epoch) % j.ranks() == j.rank()) pause(3000); // the others wait for this rank
            }
            meet.arrive_and_wait();
            first.start(x, me);
            second.start(pack_late, me);
            bad += first.finish(me) != comm::status::ok;
            wrong += wrong_ghosts<double>(first, cut, components, epoch) != 0;
            bad += second.finish(me) != comm::status::ok;
            wrong += wrong_ghosts<double>(second, cut, components, epoch) != 0;
        }
    };

    std::vector<std::thread> team;
    for (int i = 1; i < members; ++i) team.emplace_back(member, i);
    member(0);
    for (std::thread& t : team) t.join();

    EXPECT_EQ(bad, 0);
    EXPECT_EQ(wrong, 0);
}

} // namespace halocline_test
