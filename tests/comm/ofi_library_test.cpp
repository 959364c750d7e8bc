// SPDX-License-Identifier: Apache-2.0
// What loading libfabric does to the process. A separate test, because it is loaded once.
#include "ofi/provider.hpp"
#include "ofi/world.hpp"

#include <halocline/base/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

/// The provider that is chosen by that name where FI_PROVIDER is `visible`; or the error. By a child of its own, before
/// this process loads the library.
std::string chosen_of(const char* visible, const char* wish) {
    int ends[2];
    if (pipe(ends) != 0) return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
        setenv("FI_PROVIDER", visible, 1);
        std::string text;
        try {
            text = halocline::comm::choose_ofi_provider(wish, "127.0.0.1").name;
        } catch (const halocline::error& e) {
            text = e.what();
        }
        _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    ::close(ends[1]);
    std::string text(1000, '\0');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read(ends[0], text.data(), text.size()))));
    ::close(ends[0]);
    waitpid(child, nullptr, 0);
    return text;
}

TEST(OfiLibrary, NetStandsForTcpWhereThereIsNone) {
    const std::string chosen = chosen_of("^net", "net"); // all but that, as in other versions

    EXPECT_TRUE(chosen == "tcp" || chosen == "tcp;ofi_rxm") << chosen;
    EXPECT_TRUE(chosen_of("^net", "nett").starts_with("libfabric has no provider 'nett'"));
}

TEST(OfiLibrary, SocketsSendsTaggedMessagesBecauseItsWritesNeverArrive) {
    const std::string chosen = chosen_of("sockets", "");
    if (chosen.starts_with("libfabric has no provider")) GTEST_SKIP() << chosen;

    EXPECT_EQ(chosen, "sockets,tagged");
    EXPECT_EQ(chosen_of("sockets", "sockets"), "sockets,tagged");
}

void of_the_program(int /*signal*/) {}

TEST(OfiLibrary, LeavesTheProgramsSignalHandlers) {
    std::signal(SIGTERM, of_the_program);
    std::array<struct sigaction, NSIG> before{}; // sanitizers have their own handlers
    for (int s = 1; s < NSIG; ++s) sigaction(s, nullptr, &before[s]);

    ASSERT_TRUE(halocline::comm::ofi_present().starts_with("libfabric")) << halocline::comm::ofi_present();

    for (int s = 1; s < NSIG; ++s) {
        struct sigaction now {};
        if (sigaction(s, nullptr, &now) != 0) continue; // reserved by glibc
        EXPECT_EQ(now.sa_handler, before[s].sa_handler) << strsignal(s);
    }
    EXPECT_EQ(std::signal(SIGTERM, SIG_DFL), of_the_program);
}

std::size_t resident_bytes() {
    std::size_t size = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Its ofi_rxm layer would take 84 MB for messages that nobody sends; a killed rank has to free them before its sockets
/// reveal that it died.
TEST(OfiLibrary, ProviderTcpTakesLittleMemory) {
    const std::size_t before = resident_bytes();

    const halocline::comm::ofi_world world("tcp;ofi_rxm", "127.0.0.1");

    EXPECT_LT(resident_bytes() - before, std::size_t{30} << 20);
    EXPECT_EQ(std::getenv("FI_OFI_RXM_BUFFER_SIZE"), nullptr);
}

/// To reach a rank on another host it could only wait for the deadline.
TEST(OfiLibrary, ProviderShmReachesRanksOfItsHostOnly) {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;

    const std::string kind = halocline::comm::ofi_world("shm", "").kind();

    EXPECT_TRUE(kind.starts_with("shm")) << kind;
    EXPECT_NE(kind.find(boot), std::string::npos) << kind;
}

} // namespace
