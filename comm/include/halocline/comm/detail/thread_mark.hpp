// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace halocline::comm {

/// An even address, which tells the calling thread from all that live at the same time.  Cost: below a nanosecond;
/// std::this_thread::get_id() calls the threads library.
inline const void* thread_mark() noexcept {
    alignas(2) static thread_local char mark;
    return &mark;
}

} // namespace halocline::comm
