// SPDX-License-Identifier: Apache-2.0
// Loops around calls that poll (test(), probe(), completed()) are waits, too: they do what peers need from the rank's
// other plans before they can continue, and yield a core that ranks share.
#include "padded_oracle.hpp"
#include "small_job.hpp"

#include <halocline/comm/messenger.hpp>
#include <halocline/comm/one_sided.hpp>
#include <halocline/comm/remote_call.hpp>
#include <halocline/comm/window.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline_test/one_core.hpp>

#include <memory_resource>

using namespace halocline_test;
using comm::status;
using lattice::decomposition;

namespace {

constexpr int most_polls = 100'000'000; // a loop without an answer ends, so that the test fails

const decomposition& two_ranks() {
    static const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    return cut;
}

lattice::field<double> padded_field(const comm::job& j) {
    return {site_order::lexicographic(halo::grown(two_ranks().local_box(j.rank()), {}).extents), 1, &j.memory()};
}

/// Rank 0 has started an exchange straight into its peer's field, which the peer frees only later, and polls for
/// something that the peer does only after that exchange.
void expect_progress(const comm::job& j, const std::function<bool()>& asked, const std::function<void()>& answer) {
    auto x = padded_field(j);
    shell_plan direct(j, two_ranks(), {.name = "direct", .path = halo::path::direct}, {halo::bind(x)});
    if (j.rank() == 0) {
        direct.start();
        j.barrier(); // only now does the peer free its field
        int polls = 0;
        while (!asked()) ASSERT_LT(++polls, most_polls);
        EXPECT_EQ(direct.finish(), status::ok);
    } else {
        j.barrier();
        direct.start();
        EXPECT_EQ(direct.finish(), status::ok);
        answer();
    }
}

void on_two_ranks(const std::function<void(const comm::job&)>& body) {
    comm::job_options options = small_job();
    options.deadline = std::chrono::seconds(5);
    comm::run_threads(2, body, options);
}

} // namespace

TEST(Polling, APlanMovesTheOthers) {
    on_two_ranks([](const comm::job& j) {
        halo::plan p(j, two_ranks(), {.name = "asked", .bytes_per_site = 8});
        const lattice::field<double> x(site_order::lexicographic(two_ranks().local_box(j.rank()).extents), 1);
        const auto answer = [&] {
            p.start(x);
            EXPECT_EQ(p.finish(), status::ok);
        };

        if (j.rank() == 0) p.start(x);
        expect_progress(
            j, [&] { return p.test(); }, answer);
        EXPECT_EQ(j.rank() == 0 ? p.finish() : status::ok, status::ok);

        if (j.rank() == 0) p.start(x);
        std::size_t faces = 0;
        expect_progress(
            j, [&] { return (faces += p.completed().size()) == p.messages().size(); }, answer);
        EXPECT_EQ(j.rank() == 0 ? p.finish() : status::ok, status::ok);
    });
}

TEST(Polling, AShellMovesTheOthers) {
    for (const auto route : {halo::corner_route::at_once, halo::corner_route::by_dimension})
        on_two_ranks([&](const comm::job& j) {
            auto x = padded_field(j);
            shell_plan p(j, two_ranks(),
                         {.name = "asked", .shape = halo::shell::box, .corners = route, .reverse = true},
                         {halo::bind(x)});
            const auto answer = [&] {
                p.start();
                EXPECT_EQ(p.finish(), status::ok);
            };

            if (j.rank() == 0) p.start();
            expect_progress(
                j, [&] { return p.test(); }, answer);
            EXPECT_EQ(j.rank() == 0 ? p.finish() : status::ok, status::ok);

            if (j.rank() == 0) p.start();
            std::size_t regions = 0;
            expect_progress(
                j, [&] { return (regions += p.completed().size()) == p.ghosts().size(); }, answer);
            EXPECT_EQ(j.rank() == 0 ? p.finish() : status::ok, status::ok);

            if (j.rank() == 0) p.start_reverse();
            expect_progress(
                j, [&] { return p.test(); },
                [&] {
                    p.start_reverse();
                    EXPECT_EQ(p.finish(), status::ok);
                });
            EXPECT_EQ(j.rank() == 0 ? p.finish() : status::ok, status::ok);
        });
}

TEST(Polling, MessagesAndWindowsMovePlans) {
    on_two_ranks([](const comm::job& j) {
        const int peer = 1 - j.rank();
        comm::messenger messages(j);
        std::byte byte{};
        const auto send = [&] { EXPECT_EQ(messages.send({&byte, 1}, peer, 1), status::ok); };
        comm::message_info info;
        expect_progress(
            j, [&] { return messages.probe(peer, 1, info) || messages.state() != status::ok; }, send);
        comm::message_request request;
        if (j.rank() == 0) {
            messages.irecv(request, {&byte, 1}, peer, 1); // receives the probed message
            EXPECT_EQ(messages.wait(request), status::ok);
            messages.irecv(request, {&byte, 1}, peer, 1);
        }
        expect_progress(
            j, [&] { return messages.test(request); }, send);
        EXPECT_TRUE(request.done());

        std::pmr::vector<char> out(100, 0, &j.memory()), in(100, 0, &j.memory());
        comm::connection c(j, peer);
        comm::send_window<char> to(c, out);
        comm::recv_window<char> from(c, in);
        c.connect();
        from.init();
        from.post();
        const auto post = [&] {
            to.init();
            to.post();
            EXPECT_EQ(to.wait(), status::ok);
        };
        expect_progress(
            j, [&] { return from.test(); }, post);
        if (j.rank() == 0) post();
        EXPECT_EQ(from.wait(), status::ok);
    });
}

TEST(Polling, OneSidedCallsMovePlans) {
    on_two_ranks([](const comm::job& j) {
        const std::vector<int> neighbours{1 - j.rank()};
        int called = 0;
        comm::remote_functions functions;
        const auto count = functions.add<int>("count", [&](std::size_t, int n) { called += n; });
        comm::remote_calls calls(j, neighbours, std::move(functions));
        comm::exposure exposed(j, neighbours, 100);

        expect_progress(
            j, [&] { return calls.progress() == 1; }, [&] { EXPECT_TRUE(calls.try_call(0, count, 5)); });
        EXPECT_EQ(called, j.rank() == 0 ? 5 : 0);

        exposed.post();
        const auto put = [&] {
            exposed.start();
            EXPECT_EQ(exposed.complete(), status::ok);
        };
        expect_progress(
            j, [&] { return exposed.test(); }, put);
        if (j.rank() == 0) put();
        EXPECT_EQ(exposed.wait(), status::ok);
    });
}

/// Two ranks on one core: a fruitless call yields it to the other rank, which would otherwise run a time slice later.
TEST(Polling, CompletedGivesAwayACoreThatRanksShare) {
    comm::job_options options = small_job();
    options.spin_polls = 4; // as if ranks outnumbered cores
    constexpr int rounds = 100;
    comm::run_threads(
        2,
        [](const comm::job& j) {
            ASSERT_NO_FATAL_FAILURE(halocline_test::bind_to_first_core());
            halo::plan p(j, two_ranks(), {.bytes_per_site = 8});
            const lattice::field<double> x(site_order::lexicographic(two_ranks().local_box(j.rank()).extents), 1);
            auto y = padded_field(j);
            shell_plan shells(j, two_ranks(), {}, {halo::bind(y)});
            std::uint64_t in_vain = 0;
            for (int n = 0; n < rounds; ++n) {
                p.start(x);
                for (std::size_t faces = 0; faces < p.messages().size(); ++in_vain) faces += p.completed().size();
                ASSERT_EQ(p.finish(), status::ok);
                shells.start();
                for (std::size_t regions = 0; regions < shells.ghosts().size(); ++in_vain)
                    regions += shells.completed().size();
                ASSERT_EQ(shells.finish(), status::ok);
            }
            EXPECT_LT(in_vain / rounds, 1000u) << "a time slice has tens of thousands";
        },
        options);
}
