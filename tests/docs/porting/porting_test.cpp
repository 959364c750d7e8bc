// SPDX-License-Identifier: Apache-2.0
// The examples of docs/porting-from-mpi.md that replace the exchange of a program's own arrays give the bits of MPI.
// Linked with one MPI, run under its mpirun.
#include "porting.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline/comm/window.hpp>
#include <halocline_test/environment_variable.hpp>
#include <halocline_test/passage.hpp>
#include <halocline_test/run_tests.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory_resource>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace halocline;
using namespace porting;

constexpr extents global{7, 5, 4, 6};
constexpr int steps = 7;

int ranks_of_world() {
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks;
}

/// A Cartesian communicator of all ranks.
class cartesian {
  public:
    cartesian(const extents& grid, const extents& periods) : grid_(grid) {
        MPI_Cart_create(MPI_COMM_WORLD, 4, grid.data(), periods.data(), 0, &comm_);
        MPI_Comm_rank(comm_, &rank_);
        MPI_Cart_coords(comm_, rank_, 4, coords_.data());
    }
    ~cartesian() { MPI_Comm_free(&comm_); }
    cartesian(const cartesian&) = delete;
    cartesian& operator=(const cartesian&) = delete;
    operator MPI_Comm() const { return comm_; }
    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] const extents& coords() const { return coords_; }
    /// What this rank has of the lattice, as a program of MPI computes it: the first ranks have one site more.
    [[nodiscard]] padded_array part() const {
        extents local{}, origin{};
        for (int mu = 0; mu < 4; ++mu) {
            const int least = global[mu] / grid_[mu], rest = global[mu] % grid_[mu];
            local[mu] = least + (coords_[mu] < rest ? 1 : 0);
            origin[mu] = coords_[mu] * least + std::min(coords_[mu], rest);
        }
        return {local, origin};
    }

  private:
    extents grid_, coords_{};
    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0;
};

/// Rank grids in which ranks that count along x first have other places.
extents rank_grid() {
    switch (ranks_of_world()) {
    case 4: return {2, 1, 1, 2};
    case 6: return {3, 1, 2, 1};
    default: return {ranks_of_world(), 1, 1, 1};
    }
}

class PortingExamples : public testing::TestWithParam<const char*> {
  protected:
    halocline_test::environment_variable transports{"HALOCLINE_COMM_TRANSPORTS", GetParam()};
};

TEST_P(PortingExamples, AProgramsOwnPaddedArraysHaveTheBitsOfMpi) {
    for (const extents& periods : {extents{1, 1, 1, 1}, extents{0, 1, 1, 0}}) {
        const cartesian cart(rank_grid(), periods);
        padded_array theirs = cart.part(), ours = cart.part();

        diffuse_with_mpi(cart, theirs, steps);
        diffuse_with_halocline(cart, global, ours, steps);

        EXPECT_TRUE(ours == theirs) << "rank " << cart.rank(); // ghosts included
    }
}

TEST_P(PortingExamples, ColumnsHaveTheBitsOfMpi) {
    const auto job = comm::job::from_mpi(MPI_COMM_WORLD);
    for (const std::size_t layers : {1, 2, 5})
        for (const std::size_t rows : {1, 30, 700}) {
            plane theirs(rows, 20, layers, job.rank()), ours(rows, 20, layers, job.rank());

            exchange_columns_with_mpi(MPI_COMM_WORLD, theirs, steps);
            exchange_columns_with_windows(job, ours, steps);

            EXPECT_EQ(ours.values(), theirs.values());
        }
}

/// With MPI_Recv in place of progress() a message into the slab, which waits for its receiver, would never leave.
TEST_P(PortingExamples, AnAnswerOfMpiMayDependOnAMessageUnderWay) {
    const auto job = comm::job::from_mpi(MPI_COMM_WORLD);
    if (job.ranks() == 1) GTEST_SKIP() << "there is no peer";
    for (const std::size_t size : {1, 500, 100'000}) {
        std::vector<double> values(size, 1.5);
        if (job.rank() == 0) {
            EXPECT_EQ(send_and_hear(MPI_COMM_WORLD, job, 1, values), 42);
        } else if (job.rank() == 1) {
            std::pmr::vector<double> got(size, &job.memory());
            comm::connection from_peer(job, 0, {"work", work_tag, work_tag});
            comm::recv_window<double> work(from_peer, got);
            from_peer.connect();
            std::this_thread::sleep_for(std::chrono::milliseconds(20)); // so that the sender comes first
            work.start();
            work.wait_or_throw();
            const int answer = std::ranges::equal(got, values) ? 42 : 0;
            MPI_Send(&answer, 1, MPI_INT, 0, work_tag, MPI_COMM_WORLD);
        }
    }
    job.barrier();
}

TEST_P(PortingExamples, ASumGoesOnDuringAnotherExchange) {
    const auto job = comm::job::from_mpi(MPI_COMM_WORLD);
    double expected = 0;
    const double mine = 0.5 + job.rank();
    MPI_Allreduce(&mine, &expected, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    plane u(30, 20, 1, job.rank());

    const double total = sum_of(job, mine, [&] { exchange_columns_with_windows(job, u, steps); });

    EXPECT_EQ(total, expected);
}

INSTANTIATE_TEST_SUITE_P(Over, PortingExamples, testing::Values("shm", "mpi"));

TEST(PortingExamples, ReversedDimensionsNeedNoRankOrder) {
    extents grid = rank_grid();
    std::ranges::reverse(grid);
    const cartesian cart(grid, {1, 1, 1, 1}); // t, z, y, x

    const lattice::decomposition cut = cut_of_reversed(cart, global);

    for (int rank = 0; rank < cut.ranks(); ++rank) {
        extents at{};
        MPI_Cart_coords(cart, rank, 4, at.data());
        std::ranges::reverse(at);
        EXPECT_EQ(cut.grid_position(rank), at);
    }
}

TEST(PortingExamplesPage, ShowsTheCodeThatIsTestedHere) {
    const auto shown = [](const std::string& first, const std::string& last) {
        return halocline_test::passage("tests/docs/porting/with_halocline.cpp", first, last);
    };
    halocline_test::expect_page_shows(
        "docs/porting-from-mpi.md",
        {shown("void diffuse_with_halocline", "}"), shown("lattice::decomposition cut_of_reversed", "}"),
         shown("    comm::connection low", "    }"), shown("    work.start();", "    work.wait_or_throw();"),
         shown("    comm::global_sum sum", "    sum.finish_or_throw({&total, 1}); // was MPI_Wait")});
    halocline_test::expect_page_shows(
        "README.md",
        {shown("void diffuse_with_halocline", "    const auto job = comm::job::from_mpi(cart); // once, by all "
                                              "ranks; ended before MPI_Finalize"),
         shown("    halo::shell_plan ghosts", "}")});
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    testing::InitGoogleTest(&argc, argv);
    const int failed = halocline_test::run_tests(halocline_test::skips::of_some_runs);
    MPI_Finalize();
    return failed;
}
