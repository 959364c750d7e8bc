// SPDX-License-Identifier: Apache-2.0
#include "verification.hpp"

#include "recurrence.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

namespace halocline::app {

using lattice::field;

namespace {

std::complex<double> sum_of(const field<double>& a) {
    std::complex<double> s = 0;
    const auto v = a.values();
    for (std::size_t k = 0; k < v.size(); k += 2) s += std::complex<double>(v[k], v[k + 1]);
    return s;
}

} // namespace

verifier::verifier(const comm::job& j, const problem& task, const settings& in_force, const dirac::padded_links& links)
    : task_(task), in_force_(in_force), sum_(j, 64, task.cut.rank_order()),
      space_(lattice::site_order::lexicographic(task.cut.local_box(j.rank()).extents), lattice::spinor_components,
             sum_),
      reference_(j, task.cut, links, in_force.op) {}

void verifier::apply_to_ones(run_result& result) {
    const auto one = make_ones(sum_.job(), task_);
    auto d_one = make_spinors(sum_.job(), task_);
    reference_.apply(d_one, one);
    result.operator_ones_norm = norm(d_one);
    require_ok(space_.multi_dot({&one, 1}, d_one, {&result.operator_ones_inner, 1}));
}

void verifier::check_norm(const field<double>& b, const std::string& given) {
    using limits = std::numeric_limits<double>;
    const double of_b = norm(b), tolerance = in_force_.solver.tolerance;
    if (of_b == 0 || (std::isfinite(of_b) && of_b * std::max(tolerance, limits::epsilon()) >= limits::min())) return;
    char text[160];
    std::snprintf(text, sizeof text,
                  "the norm of its field is %.3g: scale it, so that both this and %g times this are "
                  "numbers of full precision",
                  of_b, tolerance);
    throw input_error(given + ": " + text);
}

void verifier::judge(const field<double>& x, const field<double>& b, run_result& result) {
    const comm::job& j = sum_.job();
    auto r = make_spinors(j, task_);
    reference_.apply(r, x);
    for (std::size_t k = 0; k < r.values().size(); ++k) r.values()[k] = b.values()[k] - r.values()[k];
    result.rhs_norm = norm(b);
    result.solution_norm = norm(x);
    result.solution_sum = reduce(sum_of(x));
    const bool owns_site_0 = task_.cut.owner({0, 0, 0, 0}) == j.rank();
    result.first_component = reduce(owns_site_0 ? std::complex<double>(x.at(0, 0), x.at(0, 1)) : 0.0);
    result.true_relative_residual = result.rhs_norm > 0 ? norm(r) / result.rhs_norm : 0;
    const double most = in_force_.solver.tolerance + allowance(result);
    result.converged = result.solve.converged() && (result.rhs_norm == 0 || result.true_relative_residual <= most);
    const std::string note = note_on_recurrence(result.solve.outer.history, result.true_relative_residual);
    if (!note.empty()) result.solve.notes.push_back(note);
}

double verifier::norm(const field<double>& a) {
    double result = 0;
    require_ok(space_.norm(a, result));
    return result;
}

std::complex<double> verifier::reduce(std::complex<double> mine) {
    std::array<double, 2> v{mine.real(), mine.imag()};
    sum_.sum_or_throw(v);
    return {v[0], v[1]};
}

/// How far the plain operator's residual may be above the tolerance that the fast one's meets. They sum in different
/// orders: allow for a thousandth of the tolerance, and, at tolerances near the last digit, for the rounding of x
/// alone, u |D| |x| / |b|.
double verifier::allowance(const run_result& result) const {
    constexpr double u = std::numeric_limits<double>::epsilon() / 2;
    constexpr double most = 1e-14; // makes no difference to ordinary tolerances
    const auto& op = in_force_.op;
    const double norm_of_d = std::abs(4 + op.m0) + 8 + 3 * std::abs(op.csw); // at most: mass, hops, clover term
    const double rounding = u * norm_of_d * result.solution_norm / result.rhs_norm;
    return std::max(1e-3 * in_force_.solver.tolerance, std::min(rounding, most));
}

void verifier::require_ok(comm::status s) const {
    if (s != comm::status::ok) sum_.job().fail(s, sum_.pending());
}

} // namespace halocline::app
