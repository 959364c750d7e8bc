// SPDX-License-Identifier: Apache-2.0
// Files of which each rank writes its own part.  Private to dirac/.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>

#include <cstddef>
#include <string>

namespace halocline::dirac {

/// Calls write() on every rank. Collective.
/// Err: that of the lowest rank that failed. Of a file, it names the rank and its host, which may not see the file.
template <class Write>
void write_parts(const comm::job& j, Write&& write) {
    j.collectively([&] {
        try {
            write();
        } catch (const file_error& e) {
            const comm::rank_info& me = j.members()[static_cast<std::size_t>(j.rank())];
            throw input_error(std::string(e.what()) + " (rank " + std::to_string(me.rank) + " on " + me.host + ")");
        }
    });
}

} // namespace halocline::dirac
