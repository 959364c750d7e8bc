// SPDX-License-Identifier: Apache-2.0
// generate_gauge: a quenched SU(3) configuration by heatbath and overrelaxation, the same bits for any number of ranks.
#include "binning.hpp"
#include "heatbath.hpp"

#include <halocline/base/stopwatch.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/dirac/gauge_configuration.hpp>
#include <halocline/dirac/plaquette.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/gauge_file.hpp>
#include <halocline_app/grid.hpp>
#include <halocline_app/host_memory.hpp>
#include <halocline_app/main.hpp>
#include <halocline_app/strict_flag.hpp>
#include <halocline_app/output_file.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace halocline;
using lattice::coordinate;

struct arguments {
    std::string grid = "8.8.8.8", rank_grid, transport, start = "cold", output, format = "ddalphaamg", json;
    gauge::heatbath_options chain;
    int thermalisation = 100, sweeps = 50, measure_every = 1;
};

arguments read_command_line(const app::program& p, int argc, const char* const* argv) {
    arguments a;
    CLI::App cli("Quenched SU(3) gauge configuration: Wilson action, heatbath and overrelaxation.\n"
                 "The links depend on the seed and the flags, never on the number of ranks.\n"
                 "Keys [comm] and [faults] of configs/demo.toml are read from the file $HALOCLINE_CONFIG and from the "
                 "environment:\n"
                 "HALOCLINE_<SECTION>_<KEY>.\n"
                 "Exit code: 0 done, 1 an error, 2 bad input, 3 a rank died or a deadline passed.",
                 p.name());
    cli.add_option("--grid", a.grid, "extents, all even")->type_name("x.y.z.t")->capture_default_str();
    app::add_real_flag(cli, "--beta", a.chain.beta, 0, 1e6, "a coupling from 0 to 1e6, like 6.0", "coupling");
    app::add_integer_flag<std::uint64_t>(cli, "--seed", a.chain.seed, 0, std::numeric_limits<std::uint64_t>::max(),
                                         "of all random numbers");
    constexpr int most = 1'000'000'000;
    app::add_integer_flag(cli, "--thermalisation", a.thermalisation, 0, gauge::most_sweeps,
                          "sweeps before the first measurement");
    app::add_integer_flag(cli, "--sweeps", a.sweeps, 0, gauge::most_sweeps, "sweeps after that");
    app::add_integer_flag(cli, "--overrelaxation", a.chain.overrelaxation, 0, most,
                          "overrelaxation sweeps per heatbath sweep");
    app::add_integer_flag(cli, "--measure-every", a.measure_every, 1, most, "sweeps from one plaquette to the next");
    cli.add_option("--start", a.start, "links to begin with")
        ->check(CLI::IsMember({"cold", "hot"}))
        ->capture_default_str();
    app::add_text_flag(cli, "--mpi", a.rank_grid, "x.y.z.t", "rank grid (default: the one with the smallest surface)");
    app::add_text_flag(cli, "--transport", a.transport, "LIST",
                       "in order of preference; for each peer the first that reaches it: shm, verbs, ofi, mpi");
    app::add_text_flag(cli, "--output", a.output, "FILE", "file to write (default: none)");
    cli.add_option("--format", a.format, "of the file")
        ->check(CLI::IsMember({"ildg", "nersc", "ddalphaamg"}))
        ->capture_default_str();
    app::add_text_flag(cli, "--json", a.json, "FILE", "write the result as one JSON object to this file");
    p.parse(cli, argc, argv);
    return a;
}

/// The links that a rank begins with, or writes in the end, beside those with a layer around them that it updates.
double bytes_of_rank(const lattice::decomposition& cut, int rank) {
    double own = 1, padded = 1;
    for (const int extent : cut.local_box(rank).extents) {
        own *= extent;
        padded *= extent + 2;
    }
    return sizeof(double) * lattice::gauge_components * (own + padded);
}

/// The file takes the place of an older one once every byte was read back and compared.
/// False: they could not be written, which the program will report at the end. Collective.
bool write_links(const app::program& p, const dirac::padded_links& links, double plaquette, const arguments& a) {
    lattice::gauge_field owned(links.extents(), lattice::gauge_components);
    links.store(owned);
    const auto format = a.format == "ildg"    ? lattice::gauge_format::ildg
                        : a.format == "nersc" ? lattice::gauge_format::nersc
                                              : lattice::gauge_format::ddalphaamg;
    try {
        dirac::write_configuration(links.job(), links.cut(), owned, plaquette, format, a.output);
    } catch (const input_error& e) { // the same on every rank
        p.lose_output(std::string("--output: ") + e.what());
        return false;
    }
    p.print("wrote " + a.output + " (" + a.format + ", read back and verified), plaquette " +
            std::to_string(plaquette));
    return true;
}

/// Performs all sweeps; returns the measured plaquettes.
std::vector<double> update(app::program& p, dirac::padded_links& links, const arguments& a, const stopwatch& watch) {
    gauge::heatbath chain(a.chain);
    std::vector<double> measured;
    char line[256];
    const int total = a.thermalisation + a.sweeps, plain_line_every = std::max(1, total / 10);
    for (int sweep = 1; sweep <= total; ++sweep) {
        chain.sweep(links);
        const int after = sweep - a.thermalisation;
        const bool measure = after > 0 && after % a.measure_every == 0, report = sweep % plain_line_every == 0;
        if (!measure && !report) continue;
        const double value = dirac::plaquette(links);
        if (measure) measured.push_back(value);
        std::snprintf(line, sizeof line, "sweep %d of %d  plaquette %.6f  %.1f s", sweep, total, value,
                      watch.seconds());
        p.print_progress(line);
        if (report && !p.on_terminal()) p.print(line);
    }
    p.print_progress("");
    return measured;
}

nlohmann::json to_json(const app::program& p, const comm::job& j, const lattice::decomposition& cut, const arguments& a,
                       const std::vector<double>& measured, const gauge::binned_mean& mean) {
    const auto number = [](double v) { return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(); };
    return {{"program", p.name()},
            {"version", app::version()},
            {"launcher", j.launcher()},
            {"grid", cut.global()},
            {"beta", a.chain.beta},
            {"seed", a.chain.seed},
            {"start", a.start},
            {"thermalisation", a.thermalisation},
            {"sweeps", a.sweeps},
            {"overrelaxation", a.chain.overrelaxation},
            {"measure_every", a.measure_every},
            {"measurements", measured.size()},
            {"plaquette", number(mean.mean)},
            {"plaquette_error", number(mean.error)},
            {"bin", mean.bin},
            {"ranks", j.ranks()},
            {"rank_grid", cut.rank_grid()},
            {"transport", j.transport()}};
}

int run(app::program& p, int argc, const char* const* argv) {
    const arguments a = read_command_line(p, argc, argv);
    const coordinate global = app::parse_extents("--grid", a.grid);
    gauge::check_extents(global);
    if (a.sweeps > gauge::most_sweeps - a.thermalisation)
        throw input_error("--thermalisation " + std::to_string(a.thermalisation) + " and --sweeps " +
                          std::to_string(a.sweeps) + " are more than " + std::to_string(gauge::most_sweeps) +
                          " together: there are no random numbers for so many sweeps");
    const comm::job& j = p.join(app::job_options_of_environment(a.transport));
    p.agree_on(argc, argv);
    app::check_output(p, "--output", a.output, app::run_files().add("--json", a.json));
    app::text_output json(p, "--json", a.json, app::run_files().add("--output", a.output));
    const lattice::decomposition cut = app::decompose(global, a.rank_grid, j); // refuses lattices beyond all memory
    constexpr std::int64_t site_bytes = lattice::gauge_components * sizeof(double);
    app::check_room(j, "--output", a.output, lattice::volume(global) * site_bytes);
    app::check_host_memory(
        j, cut, [&](int rank) { return bytes_of_rank(cut, rank); }, "take a smaller lattice, or more hosts");
    const lattice::box local = cut.local_box(j.rank());
    dirac::padded_links links(
        j, cut, a.start == "hot" ? gauge::hot_links(local, global, a.chain.seed) : gauge::cold_links(local));
    char line[256];
    std::snprintf(
        line, sizeof line,
        "lattice %s, beta %g, seed %llu, on %d rank%s %s over %s: %d + %d sweeps of 1 heatbath and %d overrelaxation",
        lattice::to_string(global).c_str(), a.chain.beta, static_cast<unsigned long long>(a.chain.seed), j.ranks(),
        j.ranks() > 1 ? "s" : "", lattice::to_string(cut.rank_grid()).c_str(), j.transport().c_str(), a.thermalisation,
        a.sweeps, a.chain.overrelaxation);
    p.print(line);

    const stopwatch watch;
    const std::vector<double> measured = update(p, links, a, watch);

    const double last = dirac::plaquette(links);
    const gauge::binned_mean mean = gauge::mean_with_binning(measured);
    if (measured.size() > 1) {
        char error[64] = "error unknown (";
        if (std::isfinite(mean.error))
            std::snprintf(error, sizeof error, "error %.1e (bins of %d, ", mean.error, mean.bin);
        std::snprintf(line, sizeof line, "plaquette %.7f, %s%zu measurements); of the last sweep %.13f", mean.mean,
                      error, measured.size(), last);
        p.print(line);
    }
    const bool written = !a.output.empty() && write_links(p, links, last, a);
    nlohmann::json result = to_json(p, j, cut, a, measured, mean);
    result["last_plaquette"] = last;
    result["output"] = written ? a.output : "";
    double seconds = watch.seconds();
    comm::global_sum(j, 1).maximum_or_throw({&seconds, 1});
    result["seconds"] = seconds;
    // File names need not be UTF-8.
    json.write(result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return app::exit_success;
}

} // namespace

int main(int argc, char** argv) { return halocline::app::run_program(argc, argv, run); }
