// SPDX-License-Identifier: Apache-2.0
// Windows between ranks that are processes, over the transport that the argument names (named_transport.hpp).
#include "named_transport.hpp"
#include "window_bodies.hpp"
#include "window_connection_bodies.hpp"

namespace {

using namespace halocline_test;

std::string transport;

/// Nobody leaves while others still look at this rank.
class Window : public testing::Test {
  protected:
    ~Window() override { job_.barrier(); }
    job job_ = job::from_environment(options_over(transport));
    [[nodiscard]] std::uint64_t steps(std::uint64_t alone) const {
        const bool slow = job_.ranks() > 2 || transport == "verbs"; // that runs in an emulated machine
        return slow ? std::max<std::uint64_t>(5, alone / 10) : alone;
    }
};

TEST_F(Window, StepsInOrder) { expect_steps_in_order(job_, steps(100)); }
TEST_F(Window, OneWayStream) { expect_one_way_stream(job_, steps(1000)); }
TEST_F(Window, AnyOrderOfConnections) { expect_any_order_of_connections(job_); }
TEST_F(Window, TheFirstMessageWaitsForALateEnd) { expect_the_first_message_waits_for_a_late_end(job_); }
TEST_F(Window, ConnectionsOfAPairKeepTheirOrder) { expect_connections_of_a_pair_keep_their_order(job_); }
TEST_F(Window, PostedMessagesMoveInAnyWait) { expect_posted_messages_move_in_any_wait(job_); }
TEST_F(Window, UnlikeEndsAreRefused) { expect_unlike_ends_are_refused(job_); }
TEST_F(Window, OfNothingKeepsItsSteps) { expect_windows_of_nothing_keep_their_steps(job_); }
TEST_F(Window, MisuseIsTold) { expect_misuse_is_told(job_); }
TEST_F(Window, FarewellEndsTheWait) { expect_farewell_ends_the_wait(job_); }

TEST_F(Window, NoAllocationBetweenInitAndWait) {
    if (job_.transport() != "self" && job_.transport() != "shm") GTEST_SKIP() << "promised of shared memory";
    expect_no_allocation(job_);
}

TEST_F(Window, DescribesHowTheBytesGo) {
    words buffer(100, 0, &job_.memory());
    connection c(job_, (job_.rank() + 1) % job_.ranks(), {"named"});
    recv_window<std::uint64_t> w(c, buffer);
    EXPECT_NE(w.describe().find("100 of uint64"), std::string::npos) << w.describe();
    EXPECT_NE(w.describe().find("'named'"), std::string::npos) << w.describe();
}

} // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    transport = argc > 1 ? argv[1] : "shm";
    return RUN_ALL_TESTS();
}
