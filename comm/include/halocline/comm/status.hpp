// SPDX-License-Identifier: Apache-2.0
// What a hot-path call returns instead of throwing. Sticky: an object whose status was bad once stays bad.
#pragma once

#include <cstdint>
#include <string_view>

namespace halocline::comm {

enum class status : std::uint8_t {
    ok,
    peer_died,  ///< a rank of the job is dead
    timed_out,  ///< a wait passed its deadline although nobody died
    aborted,    ///< another rank gave up and said why
    wrong_data, ///< a label did not match: another plan, epoch or size
    misused,    ///< the caller's fault: calls in the wrong order, or an argument out of range
};
std::string_view to_string(status s);

} // namespace halocline::comm
