// SPDX-License-Identifier: Apache-2.0
// An exchange that one thread of a rank starts and another finishes, while the first waits for something else. Ranks are
// threads, too.
#include "padded_oracle.hpp"
#include "small_job.hpp"

#include <halocline/comm/global_sum.hpp>

#include <barrier>
#include <chrono>
#include <thread>

using namespace halocline_test;
using comm::status;
using lattice::decomposition;

namespace {

constexpr int components = 48;

void fill_interior(lattice::field<double>& x, const decomposition& cut, int rank, const shell_options& o,
                   std::uint64_t epoch) {
    for_each_site(cut, rank, o, [&](const coordinate& site, std::int64_t i) {
        if (!cut.local_box(rank).contains(site)) return;
        for (int c = 0; c < components; ++c) x.at(i, c) = value_at<double>(site, cut, o, c, epoch);
    });
}

std::int64_t wrong_ghosts(const lattice::field<double>& x, const decomposition& cut, int rank, const shell_options& o,
                          std::uint64_t epoch) {
    std::int64_t wrong = 0;
    for_each_site(cut, rank, o, [&](const coordinate& site, std::int64_t i) {
        if (!is_filled(cut, rank, o, site)) return;
        for (int c = 0; c < components; ++c) {
            const auto value = value_at<double>(site, cut, o, c, epoch);
            wrong += std::memcmp(&x.at(i, c), &value, sizeof value) != 0;
        }
    });
    return wrong;
}

/// What the other thread does before it calls finish().
enum class before { nothing, tests, takes };

/// After finish() the fields are the caller's: no wait of the thread that started may still copy, and so give the
/// neighbour values of the next step.
void expect_handed_over(const comm::job& j, const decomposition& cut, const shell_options& o, before how) {
    const int rank = j.rank();
    lattice::field<double> x(site_order::lexicographic(halo::grown(cut.local_box(rank), o.widths).extents), components,
                             &j.memory());
    shell_plan plan(j, cut, o, {halo::bind(x)});
    comm::global_sum sum(j);
    constexpr std::uint64_t steps = 60;
    std::barrier<> meet(2);
    std::jthread finishes([&] {
        for (std::uint64_t k = 1; k <= steps; ++k) {
            meet.arrive_and_wait(); // started
            if (how == before::tests)
                while (!plan.test()) {
                }
            if (how == before::takes) (void)plan.completed();
            EXPECT_EQ(plan.finish(), status::ok);
            fill_interior(x, cut, rank, o, k + 1);
            meet.arrive_and_wait();
        }
    });
    fill_interior(x, cut, rank, o, 1);
    std::int64_t wrong = 0;
    for (std::uint64_t k = 1; k <= steps; ++k) {
        if (k % 4 == static_cast<std::uint64_t>(rank)) std::this_thread::sleep_for(std::chrono::microseconds(300));
        plan.start();
        meet.arrive_and_wait();
        double one = 1;
        EXPECT_EQ(sum({&one, 1}), status::ok);
        meet.arrive_and_wait();
        j.barrier(); // nobody is in a call of step k any more
        wrong += wrong_ghosts(x, cut, rank, o, k);
    }
    EXPECT_EQ(wrong, 0);
}

void expect_handed_over(const decomposition& cut, const shell_options& o) {
    for (const before how : {before::nothing, before::tests, before::takes})
        run(cut.ranks(), [&](const comm::job& j) { expect_handed_over(j, cut, o, how); });
}

const auto cut_in_t = decomposition::even({8, 8, 8, 8}, {1, 1, 1, 2}),
           cut_in_two = decomposition::even({4, 4, 8, 8}, {1, 1, 2, 2});

} // namespace

TEST(Handover, FieldsWrittenDirectly) { expect_handed_over(cut_in_t, {.path = halo::path::direct}); }
TEST(Handover, FieldsThatBothEndsCopy) { expect_handed_over(cut_in_t, {.path = halo::path::joint}); }
TEST(Handover, PhasesByDimension) {
    const shell_options by_dimension{
        .shape = halo::shell::box, .corners = halo::corner_route::by_dimension, .path = halo::path::direct};
    expect_handed_over(cut_in_two, by_dimension);
}
