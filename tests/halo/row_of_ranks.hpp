// SPDX-License-Identifier: Apache-2.0
// The smallest exchange: each rank has 4 sites of a ring. 1 and 2 are its own, 0 is a copy of the lower neighbour's 2,
// 3 of the upper one's 1.
#pragma once

#include <halocline/comm/clock.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/halo/region_plan.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/site_order.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace halocline_test {

using namespace halocline;

inline std::shared_ptr<const lattice::site_order> row_of(int sites) {
    return lattice::site_order::lexicographic({sites, 1, 1, 1});
}

struct row_of_ranks {
    const comm::job& j;
    int up = (j.rank() + 1) % j.ranks(), down = (j.rank() + j.ranks() - 1) % j.ranks();
    std::vector<halo::transfer> sends{{up, 0, {2}}, {down, 1, {1}}}, receives{{down, 0, {0}}, {up, 1, {3}}};

    static double value(std::uint64_t k, int rank, int site) { return static_cast<double>(k * 100) + 10 * rank + site; }
    void fill(lattice::field<double>& f, std::uint64_t k) const {
        for (int site = 1; site <= 2; ++site)
            for (int c = 0; c < f.components(); ++c) f.at(site, c) = value(k, j.rank(), site);
    }
    [[nodiscard]] std::int64_t wrong(lattice::field<double>& f, std::uint64_t k) const {
        std::int64_t n = 0;
        for (int c = 0; c < f.components(); ++c)
            n += (f.at(0, c) != value(k, down, 2)) + (f.at(3, c) != value(k, up, 1));
        return n;
    }
};

/// Exchanges with random delays; every ghost identifies its exchange. x and y, the plan's bindings, take turns, and
/// neighbours' turns differ.
inline void expect_no_stale_or_later_ghost(const row_of_ranks& row, halo::region_plan& plan, lattice::field<double>& x,
                                           lattice::field<double>& y, std::uint64_t exchanges) {
    std::mt19937 delays(static_cast<unsigned>(row.j.rank()));
    const auto dawdle = [&] {
        const unsigned d = delays() % 64;
        if (d == 0 && row.j.ranks() > 1) std::this_thread::yield();
        for (std::uint64_t until = comm::ticks() + 20 * d; comm::ticks() < until;) {
        }
    };
    std::int64_t wrong = 0;
    for (std::uint64_t k = 1; k <= exchanges; ++k) {
        const int which = static_cast<int>((k + static_cast<std::uint64_t>(row.j.rank())) % 2);
        lattice::field<double>& f = which == 0 ? x : y;
        row.fill(f, k);
        plan.start(which);
        dawdle();
        if (k % 3 == 0) (void)plan.test();
        ASSERT_EQ(plan.finish(), comm::status::ok);
        dawdle();
        wrong += row.wrong(f, k);
    }
    EXPECT_EQ(wrong, 0);
}

} // namespace halocline_test
