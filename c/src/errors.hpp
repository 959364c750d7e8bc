// SPDX-License-Identifier: Apache-2.0
// The boundary between exceptions and status codes.
#pragma once

#include <halocline.h>
#include <halocline/comm/job.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace halocline::c {

/// Stores the text for halocline_error().
halocline_status failed(halocline_status why, std::string_view text, int culprit = -1) noexcept;
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

/// The code of a bad status of the data path; `fail` throws the exception for it, whose text is kept. That may know
/// better how the job ended: of a peer that closed its end, that another rank died. Then its code counts.
template <class Fail>
halocline_status told_by(comm::status s, Fail&& fail) noexcept {
    const halocline_status told = guarded(fail);
    return told >= HALOCLINE_PEER_DIED && told <= HALOCLINE_WRONG_DATA ? told : code_of(s);
}

/// Converts a status of the data path to a code and a text; `pending()` says what was waited for.
template <class Pending>
halocline_status checked(comm::status s, const comm::job& j, Pending&& pending) noexcept {
    return s == comm::status::ok ? HALOCLINE_OK : told_by(s, [&] { j.fail(s, pending()); });
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

/// Writes what describe() returns to `text`, like snprintf.
template <class Describe>
std::size_t described(char* text, std::size_t size, Describe&& describe) noexcept {
    std::string all;
    (void)guarded([&] { all = describe(); });
    if (text != nullptr && size > 0) text[all.copy(text, size - 1)] = 0;
    return all.size();
}

} // namespace halocline::c
