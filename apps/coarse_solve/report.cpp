// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <halocline_app/main.hpp>
#include <halocline_app/run_report.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace halocline::app {
namespace {

nlohmann::json pair(std::complex<double> z) { return nlohmann::json::array({z.real(), z.imag()}); }
double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/// All values as text, without those that hold for this host alone.
nlohmann::ordered_json values_by_key(const settings& s) {
    nlohmann::ordered_json o;
    for (const setting_key& k : setting_keys())
        if (!k.of_host) o[k.path()] = k.show(s);
    return o;
}

/// The solver's, unless the plain operator contradicts it.
std::string status_of(const run_result& r) {
    if (!r.has_hierarchy) return "no_hierarchy";
    const bool contradicted = r.solve.converged() && !r.converged;
    return contradicted ? "contradicted" : std::string(solvers::to_string(r.solve.outer.status));
}

void append_contradiction(std::string& out, const run_result& r) {
    if (status_of(r) != "contradicted") return;
    append_line(out, "the solver's own residual, %.3e, meets the tolerance; the plain operator's does not",
                r.solve.outer.relative_residual);
}

/// "converged on 2 ranks 1.1.1.2 over shm (halocline-run)"
std::string last_line(const std::string& verdict, const comm::job& j, const problem& p) {
    return verdict + " " + where_it_runs(j, p.cut) + " (" + j.launcher() + ")";
}

} // namespace

std::string describe(const comm::job& j, const problem& p, const run_result& r) {
    const auto& s = r.solve;
    const auto& c = s.coarse;
    std::string out = "\n";
    for (const auto& note : s.notes) append_line(out, "note: %s", note.c_str());
    append_line(out, "%-28s %12s", "seconds (slowest rank)", "");
    append_line(out, "  %-26s %12.4f", "set-up", s.setup_seconds);
    append_line(out, "  %-26s %12.4f", "solve", s.solve_seconds);
    append_line(out, "  %-26s %12.4f  %5.1f %% of solve", "  coarse grid", c.seconds,
                percent(c.seconds, s.solve_seconds));
    append_line(out, "  %-26s %12.4f  %5.1f %% of coarse", "    on-chip", c.on_chip_seconds,
                percent(c.on_chip_seconds, c.seconds));
    append_line(out, "  %-26s %12.4f  %5.1f %%  (pack %.4f, wait %.4f of which late peer %.4f, unpack %.4f)",
                "    halo", c.halo_seconds, percent(c.halo_seconds, c.seconds), c.pack_seconds, c.wait_seconds,
                c.imbalance_seconds, c.unpack_seconds);
    append_line(out, "  %-26s %12.4f  %5.1f %%  (%llu sums, %.3f MB sent by rank 0)", "    global sums",
                c.global_sum_seconds, percent(c.global_sum_seconds, c.seconds),
                static_cast<unsigned long long>(c.global_sums), static_cast<double>(c.global_sum_bytes) / 1e6);
    for (const auto& traffic : c.by_transport)
        append_line(out, "  %-26s %12llu messages, %.3f MB (rank 0)", ("coarse halo over " + traffic.transport).c_str(),
                    static_cast<unsigned long long>(traffic.messages), static_cast<double>(traffic.bytes) / 1e6);
    append_line(out, "%-28s %12d", "outer iterations", s.outer.iterations);
    append_line(out, "%-28s %12.2f", "coarse iterations, average", s.coarse_iterations_average());
    append_line(out, "%-28s %12.3e", "true relative residual", r.true_relative_residual);
    append_line(out, "%-28s %12.10g", "norm of the solution", r.solution_norm);
    append_contradiction(out, r);
    return out + last_line(r.converged ? "converged" : "NOT converged: " + status_of(r), j, p);
}

std::string describe_one_of_many(const run_result& r, const run_result& first) {
    const auto& s = r.solve;
    std::string out;
    for (const auto& note : s.notes)
        if (&r == &first || std::ranges::find(first.solve.notes, note) == first.solve.notes.end())
            append_line(out, "note: %s", note.c_str());
    append_contradiction(out, r);
    append_line(out, "%s: %s: %d outer iterations, true relative residual %.3e, norm of the solution %.10g",
                r.rhs.c_str(), (r.converged ? "converged" : "NOT converged: " + status_of(r)).c_str(),
                s.outer.iterations, r.true_relative_residual, r.solution_norm);
    out.pop_back();
    return out;
}

std::string describe_together(const amg::solver_report& one) {
    std::string out;
    append_line(out, "solved in %.4f s, coarse grid %.4f s (halo %.4f, sums %.4f)", one.solve_seconds,
                one.coarse.seconds, one.coarse.halo_seconds, one.coarse.global_sum_seconds);
    out.pop_back();
    return out;
}

std::string describe_all(const comm::job& j, const problem& p, const std::vector<run_result>& results) {
    double solves = 0;
    for (const run_result& r : results) solves += r.solve.solve_seconds / r.solve.at_once; // of all that it was with
    const auto converged = static_cast<std::size_t>(std::ranges::count(results, true, &run_result::converged));
    const auto count = static_cast<double>(results.size());
    std::string out = "\n";
    append_line(out, "%-28s %12s", "seconds (slowest rank)", "");
    append_line(out, "  %-26s %12.4f", "set-up", results.front().solve.setup_seconds);
    append_line(out, "  %-26s %12.4f  %.4f each", "solves", solves, solves / count);
    return out + last_line(converged == results.size() ? "converged" : "NOT converged", j, p) + ": " +
           std::to_string(converged) + " of " + std::to_string(results.size()) + " right-hand sides";
}

std::string to_json(const comm::job& j, const problem& p, const settings& in_force, const run_result& r) {
    const auto& s = r.solve;
    const auto& c = s.coarse;
    auto o = head_of_result<nlohmann::ordered_json>("coarse_solve", j, p.cut);
    o["settings"] = values_by_key(in_force);
    o["gauge"] = p.file.path;
    o["lattice"] = p.cut.global();
    o["blocks"] = p.blocks;
    o["plaquette"] = r.plaquette;
    o["operator_ones_norm"] = r.operator_ones_norm;
    o["operator_ones_inner"] = pair(r.operator_ones_inner);
    o["rhs"] = r.rhs;
    o["rhs_norm"] = r.rhs_norm;
    o["solution_norm"] = r.solution_norm;
    o["solution_sum"] = pair(r.solution_sum);
    o["first_component"] = pair(r.first_component);
    o["true_relative_residual"] = r.true_relative_residual;
    o["converged"] = r.converged;
    o["status"] = status_of(r);
    o["outer_iterations"] = s.outer.iterations;
    o["at_once"] = s.at_once;
    o["coarse_iterations_average"] = s.coarse_iterations_average();
    o["seconds"] = {{"setup", s.setup_seconds},
                    {"solve", s.solve_seconds},
                    {"coarse", c.seconds},
                    {"on_chip", c.on_chip_seconds},
                    {"halo", c.halo_seconds},
                    {"global_sums", c.global_sum_seconds},
                    {"halo_pack", c.pack_seconds},
                    {"halo_wait", c.wait_seconds},
                    {"halo_unpack", c.unpack_seconds},
                    {"halo_imbalance", c.imbalance_seconds}};
    o["coarse_halo"] = nlohmann::json::array();
    for (const auto& traffic : c.by_transport)
        o["coarse_halo"].push_back(
            {{"transport", traffic.transport}, {"messages", traffic.messages}, {"bytes", traffic.bytes}}); // rank 0
    o["solution"] = r.solution;
    o["history"] = s.outer.history;
    o["notes"] = s.notes;
    return text_of_result(o, -1);
}

} // namespace halocline::app
