// SPDX-License-Identifier: Apache-2.0
#include <halocline/amg/solver.hpp>

#include "collectively_made.hpp"

#include <halocline/base/error.hpp>
#include <halocline/base/short_list.hpp>
#include <halocline/base/stopwatch.hpp>
#include <halocline/lattice/field_shape.hpp>
#include <halocline/solvers/fgmres.hpp>

#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>
#include <string>

namespace halocline::amg {
namespace {

/// Ranks with other options would each solve something else, or wait for different sums.
void agree_on(const comm::job& j, const solver_options& o) {
    std::ostringstream text;
    text.precision(17);
    text << "blocks " << (o.blocks ? lattice::to_string(*o.blocks) : "by default") << ", vectors " << o.vectors
         << ", setup_iterations " << o.setup_iterations << ", sweeps " << o.sweeps << ", block_steps " << o.block_steps
         << ", coarse_tolerance " << o.coarse_tolerance << ", coarse_restart_length " << o.coarse_restart_length
         << ", coarse_max_restarts " << o.coarse_max_restarts << ", coarse_level " << o.coarse_level << ", seed "
         << o.seed << ", at_once " << o.at_once << ", tolerance " << o.tolerance << ", restart_length "
         << o.restart_length << ", max_restarts " << o.max_restarts << ", max_iterations " << o.max_iterations
         << ", stagnation_stop " << o.stagnation_stop;
    j.agree("the solver_options", text.str());
}

/// Collective.  Err: on every rank: input_error: an option that differs between ranks, or is out of range.
const solver_options& checked(const comm::job& j, const solver_options& o) {
    agree_on(j, o);
    const auto within = []<class T>(const char* name, T value, const option_range<T>& range) {
        if (value >= range.least && value <= range.most) return;
        std::ostringstream text;
        text << "solver_options::" << name << " = " << value << ": must be from " << range.least << " to "
             << range.most;
        throw input_error(text.str());
    };
    if (o.coarse_level) within("vectors", o.vectors, ranges.vectors);
    within("setup_iterations", o.setup_iterations, ranges.setup_iterations);
    within("sweeps", o.sweeps, ranges.sweeps);
    within("block_steps", o.block_steps, ranges.block_steps);
    within("coarse_tolerance", o.coarse_tolerance, ranges.tolerance);
    within("coarse_restart_length", o.coarse_restart_length, ranges.restart_length);
    within("coarse_max_restarts", o.coarse_max_restarts, ranges.max_restarts);
    within("at_once", o.at_once, ranges.at_once);
    within("tolerance", o.tolerance, ranges.tolerance);
    within("restart_length", o.restart_length, ranges.restart_length);
    within("max_restarts", o.max_restarts, ranges.max_restarts);
    within("max_iterations", o.max_iterations, ranges.max_iterations);
    return o;
}

constexpr int most_times = 10; // in a report

/// Collective, because the lane width, the number of places and having a box at all are a rank's own.
std::shared_ptr<const lattice::site_order> blocked_order(const comm::job& j, const lattice::decomposition& cut,
                                                         const solver_options& options) {
    const lattice::coordinate block = options.blocks.value_or(default_blocks(cut.global()));
    std::shared_ptr<const lattice::site_order> order;
    j.collectively([&] {
        static_cast<void>(coarse_decomposition(cut, block)); // its errors name the rank grids that would do
        const lattice::box local = cut.local_box(j.rank());
        const int width =
            options.lane_width != 0 ? options.lane_width : dirac::preferred_lane_width(local, cut.global(), block);
        order = lattice::site_order::blocked(local, cut.global(), block, width);
    });
    return order;
}

std::string with_parameters(const input_error& e, double m0, double csw) {
    std::ostringstream text;
    text << e.what() << " (m0 = " << std::setprecision(15) << m0 << ", csw = " << csw << ")";
    return text.str();
}

/// y = x, from one site order to another.
void reorder(lattice::field<double>& y, const lattice::field<double>& x) {
    for (std::int64_t site = 0; site < x.volume(); ++site)
        for (int c = 0; c < x.components(); ++c) y.at(site, c) = x.at(site, c);
}

template <class To, class From>
void convert(lattice::field<To>& y, const lattice::field<From>& x) noexcept {
    std::transform(x.values().begin(), x.values().end(), y.data(), [](From v) { return static_cast<To>(v); });
}

} // namespace

solver::solver(const comm::job& j, const lattice::decomposition& cut, const dirac::padded_links& links,
               const dirac::wilson_parameters& p, const solver_options& options) try
    : job_(j), options_(checked(j, options)), m0_(p.m0), csw_(p.csw),
      d_(j, cut, links, p, blocked_order(j, cut, options)), d32_(j, cut, links, p, d_.order()), blocks_(d32_, links),
      hierarchy_(j, cut, blocks_, options),
      sum_(j, std::max(values_per_sum(options.restart_length, options.at_once), most_times), cut.rank_order()),
      space_(d_.order(), lattice::spinor_components, sum_) {
    j.collectively([&] { make_room(1); });
} catch (const dirac::singular_local_term& e) { // on every rank
    throw no_hierarchy(with_parameters(e, p.m0, p.csw));
}

void solver::setup() {
    const stopwatch watch;
    is_set_up_ = false;
    try {
        hierarchy_.setup(tell_);
    } catch (const input_error& e) { // the same on every rank
        throw no_hierarchy(with_parameters(e, m0_, csw_));
    }
    setup_seconds_ = watch.seconds();
    is_set_up_ = true;
}

void solver::make_room(std::size_t systems) {
    while (x32_.size() < systems) x32_.emplace_back(d_.order(), lattice::spinor_components);
    while (b32_.size() < systems) b32_.emplace_back(d_.order(), lattice::spinor_components);
    while (systems_.size() < systems)
        systems_.push_back({{space_, options_.restart_length}, space_.make(), space_.make()});
}

void solver::check_call(fields x, const_fields b) const {
    if (!is_set_up_) throw input_error("amg::solver: solve() before setup(): there is no hierarchy yet");
    const lattice::field_shape spinors{lattice::spinor_components, d_.order()->extents()};
    const auto require = [&](const lattice::field<double>* one, const char* what) {
        if (one == nullptr) throw input_error(std::string(what) + " is a null pointer");
        lattice::require_shape(*one, what, spinors);
    };
    for (const lattice::field<double>* one : x) require(one, "amg::solver: field x");
    for (const lattice::field<double>* one : b) require(one, "amg::solver: field b");
    // A solution may take the place of its own right-hand side, but not of one that may still be solved for.
    for (std::size_t i = 0; i < x.size(); ++i)
        for (std::size_t k = 0; k < x.size(); ++k)
            if (i != k && (x[i] == x[k] || x[i] == b[k]))
                throw input_error("amg::solver: field x of right-hand side " + std::to_string(i) + " is also field " +
                                  (x[i] == x[k] ? "x" : "b") + " of right-hand side " + std::to_string(k));
}

solver_report solver::solve(lattice::field<double>& x, const lattice::field<double>& b, initial_guess guess) {
    lattice::field<double>* const to = &x;
    const lattice::field<double>* const from = &b;
    job_.agree("the initial guess of amg::solver::solve()", std::string(to_string(guess)));
    job_.collectively([&] { check_call({&to, 1}, {&from, 1}); });
    solver_report report;
    solve_together({&to, 1}, {&from, 1}, {&report, 1}, guess);
    return report;
}

std::vector<solver_report> solver::solve(fields x, const_fields b, initial_guess guess) {
    job_.agree("the numbers of fields of amg::solver::solve(), and the initial guess",
               std::to_string(x.size()) + " x, " + std::to_string(b.size()) + " b, " + std::string(to_string(guess)));
    const std::vector<int> groups = even_groups(static_cast<int>(b.size()), options_.at_once);
    job_.collectively([&] {
        if (x.size() != b.size())
            throw input_error("amg::solver: " + std::to_string(x.size()) + " fields x for " + std::to_string(b.size()) +
                              " right-hand sides; there must be one for each");
        check_call(x, b);
        if (!groups.empty()) make_room(static_cast<std::size_t>(groups.front()));
    });
    std::vector<solver_report> reports(b.size());
    std::size_t first = 0;
    for (const int group : groups) {
        const auto size = static_cast<std::size_t>(group);
        solve_together(x.subspan(first, size), b.subspan(first, size), std::span(reports).subspan(first, size), guess);
        first += size;
    }
    return reports;
}

solvers::fgmres_options solver::outer_options(initial_guess guess) const {
    solvers::fgmres_options options;
    options.use_initial_guess = guess == initial_guess::x;
    options.tolerance = options_.tolerance;
    options.restart_length = options_.restart_length;
    options.max_iterations =
        options_.max_iterations > 0 ? options_.max_iterations : options_.max_restarts * options_.restart_length;
    options.stagnation_window = options_.stagnation_stop ? options_.restart_length : 0;
    options.expected = 1; // a cycle is close to the inverse of D
    return options;
}

comm::status solver::precondition(fields z, const_fields r) {
    for (std::size_t k = 0; k < r.size(); ++k) convert(b32_[k], *r[k]);
    const comm::status s = hierarchy_.cycle(std::span(x32_).first(z.size()), std::span(b32_).first(r.size()));
    for (std::size_t k = 0; k < z.size(); ++k) convert(*z[k], x32_[k]);
    return s;
}

void solver::solve_together(fields x, const_fields b, std::span<solver_report> reports, initial_guess guess) {
    hierarchy_.coarse_level().reset_costs();
    short_list<solvers::one_system<lattice::field<double>>, solvers::most_systems> systems;
    job_.collectively([&] { // also so that the slowest rank's preparations are not timed as the others' waits
        for (std::size_t k = 0; k < b.size(); ++k) {
            reorder(systems_[k].b, *b[k]);
            if (guess == initial_guess::x) reorder(systems_[k].x, *x[k]);
            systems.push_back({&systems_[k].b, &systems_[k].x, &systems_[k].work});
        }
    });

    const stopwatch watch;
    const auto apply = [&](fields y, const_fields v) {
        for (std::size_t k = 0; k < y.size(); ++k)
            if (const comm::status s = d_.apply(*y[k], *v[k]); s != comm::status::ok) return s;
        return comm::status::ok;
    };
    // An iteration of several is told when the next one begins: it has the largest of their residuals.
    progress now{.where = progress::phase::solve, .milestone = true};
    const auto tell = [&] {
        if (tell_ && now.step > 0) tell_(now);
        now.step = 0;
    };
    const auto on_iteration = [&](const solvers::iteration_event& e) {
        const bool is_first = now.step == 0;
        now.residual = is_first ? e.residual : std::max(now.residual, e.residual);
        now.systems = is_first ? 1 : now.systems + 1;
        now.step = e.iteration;
        if (b.size() == 1) tell();
    };
    std::vector<solvers::solve_report> outer(b.size());
    solvers::fgmres_together(
        space_, apply,
        [&](fields z, const_fields r) {
            tell();
            return precondition(z, r);
        },
        systems.values(), std::span(outer), outer_options(guess), on_iteration);
    tell();
    const double seconds = watch.seconds();
    for (std::size_t k = 0; k < b.size(); ++k) {
        if (outer[k].communication != comm::status::ok) job_.fail(outer[k].communication, "the solve");
        reports[k].outer = std::move(outer[k]);
        reorder(*x[k], systems_[k].x);
        x[k]->mark_written();
    }
    report_costs(seconds, reports);
}

void solver::report_costs(double solve_seconds, std::span<solver_report> reports) {
    double setup_seconds = setup_seconds_;
    coarse_costs c = hierarchy_.coarse_level().costs();
    const std::array<double*, most_times> slowest{
        &setup_seconds,  &solve_seconds,    &c.seconds,           &c.halo_seconds,       &c.pack_seconds,
        &c.wait_seconds, &c.unpack_seconds, &c.imbalance_seconds, &c.global_sum_seconds, &c.on_chip_seconds};
    std::array<double, slowest.size()> values{};
    std::transform(slowest.begin(), slowest.end(), values.begin(), [](const double* s) { return *s; });
    if (const comm::status s = sum_.maximum(values); s != comm::status::ok) job_.fail(s, "the times of all ranks");
    for (std::size_t i = 0; i < slowest.size(); ++i) *slowest[i] = values[i];
    for (solver_report& report : reports) {
        report.at_once = static_cast<int>(reports.size());
        report.setup_seconds = setup_seconds;
        report.solve_seconds = solve_seconds;
        report.coarse = c;
        report.notes = hierarchy_.notes();
        if (2 * c.unsolved > c.solves)
            report.notes.push_back(std::to_string(c.unsolved) + " of " + std::to_string(c.solves) +
                                   " coarse solves ended above their tolerance, most at their limit of iterations: "
                                   "smaller blocks or more vectors may do better, or m0 is below its critical value");
    }
}

} // namespace halocline::amg
