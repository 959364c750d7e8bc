// SPDX-License-Identifier: Apache-2.0
// coarse_solve: reads a gauge configuration, solves D x = b with a two-level multigrid, and reports the time that its
// coarse grid spent computing, exchanging halos and summing.
#include "command_line.hpp"
#include "dry_run.hpp"
#include "problem.hpp"
#include "report.hpp"
#include "solution_file.hpp"
#include "verification.hpp"

#include <halocline/amg/solver.hpp>
#include <halocline/dirac/gauge_configuration.hpp>
#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/plaquette.hpp>
#include <halocline_app/demo_configuration.hpp>
#include <halocline_app/main.hpp>
#include <halocline_app/output_file.hpp>
#include <halocline_app/run_report.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace halocline::app {
namespace {

using lattice::field;

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

/// All right-hand sides, checked: what is wrong with one is reported before the work of the set-up. Collective.
/// Err: input_error.
std::vector<field<double>> make_right_hand_sides(const comm::job& j, const problem& task, const settings_reader& given,
                                                 verifier& verify) {
    const settings& s = given.values();
    std::vector<field<double>> all;
    for (std::size_t i = 0; i < s.rhs.size(); ++i) {
        all.push_back(make_right_hand_side(j, task, s, i));
        verify.check_norm(all.back(), as_given(given, s.rhs[i]));
    }
    return all;
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
    const problem& task;
    const settings& in_force;
    const prepared_solver& prepared;
    verifier& verify;
    const std::vector<field<double>>& b;
    const std::vector<std::string>& solutions; ///< files, one for each right-hand side

    /// Solves, judges, reports and writes, group by group: what is done stays if the run is ended later. Collective.
    void run(std::vector<run_result>& results, text_output& json) const {
        const bool several = b.size() > 1;
        // as the solver would group them, but each group is reported and written before the next
        const std::vector<int> groups = amg::even_groups(static_cast<int>(b.size()), in_force.solver.at_once);
        std::vector<field<double>> x;
        for (int k = 0; k < groups.front(); ++k) x.push_back(make_spinors(p.job(), task));
        std::size_t first = 0;
        for (const int group : groups) {
            const auto size = static_cast<std::size_t>(group);
            const std::span<run_result> together = std::span(results).subspan(first, size);
            if (several) p.print(announce(together, first, results.size()));
            solve_together(p, prepared, std::span(x).first(size), std::span(b).subspan(first, size), together);
            if (several && prepared.solver != nullptr) p.print(describe_together(together.front().solve));
            std::string lines;
            for (std::size_t k = 0; k < size; ++k) lines += finish_one(first + k, x[k], results);
            json.write(lines);
            first += size;
        }
    }

  private:
    /// Returns the JSON line.
    [[nodiscard]] std::string finish_one(std::size_t i, const field<double>& x,
                                         std::vector<run_result>& results) const {
        run_result& result = results[i];
        verify.judge(x, b[i], result);
        p.print(results.size() > 1 ? describe_one_of_many(result, results.front()) : describe(p.job(), task, result));
        if (result.has_hierarchy && write_solution(p, task, in_force, x, result, solutions[i]))
            result.solution = solutions[i];
        settings of_this_one = in_force;
        of_this_one.rhs = {in_force.rhs[i]};
        return to_json(p.job(), task, of_this_one, result);
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
    text_output json(p, "--json", command.json, files);

    const problem task =
        define_problem(j, command.reader, command.dry_run, solutions, [&](std::string_view line) { p.print(line); });
    if (command.dry_run) {
        p.print(describe_dry_run(j, task, s));
        for (const std::string& file : {command.json, command.solution})
            if (!file.empty()) p.print("--dry-run writes nothing to '" + file + "'");
        return exit_success;
    }
    p.print("lattice " + lattice::to_string(task.cut.global()) + " " + where_it_runs(j, task.cut) + ", blocks " +
            lattice::to_string(task.blocks));
    note_unreachable_tolerance(p, command.reader);

    dirac::verified_links verified = read_links(p, j, task, s);
    const dirac::padded_links links(j, task.cut, std::exchange(verified.links, {}));
    const settings effective = in_force(s, task, verified);
    verifier verify(j, task, effective, links);
    run_result about_links;
    about_links.plaquette = verified.plaquette;
    verify.apply_to_ones(about_links);
    const std::vector<field<double>> all_b = make_right_hand_sides(j, task, command.reader, verify);
    const prepared_solver prepared = set_up(p, j, task, links, s);

    std::vector<run_result> results(all_b.size(), about_links);
    for (std::size_t i = 0; i < results.size(); ++i) results[i].rhs = show(s.rhs[i]);
    solve_of_all{p, task, effective, prepared, verify, all_b, solutions}.run(results, json);
    if (results.size() > 1) p.print(describe_all(j, task, results));
    return std::ranges::all_of(results, &run_result::converged) ? exit_success : exit_failure;
}

} // namespace
} // namespace halocline::app

int main(int argc, char** argv) { return halocline::app::run_program(argc, argv, halocline::app::solve); }
