// SPDX-License-Identifier: Apache-2.0
// An MPI program with windows inside: jobs over its own communicators, as well as its own messages. Linked with one
// MPI, run under its mpirun.
#include "porting.hpp"

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/halo/region_plan.hpp>
#include <halocline/halo/shell_plan.hpp>
#include <halocline_test/passage.hpp>
#include <halocline_test/run_tests.hpp>

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace {

using namespace halocline;
using namespace porting;

constexpr std::size_t rows = 7, width = 300;
constexpr int steps = 40;

/// Halves of the world, with ranks the other way round.
class communicator {
  public:
    communicator() {
        int rank = 0, ranks = 1;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        MPI_Comm_split(MPI_COMM_WORLD, ranks >= 4 ? rank % 2 : 0, -rank, &comm_);
        MPI_Comm_rank(comm_, &rank_);
        MPI_Comm_size(comm_, &ranks_);
    }
    ~communicator() { MPI_Comm_free(&comm_); }
    communicator(const communicator&) = delete;
    communicator& operator=(const communicator&) = delete;
    operator MPI_Comm() const { return comm_; }
    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] int ranks() const { return ranks_; }

  private:
    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0, ranks_ = 1;
};

class Porting : public testing::TestWithParam<const char*> {
  protected:
    [[nodiscard]] comm::job make_job() const {
        return comm::job::from_mpi(static_cast<MPI_Comm>(comm_),
                                   {.transports = {GetParam()}, .deadline = std::chrono::seconds(30)});
    }
    [[nodiscard]] std::pmr::vector<double> expected() const {
        strip u(rows, width, comm_.rank());
        diffuse_isend(comm_, u, steps);
        return u.values();
    }
    communicator comm_;
};

TEST_P(Porting, RanksAreThoseOfTheCommunicator) {
    const comm::job j = make_job();
    EXPECT_EQ(j.rank(), comm_.rank());
    EXPECT_EQ(j.ranks(), comm_.ranks());
    EXPECT_EQ(j.transport(), comm_.ranks() == 1 ? "self" : GetParam());
}

TEST_P(Porting, AllFormsGiveTheSameBits) {
    const auto reference = expected();
    strip persistent(rows, width, comm_.rank());
    diffuse_persistent(comm_, persistent, steps);
    EXPECT_EQ(persistent.values(), reference);

    const comm::job j = make_job();
    for (std::pmr::memory_resource* memory :
         {std::pmr::new_delete_resource(), static_cast<std::pmr::memory_resource*>(&j.memory())}) {
        strip u(rows, width, comm_.rank(), memory), v(rows, width, comm_.rank(), memory);
        diffuse_windows(j, u, steps);
        diffuse_three_steps(j, v, steps);
        EXPECT_EQ(u.values(), reference);
        EXPECT_EQ(v.values(), reference);
    }
}

/// The program's messages with any tag, on both communicators, never meet those of the job.
TEST_P(Porting, MessagesOfTheProgramAndOfTheJobStayApart) {
    const comm::job j = make_job();
    const int next = (comm_.rank() + 1) % comm_.ranks(), before = (comm_.rank() + comm_.ranks() - 1) % comm_.ranks();
    for (int n = 0; n < 5; ++n) {
        int in[2]{-1, -1};
        const int out[2]{1000 * n + comm_.rank(), 7};
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Status status;
        MPI_Irecv(in, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &request);
        strip u(rows, width, comm_.rank());
        diffuse_windows(j, u, 5); // all of it while the receive above takes anything
        MPI_Send(out, 2, MPI_INT, next, n, comm_);
        MPI_Wait(&request, &status);
        EXPECT_EQ(status.MPI_TAG, n);
        EXPECT_EQ(status.MPI_SOURCE, before);
        EXPECT_EQ(in[0], 1000 * n + before);
    }
}

TEST_P(Porting, JobsComeAndGoAndLiveSideBySide) {
    const comm::job first = make_job();
    for (int n = 0; n < 3; ++n) {
        const comm::job other = make_job();
        EXPECT_EQ(other.gather("x").size(), static_cast<std::size_t>(comm_.ranks()));
        first.barrier();
    }
}

INSTANTIATE_TEST_SUITE_P(Over, Porting, testing::Values("shm", "mpi"));

TEST(PortingErrors, WhatIsNoCommunicatorIsRefused) {
    try {
        const char nothing[3]{};
        (void)comm::job::from_mpi_handle(nothing, sizeof nothing);
        FAIL() << "accepted";
    } catch (const input_error& e) {
        EXPECT_NE(std::string(e.what()).find("no communicator of"), std::string::npos) << e.what();
    }
    EXPECT_THROW((void)comm::job::from_mpi(MPI_COMM_NULL), input_error);
}

TEST(PortingErrors, AThreadThatMayNotCallMpiIsRefused) {
    int level = 0;
    MPI_Query_thread(&level);
    if (level >= MPI_THREAD_SERIALIZED) GTEST_SKIP() << "any thread may call it here";
    std::string said;
    std::thread([&] {
        try {
            (void)comm::job::from_mpi(MPI_COMM_WORLD);
        } catch (const input_error& e) {
            said = e.what();
        }
    }).join();

    EXPECT_NE(said.find("only the thread that did it may make a job"), std::string::npos) << said;
    EXPECT_NE(said.find("MPI_THREAD_SERIALIZED"), std::string::npos) << said;
}

/// Starts and finishes an exchange of x by a team of two threads, of which this one is member 0, or member 1, and
/// expects that it works, or that the plan says why not.
template <class Plan, class Start>
void expect_of_a_team(Plan& p, const std::string& who, bool member_0, bool allowed, Start&& start) {
    const auto exchange = [&](halo::team t) {
        start(t);
        return p.finish(t);
    };
    std::thread other([&] { (void)exchange({member_0 ? 1 : 0, 2}); });
    const comm::status s = exchange({member_0 ? 0 : 1, 2});
    other.join();

    EXPECT_EQ(s, allowed ? comm::status::ok : comm::status::misused) << who;
    if (allowed) return;
    try {
        p.finish_or_throw();
        ADD_FAILURE() << who << ": no exception";
    } catch (const input_error& e) {
        EXPECT_NE(std::string(e.what()).find(who + ": member 0 of a team sends over transport mpi, but another thread "
                                                   "initialised MPI, with less than MPI_THREAD_SERIALIZED"),
                  std::string::npos)
            << e.what();
    }
}

/// Only member 0 calls MPI.
TEST(PortingErrors, ATeamWhoseMember0MayNotCallMpiIsRefused) {
    int level = 0;
    MPI_Query_thread(&level);
    if (level >= MPI_THREAD_SERIALIZED) GTEST_SKIP() << "any thread may call it here";
    for (const char* transport : {"shm", "mpi"})
        for (const bool initialised_it : {true, false}) { // did member 0?
            const comm::job j =
                comm::job::from_mpi(MPI_COMM_WORLD, {.transports = {transport}, .deadline = std::chrono::seconds(30)});
            if (j.ranks() == 1) GTEST_SKIP() << "one rank talks to nobody over MPI";
            const auto cut = lattice::decomposition::even({4, 4, 4, 4 * j.ranks()}, {1, 1, 1, j.ranks()});
            const lattice::field<double> x(lattice::site_order::lexicographic({4, 4, 4, 4}), 1);
            halo::plan p(j, cut, {.name = "team", .bytes_per_site = 8});
            const bool allowed = std::string(transport) == "shm" || initialised_it;
            expect_of_a_team(p, "halo 'team'", initialised_it, allowed, [&](halo::team t) { p.start(x, t); });

            const halo::ghost_widths widths{.low = {0, 0, 0, 1}, .high = {0, 0, 0, 1}};
            lattice::field<double> padded(halo::grown(cut.local_box(j.rank()), widths).extents, 1);
            halo::shell_plan shells(j, cut, {.name = "shell", .widths = widths, .reverse = true}, {halo::bind(padded)});
            expect_of_a_team(shells, "halo 'shell'", initialised_it, allowed,
                             [&](halo::team t) { shells.start(0, t); });
            halo::shell_plan back(j, cut, {.name = "back", .widths = widths, .reverse = true}, {halo::bind(padded)});
            expect_of_a_team(back, "halo 'back'", initialised_it, allowed,
                             [&](halo::team t) { back.start_reverse(0, t); });

            std::vector<halo::transfer> sends, receives;
            sends.push_back({(j.rank() + 1) % j.ranks(), 0, {0}});
            receives.push_back({(j.rank() + j.ranks() - 1) % j.ranks(), 0, {1}});
            halo::region_plan regions(j, sends, receives, {halo::bind(padded)}, {.name = "regions"});
            expect_of_a_team(regions, "'regions'", initialised_it, allowed, [&](halo::team t) { regions.start(0, t); });
        }
}

TEST(PortingPage, ShowsTheCodeThatIsTestedHere) {
    const auto shown = [](const std::string& file, const std::string& first, const std::string& last) {
        return halocline_test::passage("tests/comm/porting/" + file, first, last);
    };
    halocline_test::expect_page_shows("docs/porting-from-mpi.md",
                                      {shown("with_mpi.cpp", "    for (int n", "    }"),
                                       shown("with_mpi.cpp", "    MPI_Request requests[4];", "    }"),
                                       shown("with_windows.cpp", "    comm::connection low", "    }"),
                                       shown("with_windows.cpp", "    from_low.init(); // the ghosts", "    }")});
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    testing::InitGoogleTest(&argc, argv);
    const int failed = halocline_test::run_tests(halocline_test::skips::of_some_runs);
    MPI_Finalize();
    return failed;
}
