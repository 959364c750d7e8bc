// SPDX-License-Identifier: Apache-2.0
// What tests of matched messages share. Without launcher the ranks are threads, under halocline-run processes: the same
// bodies.
#pragma once

#include <halocline/comm/messenger.hpp>
#include <halocline/comm/slab.hpp>

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
    if (s != status::ok) m.owner().fail(s, m.pending());
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

} // namespace halocline_test::messages
