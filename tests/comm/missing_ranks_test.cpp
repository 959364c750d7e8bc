// SPDX-License-Identifier: Apache-2.0
// Who is missing while others wait in MPI_Init: the words. apps.heat4d.alone has the processes, under both MPIs.
#include "mpi/missing_ranks.hpp"

#include <gtest/gtest.h>

using namespace halocline::comm;

namespace {

seen_rank joining(int rank) {
    return {.rank = rank, .pid = 100 + rank, .joins = true, .state = 'S', .program = "a.out"};
}
seen_rank late(int rank, char state) {
    return {.rank = rank, .pid = 100 + rank, .joins = false, .state = state, .program = "a.out"};
}

TEST(MissingRanks, AreNamedWithWhatTheyDo) {
    EXPECT_EQ(missing_ranks({"h", 2, 2, {joining(0), late(1, 'S')}}),
              "rank 1 (pid 101 on h, 'a.out', asleep) has not called it");
    EXPECT_EQ(missing_ranks({"h", 3, 3, {late(0, 'T'), joining(1), late(2, 'R')}}),
              "rank 0 (pid 100 on h, 'a.out', stopped), rank 2 (pid 102 on h, 'a.out', running) have not called it");
}

TEST(MissingRanks, ThatHaveEndedAreNamedWhereAllAreOnOneHost) {
    EXPECT_EQ(missing_ranks({"h", 3, 3, {joining(0), joining(2)}}), "rank 1 has ended without it");
    EXPECT_EQ(missing_ranks({"h", 4, 4, {joining(0), late(2, 'S')}}),
              "rank 2 (pid 102 on h, 'a.out', asleep) has not called it; rank 1, rank 3 have ended without it");
    EXPECT_EQ(
        missing_ranks({"h", 4, 3, {joining(0), joining(2)}}),
        "1 of the ranks on h have ended without it; 1 rank is on other hosts, where those that wait report theirs");
}

TEST(MissingRanks, OfOtherHostsAreLeftToTheRanksThere) {
    EXPECT_EQ(missing_ranks({"h", 5, 2, {joining(0), joining(1)}}),
              "all 2 ranks on h have called it; 3 ranks are on other hosts");
    EXPECT_EQ(missing_ranks({"h", 4, 2, {joining(0), late(1, 'S')}}),
              "rank 1 (pid 101 on h, 'a.out', asleep) has not called it; 2 ranks are on other hosts, where those that "
              "wait report theirs");
}

TEST(MissingRanks, AreNotInventedIfAllHaveCome) {
    EXPECT_EQ(missing_ranks({"h", 2, 2, {joining(0), joining(1)}}),
              "all 2 ranks have called it, so MPI itself is slow or stuck");
}

TEST(MissingRanks, AreNotListedEndlessly) {
    ranks_of_host host{"h", 11, 11, {joining(0)}};
    for (int r = 1; r < 11; ++r) host.seen.push_back(late(r, 'S'));

    const std::string text = missing_ranks(host);

    EXPECT_NE(text.find("rank 8 (pid 108 on h, 'a.out', asleep) and 2 more have not called it"), std::string::npos)
        << text;
    EXPECT_EQ(text.find("rank 9"), std::string::npos);
}

} // namespace
