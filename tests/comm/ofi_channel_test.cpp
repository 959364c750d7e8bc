// SPDX-License-Identifier: Apache-2.0
// What is specific to libfabric, between processes started by halocline-run; the argument names the provider: ofi-tcp,
// ofi-shm. Delivery is tested in contract/.
#include "contract/messages.hpp"
#include "named_transport.hpp"

#include "ofi/world.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline_test/run_tests.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace {

using namespace halocline;
using namespace halocline_test;

std::string under_test; // "ofi-tcp" or "ofi-shm"

job over_ofi() { return job::from_environment(options_over(under_test)); }

TEST(Ofi, EveryMessageIsAnRmaWrite) {
    const job j = over_ofi();
    const auto requests = ring(j, 1000);
    channel_set set(j, requests, {"ring", ""});
    constexpr std::uint64_t epochs = 7;
    for (std::uint64_t k = 1; k <= epochs; ++k) {
        set.for_each([&](auto& c) { c.send(k, 0); });
        ASSERT_EQ(set.wait(k), status::ok) << set.pending(k);
    }

    const auto counts = set.counts(epochs);

    ASSERT_EQ(counts.size(), 1u);
    EXPECT_EQ(counts[0].transport, "ofi");
    EXPECT_EQ(counts[0].messages, 2 * epochs);
    EXPECT_EQ(counts[0].bytes, 2 * epochs * 1000);
    EXPECT_EQ(counts[0].writes, 2 * (epochs + 1)); // plus a greeting each
}

TEST(Ofi, MessagesLongerThanAWriteAreSplit) {
    job_options options;
    options.transports = {"shm"}; // carries the set-up; the world under test is separate
    const job j = job::from_environment(options);
    constexpr std::size_t bytes = 10'000;
    const tape t(bytes);
    // The ends may have different limits, as on hosts with different devices: both split at the smaller one.
    ofi_world world(std::string(transport_named(under_test).provider), "127.0.0.1", j.rank() % 2 == 0 ? 4096 : 6000);
    const auto addresses = j.gather(world.address());
    world.connect(addresses, j.rank());
    const int peer = j.rank() ^ 1;
    {
        ofi_channel c(world, *std::pmr::new_delete_resource(), 0, peer, 1, bytes, bytes);
        c.connect(j.exchange(std::span(&peer, 1), std::vector{c.card()}).front());
        const auto wait = [&](auto done) {
            const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
            while (!done() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
            ASSERT_TRUE(done());
        };
        wait([&] { return c.connected(); });
        for (std::uint64_t k = 1; k <= 100; ++k) {
            std::memcpy(c.target(k), t.message(j.rank(), 0, k), bytes);
            c.send(k, k);
            wait([&] { return c.arrived(k) && c.sent(k); });
            ASSERT_EQ(c.check(k), status::ok) << c.trouble();
            ASSERT_EQ(std::memcmp(c.received(k), t.message(peer, 0, k), bytes), 0) << "epoch " << k;
        }
        EXPECT_EQ(c.writes(), 3 * 100 + 1u); // 64 + 10 000 bytes are three writes; plus the greeting
    }
    world.finish([] { return false; });
}

/// Local addresses of the sockets of this process, as in /proc/net/tcp.
std::set<std::string> addresses_in_use() {
    std::set<std::string> inodes, addresses;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const std::string target = std::filesystem::read_symlink(entry, gone).string();
        if (target.starts_with("socket:[")) inodes.insert(target.substr(8, target.size() - 9));
    }
    for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6"}) {
        std::ifstream file(table);
        std::string line;
        for (std::getline(file, line); std::getline(file, line);) {
            std::istringstream words(line);
            const std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
            if (word.size() > 9 && inodes.contains(word[9])) addresses.insert(word[1].substr(0, word[1].find(':')));
        }
    }
    return addresses;
}

TEST(Ofi, OneNodeUsesNoAddressButLoopback) {
    const job j = over_ofi();
    channel_set set(j, ring(j, 64), {"ring", ""});

    const auto addresses = addresses_in_use();

    EXPECT_EQ(addresses, under_test == "ofi-shm" ? std::set<std::string>{} : std::set<std::string>{"0100007F"});
    j.barrier(); // nobody leaves before all have looked
}

TEST(Ofi, AProviderThatIsNamedMustBeThereAndIsTheSameErrorEverywhere) {
    for (const std::vector<std::string>& transports : {std::vector<std::string>{"ofi"}, {"ofi", "shm"}}) {
        job_options options;
        options.transports = transports;
        options.ofi_provider = "pigeon";
        std::string text;
        try {
            job::from_environment(options);
        } catch (const input_error& e) {
            text = e.what();
        }
        EXPECT_NE(text.find("no provider 'pigeon'"), std::string::npos) << text;
        EXPECT_NE(text.find("tcp;ofi_rxm"), std::string::npos) << text;
        EXPECT_NE(text.find("what is named must be there"), std::string::npos) << text;
        job::from_environment().agree("the text", text);
    }
}

TEST(Ofi, AProviderOfATransportThatNobodyNeedsIsNotLookedFor) {
    job_options options;
    options.transports = {"shm", "ofi"};
    options.ofi_provider = "pigeon";
    EXPECT_EQ(job::from_environment(options).transport(), "shm");
}

} // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    if (argc > 1) under_test = argv[1];
    return halocline_test::run_tests();
}
