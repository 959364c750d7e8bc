// SPDX-License-Identifier: Apache-2.0
// What tests of matched messages share. Without a launcher the ranks are threads, under halocline-run processes, with
// the same bodies.
#pragma once

#include <halocline/comm/messenger.hpp>
#include <halocline/comm/slab.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

namespace halocline_test::messages {

using namespace halocline;
using namespace halocline::comm;
using bytes = std::vector<std::byte, std::pmr::polymorphic_allocator<std::byte>>;

/// "verbs", "ofi", "mpi"; empty: shared memory.
inline std::string network() {
    const char* const named = std::getenv("HALOCLINE_TEST_TRANSPORT");
    return named != nullptr ? named : "";
}

inline bool ranks_are_processes() { return std::getenv("HALOCLINE_RANK") != nullptr || !network().empty(); }

inline job start() {
    job_options options;
    options.deadline = std::chrono::seconds(30);
    if (!network().empty()) options.transports = {network()};
    return job::from_environment(options);
}

inline void on_ranks(std::initializer_list<int> thread_counts, const std::function<void(const job&)>& body) {
    if (ranks_are_processes()) {
        static const job j = start();
        body(j);
        j.barrier();
    } else {
        for (const int n : thread_counts) run_threads(n, body);
    }
}

inline void ok_or_fail(const messenger& m, status s) {
    if (s != status::ok) m.job().fail(s, m.pending());
}

inline std::byte letter(int sender, std::uint64_t message, std::size_t place) {
    return static_cast<std::byte>((static_cast<std::size_t>(sender) * 31 + message * 7 + place * 13 + place / 255) %
                                  251);
}
inline void fill(std::span<std::byte> to, int sender, std::uint64_t message) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = letter(sender, message, i);
}
inline std::size_t wrong(std::span<const std::byte> got, int sender, std::uint64_t message) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < got.size(); ++i) n += got[i] != letter(sender, message, i);
    return n;
}

/// The next rank in a ring of all ranks.
inline int next_rank(const job& j) { return (j.rank() + 1) % j.ranks(); }
inline int rank_before(const job& j) { return (j.rank() + j.ranks() - 1) % j.ranks(); }

/// The ways in which a message can meet its receive: bit 0: sent from outside the slab; 1: received there; 2: receive
/// posted first.
constexpr int ways = 8;

/// Sends n bytes to the next rank, expects n from the one before, and checks that nothing follows them.
inline void expect_round_the_ring(messenger& m, std::size_t n, int way, std::uint64_t number) {
    const job& j = m.job();
    std::pmr::memory_resource* const heap = std::pmr::new_delete_resource();
    bytes out(n, way & 1 ? heap : &j.memory()), in(n + 3, way & 2 ? heap : &j.memory());
    fill(out, j.rank(), number);
    message_request send, receive;
    if (way & 4) m.irecv(receive, in, rank_before(j), 5);
    m.isend(send, out, next_rank(j), 5);
    if (!(way & 4)) m.irecv(receive, in, rank_before(j), 5);
    ok_or_fail(m, m.wait(receive));
    ok_or_fail(m, m.wait(send));

    EXPECT_EQ(receive.info().bytes, n);
    EXPECT_EQ(receive.info().source, rank_before(j));
    EXPECT_EQ(receive.info().tag, 5);
    EXPECT_EQ(wrong(std::span(in).first(n), rank_before(j), number), 0u) << n << " bytes, way " << way;
    for (const std::byte b : std::span(in).last(3)) EXPECT_EQ(b, std::byte{0}) << n << " bytes, way " << way;
}

} // namespace halocline_test::messages
