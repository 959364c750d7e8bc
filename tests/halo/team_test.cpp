// SPDX-License-Identifier: Apache-2.0
// Plans driven by all threads of an OpenMP parallel region, also with more threads than cores: every ghost right, and
// no OpenMP barrier, no lock and no allocation between start and finish. Ranks are threads, too: each has its own
// team.
#include "copying_team.hpp"
#include "padded_oracle.hpp"
#include "small_job.hpp"

#include <halocline/halo/packer.hpp>
#include <halocline_test/allocation_counter.hpp>

#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <mutex>

using namespace halocline_test;
using comm::status;

namespace {
thread_local bool counting = false;
std::atomic<int> barriers{0}, locks{0};

template <class Function>
Function* next_of(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
} // namespace

// The functions that compilers call for an OpenMP barrier, and that for a lock: counted here, then passed on to the
// libraries.
#ifdef __clang__
extern "C" void __kmpc_barrier(void* where, std::int32_t thread) {
    static auto* const next = next_of<void(void*, std::int32_t)>("__kmpc_barrier");
    barriers += counting;
    next(where, thread);
}
#else
extern "C" void GOMP_barrier() {
    static auto* const next = next_of<void()>("GOMP_barrier");
    barriers += counting;
    next();
}
#endif
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    static auto* const next = next_of<int(pthread_mutex_t*)>("pthread_mutex_lock");
    locks += counting;
    return next(mutex);
}

namespace {

/// Runs f(), which is between start and finish, counting barriers and locks.
template <class F>
void counted(F&& f) {
    counting = true;
    f();
    counting = false;
}

TEST(TeamTest, CountsBarriersAndLocks) {
    barriers = locks = 0;
    std::mutex mutex;
#pragma omp parallel num_threads(2)
    counted([&] {
#pragma omp barrier
        const std::scoped_lock lock(mutex);
    });
    EXPECT_EQ(barriers, 2);
    EXPECT_GE(locks, 2);
}

class PlansOfTeams : public testing::TestWithParam<int> {
  protected:
    void SetUp() override { barriers = locks = 0; }
    void TearDown() override {
        EXPECT_EQ(barriers, 0);
        EXPECT_EQ(locks, 0);
    }
};
INSTANTIATE_TEST_SUITE_P(Members, PlansOfTeams, testing::Values(1, 2, 3, 4));

constexpr int steps = 10;

TEST_P(PlansOfTeams, ShareThePackingOfSlots) {
    const int members = GetParam();
    const auto cut = lattice::decomposition::even({6, 6, 6, 12}, {1, 1, 1, 2});

    // Messages that are shared, and messages that one member packs.
    for (const int components : {24, 1})
        run(2, [&](const comm::job& j) {
            const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
            halo::plan p(j, cut,
                         {.widths = {{1, 1, 0, 2}, {1, 0, 0, 2}},
                          .bytes_per_site = 8 * static_cast<std::size_t>(components),
                          .self_exchange = true,
                          .order = order});
            lattice::field<double> x(order, components);
            std::atomic<int> wrong{0}, bad{0};
#pragma omp parallel num_threads(members)
            for (std::uint64_t epoch = 1; epoch <= steps; ++epoch) {
                const halo::team me{omp_get_thread_num(), members};
#pragma omp master
                fill_with_oracle(x, cut, j.rank(), epoch);
#pragma omp barrier
                counted([&] {
                    p.start(x, me);
                    bad += p.finish(me) != status::ok;
                });
                wrong += wrong_ghosts<double>(p, cut, components, epoch) != 0;
#pragma omp barrier
            }
            EXPECT_EQ(bad, 0);
            EXPECT_EQ(wrong, 0);
            EXPECT_EQ(p.epoch(), static_cast<std::uint64_t>(steps));
        });
}

struct shell_case {
    halo::ghost_layout layout;
    halo::shell shape;
    halo::corner_route corners;
    halo::path path;
};

/// A reverse exchange by a team gives the same bits as by a single thread.  Pre: p is bound to x.
void expect_the_adjoint_of_one_thread(shell_plan& p, lattice::field<double>& x, int members) {
    const auto fill = [&] {
        for (std::size_t i = 0; i < x.values().size(); ++i) x.values()[i] = static_cast<double>(mixed(i) % 64);
    };
    fill();
    p.start_reverse();
    ASSERT_EQ(p.finish(), status::ok);
    lattice::field<double> alone(x.shared_order(), x.components());
    alone.copy_from(x);
    std::atomic<int> bad{0};

    fill();
#pragma omp parallel num_threads(members)
    {
        const halo::team me{omp_get_thread_num(), members};
        counted([&] {
            p.start_reverse(0, me);
            bad += p.finish(me) != status::ok;
        });
    }

    EXPECT_EQ(bad, 0);
    EXPECT_EQ(std::memcmp(x.data(), alone.data(), x.values().size_bytes()), 0);
}

TEST_P(PlansOfTeams, ShareTheCopiesOfShells) {
    const int members = GetParam();
    const auto cut = lattice::decomposition::even({8, 8, 8, 4}, {1, 1, 1, 2});
    using enum halo::path;
    for (const shell_case& c :
         {shell_case{halo::ghost_layout::padded, halo::shell::faces, halo::corner_route::at_once, direct},
          {halo::ghost_layout::appended, halo::shell::faces, halo::corner_route::at_once, direct},
          {halo::ghost_layout::padded, halo::shell::box, halo::corner_route::by_dimension, direct},
          {halo::ghost_layout::appended, halo::shell::box, halo::corner_route::by_dimension, packed},
          {halo::ghost_layout::padded, halo::shell::box, halo::corner_route::at_once, packed}})
        run(2, [&](const comm::job& j) {
            padded_case made{.cut = cut,
                             .options = {.phases = {1, {0, 1}, 1, -1},
                                         .layout = c.layout,
                                         .shape = c.shape,
                                         .corners = c.corners,
                                         .path = c.path,
                                         .reverse = true},
                             .components = {24},
                             .text = {}};
            std::vector<lattice::field<double>> fields;
            fields.emplace_back(order_of(made, j.rank()), 24, &j.memory());
            lattice::field<double>& x = fields.front();
            shell_plan p(j, cut, made.options, {halo::bind(x)});
            std::atomic<int> bad{0};
            std::atomic<std::int64_t> wrong{0};
#pragma omp parallel num_threads(members)
            for (std::uint64_t epoch = 1; epoch <= steps; ++epoch) {
                const halo::team me{omp_get_thread_num(), members};
#pragma omp master
                fill_own(x, cut, j.rank(), made.options, epoch);
#pragma omp barrier
                counted([&] {
                    p.start(0, me);
                    bad += p.finish(me) != status::ok;
                });
#pragma omp barrier
#pragma omp master
                wrong += wrong_words(x, cut, j.rank(), made.options, epoch);
#pragma omp barrier
            }
            EXPECT_EQ(bad, 0);
            EXPECT_EQ(wrong, 0);
            expect_the_adjoint_of_one_thread(p, x, members);
        });
}

TEST_P(PlansOfTeams, ExchangeOnlyWhatWasWritten) {
    const int members = GetParam();
    const auto cut = lattice::decomposition::even({6, 6, 6, 12}, {1, 1, 1, 2});
    run(2, [&](const comm::job& j) {
        const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
        halo::plan p(j, cut, {.bytes_per_site = 24 * sizeof(double), .checks = check_level::normal}),
            packed(j, cut, {.bytes_per_site = 24 * sizeof(double), .checks = check_level::normal});
        const halo::packer<double> pack(packed, {.components = 24});
        lattice::field<double> x(order, 24), y(order, 24);
        padded_case made{.cut = cut,
                         .options = {.layout = halo::ghost_layout::padded, .checks = check_level::normal},
                         .components = {24},
                         .text = {}};
        lattice::field<double> z(order_of(made, j.rank()), 24, &j.memory());
        shell_plan shells(j, cut, made.options, {halo::bind(z)});
        fill_with_oracle(y, cut, j.rank(), 1000);
        std::atomic<int> bad{0}, wrong{0};
#pragma omp parallel num_threads(members)
        for (std::uint64_t step = 0; step < 2 * steps; ++step) {
            const halo::team me{omp_get_thread_num(), members};
            const std::uint64_t k = 1 + step / 2; // each second step writes nothing
#pragma omp master
            if (step % 2 == 0) {
                fill_with_oracle(x, cut, j.rank(), k);
                x.mark_written();
                fill_own(z, cut, j.rank(), made.options, k);
                z.mark_written();
            }
#pragma omp barrier
            // No barrier between them: the members go on, each in its own time.
            counted([&] {
                bad += p.ensure_halo(x, me) != status::ok;
                bad += packed.ensure_halo(pack.of(x), me) != status::ok;
                bad += shells.ensure_halo(0, me) != status::ok;
                bad += p.ensure_halo(x, me) != status::ok;
            });
            wrong += wrong_ghosts<double>(p, cut, 24, k) != 0;
            wrong += wrong_ghosts<double>(packed, cut, 24, k) != 0;
            wrong += p.epoch() != 2 * k - 1;
            counted([&] {
                if (step % 2 == 1) bad += p.ensure_halo(y, me) != status::ok;
            });
            wrong += step % 2 == 1 && wrong_ghosts<double>(p, cut, 24, 1000) != 0;
#pragma omp barrier
#pragma omp master
            if (step % 2 == 1) wrong += wrong_words(z, cut, j.rank(), made.options, k) != 0; // overwrites z
#pragma omp barrier
        }
        EXPECT_EQ(bad, 0);
        EXPECT_EQ(wrong, 0);
        EXPECT_EQ(p.epoch(), 2 * static_cast<std::uint64_t>(steps));
        EXPECT_EQ(packed.epoch(), static_cast<std::uint64_t>(steps));
        EXPECT_EQ(shells.epoch(), static_cast<std::uint64_t>(steps));

        // Written without a mark: each member is told, and none waits for another.
        x.at(0, 0) = 1;
#pragma omp parallel num_threads(members)
        {
            const halo::team me{omp_get_thread_num(), members};
            bad += packed.ensure_halo(pack.of(x), me) == status::misused;
        }
        EXPECT_EQ(bad, members);
    });
}

// Counted by rank 0, which has seen rank 1 in its loop, and holds it there.
TEST_P(PlansOfTeams, AllocateNothing) {
    const int members = GetParam();
    const auto cut = lattice::decomposition::even({8, 8, 8, 8}, {1, 1, 1, 2});
    using enum halo::path;
    for (const halo::path way : {automatic, packed, direct, streamed, joint}) {
        std::uint64_t before = 0, after = 0;
        run(2, [&](const comm::job& j) {
            padded_case made{.cut = cut, .options = {.path = way, .reverse = true}, .components = {24}, .text = {}};
            lattice::field<double> x(order_of(made, j.rank()), 24, &j.memory());
            shell_plan p(j, cut, made.options, {halo::bind(x)});
            halo::plan slots(j, cut,
                             {.bytes_per_site = 64, .self_exchange = true, .path = way == packed ? automatic : way});
            std::atomic<int> bad{0};
            const auto step = [&](halo::team me) {
                counted([&] {
                    p.start(0, me);
                    slots.start(
                        [](int, std::int64_t first, std::int64_t last, std::byte* to) {
                            std::memset(to + 64 * first, 1, static_cast<std::size_t>(64 * (last - first)));
                        },
                        me);
                    bad += slots.finish(me) != status::ok;
                    bad += p.finish(me) != status::ok;
                    p.start_reverse(0, me);
                    bad += p.finish(me) != status::ok;
                });
            };
#pragma omp parallel num_threads(members)
            {
                const halo::team me{omp_get_thread_num(), members};
                const auto count = [&](std::uint64_t& allocated) {
#pragma omp barrier
                    if (me.index == 0 && j.rank() == 0) allocated = allocations();
#pragma omp barrier
                };
                for (int k = 0; k < 5; ++k) step(me);
                count(before);
                for (int k = 0; k < 20; ++k) step(me);
                count(after);
                step(me);
            }
            EXPECT_EQ(bad, 0);
        });
        EXPECT_EQ(after, before) << to_string(way);
    }
}

// Every piece once, whichever member takes it, however often the shared work changes.
TEST_P(PlansOfTeams, TakeEveryPieceOnce) {
    const int members = GetParam();
    halo::copying_team team;
    constexpr int pieces = 7;
    std::array<std::atomic<int>, pieces> taken{};
    std::atomic<int> by_helpers{0}, faults{0};
    constexpr int rounds = 200, works = 10;
    using clock_type = std::chrono::steady_clock;
    const auto limit = clock_type::now() + std::chrono::seconds(30);
#pragma omp parallel num_threads(members)
    {
        const halo::team me{omp_get_thread_num(), members};
        for (int round = 0; round < rounds; ++round) {
            const comm::team_fault started = team.start(me, true, [&] {
                for (int w = 0; w < works; ++w)
                    team.share(pieces, [&](int piece, int of) {
                        if (of == pieces) ++taken[piece];
                        by_helpers += omp_get_thread_num() != 0;
                        // Until one has helped: on an emulated machine threads may not run at the same time for long.
                        while (members > 1 && omp_get_thread_num() == 0 && by_helpers == 0 && clock_type::now() < limit)
                            std::this_thread::yield();
                    });
            });
            const comm::team_fault finished =
                team.finish(me, [&] { team.share(pieces, [&](int piece, int) { ++taken[piece]; }); });
            faults += (started ? 1 : 0) + (finished ? 1 : 0);
        }
    }
    for (const auto& n : taken) EXPECT_EQ(n, rounds * (works + 1));
    EXPECT_EQ(by_helpers > 0, members > 1);
    EXPECT_EQ(faults, 0);
}

} // namespace
