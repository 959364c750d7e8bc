// SPDX-License-Identifier: Apache-2.0
// Several threads that make one call together, possibly inside a parallel region.
#pragma once

namespace halocline::comm {

/// Which of the calling threads this one is: 0 <= index < size. Default: the only one.
struct team {
    int index = 0;
    int size = 1;

    [[nodiscard]] constexpr bool is_member() const noexcept { return 0 <= index && index < size; }
};

} // namespace halocline::comm
