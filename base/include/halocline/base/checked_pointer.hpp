// SPDX-License-Identifier: Apache-2.0
// A smart pointer to an object's implementation, for objects that may be moved from.
#pragma once

#include <halocline/base/error.hpp>

#include <string>
#include <utility>

namespace halocline {

/// Dereferencing it after it was moved from is an input_error that names its owner, not a crash; in a noexcept call the
/// error ends the process, with that text.
template <class Pointer>
class checked_pointer {
  public:
    /// `owner` is a literal: "a region_plan".
    checked_pointer(const char* owner, Pointer pointer) : owner_(owner), pointer_(std::move(pointer)) {}

    [[nodiscard]] auto& operator*() const {
        if (!pointer_) [[unlikely]]
            throw_moved_from(owner_);
        return *pointer_;
    }
    [[nodiscard]] auto* operator->() const { return &**this; }
    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(pointer_); }
    /// The pointer itself, which may be null.
    [[nodiscard]] Pointer& pointer() noexcept { return pointer_; }
    [[nodiscard]] const Pointer& pointer() const noexcept { return pointer_; }

  private:
    [[noreturn, gnu::cold, gnu::noinline]] static void throw_moved_from(const char* owner) {
        throw input_error(std::string(owner) +
                          " is used after it was moved from: it can be assigned to or destroyed, nothing else");
    }

    const char* owner_;
    Pointer pointer_;
};

} // namespace halocline
