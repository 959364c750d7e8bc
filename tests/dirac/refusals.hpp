// SPDX-License-Identifier: Apache-2.0
// What a job refuses: a collective call has one error, the same on every rank.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace halocline_test {

/// The text of the input_error that every rank of a job throws in call(job), ranks as threads; "accepted" if they throw
/// none.
template <class Call>
std::string refusal_of_all(int ranks, Call&& call) {
    std::vector<std::string> texts(static_cast<std::size_t>(ranks));
    halocline::comm::run_threads(ranks, [&](const halocline::comm::job& j) {
        texts[static_cast<std::size_t>(j.rank())] = refusal([&] { call(j); });
    });
    for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
    return texts[0];
}

} // namespace halocline_test
