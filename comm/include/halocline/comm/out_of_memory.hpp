// SPDX-License-Identifier: Apache-2.0
// Thrown by all ranks when one of them has no memory left for what they do together. A type of its own, because one
// report is enough.
#pragma once

#include <halocline/base/error.hpp>

namespace halocline::comm {

/// Ordinary memory (std::bad_alloc on a rank, which the text names) where all ranks decide together:
/// job::collectively(). Every rank throws it.
class out_of_memory : public error {
    using error::error;
};

} // namespace halocline::comm
