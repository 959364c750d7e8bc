// SPDX-License-Identifier: Apache-2.0
// heat4d: diffusion of one Fourier mode on a 4-dimensional torus, compared with its analytic decay. The mode is an
// eigenvector of the discrete step too, so the comparison is exact up to rounding.
#include "diffuse.hpp"

#include <halocline/base/stopwatch.hpp>
#include <halocline/comm/exact_sum.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline_app/grid.hpp>
#include <halocline_app/host_memory.hpp>
#include <halocline_app/main.hpp>
#include <halocline_app/strict_flag.hpp>
#include <halocline_app/output_file.hpp>
#include <halocline_app/run_report.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numbers>
#include <string>

namespace {

using namespace halocline;
using lattice::coordinate;

struct arguments {
    app::job_flags job{.grid = "16.16.16.16"};
    int steps = 100;
    double alpha = 0.1;
};

arguments read_command_line(const app::program& p, int argc, const char* const* argv) {
    arguments a;
    CLI::App cli("Diffusion on a 4-dimensional torus by explicit Euler, checked against the analytic decay of a "
                 "Fourier mode.\n" +
                     std::string(app::help_on_settings) +
                     "Exit code: 0 the decay is right, 1 it is not, 2 bad input, 3 a rank died or a deadline passed.",
                 p.name());
    a.job.add_to(cli, "lattice");
    app::add_integer_flag(cli, "--steps", a.steps, 0, 1'000'000'000, "time steps");
    app::add_real_flag(cli, "--alpha", a.alpha, 0, 0.125, "a number from 0 to 0.125, beyond which no step is stable",
                       "diffusivity x time step / spacing^2; stable up to 1/8");
    p.parse(cli, argc, argv);
    return a;
}

/// cos(k x) with k = 2 pi / L in every dimension: 1 at the origin.
double mode(const coordinate& x, const coordinate& global) {
    double phase = 0;
    for (int mu = 0; mu < lattice::dimensions; ++mu) phase += static_cast<double>(x[mu]) / global[mu];
    return std::cos(2 * std::numbers::pi * phase);
}

constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// What is left of the mode after all steps.
struct decay {
    double lattice = 1;   ///< lambda^steps; one step multiplies by lambda = 1 - alpha sum 4 sin^2(k / 2)
    double continuum = 1; ///< exp(-alpha k^2 steps)
    double rounding = 0;  ///< by how much that of the steps may change the amplitude
};
decay expected_decay(const coordinate& global, double alpha, int steps) {
    double lambda = 1, k_squared = 0;
    for (const int extent : global) {
        if (extent == 1) continue; // the mode is constant there
        const double k = 2 * std::numbers::pi / extent;
        lambda -= alpha * 4 * std::sin(k / 2) * std::sin(k / 2);
        k_squared += k * k;
    }
    // Each step, and lambda itself, is rounded where numbers of the size of the last amplitude are subtracted: near
    // lambda = 0 that is more than what is left.
    const double of_steps = 4 * epsilon * steps * std::pow(std::abs(lambda), std::max(steps - 1, 0));
    return {std::pow(lambda, steps), std::exp(-alpha * k_squared * steps), of_steps};
}

/// A rank's contribution to the comparison; combined over ranks by adding (the deviation: by the maximum).
struct summary {
    comm::exact_accumulator projection, norm; ///< <mode, u> and <mode, mode>
    double deviation = 0;                     ///< max |u - expected * mode|
    std::uint64_t checksum = 0; ///< bits of u(x) times an odd number of x, modulo 2^64: independent of the cut
};

summary compare(const comm::job& j, const lattice::decomposition& cut, const lattice::field<double>& u,
                double expected) {
    summary mine;
    const lattice::box local = cut.local_box(j.rank());
    for (std::int64_t i = 0; i < u.volume(); ++i) {
        const coordinate x = local.site(i);
        const double value = u.values()[i], m = mode(x, cut.global());
        mine.projection.add(value * m);
        mine.norm.add(m * m);
        mine.deviation = std::max(mine.deviation, std::abs(value - expected * m));
        mine.checksum += std::bit_cast<std::uint64_t>(value) *
                         (2 * static_cast<std::uint64_t>(lattice::lexicographic_index(x, cut.global())) + 1);
    }
    summary total;
    for (const std::string& bytes : j.gather({reinterpret_cast<const char*>(&mine), sizeof mine})) {
        summary part;
        std::memcpy(&part, bytes.data(), sizeof part);
        total.projection += part.projection;
        total.norm += part.norm;
        total.deviation = std::max(total.deviation, part.deviation);
        total.checksum += part.checksum;
    }
    return total;
}

int run(app::program& p, int argc, const char* const* argv) {
    const arguments a = read_command_line(p, argc, argv);
    const coordinate global = app::parse_extents("--grid", a.job.grid);
    const comm::job& j = p.join(app::job_options_of_environment(a.job.transport));
    p.agree_on(argc, argv);
    app::text_output json(p, "--json", a.job.json, app::run_files());
    const lattice::decomposition cut = app::decompose(global, a.job.rank_grid, j);
    const auto two_fields = [&](int rank) {
        return 2.0 * sizeof(double) * static_cast<double>(cut.local_box(rank).volume());
    };
    app::check_host_memory(j, cut, two_fields, "take a smaller lattice, or more hosts");

    j.barrier();
    const stopwatch watch;
    const lattice::field<double> u =
        app::diffuse(j, cut, a.alpha, a.steps, [&](const coordinate& x) { return mode(x, global); });
    double seconds = watch.seconds();
    comm::global_sum(j, 1).maximum_or_throw({&seconds, 1});

    const auto [expected, continuum, rounding] = expected_decay(global, a.alpha, a.steps);
    const summary total = compare(j, cut, u, expected);
    const double amplitude = total.projection.rounded() / total.norm.rounded();
    // The mode began with amplitude 1: what is left of it can't be determined better than 1's rounding.
    const double scale = std::max(std::abs(expected), epsilon);
    const double error = std::abs(amplitude - expected) / scale;
    const bool right = error <= std::max(1e-12, rounding / scale);

    char text[400], checksum[20];
    std::snprintf(checksum, sizeof checksum, "%016llx", static_cast<unsigned long long>(total.checksum));
    std::snprintf(text, sizeof text,
                  "lattice %s %s: %d steps in %.3f s\n"
                  "amplitude %.15e, checksum %s\n"
                  "expected  %.15e  (lambda^steps; relative error %.1e, largest deviation of a site %.1e)\n"
                  "continuum %.15e  (exp(-alpha k^2 steps))",
                  lattice::to_string(global).c_str(), app::where_it_runs(j, cut).c_str(), a.steps, seconds, amplitude,
                  checksum, expected, error, total.deviation, continuum);
    p.print(text);
    if (!right) p.print("the decay is wrong");
    auto result = app::head_of_result<nlohmann::json>("heat4d", j, cut);
    result.update({{"grid", global},
                   {"steps", a.steps},
                   {"alpha", a.alpha},
                   {"amplitude", amplitude},
                   {"expected", expected},
                   {"continuum", continuum},
                   {"relative_error", error},
                   {"largest_deviation", total.deviation},
                   {"checksum", checksum},
                   {"seconds", seconds}});
    json.write(app::text_of_result(result, 2));
    return right ? app::exit_success : app::exit_failure;
}

} // namespace

int main(int argc, char** argv) { return halocline::app::run_program(argc, argv, run); }
