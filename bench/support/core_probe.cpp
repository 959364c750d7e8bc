// SPDX-License-Identifier: Apache-2.0
#include "support/core_probe.hpp"

#include "support/statistics.hpp"

#include <halocline/comm/clock.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace halocline::bench {

namespace {

/// Both within one page of 4 KiB, so that no load waits for a store to the same place of another page.
struct alignas(4096) copied {
    std::array<std::byte, 2048> from{}, to{};
};

/// The piece takes as many instructions per cycle as the core can: a chain would leave room for whoever shares it. So
/// would copies alone, which wait for the one store per cycle.
void piece(copied& memory) {
    asm volatile("" : : "r"(&memory) : "memory"); // for all the compiler knows, others read what is copied
    std::array<std::uint64_t, 8> sums{};
    auto& [a, b, c, d, e, f, g, h] = sums;
    for (int turn = 0; turn < 16; ++turn)
        for (std::size_t at = 0; at < memory.from.size(); at += 64) {
            std::memcpy(&memory.to[at], &memory.from[at], 16);
            // To the compiler each of them may have any value now.
            asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h) : : "memory");
            for (std::uint64_t& sum : sums) sum = (sum + at) ^ 1;
        }
    asm volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f), "r"(g), "r"(h));
}

} // namespace

double core_ns() {
    copied memory;
    std::vector<double> pieces(51);
    for (double& ns : pieces) {
        const std::uint64_t begin = comm::ticks();
        piece(memory);
        ns = 1e9 * comm::seconds(comm::ticks() - begin);
    }
    return median(pieces);
}

} // namespace halocline::bench
