// SPDX-License-Identifier: Apache-2.0
#include <halocline/amg/solver.hpp>

#include "collectively_made.hpp"

#include <halocline/base/error.hpp>
#include <halocline/base/stopwatch.hpp>
#include <halocline/lattice/field_shape.hpp>

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
         << o.seed << ", tolerance " << o.tolerance << ", restart_length " << o.restart_length << ", max_restarts "
         << o.max_restarts << ", max_iterations " << o.max_iterations << ", stagnation_stop " << o.stagnation_stop;
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
      sum_(j, std::max(solvers::values_per_sum(options.restart_length), most_times), cut.rank_order()),
      space_(d_.order(), lattice::spinor_components, sum_), work_(collectively_made(j, [&] {
          return solvers::fgmres_workspace<lattice::field<double>>(space_, options.restart_length);
      })) {
    j.collectively([&] {
        x_ = space_.make();
        b_ = space_.make();
        x32_ = lattice::field<float>(d_.order(), lattice::spinor_components);
        b32_ = lattice::field<float>(d_.order(), lattice::spinor_components);
    });
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

solver_report solver::solve(lattice::field<double>& x, const lattice::field<double>& b) {
    hierarchy_.coarse_level().reset_costs();
    job_.collectively([&] { // also so that the slowest rank's preparations are not timed as the others' waits
        if (!is_set_up_) throw input_error("amg::solver: solve() before setup(): there is no hierarchy yet");
        const lattice::field_shape spinors{lattice::spinor_components, d_.order()->extents()};
        lattice::require_shape(x, "amg::solver: field x", spinors);
        lattice::require_shape(b, "amg::solver: field b", spinors);
        reorder(b_, b);
    });

    const stopwatch watch;
    solvers::fgmres_options options;
    options.tolerance = options_.tolerance;
    options.restart_length = options_.restart_length;
    options.max_iterations =
        options_.max_iterations > 0 ? options_.max_iterations : options_.max_restarts * options_.restart_length;
    options.stagnation_window = options_.stagnation_stop ? options_.restart_length : 0;
    const auto precondition = [&](lattice::field<double>& z, const lattice::field<double>& r) {
        convert(b32_, r);
        const comm::status s = hierarchy_.cycle(x32_, b32_);
        convert(z, x32_);
        return s;
    };
    solver_report report;
    report.outer = solvers::fgmres(
        space_, [&](auto& y, const auto& v) { return d_.apply(y, v); }, precondition, b_, x_, work_, options,
        [&](const solvers::iteration_event& e) {
            if (tell_) tell_({progress::phase::solve, e.iteration, 0, e.residual, true});
        });
    report.solve_seconds = watch.seconds();
    if (report.outer.communication != comm::status::ok) job_.fail(report.outer.communication, "the solve");
    reorder(x, x_);
    x.mark_written();

    report.setup_seconds = setup_seconds_;
    report.coarse = hierarchy_.coarse_level().costs();
    report.notes = hierarchy_.notes();
    coarse_costs& c = report.coarse;
    const std::array<double*, most_times> slowest{
        &report.setup_seconds, &report.solve_seconds, &c.seconds,           &c.halo_seconds,       &c.pack_seconds,
        &c.wait_seconds,       &c.unpack_seconds,     &c.imbalance_seconds, &c.global_sum_seconds, &c.on_chip_seconds};
    std::array<double, slowest.size()> values{};
    std::transform(slowest.begin(), slowest.end(), values.begin(), [](const double* s) { return *s; });
    if (const comm::status s = sum_.maximum(values); s != comm::status::ok) job_.fail(s, "the times of all ranks");
    for (std::size_t i = 0; i < slowest.size(); ++i) *slowest[i] = values[i];
    return report;
}

} // namespace halocline::amg
