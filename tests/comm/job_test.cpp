// SPDX-License-Identifier: Apache-2.0
// Ranks as processes: started by halocline-run.
#include "large_mail.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/comm/slab_full.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace halocline;
using namespace halocline::comm;
using halocline_test::refusal;

TEST(Processes, LargeMessagesCrossBothWaysAtOnce) {
    const job j = job::from_environment();
    halocline_test::expect_large_messages_cross(j);
    EXPECT_EQ(j.broadcast("from " + std::to_string(j.rank()), j.ranks() - 1), "from " + std::to_string(j.ranks() - 1));
}

TEST(Processes, DisagreementIsTheSameErrorEverywhere) {
    const job j = job::from_environment();
    ASSERT_GT(j.ranks(), 1) << "one rank agrees with itself";
    const std::string text = refusal([&] { j.agree("the grid", j.rank() == 1 ? "8.8.8.8" : "4.4.4.4"); });
    EXPECT_EQ(text, "ranks disagree on the grid: rank 0 has '4.4.4.4', rank 1 has '8.8.8.8'; give every rank the same");
    j.agree("the text", text);
}

TEST(Processes, DisagreementOfLongValuesShowsWhereTheyDiffer) {
    const job j = job::from_environment();
    ASSERT_GT(j.ranks(), 1);
    const std::string text = refusal(
        [&] { j.agree("much", std::string(300, '.') + (j.rank() == 1 ? "8.8" : "4.4") + std::string(300, '.')); });
    const std::string before = "'..." + std::string(40, '.'), behind = std::string(77, '.') + "...'";
    EXPECT_EQ(text, "ranks disagree on much: rank 0 has " + before + "4.4" + behind + ", rank 1 has " + before + "8.8" +
                        behind + "; give every rank the same");
}

TEST(Processes, DisagreementOfSeveralLinesShowsTheOneThatDiffers) {
    const job j = job::from_environment();
    ASSERT_GT(j.ranks(), 1);
    const std::string text =
        refusal([&] { j.agree("much", j.rank() == 1 ? "a = 1\nb = 23\nc = 4\n" : "a = 1\nb = 2\nc = 4\n"); });
    EXPECT_EQ(text, "ranks disagree on much: rank 0 has 'b = 2', rank 1 has 'b = 23'; give every rank the same");
}

TEST(Processes, TheLowestRankThatFailedSpeaksForAll) {
    const job j = job::from_environment();
    for (int bad = 0; bad < j.ranks(); ++bad) {
        const std::string text = refusal([&] {
            j.collectively([&] {
                if (j.rank() >= bad) throw input_error("rank " + std::to_string(j.rank()));
            });
        });
        EXPECT_EQ(text, "rank " + std::to_string(bad));
        EXPECT_EQ(j.broadcast(j.rank() == bad ? text : std::string(), bad), text);
    }
}

TEST(Processes, ASlabThatIsFullIsFullForAll) {
    job_options options;
    options.slab_bytes = std::size_t{16} << 20;
    const job j = job::from_environment(options);
    const std::string text = refusal<slab_full>([&] {
        j.collectively([&] {
            if (j.rank() == j.ranks() - 1) static_cast<void>(j.memory().allocate(std::size_t{64} << 20));
        });
    });
    EXPECT_NE(text.find("slab: need 64"), std::string::npos) << text;
}

TEST(Processes, NoNumberOfBytesIsSmallBecauseItWraps) {
    const job j = job::from_environment();
    for (const std::size_t bytes : {~std::size_t{0}, ~std::size_t{0} - 100, std::size_t{1} << 63})
        EXPECT_THROW(static_cast<void>(j.memory().allocate(bytes)), slab_full) << bytes;
}

TEST(Processes, MembersAreKnownWithTheirTransports) {
    const job j = job::from_environment();
    for (const rank_info& m : j.members()) EXPECT_EQ(m.transport, m.rank == j.rank() ? "self" : "shm");
    EXPECT_EQ(j.transport(), j.ranks() == 1 ? "self" : "shm");
    EXPECT_EQ(j.launcher(), "halocline-run");
}

TEST(Processes, MpiWithoutAnMpiLauncherNamesTheCommand) {
    job_options options;
    options.transports = {"mpi"};
    const std::string text = refusal([&] { const job j = job::from_environment(options); });
    EXPECT_NE(text.find("mpirun -n "), std::string::npos) << text;
}

} // namespace
