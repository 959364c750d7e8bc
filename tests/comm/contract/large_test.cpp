// SPDX-License-Identifier: Apache-2.0
// A message of more than 2 GiB, every word of which is checked. Disabled in ordinary runs: it is a separate entry
// (comm.contract.<name>.large), because it needs 4 GiB of memory over shm, where the only copy is the one into the
// receiver's slot, and 12 GiB over networks.
#include "bodies.hpp"
#include "contender.hpp"

#include <algorithm>
#include <fstream>
#include <string>

namespace {

using namespace halocline_test;

constexpr double gib = 1024.0 * 1024.0 * 1024.0;

/// The number of bytes in a file, in GiB; very large if it holds no number ("max").
double gib_in(const char* path) {
    double bytes = 0;
    return std::ifstream(path) >> bytes ? bytes / gib : 1e9;
}
/// Memory available without swapping, even if a container limits it.
double available_gib() {
    const double group = gib_in("/sys/fs/cgroup/memory.max");
    const double left = group < 1e9 ? group - gib_in("/sys/fs/cgroup/memory.current") : group;
    std::ifstream file("/proc/meminfo");
    std::string word;
    while (file >> word) {
        double kib = 0;
        if (word == "MemAvailable:" && file >> kib) return std::min(left, kib * 1024.0 / gib);
    }
    return 0;
}

TEST(Large, DISABLED_AMessageOfMoreThanTwoGibibytesArrives) {
    on_every_rank([](const job& j) {
        ASSERT_EQ(j.ranks(), 2);
        const double needed = under_test().transport == "shm" ? 4 : 12;
        const bool room = j.gather(available_gib() >= needed ? "y" : "n") == std::vector<std::string>{"y", "y"};
        if (!room) GTEST_SKIP() << "less than " << needed << " GiB of memory are free";
        constexpr std::size_t words = (std::size_t{1} << 28) + 1001; // 8 bytes each: 2 GiB and 8008 bytes
        const std::size_t bytes = words * sizeof(std::uint64_t);
        const std::size_t out = j.rank() == 0 ? bytes : 0, in = j.rank() == 0 ? 0 : bytes;
        const std::vector<channel_request> request{{1 - j.rank(), 0, 0, out, in, "large"}};
        channel_set set(j, request, {"large", ""});
        const auto word = [](std::size_t i) { return i * 0x9e3779b97f4a7c15u + 1; };

        set.for_each([&](auto& c) {
            auto* to = reinterpret_cast<std::uint64_t*>(c.target(1));
            for (std::size_t i = 0; i < out / sizeof *to; ++i) to[i] = word(i);
            c.send(1, 0);
        });
        ASSERT_EQ(set.wait(1), status::ok) << set.pending(1);

        std::size_t wrong = 0;
        set.for_each([&](auto& c) {
            const auto* from = reinterpret_cast<const std::uint64_t*>(c.received(1));
            for (std::size_t i = 0; i < in / sizeof *from; ++i) wrong += from[i] != word(i);
        });
        EXPECT_EQ(wrong, 0u);
    });
}

} // namespace
