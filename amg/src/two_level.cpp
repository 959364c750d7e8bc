// SPDX-License-Identifier: Apache-2.0
#include <halocline/amg/two_level.hpp>

#include "collectively_made.hpp"
#include "norm_text.hpp"

#include <halocline/base/error.hpp>
#include <halocline/base/short_list.hpp>
#include <halocline/base/stopwatch.hpp>
#include <halocline/lattice/field_shape.hpp>
#include <halocline/lattice/random.hpp>
#include <halocline/solvers/fgmres.hpp>

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
    o.orthogonality = o.tolerance;
    return o;
}

/// Without a coarse level nothing reads P and D_c: one vector, for which every block has room, is enough of them.
solver_options with_needed_vectors(solver_options o) {
    if (!o.coarse_level) o.vectors = 1;
    return o;
}

template <class Field>
auto pointers_to(std::span<Field> fields) noexcept {
    short_list<Field*, solvers::most_systems> pointers;
    for (Field& one : fields) pointers.push_back(&one);
    return pointers;
}

/// Err: input_error.
void require_room(const char* who, std::size_t x, std::size_t b, std::size_t most) {
    if (x == b && x >= 1 && x <= most) return;
    throw input_error(std::string(who) + ": " + std::to_string(x) + " fields x and " + std::to_string(b) +
                      " fields b; must be equally many, 1 to " + std::to_string(most));
}

/// Systems of one cycle: right-hand sides of a solve, or test vectors in the set-up.
int systems_at_once(const solver_options& options) { return options.coarse_level ? options.at_once : 1; }

} // namespace

coarse_solver::coarse_solver(const comm::job& j, coarse_operator& d, const solver_options& options,
                             std::span<const int> rank_order, int systems)
    : d_(&d), sum_(j, values_per_sum(options.coarse_restart_length, systems), rank_order),
      options_(coarse_options(options)), space_(d.bipartite() ? d.half_order() : d.order(), d.components(), sum_) {
    j.collectively([&] {
        for (int k = 0; k < systems; ++k) {
            work_.emplace_back(space_, options.coarse_restart_length, false);
            if (!d.bipartite()) continue;
            b_.push_back(space_.make());
            x_.push_back(space_.make());
        }
        reports_.resize(static_cast<std::size_t>(systems));
    });
}

comm::status coarse_solver::operator()(std::span<lattice::field<float>> x, std::span<const lattice::field<float>> b) {
    require_room("coarse_solver", x.size(), b.size(), work_.size());
    const stopwatch watch;
    comm::status s = comm::status::ok;
    if (d_->bipartite()) {
        // (D_ee - D_eo D_oo^-1 D_oe) x_e = b_e - D_eo D_oo^-1 b_o;  x_o = D_oo^-1 (b_o - D_oe x_e)
        const std::span<lattice::field<float>> half_b = std::span(b_).first(b.size()),
                                               half_x = std::span(x_).first(b.size());
        s = d_->reduce(pointers_to(half_b).values(), pointers_to(b).values());
        if (s == comm::status::ok) s = iterate(half_x, half_b);
        if (s == comm::status::ok)
            s = d_->reconstruct(pointers_to(x).values(), pointers_to(half_x).values(), pointers_to(b).values());
    } else {
        s = iterate(x, b);
    }
    costs_.solves += b.size();
    costs_.seconds += watch.seconds();
    return s;
}

comm::status coarse_solver::iterate(std::span<lattice::field<float>> x, std::span<const lattice::field<float>> b) {
    short_list<solvers::one_system<lattice::field<float>>, solvers::most_systems> systems;
    for (std::size_t k = 0; k < b.size(); ++k) systems.push_back({&b[k], &x[k], &work_[k]});
    const std::span<solvers::solve_report> reports = std::span(reports_).first(b.size());
    const auto apply = [&](coarse_operator::fields y, coarse_operator::const_fields v) {
        return d_->bipartite() ? d_->apply_schur(y, v) : d_->apply(y, v);
    };
    solvers::gmres_together(space_, apply, systems.values(), reports, options_);
    comm::status bad = comm::status::ok;
    for (std::size_t k = 0; k < b.size(); ++k) {
        costs_.iterations += static_cast<std::uint64_t>(reports[k].iterations);
        using enum solvers::solve_status;
        if (reports[k].status != converged && reports[k].status != unverified) ++costs_.unsolved;
        if (reports[k].communication != comm::status::ok) bad = reports[k].communication;
        if (reports[k].status != solvers::solve_status::not_finite) continue;
        std::ranges::fill(x[k].values(), std::numeric_limits<float>::quiet_NaN()); // it may look like an answer
        x[k].mark_written();
    }
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
      dc_(j, coarse_cut_, p_.coarse(), options_.vectors, systems_at_once(options_)),
      solve_(j, dc_, options_, cut.rank_order(), systems_at_once(options_)),
      smooth_(collectively_made(j, [&] { return sap_smoother(blocks, options.block_steps); })),
      sum_(j, std::max(2, systems_at_once(options_)), cut.rank_order()),
      space_(d_->order(), lattice::spinor_components, sum_) {
    j.collectively([&] {
        for (int k = 0; k < systems_at_once(options_); ++k) {
            xc_.emplace_back(p_.coarse(), p_.coarse_components());
            bc_.emplace_back(p_.coarse(), p_.coarse_components());
        }
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

void two_level::normalise(std::span<lattice::field<float>> vectors) {
    std::array<double, solvers::most_systems> norms{};
    check(space_.norms(pointers_to(std::span<const lattice::field<float>>(vectors)).values(),
                       std::span(norms).first(vectors.size())),
          "the norms of test vectors");
    for (std::size_t k = 0; k < vectors.size(); ++k) {
        if (!(norms[k] > 0) || !std::isfinite(norms[k]))
            throw input_error("set-up: the norm of a test vector is " + norm_text(norms[k]) +
                              "; is the gauge field, or are m0 and csw, what they should be?");
        space_.scale(vectors[k], 1 / norms[k]);
    }
}

// Inverse iteration may turn all vectors into the few lowest modes, as on links of one: where a vector depends on those
// before it, its initial random numbers take its place, in the columns of P only.
void two_level::make_coarse_level(coarse_operator::workspace& work) {
    job_.collectively([&] {
        replaced_columns_ = p_.define(test_vectors_, [&](std::int64_t site, int vector, std::span<float> spinor) {
            random_spinor(site, static_cast<std::uint32_t>(vector), spinor);
        });
    });
    // Not inside collectively(): a rank that failed there would be missing in the exchanges of the others.
    check(dc_.define(p_, *d_, work), "the surfaces of the coarse operator's columns");
    if (dc_.bipartite()) job_.collectively([&] { dc_.invert_odd(); });
}

void two_level::setup(const progress_callback& tell) {
    using phase = progress::phase;
    const int count = options_.vectors;
    if (!options_.coarse_level) return;
    std::vector<lattice::field<float>> b;
    coarse_operator::workspace work;
    job_.collectively([&] {
        work = dc_.make_workspace(p_);
        test_vectors_.clear();
        for (int i = 0; i < count; ++i) test_vectors_.push_back(space_.make());
        for (int k = 0; k < std::min(count, options_.at_once); ++k) b.push_back(space_.make());
    });

    // v = S_3 S_2 S_1 v with S_k: k sweeps on D x = v
    for (int i = 0; i < count; ++i) {
        lattice::field<float>& v = test_vectors_[i];
        random_vector(v, static_cast<std::uint32_t>(i));
        for (int sweeps = 1; sweeps <= 3; ++sweeps) {
            b.front().swap(v);
            check(smooth_.from_zero(v, b.front(), sweeps), "the surfaces of a test vector");
        }
        normalise({&v, 1});
        if (tell) tell({.where = phase::initial_vectors, .step = i + 1, .steps = count, .milestone = i + 1 == count});
    }
    make_coarse_level(work);

    for (int k = 0; k < options_.setup_iterations; ++k) {
        // v = M v with M the multigrid made of the previous vectors
        for (std::size_t first = 0; first < test_vectors_.size(); first += b.size()) {
            const std::span<lattice::field<float>> v =
                std::span(test_vectors_).subspan(first, std::min(b.size(), test_vectors_.size() - first));
            for (std::size_t i = 0; i < v.size(); ++i) b[i].swap(v[i]);
            check(cycle(v, std::span(b).first(v.size())), "a set-up cycle");
            normalise(v);
        }
        make_coarse_level(work);
        if (tell)
            tell({.where = phase::setup_iteration,
                  .step = k + 1,
                  .steps = options_.setup_iterations,
                  .milestone = true});
    }
    test_vectors_.clear(); // P holds what is needed of them
    auto replaced = static_cast<double>(replaced_columns_);
    check(sum_({&replaced, 1}), "the number of columns that were replaced");
    replaced_columns_ = static_cast<std::int64_t>(replaced);
    solve_.reset_costs();
}

comm::status two_level::cycle(std::span<lattice::field<float>> x, std::span<const lattice::field<float>> b) {
    require_room("two_level", x.size(), b.size(), static_cast<std::size_t>(options_.at_once));
    for (std::size_t k = 0; k < x.size(); ++k) {
        lattice::require_shape(x[k], "two_level: x", lattice::spinor_components, *p_.fine());
        lattice::require_shape(b[k], "two_level: b", lattice::spinor_components, *p_.fine());
    }
    const auto smooth_each = [&](auto&& smooth) {
        for (std::size_t k = 0; k < x.size(); ++k)
            if (const comm::status s = smooth(x[k], b[k]); s != comm::status::ok) return s;
        return comm::status::ok;
    };
    if (!options_.coarse_level)
        return smooth_each([&](auto& to, const auto& from) { return smooth_.from_zero(to, from, options_.sweeps); });
    const std::span<lattice::field<float>> bc = std::span(bc_).first(b.size()), xc = std::span(xc_).first(x.size());
    p_.restrict(bc, b);                    // b_c = P^dagger b
    const comm::status s = solve_(xc, bc); // D_c x_c = b_c
    if (s != comm::status::ok) return s;
    p_.prolong(x, xc); // x = P x_c
    return smooth_each([&](auto& to, const auto& from) { return smooth_.improve(to, from, options_.sweeps); });
}

} // namespace halocline::amg
