// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads, on one core: what they wait for happens only when they yield it.
#pragma once

#include <halocline/comm/processors.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace halocline_test {

/// Binds the calling thread to the first processor that it may use.
inline void bind_to_first_core() {
    const std::vector<int> usable = halocline::comm::usable_processors();
    ASSERT_FALSE(usable.empty());
    ASSERT_TRUE(halocline::comm::bind_to({usable.data(), 1}));
}

} // namespace halocline_test
