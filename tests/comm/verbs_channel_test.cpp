// SPDX-License-Identifier: Apache-2.0
// Transport `verbs` between processes started by halocline-run, on a machine with an RDMA device.
#include "contract/bodies.hpp"

#include "job/job_core.hpp"
#include "verbs/world.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/messenger.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline_test/run_tests.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <linux/capability.h>
#include <memory>
#include <span>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline_test;

job_options over_verbs() {
    job_options options;
    options.transports = {"verbs"};
    options.deadline = std::chrono::seconds(60);
    return options;
}

void expect_in(const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

TEST(Verbs, ServesEveryPeer) {
    const job j = job::from_environment(over_verbs());
    for (const rank_info& m : j.members()) EXPECT_EQ(m.transport, m.rank == j.rank() ? "self" : "verbs");
    EXPECT_EQ(j.transport(), "verbs");
}

TEST(Verbs, ChannelsDeliverMessagesOfEverySize) {
    const job j = job::from_environment(over_verbs());
    for (const std::size_t bytes : {0, 1, 63, 64, 65, 511, 512, 513, 8191, 8192, 8193, 65'536, 1 << 20}) {
        expect_ring_delivers(j, bytes, bytes > 100'000 ? 3 : 12);
    }
}

TEST(Verbs, MessagesLongerThanAWriteAreSplit) {
    job_options options = over_verbs();
    options.verbs.largest_write = 65'536;
    const job j = job::from_environment(options);
    for (const std::size_t bytes : {65'536 - 65, 65'536 - 64, 65'536 - 63, 200'000}) expect_ring_delivers(j, bytes, 4);
    channel_set set(j, ring(j, 1 << 20), {"ring", ""});
    set.for_each([&](auto& c) { c.send(1, 0); });
    ASSERT_EQ(set.wait(1), status::ok) << set.pending(1);
    EXPECT_EQ(set.counts(1).at(0).writes, 2 * (17 + 1u)); // 64 + 1 048 576 bytes are 17 writes; plus a greeting each
}

TEST(Verbs, ChannelsDeliverEveryEpochInOrder) {
    const job j = job::from_environment(over_verbs());
    expect_ring_delivers(j, 64, 1'000); // in the work request
    expect_ring_delivers(j, 4096, 100); // from registered memory
}

TEST(Verbs, EveryInlineLimitDeliversTheSame) {
    for (const int inline_bytes : {0, 40, 4096}) { // the last is more than soft-RoCE takes
        job_options options = over_verbs();
        options.verbs.inline_bytes = inline_bytes;
        const job j = job::from_environment(options);
        for (const std::size_t bytes : {8, 9, 2000}) expect_ring_delivers(j, bytes, 40);
    }
}

TEST(Verbs, EveryMtuDeliversTheSame) {
    for (const int mtu : {256, 1024}) {
        job_options options = over_verbs();
        options.verbs.mtu = mtu;
        expect_ring_delivers(job::from_environment(options), 5000, 20);
    }
}

TEST(Verbs, GlobalSumEqualsSerialSumWithTheSameBitsEverywhere) {
    expect_sums_equal_serial(job::from_environment(over_verbs()));
}

/// A counter of the port, as kept by soft-RoCE; 0 if there is no such counter.
std::uint64_t port_counter(const std::string& name) {
    std::uint64_t sum = 0;
    for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband")) {
        std::uint64_t value = 0;
        std::ifstream(device.path() / "ports/1/hw_counters" / name) >> value;
        sum += value;
    }
    return sum;
}

TEST(Verbs, RanksMayHaveDifferentDevices) {
    job_options options = over_verbs();
    options.verbs.device = std::atoi(std::getenv("HALOCLINE_RANK")) % 2 == 0 ? "rxe0" : "rxe1";
    const job j = job::from_environment(options);
    const auto received = [] { // packets that arrived over the cable
        std::uint64_t n = 0;
        std::ifstream("/sys/class/net/veth1/statistics/rx_packets") >> n;
        return n;
    };
    const std::uint64_t before = received();
    for (const std::size_t bytes : {8, 5000}) expect_ring_delivers(j, bytes, 40);
    EXPECT_GT(received(), before + 100);
    j.barrier();
}

TEST(Verbs, SteadyStateIsOneWriteAMessageAndReceivesInBatches) {
    const job j = job::from_environment(over_verbs());
    for (const std::size_t bytes : {8, 5000}) {
        channel_set set(j, ring(j, bytes), {"ring", ""});
        const auto exchange = [&](std::uint64_t k) {
            set.for_each([&](auto& c) { c.send(k, 0); });
            if (const status s = set.wait(k); s != status::ok) j.fail(s, set.pending(k));
        };
        constexpr std::uint64_t warm = 64, steady = 160;
        for (std::uint64_t k = 1; k <= warm; ++k) exchange(k);
        const transport_counts before = set.counts(warm).at(0);
        const std::uint64_t not_ready = port_counter("send_rnr_err") + port_counter("rcvd_rnr_err");
        for (std::uint64_t k = warm + 1; k <= warm + steady; ++k) exchange(k);
        const transport_counts after = set.counts(warm + steady).at(0);

        EXPECT_EQ(after.messages - before.messages, 2 * steady);
        EXPECT_EQ(after.writes - before.writes, 2 * steady);
        // The peer's next message may have arrived already.
        EXPECT_NEAR(static_cast<double>(after.receives - before.receives), 2 * steady, 2 * 16);
        const double told = bytes < 100 ? 1.0 / 16 : 1; // of small sends, every 16th signals
        EXPECT_NEAR(static_cast<double>(after.completions - before.completions), (1 + told) * 2 * steady, 2 * 3);
        EXPECT_EQ(port_counter("send_rnr_err") + port_counter("rcvd_rnr_err"), not_ready) << "a write found no receive";
        j.barrier(); // nobody closes before all have looked
    }
}

TEST(Verbs, AClosedPlanEndsThePeersWaitAndAllThatWasSentArrives) {
    const job j = job::from_environment(over_verbs());
    for (int round = 0; round < 5; ++round) {
        channel_set set(j, ring(j, 64), {"ring", ""});
        set.for_each([&](auto& c) { c.send(1, 0); });
        ASSERT_EQ(set.wait(1), status::ok) << set.pending(1);
        if (j.rank() == 1) {
            set.for_each([&](auto& c) { c.send(2, 0); });
            EXPECT_EQ(set.wait(2), status::aborted);
        } else {
            set = channel_set();
        }
        j.barrier();
    }
}

TEST(Verbs, MemoryOfClosedPlansComesBack) {
    const job j = job::from_environment(over_verbs());
    // Two plans at a time: farewells of the previous one may still be under way.
    std::size_t used = 0;
    for (int round = 0; round < 8; ++round) {
        channel_set set(j, ring(j, 100'000), {"ring", ""});
        set.for_each([&](auto& c) { c.send(1, 0); });
        ASSERT_EQ(set.wait(1), status::ok) << set.pending(1);
        j.barrier();
        if (round == 2) used = j.memory().used();
    }
    EXPECT_LE(j.memory().used(), 3 * used);
}

/// A child of fork() that writes over its copy of `memory`, and lives as long as this object.
class busy_child {
  public:
    explicit busy_child(std::span<std::byte> memory) {
        int ends[2];
        if (pipe(ends) != 0) std::abort();
        pid_ = fork();
        if (pid_ == 0) {
            for (volatile std::byte& b : memory) b = std::byte{0xee};
            if (write(ends[1], "", 1) != 1) _exit(1);
            while (true) ::pause();
        }
        close(ends[1]);
        char word = 1;
        EXPECT_EQ(read(ends[0], &word, 1), 1) << "the child died";
        close(ends[0]);
    }
    ~busy_child() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    busy_child(const busy_child&) = delete;
    busy_child& operator=(const busy_child&) = delete;

  private:
    pid_t pid_ = -1;
};

volatile std::sig_atomic_t told = 0;
void tell(const job& j, int rank) { kill(j.members()[rank].pid, SIGUSR1); }
void wait_until_told() {
    while (told == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    told = 0;
}

/// A page that parent and child share is copied for whichever writes to it first. If that is the parent, a device keeps
/// using the page that the child has; so registered pages must not be shared.
TEST(VerbsBetweenTwo, WhatIsRegisteredStaysWithTheParentOfAForkWhoseChildLivesOn) {
    std::signal(SIGUSR1, [](int) { told = 1; });
    const job j = job::from_environment(over_verbs());
    messenger m(j);
    constexpr std::size_t page = 4096, size = 300 * page, margin = 100;
    struct freed {
        void operator()(std::byte* p) const { std::free(p); }
    };
    const std::unique_ptr<std::byte, freed> all(static_cast<std::byte*>(std::aligned_alloc(page, size)));
    const std::span<std::byte> memory(all.get(), size);
    const auto message = memory.subspan(margin, size - 2 * margin); // shares its first and last page with other bytes
    for (int round = 1; round <= 3; ++round) {
        std::ranges::fill(memory, static_cast<std::byte>(j.rank() == 0 ? round : 0x77));
        message_request request;
        if (j.rank() == 0) {
            m.isend(request, message, 1, 1);
            tell(j, 1);
            wait_until_told(); // makes no progress meanwhile: nothing is written
            EXPECT_EQ(m.wait(request), status::ok) << m.pending();
        } else {
            wait_until_told(); // an earlier receive might be written to by isend()
            m.irecv(request, message, 0, 1);
            const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
            bool early = false;
            while (std::chrono::steady_clock::now() < end) early = early || m.test(request); // registers, and invites
            EXPECT_FALSE(early);
            const busy_child child(memory);
            memory.front() = memory.back() = std::byte{1};
            tell(j, 0);
            EXPECT_EQ(m.wait(request), status::ok) << m.pending();
            EXPECT_EQ(std::ranges::count(message, static_cast<std::byte>(round)), std::ssize(message)) << round;
            EXPECT_EQ(memory.front(), std::byte{1});
        }
        j.barrier();
    }
}

TEST(Verbs, ChannelsGoOnBesideForkedChildren) {
    const job j = job::from_environment(over_verbs());
    channel_set set(j, ring(j, 5000), {"ring", ""});
    std::vector<std::byte> own(5000);
    for (std::uint64_t k = 1; k <= 6; ++k) {
        set.for_each([&](auto& c) {
            std::fill_n(c.target(k), 5000, static_cast<std::byte>(k));
            c.send(k, 0);
        });
        const busy_child child(own);
        ASSERT_EQ(set.wait(k), status::ok) << set.pending(k);
        set.for_each([&](auto& c) {
            EXPECT_EQ(std::count(c.received(k), c.received(k) + 5000, static_cast<std::byte>(k)), 5000);
        });
    }
}

/// The 16 bytes of a GID such as "fe80:0000:…".
std::string gid_of(const std::string& text) {
    std::string gid;
    for (std::size_t at = 0; at + 4 <= text.size(); at += 5)
        for (const std::size_t byte : {at, at + 2})
            gid += static_cast<char>(std::strtoul(text.substr(byte, 2).c_str(), nullptr, 16));
    return gid;
}

TEST(Verbs, EveryGidIndexOfANamedPortIsTakenAsAskedFor) {
    std::vector<std::pair<int, std::string>> gids;
    for (int index = 0;; ++index) {
        std::ifstream file("/sys/class/infiniband/rxe0/ports/1/gids/" + std::to_string(index));
        std::string text;
        if (!(file >> text)) break;
        if (const std::string gid = gid_of(text); gid != std::string(16, '\0')) gids.emplace_back(index, gid);
    }
    ASSERT_GE(gids.size(), 2u) << "nothing to choose from";
    for (const auto& [index, gid] : gids) {
        job_options options = over_verbs();
        options.verbs.device = "rxe0";
        options.verbs.port = 1;
        options.verbs.gid_index = index;
        const job j = job::from_environment(options);
        EXPECT_EQ(j.core().networks.verbs->address().substr(0, 16), gid) << index;
        expect_ring_delivers(j, 5000, 20);
    }
}

/// The error of a job with these options that can't be started; the same on all ranks.
std::string refusal(const job_options& options) {
    std::string text;
    try {
        job::from_environment(options);
    } catch (const input_error& e) {
        text = e.what();
    }
    job_options fine;
    fine.transports = {"shm"};
    const job j = job::from_environment(fine);
    const std::vector<std::string> all = j.gather(text);
    EXPECT_EQ(std::count(all.begin(), all.end(), ""), 0);
    return text;
}

TEST(Verbs, WhatTheDeviceCannotDoIsRefusedWithWhatItCan) {
    job_options options = over_verbs();
    options.verbs.device = "mlx5_7";
    expect_in(refusal(options), "no RDMA device 'mlx5_7' with an active port 1");
    expect_in(refusal(options), "rxe0 (port 1 active, RoCE)");

    options = over_verbs();
    options.verbs.port = 3;
    expect_in(refusal(options), "active port 3");

    options = over_verbs();
    options.verbs.gid_index = 200;
    expect_in(refusal(options), "GID index 200 is empty");
    expect_in(refusal(options), "::ffff:10.9.0.1");

    options = over_verbs();
    options.verbs.mtu = 4096;
    expect_in(refusal(options), "up to 1024, the port's own");
}

TEST(Verbs, ADeviceThatIsNamedMustBeThere) {
    job_options options = over_verbs();
    options.transports = {"verbs", "shm"};
    options.verbs.device = "mlx5_7";
    expect_in(refusal(options), "no RDMA device 'mlx5_7' with an active port 1");
    expect_in(refusal(options), "rxe0 (port 1 active, RoCE)");
    expect_in(refusal(options), "what is named must be there");
}

TEST(Verbs, WithoutANameADeviceIsAPreferenceAndPassedOverWithTheReason) {
    job_options options = over_verbs();
    options.transports = {"verbs", "shm"};
    options.verbs.port = 3;
    const job j = job::from_environment(options);
    EXPECT_EQ(j.transport(), "shm");
    expect_in(j.members()[1 - std::min(j.rank(), 1)].refused, "active port 3");
}

/// Registered memory counts against RLIMIT_MEMLOCK unless this process has CAP_IPC_LOCK.
void give_up_the_right_to_lock() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    ASSERT_EQ(syscall(SYS_capget, &header, data), 0);
    for (auto* set : {&data[0].effective, &data[0].permitted}) *set &= ~(1u << CAP_IPC_LOCK);
    ASSERT_EQ(syscall(SYS_capset, &header, data), 0);
}

/// Lowers only the soft limit, so root may raise it again.
void limit_locked_memory(rlim_t bytes) {
    const rlimit limit{bytes, RLIM_INFINITY};
    ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

TEST(VerbsAtTheEnd, AMemlockLimitThatServesNoPlanRefusesTheTransport) {
    give_up_the_right_to_lock();
    limit_locked_memory(64 << 10);

    const std::string alone = refusal(over_verbs());
    expect_in(alone, "no transport of [verbs] reaches rank");
    expect_in(alone, "(ibv_reg_mr): Cannot allocate memory; this process may lock 64 KiB (ulimit -l)");
    expect_in(alone, "ulimit -l unlimited");

    job_options options = over_verbs();
    options.transports = {"verbs", "shm"};
    const job j = job::from_environment(options);
    EXPECT_EQ(j.transport(), "shm");
    expect_in(j.members()[1 - std::min(j.rank(), 1)].refused, "this process may lock 64 KiB (ulimit -l)");
    expect_ring_delivers(j, 5000, 10);
}

TEST(VerbsAtTheEnd, AMemlockLimitThatOneRankHasIsNamedWithIt) {
    give_up_the_right_to_lock();
    limit_locked_memory(std::getenv("HALOCLINE_RANK") == std::string("1") ? 64 << 10 : RLIM_INFINITY);

    const std::string text = refusal(over_verbs());

    expect_in(text, "rank 1: verbs (rxe0 port 1): registering");
    expect_in(text, "64 KiB (ulimit -l)");
}

TEST(VerbsAtTheEnd, TheMemlockLimitIsNamedWithValueAndRemedy) { // last, because the right can't be regained
    give_up_the_right_to_lock();
    limit_locked_memory(1 << 20);
    const job j = job::from_environment(over_verbs());

    std::string text;
    try {
        channel_set set(j, ring(j, 4 << 20), {"ring", ""});
    } catch (const error& e) {
        text = e.what();
    }

    expect_in(text, "ibv_reg_mr");
    expect_in(text, "this process may lock 1024 KiB (ulimit -l)");
    expect_in(text, "ulimit -l unlimited");
}

} // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    return halocline_test::run_tests();
}
