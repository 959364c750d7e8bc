// SPDX-License-Identifier: Apache-2.0
// The transports under test, by their names in tests: comm.window_test.ofi-tcp.r2 runs `window_test ofi-tcp`.
#pragma once

#include <halocline/comm/job.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

namespace halocline_test {

struct named_transport {
    std::string_view name;
    std::string_view transport; ///< what serves the peers
    std::string_view provider;  ///< libfabric's (CMake can't pass on a name with a semicolon unharmed)
    halocline::comm::mpi_mode mpi = halocline::comm::mpi_mode::two_sided;
};

inline constexpr named_transport named_transports[] = {
    {"self", "self", ""},
    {"shm", "shm", ""},
    {"verbs", "verbs", ""},
    {"ofi-tcp", "ofi", "tcp;ofi_rxm"},
    {"ofi-net", "ofi", "net"},
    {"ofi-shm", "ofi", "shm"},
    {"ofi-tagged", "ofi", "tcp;ofi_rxm,tagged"}, // treated as a provider without RMA
    {"mpi", "mpi", ""},
    {"mpi-one-sided", "mpi", "", halocline::comm::mpi_mode::one_sided},
};

/// Ends the program if there is no such name.
inline const named_transport& transport_named(std::string_view name) {
    const auto* const found = std::ranges::find(named_transports, name, &named_transport::name);
    if (found != std::end(named_transports)) return *found;
    std::fprintf(stderr, "no transport is named '%s'; known are", std::string(name).c_str());
    for (const named_transport& t : named_transports) std::fprintf(stderr, " %s", t.name.data());
    std::fprintf(stderr, "\n");
    std::exit(2);
}

/// Options of a job over that transport alone, whose waits end while its test is still running.
inline halocline::comm::job_options options_over(std::string_view name) {
    const named_transport& t = transport_named(name);
    halocline::comm::job_options options;
    options.transports = {std::string(t.transport)};
    options.ofi_provider = t.provider;
    options.mpi = t.mpi;
    options.deadline = std::chrono::seconds(30);
    return options;
}

/// Number of RDMA writes for `bytes` straight into a peer's memory: over TCP sockets their size is limited.
inline std::uint64_t writes_of(std::size_t bytes, bool into_socket) {
    constexpr std::size_t longest = 512 << 10;
    return into_socket ? (bytes + longest - 1) / longest : 1;
}

} // namespace halocline_test
