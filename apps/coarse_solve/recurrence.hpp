// SPDX-License-Identifier: Apache-2.0
// The recurrence of a solver goes on where rounding has taken over, and says nothing of it.
#pragma once

#include <cstdio>
#include <span>
#include <string>

namespace halocline::app {

/// What the result says if the true residual contradicts the recurrence's; else nothing.
inline std::string note_on_recurrence(std::span<const double> history, double true_relative_residual) {
    constexpr double most = 2; // rounding that matters to nobody stays well below that
    const double told = history.empty() ? 0 : history.back();
    if (!(told > 0) || !(true_relative_residual > most * told)) return {};
    char text[200];
    std::snprintf(text, sizeof text,
                  "the true relative residual, %.3e, is %.3g times the last one of the history, %.3e: rounding has "
                  "taken over the solver's recurrence, as it does if D is singular",
                  true_relative_residual, true_relative_residual / told, told);
    return text;
}

} // namespace halocline::app
