// SPDX-License-Identifier: Apache-2.0
// The multigrid solver through the C interface, judged by the plain operator; and what it refuses, on all ranks.
#include <halocline.h>
#include <halocline/dirac/gamma.hpp>
#include <halocline/dirac/spinor_field.hpp>
#include <halocline_test/global_fields.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace halocline;

using reals = std::vector<double>;

class CSolver : public testing::Test {
  protected:
    CSolver() {
        EXPECT_EQ(halocline_job_from_environment(nullptr, &job_), HALOCLINE_OK) << halocline_error();
        lattice::box local;
        EXPECT_EQ(halocline_solver_box(job_, &options_, local.origin.data(), local.extents.data()), HALOCLINE_OK)
            << halocline_error();
        local_ = local;
        const auto links = halocline_test::links_near_one(local_, global, 0.1);
        links_.assign(links.values().begin(), links.values().end());
        lattice::field<double> b(local_.extents, lattice::spinor_components);
        halocline_test::fill_random(b, local_, global, 1);
        b_.assign(b.values().begin(), b.values().end());
    }
    ~CSolver() override { halocline_job_free(job_); }

    [[nodiscard]] bool is_last() const { return halocline_job_rank(job_) == halocline_job_ranks(job_) - 1; }
    /// The norm of a - b over all ranks.
    double distance(const reals& a, const reals& b) {
        halocline_sum* sum = nullptr;
        EXPECT_EQ(halocline_sum_create(job_, 1, &sum), HALOCLINE_OK);
        double squares = 0;
        for (std::size_t k = 0; k < a.size(); ++k) squares += (a[k] - b[k]) * (a[k] - b[k]);
        EXPECT_EQ(halocline_sum_over_ranks(sum, &squares, 1), HALOCLINE_OK);
        halocline_sum_free(sum);
        return std::sqrt(squares);
    }
    double norm(const reals& a) { return distance(a, reals(a.size(), 0)); }
    /// Expects every rank to get this error.
    void expect_refused(const halocline_solver_options& o, const reals& links, const std::string& text) {
        halocline_solver* solver = nullptr;
        EXPECT_EQ(halocline_solver_create(job_, &o, links.empty() ? nullptr : links.data(), &solver),
                  HALOCLINE_INPUT_ERROR);
        EXPECT_EQ(solver, nullptr);
        EXPECT_NE(std::string(halocline_error()).find(text), std::string::npos) << halocline_error();
    }

    static constexpr lattice::coordinate global{4, 4, 4, 8};
    halocline_job* job_ = nullptr;
    halocline_solver_options options_ = [] {
        halocline_solver_options o{};
        std::ranges::copy(global, o.global);
        std::ranges::fill(o.blocks, 2);
        o.m0 = 0.1;
        o.csw = 1;
        o.vectors = 6;
        o.setup_iterations = 1;
        return o;
    }();
    lattice::box local_;
    reals links_, b_;
};

TEST_F(CSolver, SolvesForSeveralRightHandSides) {
    int lines = 0, milestones = 0;
    int* const counts[] = {&lines, &milestones};
    options_.context = const_cast<int**>(counts);
    options_.progress = [](void* context, const char* line, int milestone) {
        int* const* const seen = static_cast<int**>(context);
        *seen[0] += line[0] != '\0';
        *seen[1] += milestone;
    };
    halocline_solver* solver = nullptr;
    ASSERT_EQ(halocline_solver_create(job_, &options_, links_.data(), &solver), HALOCLINE_OK) << halocline_error();
    EXPECT_GT(lines, milestones);
    EXPECT_GT(milestones, 0);
    reals x(b_.size()), d_x(b_.size());

    for (int i = 0; i < 2; ++i) {
        halocline_solve_report report{};
        ASSERT_EQ(halocline_solver_solve(solver, x.data(), b_.data(), &report), HALOCLINE_OK) << halocline_error();

        EXPECT_EQ(report.converged, 1);
        EXPECT_STREQ(report.status, "converged");
        EXPECT_GT(report.iterations, 0);
        EXPECT_GT(report.coarse_iterations, 0);
        EXPECT_GT(report.setup_seconds, 0);
        EXPECT_GT(report.solve_seconds, 0);
        ASSERT_EQ(halocline_solver_apply(solver, d_x.data(), x.data()), HALOCLINE_OK) << halocline_error();
        const double residual = distance(d_x, b_) / norm(b_);
        EXPECT_LE(residual, 1.001e-10);
        EXPECT_NEAR(residual, report.relative_residual, 1e-13);
        b_ = x;
    }
    halocline_solver_free(solver);
}

TEST_F(CSolver, SeveralAtOnceHaveTheBitsOfEach) {
    options_.at_once = 3;
    halocline_solver* solver = nullptr;
    ASSERT_EQ(halocline_solver_create(job_, &options_, links_.data(), &solver), HALOCLINE_OK) << halocline_error();
    std::vector<reals> b{b_, b_, b_, b_}, x(4, reals(b_.size()));
    for (double& value : b[1]) value *= 3;
    for (std::size_t k = 0; k < b_.size(); k += 5) b[2][k] = 0;
    std::vector<double*> to;
    std::vector<const double*> from;
    for (std::size_t k = 0; k < 4; ++k) {
        to.push_back(k == 3 ? b[k].data() : x[k].data()); // one in place
        from.push_back(b[k].data());
    }
    std::vector<halocline_solve_report> reports(4);

    ASSERT_EQ(halocline_solver_solve_several(solver, 4, to.data(), from.data(), reports.data()), HALOCLINE_OK)
        << halocline_error();

    x[3] = b[3];
    b[3] = b_;
    for (std::size_t k = 0; k < 4; ++k) {
        reals alone(b_.size());
        halocline_solve_report report{};
        ASSERT_EQ(halocline_solver_solve(solver, alone.data(), b[k].data(), &report), HALOCLINE_OK);
        EXPECT_EQ(alone, x[k]) << k;
        EXPECT_EQ(report.iterations, reports[k].iterations) << k;
        EXPECT_EQ(report.relative_residual, reports[k].relative_residual) << k;
        EXPECT_EQ(report.at_once, 1);
        EXPECT_EQ(reports[k].at_once, 2); // 2 + 2
        EXPECT_EQ(reports[k].converged, 1);
    }
    EXPECT_EQ(halocline_solver_solve_several(solver, 4, to.data(), from.data(), nullptr), HALOCLINE_OK);
    EXPECT_EQ(halocline_solver_solve_several(solver, 0, nullptr, nullptr, nullptr), HALOCLINE_OK);
    halocline_solver_free(solver);
}

TEST_F(CSolver, GoesOnFromTheSolutionThatItIsGivenIfAsked) {
    options_.from_x = 1;
    halocline_solver* solver = nullptr;
    ASSERT_EQ(halocline_solver_create(job_, &options_, links_.data(), &solver), HALOCLINE_OK) << halocline_error();
    reals x(b_.size());
    halocline_solve_report first{}, again{}, several{};
    ASSERT_EQ(halocline_solver_solve(solver, x.data(), b_.data(), &first), HALOCLINE_OK) << halocline_error();
    EXPECT_GT(first.iterations, 0); // from zeros
    reals solved = x;
    ASSERT_EQ(halocline_solver_solve(solver, x.data(), b_.data(), &again), HALOCLINE_OK) << halocline_error();
    EXPECT_EQ(again.iterations, 0);
    double* const to = solved.data();
    const double* const from = b_.data();
    ASSERT_EQ(halocline_solver_solve_several(solver, 1, &to, &from, &several), HALOCLINE_OK) << halocline_error();
    EXPECT_EQ(several.iterations, 0);
    EXPECT_LE(distance(x, solved), 1e-14 * norm(x));
    halocline_solver_free(solver);
}

TEST_F(CSolver, SeveralAreRefusedOnAllRanks) {
    halocline_solver* solver = nullptr;
    ASSERT_EQ(halocline_solver_create(job_, &options_, links_.data(), &solver), HALOCLINE_OK) << halocline_error();
    reals x(b_.size()), c(b_.size()), y(b_.size());
    std::vector<double*> to{x.data(), is_last() ? nullptr : y.data()};
    const std::vector<const double*> from{b_.data(), b_.data()};
    const auto expect = [&](halocline_status s, const std::string& text) {
        EXPECT_EQ(s, HALOCLINE_INPUT_ERROR);
        EXPECT_NE(std::string(halocline_error()).find(text), std::string::npos) << halocline_error();
    };

    expect(halocline_solver_solve_several(solver, 2, to.data(), from.data(), nullptr), "x[k]");
    expect(halocline_solver_solve_several(solver, -1, to.data(), from.data(), nullptr), "count = -1");
    std::vector<double*> twice{x.data(), is_last() ? x.data() : y.data()}, taken{c.data(), x.data()};
    const std::vector<const double*> both{b_.data(), c.data()};
    expect(halocline_solver_solve_several(solver, 2, twice.data(), both.data(), nullptr), "x[0] is also x[1]");
    expect(halocline_solver_solve_several(solver, 2, taken.data(), both.data(), nullptr), "x[0] is also b[1]");
    if (halocline_job_ranks(job_) > 1)
        expect(halocline_solver_solve_several(solver, is_last() ? 1 : 2, to.data(), from.data(), nullptr),
               "the count of halocline_solver_solve_several()");
    expect(halocline_solver_solve_several(nullptr, 1, to.data(), from.data(), nullptr), "solver");
    EXPECT_EQ(halocline_solver_solve(solver, x.data(), b_.data(), nullptr), HALOCLINE_OK) << halocline_error();
    halocline_solver_free(solver);
}

TEST_F(CSolver, WritesTheSolutionInPlaceAndReportsThatItDidNotConverge) {
    options_.max_iterations = 1;
    halocline_solver* solver = nullptr;
    ASSERT_EQ(halocline_solver_create(job_, &options_, links_.data(), &solver), HALOCLINE_OK) << halocline_error();
    reals x(b_.size()), in_place = b_;
    halocline_solve_report report{};

    ASSERT_EQ(halocline_solver_solve(solver, x.data(), b_.data(), &report), HALOCLINE_OK) << halocline_error();
    ASSERT_EQ(halocline_solver_solve(solver, in_place.data(), in_place.data(), nullptr), HALOCLINE_OK);

    EXPECT_EQ(report.converged, 0);
    EXPECT_STREQ(report.status, "max_iterations");
    EXPECT_EQ(x, in_place);
    halocline_solver_free(solver);
}

TEST_F(CSolver, TakesSpinsInTheBasisOfUsqcd) {
    const auto changed = [&](const reals& values) {
        lattice::field<double> psi(local_.extents, lattice::spinor_components);
        std::ranges::copy(values, psi.data());
        dirac::change_spin_basis(psi);
        return reals(psi.values().begin(), psi.values().end());
    };
    const auto solution = [&](halocline_spin_basis basis, const reals& b) {
        options_.spins = basis;
        halocline_solver* solver = nullptr;
        EXPECT_EQ(halocline_solver_create(job_, &options_, links_.data(), &solver), HALOCLINE_OK) << halocline_error();
        reals x(b.size());
        EXPECT_EQ(halocline_solver_solve(solver, x.data(), b.data(), nullptr), HALOCLINE_OK) << halocline_error();
        halocline_solver_free(solver);
        return x;
    };

    const reals x = solution(HALOCLINE_OPENQCD_SPINS, b_), other = solution(HALOCLINE_DEGRAND_ROSSI_SPINS, changed(b_));

    EXPECT_LE(distance(changed(x), other), 1e-9 * norm(x));
    EXPECT_GT(distance(x, other), 0.1 * norm(x));
}

TEST_F(CSolver, BoundariesAreThoseOfTheOptions) {
    options_.csw = 0; // else the clover term at an open boundary is another one
    const auto d_of_b = [&](halocline_boundary in_t) {
        options_.boundary[3] = in_t;
        halocline_solver* solver = nullptr;
        EXPECT_EQ(halocline_solver_create(job_, &options_, links_.data(), &solver), HALOCLINE_OK) << halocline_error();
        reals y(b_.size());
        EXPECT_EQ(halocline_solver_apply(solver, y.data(), b_.data()), HALOCLINE_OK) << halocline_error();
        halocline_solver_free(solver);
        return y;
    };
    const reals by_default = d_of_b(HALOCLINE_BOUNDARY_DEFAULT), periodic = d_of_b(HALOCLINE_PERIODIC),
                open = d_of_b(HALOCLINE_OPEN);

    EXPECT_EQ(by_default, d_of_b(HALOCLINE_ANTIPERIODIC));
    reals middle(open.size());
    for (std::size_t k = 0; k < open.size(); ++k) middle[k] = (by_default[k] + periodic[k]) / 2;
    EXPECT_GT(distance(by_default, periodic), 0.1 * norm(b_));
    EXPECT_LE(distance(middle, open), 1e-12 * norm(b_));
}

/// D of a point, by hand from the links as they were passed: [site][mu][row][column][re, im].
TEST_F(CSolver, ReadsLinksAndSpinorsInTheDocumentedOrder) {
    using complex = std::complex<double>;
    options_.csw = 0;
    if (halocline_job_ranks(job_) == 2) std::ranges::copy(lattice::coordinate{1, 2, 1, 1}, options_.rank_grid);
    ASSERT_EQ(halocline_solver_box(job_, &options_, local_.origin.data(), local_.extents.data()), HALOCLINE_OK);
    const auto links = halocline_test::links_near_one(local_, global, 0.4);
    halocline_solver* solver = nullptr;
    ASSERT_EQ(halocline_solver_create(job_, &options_, links.data(), &solver), HALOCLINE_OK) << halocline_error();
    halocline_job_free(job_); // the solver goes on
    job_ = nullptr;
    constexpr lattice::coordinate point{2, 1, 3, 4};
    constexpr int spin = 1, colour = 2;
    reals x(static_cast<std::size_t>(local_.volume()) * lattice::spinor_components), y(x.size());
    if (local_.contains(point)) x[static_cast<std::size_t>(local_.index(point) * 24 + 2 * (3 * spin + colour))] = 1;

    ASSERT_EQ(halocline_solver_apply(solver, y.data(), x.data()), HALOCLINE_OK) << halocline_error();

    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        lattice::coordinate before = point;
        --before[mu];
        if (!local_.contains(before)) continue;
        const std::int64_t site = local_.index(before);
        for (int s = 0; s < 4; ++s)
            for (int c = 0; c < 3; ++c) {
                const dirac::gamma_row& row =
                    dirac::gamma_matrices()[static_cast<std::size_t>(mu)][static_cast<std::size_t>(s)];
                const complex projected = complex(s == spin) - (row.column == spin ? row.value : 0.0);
                const double* const u = links.data() + ((site * 4 + mu) * 9 + 3 * c + colour) * 2;
                const complex expected = -0.5 * projected * complex(u[0], u[1]);
                const double* const found = y.data() + site * 24 + 2 * (3 * s + c);
                EXPECT_NEAR(std::abs(complex(found[0], found[1]) - expected), 0, 1e-15) << mu << s << c;
            }
    }
    halocline_solver_free(solver);
}

TEST_F(CSolver, RefusesBadInputOnEveryRank) {
    const auto refused = [&](auto change, const std::string& text) {
        halocline_solver_options o = options_;
        change(o);
        expect_refused(o, links_, text);
    };
    refused([](auto& o) { o.global[2] = 0; }, "global 4.4.0.8: each is 1 or more");
    refused([](auto& o) { o.blocks[1] = 0; }, "blocks 2.0.2.2: each is 1 or more, or all are 0");
    refused([](auto& o) { std::ranges::fill(o.rank_grid, 3); }, "3.3.3.3");
    refused([](auto& o) { o.vectors = 1000; }, "1000");
    refused([](auto& o) { o.setup_iterations = -2; }, "-2");
    refused([](auto& o) { o.tolerance = 2; }, "tolerance");
    refused([](auto& o) { o.boundary[1] = 4; }, "boundary[1] = 4");
    refused([](auto& o) { o.spins = 2; }, "spins = 2");
    refused([](auto& o) { o.m0 = NAN; }, "m0");
    refused([](auto& o) { o.m0 = -4, o.csw = 0; }, "m0 = -4, csw = 0");

    // What only the last rank was given.
    reals wrong = links_;
    if (is_last())
        std::transform(wrong.begin(), wrong.begin() + lattice::link_components, wrong.begin(), std::negate());
    expect_refused(options_, wrong, " in direction x misses SU(3) by 1.");
    expect_refused(options_, is_last() ? reals{} : links_, "'links' is NULL");
    halocline_solver* solver = nullptr;
    EXPECT_EQ(halocline_solver_create(job_, is_last() ? nullptr : &options_, links_.data(), &solver),
              HALOCLINE_INPUT_ERROR);
    EXPECT_NE(std::string(halocline_error()).find("'options' is NULL"), std::string::npos) << halocline_error();
    if (halocline_job_ranks(job_) > 1) {
        halocline_solver_options other = options_;
        if (is_last()) std::ranges::fill(other.blocks, 4);
        expect_refused(other, links_, "in blocks of ");
        other = options_;
        if (is_last()) other.m0 = 0.2;
        expect_refused(other, links_, "0.2");
        other = options_;
        if (is_last()) other.spins = HALOCLINE_DEGRAND_ROSSI_SPINS;
        expect_refused(other, links_, "spins 1");
        other = options_;
        if (is_last()) std::ranges::fill(other.global, 64); // more links than were passed must not be read
        expect_refused(other, links_, "lattice 64.64.64.64");
    }

    ASSERT_EQ(halocline_solver_create(job_, &options_, links_.data(), &solver), HALOCLINE_OK) << halocline_error();
    reals x(b_.size());
    EXPECT_EQ(halocline_solver_solve(solver, is_last() ? nullptr : x.data(), b_.data(), nullptr),
              HALOCLINE_INPUT_ERROR);
    EXPECT_NE(std::string(halocline_error()).find("'x' is NULL"), std::string::npos) << halocline_error();
    EXPECT_EQ(halocline_solver_solve(solver, x.data(), b_.data(), nullptr), HALOCLINE_OK) << halocline_error();
    halocline_solver_free(solver);
    halocline_solver_free(nullptr);
    EXPECT_EQ(halocline_solver_solve(nullptr, x.data(), b_.data(), nullptr), HALOCLINE_INPUT_ERROR);
}

TEST_F(CSolver, TakesLinksThatAreZeroBeyondAnOpenBoundary) {
    const auto last_slice = global[3] - 1;
    halocline_test::for_each_site(local_, [&](std::int64_t site, const lattice::coordinate& x) {
        if (x[3] != last_slice) return;
        const auto link = links_.begin() + site * lattice::gauge_components + 3 * lattice::link_components;
        std::fill(link, link + lattice::link_components, 0.0);
    });
    expect_refused(options_, links_, " in direction t misses SU(3)");

    options_.boundary[3] = HALOCLINE_OPEN;
    halocline_solver* solver = nullptr;
    EXPECT_EQ(halocline_solver_create(job_, &options_, links_.data(), &solver), HALOCLINE_OK) << halocline_error();
    halocline_solver_free(solver);
}

} // namespace
