// SPDX-License-Identifier: Apache-2.0
#include "handles.hpp"
#include "shapes.hpp"

#include <halocline/amg/solver.hpp>
#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/reference_operator.hpp>
#include <halocline/dirac/spinor_field.hpp>
#include <halocline/lattice/su3_error.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace halocline;
using c::guarded, c::present;
using spinors = lattice::field<double>;

struct halocline_solver {
    comm::job job;
    lattice::coordinate extents;
    int basis; ///< halocline_spin_basis
    amg::initial_guess guess;
    amg::solver value;
    dirac::reference_operator plain;
};

namespace {

constexpr lattice::coordinate chosen{}; // extents that were left 0

lattice::coordinate coordinate_of(const int (&x)[4], const char* name, bool may_be_chosen) {
    const lattice::coordinate c{x[0], x[1], x[2], x[3]};
    if (may_be_chosen && c == chosen) return c;
    if (std::ranges::any_of(c, [](int e) { return e < 1; }))
        throw input_error(std::string(name) + " " + lattice::to_string(c) + ": each is 1 or more" +
                          (may_be_chosen ? ", or all are 0" : ""));
    return c;
}

lattice::coordinate blocks_of(const halocline_solver_options& given, const lattice::coordinate& global) {
    const lattice::coordinate blocks = coordinate_of(given.blocks, "blocks", true);
    return blocks == chosen ? amg::default_blocks(global) : blocks;
}

/// Local.  Err: input_error.
lattice::decomposition cut_of(const comm::job& j, const halocline_solver_options& given) {
    const lattice::coordinate global = coordinate_of(given.global, "global", false),
                              grid = coordinate_of(given.rank_grid, "rank_grid", true),
                              blocks = blocks_of(given, global);
    auto cut = grid == chosen ? lattice::decomposition::chosen(global, j.ranks(), blocks)
                              : lattice::decomposition::even(global, grid, blocks);
    return c::with_owners(j, cut, given);
}

dirac::wilson_parameters parameters_of(const halocline_solver_options& given) {
    dirac::wilson_parameters p{.m0 = given.m0, .csw = given.csw};
    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        lattice::boundary& b = p.boundaries[static_cast<std::size_t>(mu)];
        b = c::boundary_of(given.boundary[mu], mu, b);
    }
    if (given.spins != HALOCLINE_OPENQCD_SPINS && given.spins != HALOCLINE_DEGRAND_ROSSI_SPINS)
        throw input_error("spins = " + std::to_string(given.spins) + " is neither 0 nor 1");
    return p;
}

amg::solver_options options_of(const halocline_solver_options& given, const lattice::coordinate& blocks) {
    amg::solver_options o;
    o.blocks = blocks;
    if (given.vectors != 0) o.vectors = given.vectors;
    if (given.setup_iterations != 0) o.setup_iterations = given.setup_iterations == -1 ? 0 : given.setup_iterations;
    if (given.tolerance != 0) o.tolerance = given.tolerance;
    if (given.max_iterations != 0) o.max_iterations = given.max_iterations;
    if (given.at_once != 0) o.at_once = given.at_once;
    if (given.seed != 0) o.seed = given.seed;
    return o;
}

/// The links of this rank's box, copied.
/// Err: input_error naming the first one that is not in SU(3). Beyond an open boundary links may be zero.
lattice::gauge_field links_of(const double* given, const lattice::decomposition& cut, int rank,
                              const dirac::wilson_parameters& p) {
    constexpr double most = 1e-5; // what rounding to 32 bits leaves, with room
    const lattice::box local = cut.local_box(rank);
    const auto is_cut_off = [&](const lattice::coordinate& x, int mu, const double* u) {
        return p.boundaries[static_cast<std::size_t>(mu)] == lattice::boundary::open && x[mu] == cut.global()[mu] - 1 &&
               std::all_of(u, u + lattice::link_components, [](double v) { return v == 0; });
    };
    lattice::gauge_field links(local.extents, lattice::gauge_components);
    std::copy_n(given, links.values().size(), links.data());
    for (std::int64_t site = 0; site < local.volume(); ++site)
        for (int mu = 0; mu < lattice::dimensions; ++mu) {
            const double* const u = given + site * lattice::gauge_components + mu * lattice::link_components;
            const double error = lattice::su3_error(u);
            if (error <= most || is_cut_off(local.site(site), mu, u)) continue;
            char by[32];
            std::snprintf(by, sizeof by, "%.3g", error);
            throw input_error("links: the one at site " + lattice::to_string(local.site(site)) + " in direction " +
                              lattice::dimension_name[mu] + " misses SU(3) by " + by +
                              ", at most 1e-5 is expected; order: [site][mu][row][column][re, im], no boundary sign");
        }
    links.mark_written();
    return links;
}

/// Reads a caller's array, and writes one.
spinors spinors_of(const halocline_solver& s, const double* given) {
    spinors psi(s.extents, lattice::spinor_components);
    std::copy_n(given, psi.values().size(), psi.data());
    if (s.basis == HALOCLINE_DEGRAND_ROSSI_SPINS) dirac::change_spin_basis(psi);
    return psi;
}
void store(const halocline_solver& s, spinors& psi, double* to) {
    if (s.basis == HALOCLINE_DEGRAND_ROSSI_SPINS) dirac::change_spin_basis(psi);
    std::ranges::copy(psi.values(), to);
}

halocline_solve_report report_of(const amg::solver_report& r) {
    return {.converged = r.converged() ? 1 : 0,
            .iterations = r.outer.iterations,
            .relative_residual = r.outer.relative_residual,
            .coarse_iterations = r.coarse_iterations_average(),
            .setup_seconds = r.setup_seconds,
            .solve_seconds = r.solve_seconds,
            .at_once = r.at_once,
            .status = solvers::to_string(r.outer.status).data()}; // a literal
}

/// Err: input_error: an array of a solution is that of another solution, or of another right-hand side, which may still
/// be solved for.
void require_distinct(int count, double* const* x, const double* const* b) {
    for (int i = 0; i < count; ++i)
        for (int k = 0; k < count; ++k)
            if (i != k && (x[i] == x[k] || x[i] == b[k]))
                throw input_error("x[" + std::to_string(i) + "] is also " + (x[i] == x[k] ? "x[" : "b[") +
                                  std::to_string(k) + "]");
}

/// Solves for right-hand sides that are iterated together. Collective.
void solve_group(halocline_solver& s, int count, double* const* x, const double* const* b,
                 halocline_solve_report* reports) {
    std::vector<spinors> rhs, solutions;
    std::vector<const spinors*> from;
    std::vector<spinors*> to;
    s.job.collectively([&] {
        for (int k = 0; k < count; ++k) {
            rhs.push_back(spinors_of(s, b[k]));
            if (s.guess == amg::initial_guess::x)
                solutions.push_back(spinors_of(s, x[k]));
            else
                solutions.emplace_back(s.extents, lattice::spinor_components);
        }
        for (spinors& one : rhs) from.push_back(&one);
        for (spinors& one : solutions) to.push_back(&one);
    });
    const std::vector<amg::solver_report> all = s.value.solve(to, from, s.guess);
    for (int k = 0; k < count; ++k) {
        const auto i = static_cast<std::size_t>(k);
        store(s, solutions[i], x[k]);
        if (reports != nullptr) reports[k] = report_of(all[i]);
    }
}

/// Calls work(x, y) on fields: the caller's array `from`, and one that is stored to `to`. Collective.
template <class Work>
halocline_status on_fields(halocline_solver* solver, const double* from, const char* from_name, double* to,
                           const char* to_name, Work&& work) noexcept {
    return guarded([&] {
        halocline_solver& s = present(solver, "solver");
        std::optional<spinors> x, y;
        s.job.collectively([&] { // so that no rank waits for one that was given something else
            present(from, from_name);
            present(to, to_name);
            x = spinors_of(s, from);
            y = spinors(s.extents, lattice::spinor_components);
        });
        work(s, *x, *y);
        store(s, *y, to);
    });
}

} // namespace

halocline_status halocline_solver_box(halocline_job* job, const halocline_solver_options* options, int first[4],
                                      int extent[4]) {
    return guarded([&] {
        const comm::job& j = present(job, "job").value;
        present(first, "first");
        present(extent, "extent");
        c::copy_box(cut_of(j, present(options, "options")).local_box(j.rank()), first, extent);
    });
}

halocline_status halocline_solver_create(halocline_job* job, const halocline_solver_options* options,
                                         const double* links, halocline_solver** solver) {
    return guarded([&] {
        if (solver != nullptr) *solver = nullptr;
        const comm::job& j = present(job, "job").value;
        std::optional<lattice::decomposition> cut;
        lattice::coordinate blocks;
        dirac::wilson_parameters p;
        j.collectively([&] { // so that no rank waits for one that was given something else
            present(solver, "solver");
            const halocline_solver_options& given = present(options, "options");
            p = parameters_of(given);
            cut = cut_of(j, given);
            blocks = blocks_of(given, cut->global());
        });
        const halocline_solver_options& given = *options;
        // What no part of the solver compares, and what decides how long the array of links is.
        std::string owners;
        for (const int rank : cut->rank_order()) owners += " " + std::to_string(rank);
        j.agree("what halocline_solver_create() was given",
                "lattice " + lattice::to_string(cut->global()) + " in blocks of " + lattice::to_string(blocks) +
                    " on ranks " + lattice::to_string(cut->rank_grid()) + ", spins " + std::to_string(given.spins) +
                    (given.from_x != 0 ? ", from x" : "") + ", rank order" + owners);
        std::optional<lattice::gauge_field> copied;
        j.collectively([&] { copied = links_of(&present(links, "links"), *cut, j.rank(), p); });
        const dirac::padded_links padded(j, *cut, *copied);
        copied.reset();
        auto made = std::unique_ptr<halocline_solver>(
            new halocline_solver{j,
                                 cut->local_box(j.rank()).extents,
                                 given.spins,
                                 given.from_x != 0 ? amg::initial_guess::x : amg::initial_guess::zero,
                                 {j, *cut, padded, p, options_of(given, blocks)},
                                 {j, *cut, padded, p}});
        if (given.progress != nullptr)
            made->value.on_progress([tell = given.progress, context = given.context](const amg::progress& now) {
                tell(context, amg::to_string(now).c_str(), now.milestone ? 1 : 0);
            });
        made->value.setup();
        *solver = made.release();
    });
}

void halocline_solver_free(halocline_solver* solver) { delete solver; }

halocline_status halocline_solver_solve(halocline_solver* solver, double* x, const double* b,
                                        halocline_solve_report* report) {
    return on_fields(solver, b, "b", x, "x", [&](halocline_solver& s, const spinors& rhs, spinors& solution) {
        if (s.guess == amg::initial_guess::x) solution = spinors_of(s, x);
        const amg::solver_report r = s.value.solve(solution, rhs, s.guess);
        if (report != nullptr) *report = report_of(r);
    });
}

halocline_status halocline_solver_solve_several(halocline_solver* solver, int count, double* const* x,
                                                const double* const* b, halocline_solve_report* reports) {
    return guarded([&] {
        halocline_solver& s = present(solver, "solver");
        s.job.agree("the count of halocline_solver_solve_several()", std::to_string(count));
        s.job.collectively([&] { // so that no rank waits for one that was given something else
            if (count < 0) throw input_error("count = " + std::to_string(count) + ": must be 0 or more");
            if (count > 0) present(x, "x");
            if (count > 0) present(b, "b");
            for (int k = 0; k < count; ++k) {
                present(x[k], "x[k]");
                present(b[k], "b[k]");
            }
            require_distinct(count, x, b);
        });
        for (const int group : amg::even_groups(count, s.value.at_once())) {
            solve_group(s, group, x, b, reports);
            x += group;
            b += group;
            if (reports != nullptr) reports += group;
        }
    });
}

halocline_status halocline_solver_apply(halocline_solver* solver, double* y, const double* x) {
    return on_fields(solver, x, "x", y, "y",
                     [](halocline_solver& s, const spinors& from, spinors& to) { s.plain.apply(to, from); });
}
