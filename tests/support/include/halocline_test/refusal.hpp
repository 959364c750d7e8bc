// SPDX-License-Identifier: Apache-2.0
// The error of a call that refuses its input.
#pragma once

#include <halocline/base/error.hpp>

#include <string>

namespace halocline_test {

/// The text of the Error that `call` throws; "accepted" if it throws none.
template <class Error = halocline::input_error, class Call>
std::string refusal(Call&& call) {
    try {
        call();
    } catch (const Error& e) {
        return e.what();
    }
    return "accepted";
}

} // namespace halocline_test
