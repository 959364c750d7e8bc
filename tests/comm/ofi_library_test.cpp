// SPDX-License-Identifier: Apache-2.0
// What loading libfabric does to the process that loads it. A test of its own: it is loaded once.
#include "ofi/world.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <string>

namespace {

void of_the_program(int /*signal*/) {}

TEST(OfiLibrary, LeavesTheProgramsSignalHandlers) {
    std::signal(SIGTERM, of_the_program);

    ASSERT_TRUE(halocline::comm::ofi_present().starts_with("libfabric")) << halocline::comm::ofi_present();

    for (int s = 1; s < NSIG; ++s) {
        struct sigaction now {};
        if (sigaction(s, nullptr, &now) != 0) continue; // glibc's own
        EXPECT_EQ(now.sa_handler, s == SIGTERM ? of_the_program : SIG_DFL) << strsignal(s);
    }
}

/// Of another host it could only wait for the deadline.
TEST(OfiLibrary, ProviderShmReachesRanksOfItsHostOnly) {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;

    const std::string kind = halocline::comm::ofi_world("shm", "").kind();

    EXPECT_TRUE(kind.starts_with("shm")) << kind;
    EXPECT_NE(kind.find(boot), std::string::npos) << kind;
}

} // namespace
