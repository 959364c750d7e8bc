// SPDX-License-Identifier: Apache-2.0
// Files of which each rank reads or writes its own part.  Private to dirac/.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>

#include <algorithm>
#include <cstddef>
#include <string>

namespace halocline::dirac {

/// The error of this rank, whose host may not see the file.
inline input_error with_rank(const comm::job& j, const file_error& e) {
    const comm::rank_info& me = j.members()[static_cast<std::size_t>(j.rank())];
    return input_error(std::string(e.what()) + " (rank " + std::to_string(me.rank) + " on " + me.host + ")");
}

/// Calls write() on every rank. Collective.
/// Err: that of the lowest rank that failed. Of a file, it names the rank and its host.
template <class Write>
void write_parts(const comm::job& j, Write&& write) {
    j.collectively([&] {
        try {
            write();
        } catch (const file_error& e) {
            throw with_rank(j, e);
        }
    });
}

/// Calls read() on every rank. Collective.
/// Err: as write_parts(); but what rank 0 can't read, and all hosts are one, is nobody's in particular.
template <class Read>
void read_parts(const comm::job& j, Read&& read) {
    j.collectively([&] {
        try {
            read();
        } catch (const file_error& e) {
            const auto elsewhere = [&](const comm::rank_info& r) { return r.host != j.members()[0].host; };
            if (j.rank() == 0 && std::ranges::none_of(j.members(), elsewhere)) throw;
            throw with_rank(j, e);
        }
    });
}

} // namespace halocline::dirac
