// SPDX-License-Identifier: Apache-2.0
#include <halocline/amg/two_level.hpp>

#include "collectively_made.hpp"
#include "norm_text.hpp"

#include <halocline/base/error.hpp>
#include <halocline/base/stopwatch.hpp>
#include <halocline/lattice/field_shape.hpp>
#include <halocline/lattice/random.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

namespace halocline::amg {
namespace {

solvers::fgmres_options coarse_options(const solver_options& options) {
    solvers::fgmres_options o;
    o.tolerance = options.coarse_tolerance;
    o.restart_length = options.coarse_restart_length;
    o.max_iterations = options.coarse_restart_length * options.coarse_max_restarts;
    o.verify = false;       // the outer solver computes the true residual
    o.keep_history = false; // and nothing is allocated
    o.reorthogonalise_below = 0.1;
    return o;
}

/// Without a coarse level nothing reads P and D_c: one vector, for which every block has room, is enough of them.
solver_options with_needed_vectors(solver_options o) {
    if (!o.coarse_level) o.vectors = 1;
    return o;
}

} // namespace

coarse_solver::coarse_solver(const comm::job& j, coarse_operator& d, const solver_options& options,
                             std::span<const int> rank_order)
    : d_(&d), sum_(j, solvers::values_per_sum(options.coarse_restart_length), rank_order),
      options_(coarse_options(options)), space_(d.bipartite() ? d.half_order() : d.order(), d.components(), sum_),
      work_(collectively_made(j, [&] {
          return solvers::fgmres_workspace<lattice::field<float>>(space_, options.coarse_restart_length, false);
      })) {
    if (!d.bipartite()) return;
    j.collectively([&] {
        b_ = space_.make();
        x_ = space_.make();
    });
}

comm::status coarse_solver::operator()(lattice::field<float>& x, const lattice::field<float>& b) {
    const stopwatch watch;
    comm::status bad = comm::status::ok;
    const auto ok = [&](comm::status s) { return (bad = s) == comm::status::ok; };
    const auto gmres = [&](auto&& a, const lattice::field<float>& rhs, lattice::field<float>& solution) {
        const solvers::solve_report report = solvers::gmres(space_, a, rhs, solution, work_, options_);
        costs_.iterations += static_cast<std::uint64_t>(report.iterations);
        if (report.status == solvers::solve_status::not_finite) { // the solution is 0 then, which looks like an answer
            std::ranges::fill(solution.values(), std::numeric_limits<float>::quiet_NaN());
            solution.mark_written();
        }
        return ok(report.communication);
    };
    if (d_->bipartite()) {
        // (D_ee - D_eo D_oo^-1 D_oe) x_e = b_e - D_eo D_oo^-1 b_o;  x_o = D_oo^-1 (b_o - D_oe x_e)
        if (ok(d_->reduce(b_, b)) && gmres([&](auto& y, const auto& v) { return d_->apply_schur(y, v); }, b_, x_))
            ok(d_->reconstruct(x, x_, b));
    } else {
        gmres([&](auto& y, const auto& v) { return d_->apply(y, v); }, b, x);
    }
    ++costs_.solves;
    costs_.seconds += watch.seconds();
    return bad;
}

coarse_costs coarse_solver::costs() const {
    coarse_costs c = costs_;
    const halo::plan_statistics halo = d_->statistics();
    c.exchanges = halo.exchanges;
    c.pack_seconds = halo.pack_seconds;
    c.wait_seconds = halo.wait_seconds;
    c.unpack_seconds = halo.unpack_seconds;
    c.imbalance_seconds = halo.imbalance_seconds;
    c.halo_seconds = c.pack_seconds + c.wait_seconds + c.unpack_seconds;
    c.by_transport = halo.by_transport;
    c.global_sums = sum_.statistics().sums;
    c.global_sum_bytes = sum_.statistics().bytes;
    c.global_sum_seconds = sum_.statistics().seconds;
    c.on_chip_seconds = std::max(0.0, c.seconds - c.halo_seconds - c.global_sum_seconds);
    return c;
}

void coarse_solver::reset_costs() {
    costs_ = {};
    d_->reset_statistics();
    sum_.reset_statistics();
}

two_level::two_level(const comm::job& j, const lattice::decomposition& cut, dirac::schwarz_blocks<float>& blocks,
                     const solver_options& options)
    : job_(j), options_(with_needed_vectors(options)), global_(cut.global()), local_(cut.local_box(j.rank())),
      d_(&blocks.d()), coarse_cut_(coarse_decomposition(cut, d_->order()->blocks()->block)),
      p_(collectively_made(
          j, [&] { return aggregation(d_->order(), coarse_site_order(coarse_cut_, j.rank()), options_.vectors); })),
      dc_(j, coarse_cut_, p_.coarse(), options_.vectors), solve_(j, dc_, options_, cut.rank_order()),
      smooth_(collectively_made(j, [&] { return sap_smoother(blocks, options.block_steps); })),
      sum_(j, 2, cut.rank_order()), space_(d_->order(), lattice::spinor_components, sum_) {
    j.collectively([&] {
        xc_ = lattice::field<float>(p_.coarse(), p_.coarse_components());
        bc_ = lattice::field<float>(p_.coarse(), p_.coarse_components());
    });
}

std::vector<std::string> two_level::notes() const {
    std::vector<std::string> notes;
    const std::string grid = lattice::to_string(coarse_cut_.global());
    if (!smooth_.two_colours())
        notes.push_back("blocks " + grid +
                        ": red-black needs an even number in every dimension; additive Schwarz instead");
    if (options_.coarse_level && lattice::volume(coarse_cut_.global()) == 1)
        notes.push_back("coarse lattice " + grid + ": one site, because one block is the whole lattice " +
                        lattice::to_string(global_) + "; smaller blocks may do better");
    if (options_.coarse_level && !dc_.bipartite())
        notes.push_back("coarse lattice " + grid +
                        ": odd-even needs even extents; coarse GMRES without odd-even preconditioning instead");
    if (replaced_columns_ > 0)
        notes.push_back("test vectors depend on each other: " + std::to_string(replaced_columns_) + " of " +
                        std::to_string(2 * options_.vectors * lattice::volume(coarse_cut_.global())) +
                        " columns of the interpolation are random numbers instead; fewer vectors may do");
    return notes;
}

void two_level::check(comm::status s, const char* what) const {
    if (s != comm::status::ok) job_.fail(s, what);
}

void two_level::random_spinor(std::int64_t site, std::uint32_t number, std::span<float> spinor) const {
    const std::int64_t global_site = lattice::lexicographic_index(local_.site(site), global_);
    lattice::site_random random(options_.seed, number, static_cast<std::uint64_t>(global_site));
    for (float& component : spinor) component = static_cast<float>(2 * random.uniform() - 1);
}

void two_level::random_vector(lattice::field<float>& v, std::uint32_t number) const {
    std::array<float, lattice::spinor_components> spinor{};
    for (std::int64_t site = 0; site < v.volume(); ++site) {
        random_spinor(site, number, spinor);
        for (int c = 0; c < lattice::spinor_components; ++c) v.at(site, c) = spinor[static_cast<std::size_t>(c)];
    }
}

void two_level::normalise(lattice::field<float>& v) {
    double norm = 0;
    check(space_.norm(v, norm), "the norm of a test vector");
    if (!(norm > 0) || !std::isfinite(norm))
        throw input_error("set-up: the norm of a test vector is " + norm_text(norm) +
                          "; is the gauge field, or are m0 and csw, what they should be?");
    space_.scale(v, 1 / norm);
}

// Inverse iteration may turn all vectors into the few lowest modes, as on links of one: where a vector depends on those
// before it, its initial random numbers take its place, in the columns of P only.
void two_level::make_coarse_level() {
    std::optional<coarse_operator::workspace> work;
    job_.collectively([&] {
        replaced_columns_ = p_.define(test_vectors_, [&](std::int64_t site, int vector, std::span<float> spinor) {
            random_spinor(site, static_cast<std::uint32_t>(vector), spinor);
        });
        work = dc_.make_workspace(p_);
    });
    // Not inside collectively(): a rank that failed there would be missing in the exchanges of the others.
    check(dc_.define(p_, *d_, *work), "the surfaces of the coarse operator's columns");
    if (dc_.bipartite()) job_.collectively([&] { dc_.invert_odd(); });
}

void two_level::setup(const progress_callback& tell) {
    using phase = progress::phase;
    const int count = options_.vectors;
    if (!options_.coarse_level) return;
    lattice::field<float> b;
    job_.collectively([&] {
        test_vectors_.clear();
        for (int i = 0; i < count; ++i) test_vectors_.push_back(space_.make());
        b = space_.make();
    });

    // v = S_3 S_2 S_1 v with S_k: k sweeps on D x = v
    for (int i = 0; i < count; ++i) {
        lattice::field<float>& v = test_vectors_[i];
        random_vector(v, static_cast<std::uint32_t>(i));
        for (int sweeps = 1; sweeps <= 3; ++sweeps) {
            b.swap(v);
            check(smooth_.from_zero(v, b, sweeps), "the surfaces of a test vector");
        }
        normalise(v);
        if (tell) tell({phase::initial_vectors, i + 1, count, 0, i + 1 == count});
    }
    make_coarse_level();

    for (int k = 0; k < options_.setup_iterations; ++k) {
        // v = M v with M the multigrid made of the previous vectors
        for (lattice::field<float>& v : test_vectors_) {
            b.swap(v);
            check(cycle(v, b), "a set-up cycle");
            normalise(v);
        }
        make_coarse_level();
        if (tell) tell({phase::setup_iteration, k + 1, options_.setup_iterations, 0, true});
    }
    test_vectors_.clear(); // P holds what is needed of them
    auto replaced = static_cast<double>(replaced_columns_);
    check(sum_({&replaced, 1}), "the number of columns that were replaced");
    replaced_columns_ = static_cast<std::int64_t>(replaced);
    solve_.reset_costs();
}

comm::status two_level::cycle(lattice::field<float>& x, const lattice::field<float>& b) {
    lattice::require_shape(x, "two_level: x", lattice::spinor_components, *p_.fine());
    lattice::require_shape(b, "two_level: b", lattice::spinor_components, *p_.fine());
    if (!options_.coarse_level) return smooth_.from_zero(x, b, options_.sweeps);
    p_.restrict(bc_, b);                     // b_c = P^dagger b
    const comm::status s = solve_(xc_, bc_); // D_c x_c = b_c
    if (s != comm::status::ok) return s;
    p_.prolong(x, xc_); // x = P x_c
    return smooth_.improve(x, b, options_.sweeps);
}

} // namespace halocline::amg
