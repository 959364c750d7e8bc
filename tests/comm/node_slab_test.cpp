// SPDX-License-Identifier: Apache-2.0
// The file behind a slab, and what giving back its memory takes. Fields, peaks and peers: threads_test.cpp.
#include "node/node_slab.hpp"

#include <halocline_test/allocation_counter.hpp>
#include <halocline_test/forbid_system_calls.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace halocline::comm;
using namespace halocline_test;

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr int cannot_filter = 77;

/// 0: a slab could be made although memfd_create() fails with that error if MFD_NOEXEC_SEAL is as `set` says.
int made_although(bool set, int error) {
    const pid_t child = fork();
    if (child == 0) {
        constexpr unsigned not_executable = 0x0008;
        if (!refuse_system_call_by_flag(SYS_memfd_create, not_executable, set, error)) _exit(cannot_filter);
        try {
            const node_slab slab(2 * mebibyte);
            *slab.base() = std::byte{1};
        } catch (const std::exception&) {
            _exit(1);
        }
        _exit(0);
    }
    int how = 0;
    return waitpid(child, &how, 0) == child && WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

TEST(NodeSlab, IsAFileThatNeedNotBeExecutable) {
    const int where_only_such_files_may_be = made_although(false, EACCES); // vm.memfd_noexec = 2
    if (where_only_such_files_may_be == cannot_filter) GTEST_SKIP() << "system calls can't be filtered here";

    EXPECT_EQ(where_only_such_files_may_be, 0);
    EXPECT_EQ(made_although(true, EINVAL), 0) << "as of a kernel that does not know of them";
    EXPECT_EQ(made_although(true, EACCES), 1) << "no other error is tried again";
}

/// Of more than the pages that the slab begins at, too.
TEST(NodeSlab, AlignmentIsOfTheAddress) {
    node_slab slab(512 * mebibyte);
    for (std::size_t alignment = 128; alignment <= 64 * mebibyte; alignment *= 2) {
        for (void* const block : {slab.allocate(1000, alignment), slab.reserve(1000, alignment)})
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U) << alignment;
    }
}

/// Destructors give it back, and what is called from C.
TEST(NodeSlab, ItsMemoryIsGivenBackWithoutAny) {
    node_slab slab(16 * mebibyte);
    const std::size_t used = slab.used();
    std::vector<void*> blocks(5);
    for (void*& block : blocks) block = slab.allocate(1000, 128);
    slab.pin(blocks[3]);

    const std::uint64_t made = allocations_in([&] {
        for (const int i : {0, 2, 1, 4, 3}) slab.deallocate(blocks[i], 1000, 128); // alone, alone, between them, ...
    });
    slab.unpin(blocks[3]);

    EXPECT_EQ(made, 0U);
    EXPECT_EQ(slab.used(), used);
    EXPECT_NE(slab.allocate(14 * mebibyte, 128), nullptr) << "the pieces have become one";
}

TEST(NodeSlab, BlocksThatLackMemoryForTheirBookkeepingTakeNothing) {
    node_slab slab(16 * mebibyte);
    const std::size_t used = slab.used();
    {
        const without_memory none;
        EXPECT_THROW((void)slab.allocate(1000, 128), std::bad_alloc);
    }

    EXPECT_EQ(slab.used(), used);
    void* const all = slab.allocate(14 * mebibyte, 128);
    slab.deallocate(all, 14 * mebibyte, 128);
    EXPECT_EQ(slab.used(), used);
}

} // namespace
