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
#include <halocline_app/run_report.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace halocline;
using lattice::coordinate;

struct arguments {
    app::job_flags job{.grid = "8.8.8.8"};
    bool grid_is_given = false;
    std::string start = "cold", start_file; ///< the file is "" unless links begin with one
    bool reunitarise = false;               ///< the file's links, whatever its precision
    std::string output, format = "ddalphaamg";
    gauge::heatbath_options chain;
    bool goes_on = false; ///< with the chain of the file
    int sweeps_done = 0;  ///< those that led to the file
    int thermalisation = 100, sweeps = 50, measure_every = 1;
    int save_every = 0; ///< 0: only the last links are written
};

/// Err: std::invalid_argument.
void read_start(const std::string& text, arguments& a) {
    constexpr std::string_view of_file = "file:";
    const bool is_file = text.starts_with(of_file) && text.size() > of_file.size();
    if (!is_file && text != "cold" && text != "hot") app::expected("cold, hot or file:PATH");
    a.start = text;
    a.start_file = is_file ? text.substr(of_file.size()) : "";
}

/// A flag that would do nothing is a mistake.  Err: input_error.
void refuse_idle_flags(const CLI::App& cli, const arguments& a) {
    if (a.output.empty())
        for (const std::string flag : {"--format", "--save-every"})
            if (cli.count(flag) > 0) throw input_error(flag + ": needs --output, the file to write");
    const auto refuse_beyond_sweeps = [&](const std::string& flag, int every, const std::string& what) {
        if (cli.count(flag) > 0 && every > a.sweeps)
            throw input_error(flag + " " + std::to_string(every) + ": nothing would be " + what + " in " +
                              std::to_string(a.sweeps) + " sweeps (--sweeps)");
    };
    refuse_beyond_sweeps("--measure-every", a.measure_every, "measured");
    refuse_beyond_sweeps("--save-every", a.save_every, "saved");
    for (const auto& [flag, what] :
         {std::pair<std::string, std::string>("--sweeps-done", "the links after these sweeps"),
          {"--reunitarise", "the links to make unitary"}})
        if (a.start_file.empty() && cli.count(flag) > 0) throw input_error(flag + ": needs --start file:PATH, " + what);
}

arguments read_command_line(const app::program& p, int argc, const char* const* argv) {
    arguments a;
    CLI::App cli("Quenched SU(3) gauge configuration: Wilson action, heatbath and overrelaxation.\n"
                 "The links depend on the seed and the flags, never on the number of ranks.\n" +
                     std::string(app::help_on_settings) +
                     "Exit code: 0 done, 1 an error, 2 bad input, 3 a rank died or a deadline passed.",
                 p.name());
    a.job.add_to(cli, "extents, all even; with links from a file its own");
    app::add_real_flag(cli, "--beta", a.chain.beta, 0, 1e6, "a coupling from 0 to 1e6, like 6.0", "coupling");
    app::add_integer_flag<std::uint64_t>(cli, "--seed", a.chain.seed, 0, std::numeric_limits<std::uint64_t>::max(),
                                         "of all random numbers");
    constexpr int most = 1'000'000'000;
    app::add_integer_flag(cli, "--thermalisation", a.thermalisation, 0, gauge::most_sweeps,
                          "sweeps before the first measurement; with links from a file 0 unless given");
    app::add_integer_flag(cli, "--sweeps", a.sweeps, 0, gauge::most_sweeps, "sweeps after that");
    app::add_integer_flag(cli, "--overrelaxation", a.chain.overrelaxation, 0, most,
                          "overrelaxation sweeps per heatbath sweep");
    app::add_integer_flag(cli, "--measure-every", a.measure_every, 1, most, "sweeps from one plaquette to the next");
    const auto set_start = [&a](const std::string& text) {
        app::read_flag("--start", text, [&a](const std::string& t) { read_start(t, a); });
    };
    cli.add_option_function<std::string>("--start", set_start, "links to begin with: cold, hot or file:PATH")
        ->type_name("NAME")
        ->default_str(a.start);
    app::add_integer_flag(cli, "--sweeps-done", a.sweeps_done, 0, gauge::most_sweeps,
                          "sweeps of the chain that led to the file: it goes on with the same bits");
    cli.add_flag("--reunitarise", a.reunitarise,
                 "accept links of the file up to 1e-5 off SU(3), and make them unitary again");
    app::add_text_flag(cli, "--output", a.output, "FILE", "file to write (default: none)");
    cli.add_option("--format", a.format, "of the file")
        ->check(CLI::IsMember({"ildg", "nersc", "ddalphaamg"}))
        ->capture_default_str();
    app::add_integer_flag(cli, "--save-every", a.save_every, 0, most,
                          "sweeps after the thermalisation from one FILE.0123, after 123 sweeps in all, to the next; "
                          "0: none");
    p.parse(cli, argc, argv);
    refuse_idle_flags(cli, a);
    a.grid_is_given = cli.count("--grid") > 0;
    a.goes_on = cli.count("--sweeps-done") > 0;
    if (!a.start_file.empty()) {
        if (!a.goes_on && cli.count("--seed") == 0)
            throw input_error(
                "--start " + a.start +
                ": give --sweeps-done, the sweeps that led to this file, to go on with its chain's random "
                "numbers, or another --seed");
        if (cli.count("--thermalisation") == 0) a.thermalisation = 0;
    }
    if (a.sweeps_done > gauge::most_sweeps - a.thermalisation ||
        a.sweeps > gauge::most_sweeps - a.thermalisation - a.sweeps_done)
        throw input_error((a.sweeps_done > 0 ? "--sweeps-done " + std::to_string(a.sweeps_done) + ", " : "") +
                          "--thermalisation " + std::to_string(a.thermalisation) + " and --sweeps " +
                          std::to_string(a.sweeps) + " are more than " + std::to_string(gauge::most_sweeps) +
                          " together: there are no random numbers for so many sweeps");
    return a;
}

constexpr std::string_view chain_begin = "Halocline chain: ";

/// What files say of the chain that led to their links, if their format has room for it.
std::string text_of_chain(const arguments& a, int sweeps) {
    char beta[32];
    const auto end = std::to_chars(std::begin(beta), std::end(beta), a.chain.beta); // all digits that it needs
    return std::string(chain_begin) + "beta " + std::string(beta, end.ptr) + ", seed " + std::to_string(a.chain.seed) +
           ", overrelaxation " + std::to_string(a.chain.overrelaxation) + ", sweeps " + std::to_string(sweeps);
}

/// Err: input_error: the file says that its links come from another chain than the one that goes on with them, or from
/// one whose random numbers would be taken again.
void check_chain(const arguments& a, const lattice::gauge_file& file) {
    if (!file.origin.starts_with(chain_begin)) return;
    const std::string theirs = file.origin.substr(chain_begin.size()),
                      ours = text_of_chain(a, a.sweeps_done).substr(chain_begin.size());
    if (a.goes_on && theirs != ours)
        throw input_error("--start " + a.start + ": the file is of the chain '" + theirs + "', the flags say '" + ours +
                          "' (--beta, --seed, --overrelaxation, --sweeps-done)");
    if (!a.goes_on && theirs.find(", seed " + std::to_string(a.chain.seed) + ",") != std::string::npos)
        throw input_error("--start " + a.start + ": the file is of the chain '" + theirs +
                          "', so random numbers of --seed " + std::to_string(a.chain.seed) +
                          " were used; give another one, or --sweeps-done to go on with that chain");
}

/// The file of --start.  Err: input_error: a lattice of other extents than --grid, another chain. Collective.
lattice::gauge_file open_start(const app::program& p, const comm::job& j, const arguments& a) {
    lattice::gauge_file file = dirac::open_configuration(j, a.start_file);
    file.rounded_to_32_bits = a.reunitarise;
    if (a.grid_is_given && app::parse_extents("--grid", a.job.grid) != file.extents)
        throw input_error("--grid " + a.job.grid + " disagrees with '" + file.path + "', which holds " +
                          lattice::to_string(file.extents) + "; leave the extents out or give these");
    check_chain(a, file);
    for (const std::string& warning : file.warnings) p.print("warning: " + warning);
    return file;
}

/// The links of the file of --start. Collective.  Err: input_error: they contradict it.
dirac::verified_links read_links(const comm::job& j, const lattice::decomposition& cut,
                                 const lattice::gauge_file& file) {
    try {
        return dirac::read_configuration(j, cut, file);
    } catch (const lattice::rounded_links_error& e) {
        throw file_error(e.path(), e.reason() + "; --reunitarise accepts rounded links");
    }
}

/// Links of this rank to begin with. Collective.  Err: input_error: links of a file that no periodic lattice has.
lattice::gauge_field first_links(const app::program& p, const comm::job& j, const lattice::decomposition& cut,
                                 const arguments& a, const lattice::gauge_file& file) {
    const lattice::box local = cut.local_box(j.rank());
    if (a.start_file.empty())
        return a.start == "hot" ? gauge::hot_links(local, cut.global(), a.chain.seed) : gauge::cold_links(local);
    dirac::verified_links read = read_links(j, cut, file);
    if (read.open_in_t)
        throw input_error("--start " + a.start +
                          ": its links in t of the last time slice are zero, an open boundary; the sweeps are those of "
                          "a periodic lattice");
    char text[120];
    std::snprintf(text, sizeof text, "%.10f", read.plaquette);
    p.print("read " + lattice::to_string(read.format) + " '" + file.path + "': plaquette " + text);
    if (file.real_bytes == sizeof(float) || a.reunitarise) { // others stay as they are, to the bit
        std::snprintf(text, sizeof text, "its links missed SU(3) by at most %.1e, and were made unitary again",
                      read.su3_error);
        p.print(text);
        dirac::reunitarise(read.links);
    }
    return std::move(read.links);
}

/// "FILE.0100": the links after 100 sweeps of the chain.
std::string saved_name(const std::string& output, int sweeps) {
    constexpr std::size_t digits = 4;
    const std::string number = std::to_string(sweeps);
    return output + "." + std::string(digits - std::min(digits, number.size()), '0') + number;
}

/// Checks all files for links, those of --save-every too, before the sweeps. Collective.  Err: input_error.
void check_links_can_be_written(const app::program& p, const arguments& a, const coordinate& global) {
    constexpr int most_saves = 100'000;
    const int saves = a.save_every > 0 ? a.sweeps / a.save_every : 0;
    if (saves > most_saves)
        throw input_error("--save-every " + std::to_string(a.save_every) + ": would write " + std::to_string(saves) +
                          " files in " + std::to_string(a.sweeps) + " sweeps (--sweeps), and at most " +
                          std::to_string(most_saves) + " are written");
    std::vector<std::string> paths;
    for (int n = 1; n <= saves; ++n)
        paths.push_back(saved_name(a.output, a.sweeps_done + a.thermalisation + n * a.save_every));
    const std::vector<std::string> saved = paths;
    paths.push_back(a.output);
    app::run_files files;
    files.add("--start", a.start_file).add("--json", a.job.json);
    app::check_output(p, "--output", a.output, files);
    constexpr std::int64_t site_bytes = lattice::gauge_components * sizeof(double);
    app::check_room(p.job(), "--output", a.output, lattice::volume(global) * site_bytes, paths);
    files.add("--output", a.output);
    app::check_outputs(p, "--save-every", saved, files);
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
/// False: they could not be written, which the program will report at the end. `sweeps`: of this run. `flag` names the
/// file. Collective.
bool write_links(const app::program& p, const dirac::padded_links& links, double plaquette, const arguments& a,
                 int sweeps, const std::string& flag, const std::string& path) {
    lattice::gauge_field owned(links.extents(), lattice::gauge_components);
    links.store(owned);
    const auto format = a.format == "ildg"    ? lattice::gauge_format::ildg
                        : a.format == "nersc" ? lattice::gauge_format::nersc
                                              : lattice::gauge_format::ddalphaamg;
    try {
        dirac::write_configuration(links.job(), links.cut(), owned, plaquette, format, path,
                                   text_of_chain(a, a.sweeps_done + sweeps));
    } catch (const input_error& e) { // the same on every rank
        const std::string what = flag + ": " + e.what();
        if (path != a.output) p.print("warning: " + what); // the end may be days away
        p.lose_output(what);
        return false;
    }
    p.print("wrote " + path + " (" + a.format + ", read back and verified), plaquette " + std::to_string(plaquette));
    return true;
}

/// What the sweeps left beside the last links.
struct series {
    std::vector<double> plaquettes; ///< measured
    std::vector<std::string> saved; ///< files
};

/// Performs all sweeps.
series update(app::program& p, dirac::padded_links& links, const arguments& a, const stopwatch& watch) {
    gauge::heatbath chain(a.chain, a.sweeps_done);
    series result;
    char line[256];
    const int total = a.thermalisation + a.sweeps, plain_line_every = std::max(1, total / 10);
    for (int sweep = 1; sweep <= total; ++sweep) {
        chain.sweep(links);
        const int after = sweep - a.thermalisation;
        const bool measure = after > 0 && after % a.measure_every == 0, report = sweep % plain_line_every == 0,
                   save = after > 0 && a.save_every > 0 && after % a.save_every == 0;
        if (!measure && !report && !save) continue;
        const double value = dirac::plaquette(links);
        if (measure) result.plaquettes.push_back(value);
        std::snprintf(line, sizeof line, "sweep %d of %d  plaquette %.6f  %.1f s", sweep, total, value,
                      watch.seconds());
        p.print_progress(line);
        if (report && !p.on_terminal()) p.print(line);
        if (!save) continue;
        const std::string path = saved_name(a.output, a.sweeps_done + sweep);
        if (write_links(p, links, value, a, sweep, "--save-every", path)) result.saved.push_back(path);
    }
    p.print_progress("");
    return result;
}

nlohmann::json to_json(const comm::job& j, const lattice::decomposition& cut, const arguments& a, const series& found,
                       const gauge::binned_mean& mean) {
    const auto number = [](double v) { return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(); };
    auto result = app::head_of_result<nlohmann::json>("generate_gauge", j, cut);
    result.update({{"grid", cut.global()},
                   {"beta", a.chain.beta},
                   {"seed", a.chain.seed},
                   {"start", a.start},
                   {"thermalisation", a.thermalisation},
                   {"sweeps", a.sweeps},
                   {"sweeps_done", a.sweeps_done + a.thermalisation + a.sweeps},
                   {"overrelaxation", a.chain.overrelaxation},
                   {"measure_every", a.measure_every},
                   {"measurements", found.plaquettes.size()},
                   {"history", found.plaquettes},
                   {"plaquette", number(mean.mean)},
                   {"plaquette_error", number(mean.error)},
                   {"bin", mean.bin},
                   {"format", a.format},
                   {"save_every", a.save_every},
                   {"saved", found.saved}});
    return result;
}

int run(app::program& p, int argc, const char* const* argv) {
    const arguments a = read_command_line(p, argc, argv);
    coordinate global = app::parse_extents("--grid", a.job.grid);
    if (a.start_file.empty()) gauge::check_extents(global);
    const comm::job& j = p.join(app::job_options_of_environment(a.job.transport));
    p.agree_on(argc, argv);
    lattice::gauge_file file;
    if (!a.start_file.empty()) {
        file = open_start(p, j, a);
        global = file.extents;
        gauge::check_extents(global);
    }
    const lattice::decomposition cut = app::decompose(global, a.job.rank_grid, j); // refuses lattices beyond all memory
    check_links_can_be_written(p, a, global);
    app::text_output json(p, "--json", a.job.json,
                          app::run_files().add("--start", a.start_file).add("--output", a.output));
    app::check_host_memory(
        j, cut, [&](int rank) { return bytes_of_rank(cut, rank); }, "take a smaller lattice, or more hosts");
    dirac::padded_links links(j, cut, first_links(p, j, cut, a, file));
    char line[256];
    std::snprintf(line, sizeof line,
                  "lattice %s, beta %g, seed %llu, %s: %d + %d sweeps of 1 heatbath and %d overrelaxation",
                  lattice::to_string(global).c_str(), a.chain.beta, static_cast<unsigned long long>(a.chain.seed),
                  app::where_it_runs(j, cut).c_str(), a.thermalisation, a.sweeps, a.chain.overrelaxation);
    p.print(line + (a.sweeps_done > 0 ? ", after " + std::to_string(a.sweeps_done) + " sweeps" : std::string()));

    const stopwatch watch;
    const series found = update(p, links, a, watch);

    const double last = dirac::plaquette(links);
    const gauge::binned_mean mean = gauge::mean_with_binning(found.plaquettes);
    if (const std::size_t count = found.plaquettes.size(); count > 0) {
        char error[64] = "error unknown (";
        if (std::isfinite(mean.error))
            std::snprintf(error, sizeof error, "error %.1e (bins of %d, ", mean.error, mean.bin);
        std::snprintf(line, sizeof line, "plaquette %.7f, %s%zu measurement%s); of the last sweep %.13f", mean.mean,
                      error, count, count > 1 ? "s" : "", last);
        p.print(line);
    }
    const bool written =
        !a.output.empty() && write_links(p, links, last, a, a.thermalisation + a.sweeps, "--output", a.output);
    nlohmann::json result = to_json(j, cut, a, found, mean);
    result["last_plaquette"] = last;
    result["output"] = written ? a.output : "";
    double seconds = watch.seconds();
    comm::global_sum(j, 1).maximum_or_throw({&seconds, 1});
    result["seconds"] = seconds;
    json.write(app::text_of_result(result, 2));
    return app::exit_success;
}

} // namespace

int main(int argc, char** argv) { return halocline::app::run_program(argc, argv, run); }
