// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/settings.hpp>
#include <halocline_app/value_text.hpp>

#include <halocline/comm/option_keys.hpp>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace halocline::app {
namespace {

using config::choice_key, config::integer_key, config::key_name, config::allow_array, config::make_key,
    config::real_key, config::switch_key, config::text_key;
using lattice::coordinate;

/// Where the settings hold an option of the multigrid solver.
template <class T>
auto place_of(T amg::solver_options::*option) {
    return [option](auto& s) -> auto& { return s.solver.*option; };
}

setting_key solver_key(key_name key, int amg::solver_options::*option, const amg::option_range<int>& range) {
    return integer_key<settings>(std::move(key), place_of(option), range.least, range.most);
}

setting_key tolerance_key(key_name key, double amg::solver_options::*option) {
    constexpr amg::option_range<double> range = amg::ranges.tolerance;
    return real_key<settings>(std::move(key), place_of(option), range.least, range.most,
                              "a relative residual > 0 and <= 1, like 1e-10");
}

template <class Member>
setting_key coordinate_key(key_name key, Member member) {
    return allow_array(
        make_key<settings>(std::move(key), member, read_coordinate, [](const std::optional<coordinate>& c) {
            return c ? lattice::to_string(*c) : std::string("chosen");
        }));
}

setting_key boundaries_key(key_name key) {
    using lattice::boundary;
    const std::vector<choice<boundary>> choices{
        {"periodic", boundary::periodic}, {"antiperiodic", boundary::antiperiodic}, {"open", boundary::open}};
    using boundaries = decltype(dirac::wilson_parameters::boundaries);
    return allow_array(make_key<settings>(
        std::move(key), [](auto& s) -> auto& { return s.op.boundaries; },
        [=](const std::string& text) {
            const auto names = read_list(text);
            if (names.size() != lattice::dimensions) expected("four boundaries in the order x, y, z, t");
            boundaries values{};
            std::ranges::transform(names, values.begin(), [&](const auto& name) { return read_choice(name, choices); });
            return values;
        },
        [=](const boundaries& values) {
            std::vector<std::string> names;
            for (auto b : values) names.push_back(show_choice(b, choices));
            return show_list(names);
        }));
}

std::vector<setting_key> lattice_and_operator_keys() {
    return {
        text_key<settings>(
            {"lattice", "gauge",
             "gauge file (DDalphaAMG, NERSC, ILDG, MILC, openQCD); without one: the demo's own 8.8.8.8 at beta 6.0"},
            &settings::gauge),
        coordinate_key({"lattice", "grid",
                        "global extents; with a gauge file they must be the file's, without one the demo configuration "
                        "is repeated (multiples of 8)"},
                       &settings::grid),
        allow_array(make_key<settings>(
            key_name{"lattice", "tile", "how often the gauge file is repeated per dimension"}, &settings::tile,
            read_coordinate, [](const coordinate& c) { return lattice::to_string(c); })),
        switch_key<settings>({"lattice", "reunitarise",
                              "accept links up to 1e-5 off SU(3), as rounding to 32 bits leaves them, and make them "
                              "unitary again"},
                             &settings::reunitarise),
        coordinate_key({"lattice", "mpi", "rank grid; its product is the number of ranks"}, &settings::rank_grid),
        choice_key<settings, bool>(
            {"lattice", "rank_order",
             "who has which place of the rank grid: nodes (fewest bytes between nodes) or lexicographic"},
            &settings::order_by_nodes, {{"nodes", true}, {"lexicographic", false}}),

        real_key<settings>(
            {"operator", "m0", "bare mass"}, [](auto& s) -> auto& { return s.op.m0; }, -1e3, 1e3,
            "a real number from -1000 to 1000, like -0.5"),
        real_key<settings>(
            {"operator", "csw", "clover coefficient; 0: plain Wilson"}, [](auto& s) -> auto& { return s.op.csw; }, -1e3,
            1e3, "a real number from -1000 to 1000, like 1.0"),
        boundaries_key({"operator", "boundary", "boundary of x, y, z, t: periodic, antiperiodic or open"}),
    };
}

std::vector<setting_key> solver_and_level_keys() {
    using options = amg::solver_options;
    return {
        allow_array(make_key<settings>(
            key_name{"solver", "rhs",
                     "right-hand side: ones, unit (spin 0, colour 0 of site 0), random, random:N, "
                     "point:x.y.z.t:spin.colour, "
                     "point:x.y.z.t (all twelve there), or file:PATH, a fermion field in SciDAC's format. Several, by "
                     "commas or by the flag again, share one set-up"},
            &settings::rhs, read_right_hand_sides, [](const std::vector<right_hand_side>& all) { return show(all); })),
        solver_key({"solver", "at_once",
                    "right-hand sides that are iterated together, and test vectors in the set-up; changes no bits"},
                   &options::at_once, amg::ranges.at_once),
        integer_key<settings>({"solver", "seed", "of the test vectors and of random right-hand sides"},
                              place_of(&options::seed), std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()),
        tolerance_key({"solver", "tolerance", "relative residual to reach"}, &options::tolerance),
        solver_key({"solver", "restart_length", "outer FGMRES basis"}, &options::restart_length,
                   amg::ranges.restart_length),
        solver_key({"solver", "max_restarts", "outer FGMRES restarts"}, &options::max_restarts,
                   amg::ranges.max_restarts),
        solver_key({"solver", "max_iterations", "outer FGMRES iterations; 0: restart_length * max_restarts"},
                   &options::max_iterations, amg::ranges.max_iterations),
        switch_key<settings>({"solver", "stagnation_stop", "stop when the residual no longer falls"},
                             place_of(&options::stagnation_stop)),

        coordinate_key({"level.0", "blocks", "Schwarz blocks = aggregates, in sites"}, place_of(&options::blocks)),
        solver_key({"level.0", "vectors", "test vectors"}, &options::vectors, amg::ranges.vectors),
        solver_key({"level.0", "setup", "bootstrap set-up iterations"}, &options::setup_iterations,
                   amg::ranges.setup_iterations),
        solver_key({"level.0", "sweeps", "post-smoothing SAP sweeps"}, &options::sweeps, amg::ranges.sweeps),
        solver_key({"level.0", "block_steps", "minimal-residual steps per block"}, &options::block_steps,
                   amg::ranges.block_steps),
        tolerance_key({"level.1", "tolerance", "relative residual of the coarse solve"}, &options::coarse_tolerance),
        solver_key({"level.1", "restart_length", "coarse GMRES basis"}, &options::coarse_restart_length,
                   amg::ranges.restart_length),
        solver_key({"level.1", "max_restarts", "coarse GMRES restarts"}, &options::coarse_max_restarts,
                   amg::ranges.max_restarts),
    };
}

/// [comm] and [faults] are the same for every program.
std::vector<setting_key> job_keys() {
    std::vector<setting_key> keys;
    for (const auto& k : comm::option_keys())
        keys.push_back({k, [read = k.read](settings& s, const std::string& text) { read(s.job, text); },
                        [show = k.show](const settings& s) { return show(s.job); }, k.of_host, k.of_list});
    return keys;
}

} // namespace

const std::vector<setting_key>& setting_keys() {
    static const std::vector<setting_key> keys = [] {
        std::vector<setting_key> all;
        for (auto part : {lattice_and_operator_keys(), solver_and_level_keys(), job_keys()})
            std::ranges::move(part, std::back_inserter(all));
        return all;
    }();
    return keys;
}

const setting_key& key_of(const std::string& path) {
    return *std::ranges::find(setting_keys(), path, [](const setting_key& k) { return k.path(); });
}

std::string value_of(const std::string& path, const settings& s) { return key_of(path).show(s); }

} // namespace halocline::app
