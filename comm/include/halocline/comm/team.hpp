// SPDX-License-Identifier: Apache-2.0
// Several threads that share one call, also inside a parallel region.
#pragma once

namespace halocline::comm {

/// Which of the calling threads this is. Default: one thread.
struct team {
    int index = 0;
    int size = 1;
};

} // namespace halocline::comm
