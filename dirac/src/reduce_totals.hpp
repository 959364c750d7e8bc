// SPDX-License-Identifier: Apache-2.0
// Totals of what ranks read from or wrote to a file.  Private to dirac/.
#pragma once

#include <halocline/comm/job.hpp>

#include <cstring>
#include <string>
#include <type_traits>

namespace halocline::dirac {

/// combine() over all ranks: the same value on each. Collective.
template <class Totals>
Totals reduce_totals(const comm::job& j, const Totals& mine) {
    static_assert(std::is_trivially_copyable_v<Totals>); // sent as raw bytes
    Totals total;
    for (const std::string& bytes : j.gather({reinterpret_cast<const char*>(&mine), sizeof mine})) {
        Totals part;
        std::memcpy(&part, bytes.data(), sizeof part);
        total = combine(total, part);
    }
    return total;
}

} // namespace halocline::dirac
