// SPDX-License-Identifier: Apache-2.0
// Files of which each rank reads or writes its own part.  Private to dirac/.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/lattice/geometry.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace halocline::dirac {

/// The error of this rank, whose host may not see the file.
inline input_error with_rank(const comm::job& j, const file_error& e) {
    const comm::rank_info& me = j.members()[static_cast<std::size_t>(j.rank())];
    return input_error(std::string(e.what()) + " (rank " + std::to_string(me.rank) + " on " + me.host + ")");
}

/// How much longer than the deadline of its job a rank may take for its part of a file with so many bytes on each site
/// of the lattice: a slow disk gives all ranks together 10 MB a second.
inline std::chrono::milliseconds time_for_file(const lattice::coordinate& global, std::int64_t bytes_per_site) {
    constexpr std::int64_t bytes_per_millisecond = 10'000;
    return std::chrono::milliseconds(lattice::volume(global) * bytes_per_site / bytes_per_millisecond);
}

/// Calls write() on every rank. `time`: time_for_file(). Collective.
/// Err: that of the lowest rank that failed. Of a file, it names the rank and its host.
template <class Write>
void write_parts(const comm::job& j, std::chrono::milliseconds time, Write&& write) {
    const auto named = [&] {
        try {
            write();
        } catch (const file_error& e) {
            throw with_rank(j, e);
        }
    };
    j.collectively(named, time);
}

/// Calls read() on every rank. `time`: time_for_file(). Collective.
/// Err: as write_parts(); but what rank 0 can't read, and all hosts are one, is nobody's in particular.
template <class Read>
void read_parts(const comm::job& j, std::chrono::milliseconds time, Read&& read) {
    const auto named = [&] {
        try {
            read();
        } catch (const file_error& e) {
            const auto elsewhere = [&](const comm::rank_info& r) { return r.host != j.members()[0].host; };
            if (j.rank() == 0 && std::ranges::none_of(j.members(), elsewhere)) throw;
            throw with_rank(j, e);
        }
    };
    j.collectively(named, time);
}

} // namespace halocline::dirac
