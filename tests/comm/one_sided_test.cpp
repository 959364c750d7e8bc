// SPDX-License-Identifier: Apache-2.0
// One-sided communication between processes, started by halocline-run.
#include "one_sided_bodies.hpp"

namespace {

using namespace halocline_test;

TEST(OneSided, Epochs) { expect_epochs(job::from_environment(), 1000); }
TEST(OneSided, OneWayEpochs) { expect_one_way_epochs(job::from_environment(), 1000); }
TEST(OneSided, SignalsFollowTheirBytes) { expect_signals_follow_their_bytes(job::from_environment()); }
TEST(OneSided, CallsInOrder) { expect_calls_in_order(job::from_environment(), 500); }
TEST(OneSided, BadInputIsTold) { expect_bad_one_sided_input_is_told(job::from_environment()); }
TEST(OneSided, LeavingEndsWaits) { expect_leaving_ends_waits(job::from_environment()); }

} // namespace
