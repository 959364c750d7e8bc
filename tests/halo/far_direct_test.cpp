// SPDX-License-Identifier: Apache-2.0
// Direct messages over a network: its device writes from field to field. Ranks are processes; HALOCLINE_TEST_TRANSPORT
// names the transport.
#include "random_exchanges.hpp"
#include "row_of_ranks.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline_test/allocation_counter.hpp>
#include <halocline_test/refusal.hpp>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

using namespace halocline_test;
using comm::status;
using halo::path;
using halo::region_plan;
using lattice::decomposition;
using lattice::field;

namespace {

std::string transport() {
    const char* const named = std::getenv("HALOCLINE_TEST_TRANSPORT");
    return named != nullptr ? named : "ofi";
}

/// In an emulated machine without an RDMA device, an exchange takes a tenth of a second.
template <class Int>
Int fewer_over_verbs(Int n) {
    return transport() == "verbs" ? n / 10 : n;
}

const comm::job& the_job() {
    static const comm::job j = [] {
        comm::job_options options;
        options.transports = {transport()};
        options.slab_bytes = 256 << 20;
        options.deadline = std::chrono::seconds(60);
        return comm::job::from_environment(options);
    }();
    return j;
}

/// Cut only in t, with ghosts only there: a face is a single run.
decomposition cut_in_t(const comm::job& j, int extent = 4) {
    return decomposition::even({extent, extent, extent, 4 * j.ranks()}, {1, 1, 1, j.ranks()});
}
constexpr halo::ghost_widths in_t{{0, 0, 0, 1}, {0, 0, 0, 1}};

std::shared_ptr<const site_order> padded_order(const comm::job& j, const decomposition& cut) {
    return site_order::lexicographic(halo::grown(cut.local_box(j.rank()), in_t).extents);
}

std::uint64_t writes_of(const halo::plan_statistics& s) {
    std::uint64_t writes = 0;
    for (const comm::transport_counts& c : s.by_transport) writes += c.transport == transport() ? c.writes : 0;
    return writes;
}

} // namespace

TEST(FarDirect, GhostsAreCopiesAndAllElseStays) {
    const comm::job& j = the_job();
    const auto cut = cut_in_t(j);
    for (const auto layout : {halo::ghost_layout::padded, halo::ghost_layout::appended}) {
        const shell_options options{
            .name = "far", .widths = in_t, .phases = {1, 1, 1, -1}, .layout = layout, .path = path::direct};
        const auto local = site_order::lexicographic(cut.local_box(j.rank()).extents);
        const auto order = layout == halo::ghost_layout::padded
                               ? padded_order(j, cut)
                               : halo::appended_sites(cut, j.rank(), options).order(*local);
        field<double> x(order, 3, &j.memory()), y(order, 3, &j.memory());
        field<float> s(order, 7, &j.memory()), t(order, 7, &j.memory());
        shell_plan plan(j, cut, options, {halo::bind(x, s), halo::bind(y, t)});
        EXPECT_NE(plan.describe().find("direct"), std::string::npos) << plan.describe();
        for (std::uint64_t k = 1; k <= fewer_over_verbs<std::uint64_t>(50); ++k) {
            const bool second = (k + static_cast<std::uint64_t>(j.rank())) % 2 != 0; // neighbours' bindings differ
            field<double>& a = second ? y : x;
            field<float>& b = second ? t : s;
            fill_own(a, cut, j.rank(), options, k);
            fill_own(b, cut, j.rank(), options, k + 1000);
            plan.start(second ? 1 : 0);
            ASSERT_EQ(plan.finish(), status::ok);
            ASSERT_EQ(wrong_words(a, cut, j.rank(), options, k), 0) << k;
            ASSERT_EQ(wrong_words(b, cut, j.rank(), options, k + 1000), 0) << k;
        }
        j.barrier();
    }
}

TEST(FarDirect, PacksNothingAndHasNoSlots) {
    const comm::job& j = the_job();
    const auto cut = cut_in_t(j, 8);
    field<double> x(padded_order(j, cut), 24, &j.memory());
    shell_plan direct(j, cut, {.widths = in_t, .path = path::direct}, {halo::bind(x)});
    shell_plan packed(j, cut, {.widths = in_t, .path = path::packed}, {halo::bind(x)});
    constexpr std::uint64_t exchanges = 20;
    const auto peers = j.ranks() == 2 ? 1u : 2u; // two faces to one peer, or one to each of two
    const std::uint64_t before = writes_of(direct.statistics());
    for (std::uint64_t k = 0; k < exchanges; ++k) {
        direct.start();
        ASSERT_EQ(direct.finish(), status::ok);
    }

    // "free k" to each peer, and a write for each face.
    EXPECT_EQ(writes_of(direct.statistics()) - before, exchanges * (peers + 2));
    EXPECT_LT(direct.slab_bytes(), 8192u);
    EXPECT_GT(packed.slab_bytes(), 3 * 2 * 8 * 8 * 8 * 192u);
}

TEST(FarDirect, TakesSourcesThatAreOtherFields) {
    const comm::job& j = the_job();
    const row_of_ranks r{j};
    field<double> from(row_of(4), 4, &j.memory()), to(row_of(4), 4, &j.memory());
    std::vector<halo::binding> fields{{{halo::view(from)}, {halo::view(to)}}};
    region_plan plan(j, r.sends, r.receives, fields, {.name = "apart", .path = path::direct});
    for (std::uint64_t k = 1; k <= 20; ++k) {
        r.fill(from, k);
        plan.start();
        ASSERT_EQ(plan.finish(), status::ok);
        ASSERT_EQ(r.wrong(to, k), 0);
    }
}

// Without "free k" a fast rank would write the ghosts of k + 1 while a slow one reads those of k.
TEST(FarDirect, NeverShowsAStaleOrLaterGhost) {
    const comm::job& j = the_job();
    const row_of_ranks r{j};
    field<double> x(row_of(4), 8, &j.memory());
    region_plan plan(j, r.sends, r.receives, {halo::bind(x)}, {.name = "line", .path = path::direct});
    std::mt19937 delays(static_cast<unsigned>(j.rank()));
    std::int64_t wrong = 0;
    const auto dawdle = [&] {
        if (delays() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(delays() % 500));
    };
    for (std::uint64_t k = 1; k <= fewer_over_verbs<std::uint64_t>(2000); ++k) {
        r.fill(x, k);
        plan.start();
        dawdle();
        if (k % 3 == 0) (void)plan.test();
        ASSERT_EQ(plan.finish(), status::ok);
        dawdle();
        wrong += r.wrong(x, k);
    }
    EXPECT_EQ(wrong, 0);
}

TEST(FarDirect, AllocatesNothing) {
    const comm::job& j = the_job();
    const auto cut = cut_in_t(j);
    field<double> x(padded_order(j, cut), 24, &j.memory());
    shell_plan plan(j, cut, {.widths = in_t, .path = path::direct}, {halo::bind(x)});
    for (int k = 0; k < 40; ++k) {
        const std::uint64_t made = allocations_in([&] {
            plan.start();
            EXPECT_EQ(plan.finish(), status::ok);
        });
        ASSERT_EQ(made, 0U) << k;
    }
}

// Two ranks that finish two exchanges in different orders, or sum in between, don't wait for each other.
TEST(FarDirect, WritesInEveryWaitOfTheRank) {
    const comm::job& j = the_job();
    const row_of_ranks r{j};
    field<double> x(row_of(4), 1, &j.memory()), y(row_of(4), 1, &j.memory());
    region_plan p(j, r.sends, r.receives, {halo::bind(x)}, {.name = "p", .path = path::direct});
    region_plan q(j, r.sends, r.receives, {halo::bind(y)}, {.name = "q", .path = path::direct});
    comm::global_sum sum(j, 1);
    region_plan& first = j.rank() % 2 == 0 ? p : q;
    region_plan& second = j.rank() % 2 == 0 ? q : p;
    for (std::uint64_t k = 1; k <= fewer_over_verbs<std::uint64_t>(200); ++k) {
        r.fill(x, k);
        r.fill(y, k + 5000);
        p.start();
        q.start();
        double one = 1;
        ASSERT_EQ(sum({&one, 1}), status::ok);
        ASSERT_EQ(first.finish(), status::ok);
        ASSERT_EQ(second.finish(), status::ok);
        ASSERT_EQ(r.wrong(x, k) + r.wrong(y, k + 5000), 0);
    }
}

/// A peer may leave once it has received what it waited for, which is nothing here, before this rank looks at anything.
TEST(FarDirect, ValuesCountWhoseSenderHasLeft) {
    const comm::job& j = the_job();
    std::pmr::vector<std::byte> x(64, std::byte(j.rank() + 1), &j.memory());
    const std::span<std::byte> field = x;
    const bool sends = j.rank() == 0, receives = j.rank() == 1;
    std::vector<comm::channel_request> requests;
    if (sends || receives)
        requests.push_back({.peer = 1 - j.rank(),
                            .send_bytes = sends ? x.size() : 0,
                            .receive_bytes = sends ? 0 : x.size(),
                            .label = "values",
                            .kind = comm::channel_kind::direct,
                            .writes = {},
                            .fields = comm::register_fields(j, transport(), {&field, 1})});
    if (sends) requests[0].writes.push_back({0, 0, 0, x.size()});
    std::optional<comm::channel_set> set(std::in_place, j, requests, comm::channel_set_options{"one way", "", {}});
    requests.clear();
    const auto until = [&](auto&& done) {
        for (int i = 0; i < 5000 && !done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return done();
    };
    set->for_each_rdma([&](auto& channel) {
        channel.free(1, 0, 0);
        if (sends) {
            EXPECT_TRUE(until([&] { return channel.freed(1); }));
            channel.send(1, 0, channel.peer_field(1));
            EXPECT_TRUE(until([&] { return channel.sent(1); }));
        } else {
            EXPECT_TRUE(until([&] { return channel.sent(1); })) << "the farewell has arrived";
            EXPECT_TRUE(channel.arrived(1));
            EXPECT_EQ(channel.check(1), status::ok);
            EXPECT_EQ(x.back(), std::byte{1});
        }
    });
    set.reset();
    j.barrier();
}

TEST(FarDirect, EndsThePeersWaitWhenAPlanEndsEarly) {
    const comm::job& j = the_job();
    const row_of_ranks r{j};
    std::optional<field<double>> x;
    x.emplace(row_of(4), 1 << 15, &j.memory()); // much more than channels take
    const std::size_t used = j.memory().used();
    std::optional<region_plan> plan;
    plan.emplace(j, r.sends, r.receives, std::vector{halo::bind(*x)},
                 halo::region_plan_options{.name = "cut short", .path = path::direct});
    for (int k = 1; k <= 3; ++k) {
        plan->start();
        ASSERT_EQ(plan->finish(), status::ok);
    }
    if (j.rank() == 0) {
        plan.reset(); // the others wait for "free 4"
    } else {
        plan->start();
        status last = plan->finish();
        for (int k = 0; k < j.ranks() && last == status::ok; ++k) {
            plan->start();
            last = plan->finish();
        }
        EXPECT_EQ(last, status::aborted);
        plan.reset();
    }
    j.barrier(); // the job itself continues
    x.reset();
    for (int look = 0; look < 20; ++look) { // networks make progress only when polled
        comm::global_sum sum(j, 1);
        double one = 1;
        ASSERT_EQ(sum({&one, 1}), status::ok);
    }
    EXPECT_LT(j.memory().used(), used) << "the field's memory goes when nobody will write it";
}

// A plan that ends during an exchange destroys its field, into which a peer may still write.
TEST(FarDirect, KeepsAFieldsMemoryUntilThePeerIsDoneWithIt) {
    const comm::job& j = the_job();
    const row_of_ranks r{j};
    std::optional<field<double>> x;
    x.emplace(row_of(4), 4096, &j.memory());
    std::optional<region_plan> plan;
    plan.emplace(j, r.sends, r.receives, std::vector{halo::bind(*x)},
                 halo::region_plan_options{.name = "cut short", .path = path::direct});
    const std::size_t bytes = static_cast<std::size_t>(4) * 4096 * sizeof(double);
    plan->start(); // and nothing else on rank 0: its peers may write from now on
    if (j.rank() == 0) {
        plan.reset();
        x.reset();
        std::vector<std::byte*> reused;
        for (int i = 0; i < 8; ++i) {
            reused.push_back(static_cast<std::byte*>(j.memory().allocate(bytes, 128)));
            std::fill_n(reused.back(), bytes, std::byte{0x5A});
        }
        j.barrier(); // the peers have written, or have learned of the end
        std::ptrdiff_t untouched = 0;
        for (std::byte* p : reused) {
            untouched += std::count(p, p + bytes, std::byte{0x5A});
            j.memory().deallocate(p, bytes, 128);
        }
        EXPECT_EQ(untouched, static_cast<std::ptrdiff_t>(8 * bytes));
    } else {
        (void)plan->finish(); // whether the farewell comes first is random
        j.barrier();
    }
    j.barrier();
}

TEST(FarDirect, IsRefusedByNameWhereItCantBe) {
    const comm::job& j = the_job();
    const row_of_ranks r{j};
    const auto made = [&](std::pmr::memory_resource* memory, int sites, path wish) {
        return refusal([&] {
            // Every other site of a row goes to the next rank, so there are as many runs.
            field<double> f(row_of(4 * sites), 1, memory);
            std::vector<halo::transfer> sends{{r.up, 0, {}}}, receives{{r.down, 0, {}}};
            for (int i = 0; i < sites; ++i) {
                sends[0].sites.push_back(4 * i);
                receives[0].sites.push_back(4 * i + 2);
            }
            region_plan plan(j, sends, receives, {halo::bind(f)}, {.name = "no", .path = wish});
            plan.start();
            plan.finish_or_throw();
        });
    };

    EXPECT_EQ(made(&j.memory(), 64, path::direct), "accepted");
    EXPECT_NE(made(&j.memory(), 65, path::direct)
                  .find("over " + transport() + " only sites that lie in at most 64 runs can be written in place"),
              std::string::npos);
    EXPECT_NE(made(std::pmr::get_default_resource(), 4, path::direct).find("is not in its slab"), std::string::npos);
    EXPECT_NE(made(&j.memory(), 4, path::streamed).find("no stores that could bypass a cache"), std::string::npos);
    EXPECT_EQ(made(std::pmr::get_default_resource(), 65, path::automatic), "accepted");
    EXPECT_EQ(made(&j.memory(), 65, path::automatic), "accepted");
}

// After all other tests: from here on the job believes these costs.
TEST(FarDirect, ZIsChosenWhereTheCopiesItSparesCostMoreThanAFreeFlag) {
    const comm::job& j = the_job();
    const auto cut = cut_in_t(j);
    EXPECT_GT(comm::measured_costs(j).network_flag_seconds, 0);
    comm::costs c{.flag_seconds = 1e-7, .message_seconds = 0, .copy_seconds_per_byte = 1e-10, .run_seconds = 0};
    const std::size_t bytes = 2 * 4 * 4 * 4 * 192; // two faces, if both go to one peer
    const double copies = 2 * 1e-10 * static_cast<double>(j.ranks() == 2 ? bytes : bytes / 2);
    field<double> x(padded_order(j, cut), 24, &j.memory());
    for (const bool dear : {true, false}) {
        c.network_flag_seconds = dear ? 1.1 * copies : 0.9 * copies;
        comm::assume_costs(j, c);
        shell_plan plan(j, cut, {.widths = in_t}, {halo::bind(x)});
        const std::string text = plan.describe();
        EXPECT_NE(text.find(dear ? " packed " : " direct "), std::string::npos) << text;
        EXPECT_NE(text.find("than a free flag"), std::string::npos) << text;
        fill_own(x, cut, j.rank(), plan.options(), 7);
        plan.start();
        ASSERT_EQ(plan.finish(), status::ok);
        EXPECT_EQ(wrong_words(x, cut, j.rank(), plan.options(), 7), 0);
    }
    c.network_flag_seconds = 1e-12; // random plans are then direct wherever possible
    comm::assume_costs(j, c);
    exchange_random_cases(j, kinds::shells, 4177, fewer_over_verbs(60));
}
