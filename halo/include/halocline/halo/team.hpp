// SPDX-License-Identifier: Apache-2.0
// Several threads that drive one plan together, also inside a parallel region.
#pragma once

namespace halocline::halo {

/// Which of the calling threads this is. Default: one thread.
/// With size > 1 every member calls start() and then finish(), each with its own index and the same size.
struct team {
    int index = 0;
    int size = 1;
};

} // namespace halocline::halo
