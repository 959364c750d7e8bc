// SPDX-License-Identifier: Apache-2.0
// One-sided communication between ranks that are threads: what the thread sanitizer can judge.
#include "one_sided_bodies.hpp"

namespace {

using namespace halocline_test;

TEST(OneSidedThreads, Epochs) {
    for (const int ranks : {1, 2, 3}) run_threads(ranks, [](const job& j) { expect_epochs(j, 300); });
}
TEST(OneSidedThreads, OneWayEpochs) {
    for (const int ranks : {2, 4}) run_threads(ranks, [](const job& j) { expect_one_way_epochs(j, 300); });
}
TEST(OneSidedThreads, SignalsFollowTheirBytes) { run_threads(3, expect_signals_follow_their_bytes); }
TEST(OneSidedThreads, PutsOfAnySizeArrive) { run_threads(2, expect_puts_of_any_size_arrive); }
TEST(OneSidedThreads, PutsThatAreStreamedArrive) {
    job_options options;
    options.path = path::streamed;
    run_threads(2, expect_puts_of_any_size_arrive, options);
}
TEST(OneSidedThreads, CallsInOrder) {
    for (const int ranks : {1, 3}) run_threads(ranks, [](const job& j) { expect_calls_in_order(j, 300); });
}
TEST(OneSidedThreads, BadInputIsTold) { run_threads(3, expect_bad_one_sided_input_is_told); }
TEST(OneSidedThreads, LeavingEndsWaits) { run_threads(2, expect_leaving_ends_waits); }

} // namespace
