// SPDX-License-Identifier: Apache-2.0
// coarse_solve: reads a gauge configuration, solves D x = b with a two-level multigrid, and reports the time that its
// coarse grid spent computing, exchanging halos and summing.
#include "command_line.hpp"
#include "dry_run.hpp"
#include "problem.hpp"
#include "recurrence.hpp"
#include "report.hpp"
#include "solution_file.hpp"

#include <halocline/amg/solver.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/dirac/gauge_configuration.hpp>
#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/plaquette.hpp>
#include <halocline/dirac/reference_operator.hpp>
#include <halocline/solvers/field_space.hpp>
#include <halocline_app/demo_configuration.hpp>
#include <halocline_app/main.hpp>
#include <halocline_app/output_file.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace halocline::app {
namespace {

using lattice::field;

/// Sums quantities of whole fields over the job.
class totals {
  public:
    totals(const comm::job& j, const lattice::decomposition& cut)
        : sum_(j, 64, cut.rank_order()), space_(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents),
                                                lattice::spinor_components, sum_) {}

    double norm(const field<double>& a) {
        double result = 0;
        require_ok(space_.norm(a, result));
        return result;
    }
    /// <b, a>
    std::complex<double> inner(const field<double>& b, const field<double>& a) {
        std::complex<double> result;
        require_ok(space_.multi_dot({&b, 1}, a, {&result, 1}));
        return result;
    }
    std::complex<double> reduce(std::complex<double> mine) {
        std::array<double, 2> v{mine.real(), mine.imag()};
        sum_.sum_or_throw(v);
        return {v[0], v[1]};
    }

  private:
    void require_ok(comm::status s) const {
        if (s != comm::status::ok) sum_.job().fail(s, sum_.pending());
    }

    comm::global_sum sum_;
    solvers::field_space<double> space_;
};

std::complex<double> sum_of(const field<double>& a) {
    std::complex<double> s = 0;
    const auto v = a.values();
    for (std::size_t k = 0; k < v.size(); k += 2) s += std::complex<double>(v[k], v[k + 1]);
    return s;
}

/// Links of the file, verified; also prints what the file says about itself.
dirac::verified_links read_links(const program& p, const comm::job& j, const problem& task, const settings& s) {
    for (const auto& warning : task.file.warnings) p.print("warning: " + warning);
    for (const auto& warning : lattice::boundary_warnings(task.file, s.op.boundaries))
        p.print("warning: " + warning + " ([operator] boundary)");
    for (const auto& source : task.sources)
        if (source)
            for (const auto& warning : source->warnings) p.print("warning: '" + source->path + "': " + warning);
    dirac::verified_links verified;
    try {
        with_remedy_of_demo(s, [&] { verified = dirac::read_configuration(j, task.cut, task.file); });
    } catch (const lattice::rounded_links_error& e) {
        throw file_error(e.path(), e.reason() + "; --reunitarise accepts rounded links");
    }
    char plaquette[32];
    std::snprintf(plaquette, sizeof plaquette, "%.10f", verified.plaquette);
    p.print("read " + lattice::to_string(verified.format) + " '" + task.file.path + "': plaquette " + plaquette);
    if (verified.format == lattice::gauge_format::openqcd)
        p.print("its directions 1, 2, 3 are z, y, x here: lattice x.y.z.t = N3.N2.N1.N0 = " +
                lattice::to_string(task.file.extents));
    if (verified.open_in_t)
        p.print("warning: its links in t of the last time slice are zero, an open boundary: no fermion crosses it, "
                "whatever [operator] boundary says; what else openQCD's operator does at such a boundary is not "
                "done here");
    if (s.reunitarise) {
        char text[120];
        std::snprintf(text, sizeof text, "its links missed SU(3) by at most %.1e, and were made unitary again",
                      verified.su3_error);
        p.print(text);
        dirac::reunitarise(verified.links);
        verified.plaquette = dirac::plaquette(dirac::padded_links(j, task.cut, verified.links));
    }
    return verified;
}

/// D 1 by the plain operator: figures for comparison with other codes.
void apply_to_ones(const comm::job& j, const problem& task, dirac::reference_operator& reference, totals& total,
                   run_result& result) {
    const auto one = make_ones(j, task);
    auto d_one = make_spinors(j, task);
    reference.apply(d_one, one);
    result.operator_ones_norm = total.norm(d_one);
    result.operator_ones_inner = total.inner(one, d_one);
}

/// Err: input_error: the norm of b, or of the residual that is asked for, is no normal number of double precision, so
/// that nothing could be solved. `given` is how the user named b. Collective.
void check_norm(const field<double>& b, const std::string& given, double tolerance, totals& total) {
    using limits = std::numeric_limits<double>;
    const double norm = total.norm(b);
    if (norm == 0 || (std::isfinite(norm) && norm * std::max(tolerance, limits::epsilon()) >= limits::min())) return;
    char text[160];
    std::snprintf(text, sizeof text,
                  "the norm of its field is %.3g: scale it, so that both this and %g times this are "
                  "numbers of full precision",
                  norm, tolerance);
    throw input_error(given + ": " + text);
}

/// All right-hand sides, checked: what is wrong with one is reported before the work of the set-up. Collective.
/// Err: input_error.
std::vector<field<double>> make_right_hand_sides(const comm::job& j, const problem& task, const settings_reader& given,
                                                 totals& total) {
    const settings& s = given.values();
    std::vector<field<double>> all;
    for (std::size_t i = 0; i < s.rhs.size(); ++i) {
        all.push_back(make_right_hand_side(j, task, s, i));
        check_norm(all.back(), as_given(given, s.rhs[i]), s.solver.tolerance, total);
    }
    return all;
}

/// How far the plain operator's residual may be above the tolerance that the fast one's meets. They sum in different
/// orders: allow for a thousandth of the tolerance, and, at tolerances near the last digit, for the rounding of x
/// alone, u |D| |x| / |b|.
double allowance(const settings& s, const run_result& result) {
    constexpr double u = std::numeric_limits<double>::epsilon() / 2;
    constexpr double most = 1e-14; // makes no difference to ordinary tolerances
    const double norm_of_d = std::abs(4 + s.op.m0) + 8 + 3 * std::abs(s.op.csw); // at most: mass, hops, clover term
    const double rounding = u * norm_of_d * result.solution_norm / result.rhs_norm;
    return std::max(1e-3 * s.solver.tolerance, std::min(rounding, most));
}

/// Checks the fast operator's result with the plain reference operator.
void judge(const comm::job& j, const problem& task, const settings& s, dirac::reference_operator& reference,
           totals& total, const field<double>& x, const field<double>& b, run_result& result) {
    auto r = make_spinors(j, task);
    reference.apply(r, x);
    for (std::size_t k = 0; k < r.values().size(); ++k) r.values()[k] = b.values()[k] - r.values()[k];
    result.rhs_norm = total.norm(b);
    result.solution_norm = total.norm(x);
    result.solution_sum = total.reduce(sum_of(x));
    const bool owns_site_0 = task.cut.owner({0, 0, 0, 0}) == j.rank();
    result.first_component = total.reduce(owns_site_0 ? std::complex<double>(x.at(0, 0), x.at(0, 1)) : 0.0);
    result.true_relative_residual = result.rhs_norm > 0 ? total.norm(r) / result.rhs_norm : 0;
    result.converged =
        result.solve.converged() &&
        (result.rhs_norm == 0 || result.true_relative_residual <= s.solver.tolerance + allowance(s, result));
    const std::string note = note_on_recurrence(result.solve.outer.history, result.true_relative_residual);
    if (!note.empty()) result.solve.notes.push_back(note);
}

/// The settings with what was chosen, and with the boundary that the links have.
settings in_force(settings s, const problem& task, const dirac::verified_links& verified) {
    s.grid = task.cut.global();
    s.rank_grid = task.cut.rank_grid();
    s.solver.blocks = task.blocks;
    if (verified.open_in_t) s.op.boundaries[3] = lattice::boundary::open;
    return s;
}

void note_unreachable_tolerance(const program& p, const settings_reader& given) {
    if (given.values().solver.tolerance < 1e-15)
        p.print(
            "note: " + given.as_given("solver.tolerance") +
            " is near the rounding of doubles: the residual may stay above it, for all iterations that are allowed");
}

/// The solver after its set-up, or why these links allow no hierarchy, which is a result too: x = 0.
struct prepared_solver {
    std::unique_ptr<amg::solver> solver; ///< none: no hierarchy
    std::string why_none;
};

prepared_solver set_up(const program& p, const comm::job& j, const problem& task, const dirac::padded_links& links,
                       const settings& s) {
    amg::solver_options options = s.solver;
    options.blocks = task.blocks;
    prepared_solver result;
    try {
        auto solver = std::make_unique<amg::solver>(j, task.cut, links, s.op, options);
        solver->on_progress([&](const amg::progress& now) {
            const std::string line = amg::to_string(now);
            if (now.milestone)
                p.print(line);
            else
                p.print_progress(line);
        });
        solver->setup();
        result.solver = std::move(solver);
    } catch (const amg::no_hierarchy& e) { // the same on every rank
        result.why_none = e.what();
    }
    p.print_progress("");
    return result;
}

/// Without a hierarchy x stays as it is.
void solve_together(const program& p, const prepared_solver& prepared, std::span<field<double>> x,
                    std::span<const field<double>> b, std::span<run_result> results) {
    if (prepared.solver == nullptr) {
        for (run_result& result : results) {
            result.has_hierarchy = false;
            result.solve.notes.push_back(prepared.why_none);
        }
        return;
    }
    std::vector<field<double>*> to;
    std::vector<const field<double>*> from;
    for (field<double>& one : x) to.push_back(&one);
    for (const field<double>& one : b) from.push_back(&one);
    std::vector<amg::solver_report> reports = prepared.solver->solve(to, from);
    for (std::size_t k = 0; k < reports.size(); ++k) results[k].solve = std::move(reports[k]);
    p.print_progress("");
}

/// "right-hand sides 5 to 8 of 12: point:0.0.0.0:1.1, ..."
std::string announce(std::span<const run_result> together, std::size_t first, std::size_t all) {
    std::string text = "right-hand side";
    text += together.size() == 1 ? " " + std::to_string(first + 1)
                                 : "s " + std::to_string(first + 1) + " to " + std::to_string(first + together.size());
    text += " of " + std::to_string(all);
    for (const run_result& one : together) text += (&one == together.data() ? ": " : ", ") + one.rhs;
    return text;
}

/// The solves after the set-up, with what they need.
struct solve_of_all {
    const program& p;
    const comm::job& j;
    const problem& task;
    const settings& in_force;
    const prepared_solver& prepared;
    dirac::reference_operator& reference;
    totals& total;
    const std::vector<field<double>>& b;
    const std::vector<std::string>& solutions; ///< files, one for each right-hand side

    /// Solves, judges, reports and writes, group by group. Returns the JSON lines. Collective.
    [[nodiscard]] std::string run(std::vector<run_result>& results) const {
        const bool several = b.size() > 1;
        // as the solver would group them, but each group is reported and written before the next
        const std::vector<int> groups = amg::even_groups(static_cast<int>(b.size()), in_force.solver.at_once);
        std::vector<field<double>> x;
        for (int k = 0; k < groups.front(); ++k) x.push_back(make_spinors(j, task));
        std::string lines;
        std::size_t first = 0;
        for (const int group : groups) {
            const auto size = static_cast<std::size_t>(group);
            const std::span<run_result> together = std::span(results).subspan(first, size);
            if (several) p.print(announce(together, first, results.size()));
            solve_together(p, prepared, std::span(x).first(size), std::span(b).subspan(first, size), together);
            if (several && prepared.solver != nullptr) p.print(describe_together(together.front().solve));
            for (std::size_t k = 0; k < size; ++k) lines += finish_one(first + k, x[k], results);
            first += size;
        }
        return lines;
    }

  private:
    [[nodiscard]] std::string finish_one(std::size_t i, const field<double>& x,
                                         std::vector<run_result>& results) const {
        run_result& result = results[i];
        judge(j, task, in_force, reference, total, x, b[i], result);
        p.print(results.size() > 1 ? describe_one_of_many(result, results.front()) : describe(j, task, result));
        if (result.has_hierarchy && write_solution(p, task, in_force, x, result, solutions[i]))
            result.solution = solutions[i];
        settings of_this_one = in_force;
        of_this_one.rhs = {in_force.rhs[i]};
        return to_json(j, task, of_this_one, result) + "\n";
    }
};

/// The inputs of the run, which no output must replace.
run_files inputs_of(const command_line& command) {
    const settings& s = command.reader.values();
    run_files files;
    files.add("--gauge", s.gauge).add("the config", command.config);
    for (const right_hand_side& rhs : s.rhs) files.add("--rhs", rhs.path);
    if (s.gauge.empty())
        for (const std::string& path : demo_configuration_paths()) files.add("the demo configuration", path);
    return files;
}

int solve(program& p, int argc, const char* const* argv) {
    const command_line command = read_command_line(p, argc, argv);
    const settings& s = command.reader.values();
    const comm::job& j = p.join(job_options_of(s));
    j.agree("configuration of the run", command.reader.effective() + "--solution = " + command.solution + "\n--json " +
                                            (command.json.empty() ? "not given" : "given") + "\n--dry-run " +
                                            (command.dry_run ? "given" : "not given") + "\n");
    std::vector<std::string> solutions;
    j.collectively([&] { solutions = solution_paths(command.solution, s.rhs.size()); });
    run_files files = inputs_of(command);
    files.add("--json", command.json);
    for (const std::string& path : solutions) {
        check_output(p, "--solution", path, files);
        files.add("--solution", path); // links may lead to one file
    }
    const text_output json(p, "--json", command.json, files);

    const problem task = define_problem(j, command.reader, command.dry_run, solutions.front(),
                                        [&](std::string_view line) { p.print(line); });
    if (command.dry_run) {
        p.print(describe_dry_run(j, task, s));
        for (const std::string& file : {command.json, command.solution})
            if (!file.empty()) p.print("--dry-run writes nothing to '" + file + "'");
        return exit_success;
    }
    p.print("lattice " + lattice::to_string(task.cut.global()) + " on " + std::to_string(j.ranks()) + " rank" +
            (j.ranks() > 1 ? "s " : " ") + lattice::to_string(task.cut.rank_grid()) + " over " + j.transport() +
            ", blocks " + lattice::to_string(task.blocks));
    note_unreachable_tolerance(p, command.reader);

    const dirac::verified_links verified = read_links(p, j, task, s);
    const dirac::padded_links links(j, task.cut, verified.links);
    dirac::reference_operator reference(j, task.cut, links, s.op);
    totals total(j, task.cut);
    run_result about_links;
    about_links.plaquette = verified.plaquette;
    apply_to_ones(j, task, reference, total, about_links);
    const std::vector<field<double>> all_b = make_right_hand_sides(j, task, command.reader, total);
    const settings effective = in_force(s, task, verified);
    const prepared_solver prepared = set_up(p, j, task, links, s);

    std::vector<run_result> results(all_b.size(), about_links);
    for (std::size_t i = 0; i < results.size(); ++i) results[i].rhs = show(s.rhs[i]);
    const solve_of_all solves{p, j, task, effective, prepared, reference, total, all_b, solutions};
    const std::string lines = solves.run(results);
    if (results.size() > 1) p.print(describe_all(j, task, results));
    json.write(lines);
    return std::ranges::all_of(results, &run_result::converged) ? exit_success : exit_failure;
}

} // namespace
} // namespace halocline::app

int main(int argc, char** argv) { return halocline::app::run_program(argc, argv, halocline::app::solve); }
