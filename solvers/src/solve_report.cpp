// SPDX-License-Identifier: Apache-2.0
#include <halocline/solvers/solve_report.hpp>

namespace halocline::solvers {

std::string_view to_string(solve_status s) {
    switch (s) {
    case solve_status::converged: return "converged";
    case solve_status::unverified: return "unverified";
    case solve_status::max_iterations: return "max_iterations";
    case solve_status::stagnated: return "stagnated";
    case solve_status::breakdown: return "breakdown";
    case solve_status::not_finite: return "not_finite";
    case solve_status::source_too_small: return "source_too_small";
    case solve_status::failed_communication: return "failed_communication";
    }
    return "unknown";
}

} // namespace halocline::solvers
