// SPDX-License-Identifier: Apache-2.0
// The boundary between exceptions and status codes.
#pragma once

#include <halocline.h>
#include <halocline/comm/job.hpp>

#include <string>
#include <string_view>

namespace halocline::c {

/// Stores the text for halocline_error().
halocline_status failed(halocline_status why, const std::string& text, int culprit = -1) noexcept;
/// The exception under way as a status.
halocline_status caught() noexcept;
/// Whether this thread's last error has this text and is one that the other ranks don't know.
bool is_unshared(std::string_view text) noexcept;

inline halocline_status code_of(comm::status s) { return static_cast<halocline_status>(s); }
static_assert(static_cast<int>(comm::status::misused) == HALOCLINE_MISUSED);

/// Runs `work`, which may throw.
template <class Work>
halocline_status guarded(Work&& work) noexcept {
    try {
        work();
        return HALOCLINE_OK;
    } catch (...) {
        return caught();
    }
}

/// Converts a bad status of the data path to a code and a text; `pending()` says what was waited for.
template <class Pending>
halocline_status checked(comm::status s, const comm::job& j, Pending&& pending) noexcept {
    if (s == comm::status::ok) return HALOCLINE_OK;
    guarded([&] { j.fail(s, pending()); });
    return code_of(s);
}

/// Err: input_error naming the argument.
template <class T>
T& present(T* pointer, const char* argument) {
    if (pointer == nullptr) throw input_error(std::string("'") + argument + "' is NULL");
    return *pointer;
}

/// Calls work(*pointer), which does not throw: for the data path.
template <class T, class Work>
halocline_status with(T* pointer, const char* argument, Work&& work) noexcept {
    if (pointer == nullptr) return guarded([&] { present(pointer, argument); });
    return work(*pointer);
}

} // namespace halocline::c
