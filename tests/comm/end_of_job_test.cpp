// SPDX-License-Identifier: Apache-2.0
// How a job's end is reported within a node.
#include "job/job_core.hpp"

#include <halocline/comm/job.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace halocline::comm;

TEST(EndOfJob, IsToldThoughWhoBeganToTellItWasKilled) {
    run_threads(1, [](const job& j) {
        failure_record& record = j.core().memory->record();
        record.state.store(failure_record::being_written);

        j.core().publish(status::aborted, 0, "a survivor's words");

        EXPECT_EQ(j.core().failed(), status::aborted);
        EXPECT_NE(std::string(record.text).find("a survivor's words"), std::string::npos) << record.text;
    });
}

} // namespace
