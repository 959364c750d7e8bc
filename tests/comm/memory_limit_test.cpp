// SPDX-License-Identifier: Apache-2.0
// Limits on memory, read from made-up control groups.
#include <halocline/comm/memory_limit.hpp>

#include <halocline_test/made_up_process.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace halocline::comm;
using numbers = std::vector<double>;

/// On a host with 1000 bytes of memory and 100 of swap.
struct made_up_process : halocline_test::made_up_process {
    [[nodiscard]] numbers limits() const {
        numbers found;
        for (const memory_limit& l : memory_limits(1000, 100, folder())) found.push_back(l.bytes);
        return found;
    }
};

TEST(MemoryLimit, OfVersion2IsThatOfMemoryAndThatOfSwap) {
    const made_up_process p;
    p.is_in("0::/a/b");
    p.mount("/", "groups", "cgroup2 cgroup2 rw,nsdelegate");
    p.write("groups/a/b/memory.max", "max\n");
    p.write("groups/a/b/memory.swap.max", "max\n");
    EXPECT_EQ(p.limits(), numbers{});

    p.write("groups/a/b/memory.max", "300\n");
    EXPECT_EQ(p.limits(), numbers{400});
    p.write("groups/a/b/memory.swap.max", "0\n");
    EXPECT_EQ(p.limits(), numbers{300});
    p.write("groups/a/memory.max", "250\n");
    p.write("groups/a/memory.swap.max", "20\n");
    EXPECT_EQ(p.limits(), (numbers{300, 270}));
    p.write("groups/a/b/memory.max", "5000\n"); // more than there is
    EXPECT_EQ(p.limits(), (numbers{1000, 270}));
}

TEST(MemoryLimit, OfVersion1IsThatOfMemoryAndThatOfBoth) {
    const made_up_process p;
    p.is_in("4:memory:/jobs/7");
    p.is_in("1:cpu:/somewhere/else");
    p.mount("/", "cpu", "cgroup cgroup rw,cpu");
    p.mount("/jobs", "memory", "cgroup cgroup rw,memory");
    p.write("memory/7/memory.limit_in_bytes", "9223372036854771712\n");
    p.write("memory/7/memory.memsw.limit_in_bytes", "9223372036854771712\n");
    EXPECT_EQ(p.limits(), numbers{});

    p.write("memory/7/memory.limit_in_bytes", "200\n");
    EXPECT_EQ(p.limits(), numbers{300});
    p.write("memory/7/memory.memsw.limit_in_bytes", "220\n");
    EXPECT_EQ(p.limits(), numbers{220});
}

} // namespace
