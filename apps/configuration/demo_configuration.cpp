// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/demo_configuration.hpp>

#include "heatbath.hpp"

#include <halocline/dirac/gauge_configuration.hpp>
#include <halocline/dirac/plaquette.hpp>
#include <halocline/lattice/gauge_file.hpp>
#include <halocline/lattice/partial_file.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace halocline::app {
namespace {

namespace fs = std::filesystem;

constexpr lattice::coordinate extents = demo_extents;
constexpr int sweeps = 120; // from a cold start, 4 overrelaxation sweeps each: far beyond the thermalisation time
constexpr gauge::heatbath_options chain{.beta = 6.0, .seed = 20161124, .overrelaxation = 4};
constexpr const char* file_name = "demo-8.8.8.8-beta6.0.ildg";

/// The folder that a variable names, "" without one: the XDG specification ignores what is empty or relative.
fs::path folder_of_variable(const char* name) {
    const char* value = std::getenv(name);
    const fs::path folder = value != nullptr ? value : "";
    return folder.is_absolute() ? folder : fs::path();
}

/// In the order in which they are tried.
std::vector<fs::path> data_folders() {
    std::vector<fs::path> candidates;
    if (const char* set = std::getenv("HALOCLINE_DATA_DIR"); set != nullptr && *set != '\0') {
        candidates.emplace_back(set); // requested by name: no other will do
    } else {
        std::error_code failure;
        const fs::path program = fs::read_symlink("/proc/self/exe", failure);
        if (!failure) candidates.push_back(program.parent_path().parent_path() / "share" / "halocline");
        if (const fs::path cache = folder_of_variable("XDG_CACHE_HOME"); !cache.empty())
            candidates.push_back(cache / "halocline");
        if (const fs::path home = folder_of_variable("HOME"); !home.empty())
            candidates.push_back(home / ".cache" / "halocline");
    }
    return candidates;
}

/// The first folder that exists or can be made, and is writable.  Err: file_error.
fs::path data_folder() {
    std::string tried;
    for (const auto& folder : data_folders()) {
        std::error_code failure;
        if (fs::exists(folder / file_name, failure)) return folder;
        fs::create_directories(folder, failure);
        if (!failure && ::access(folder.c_str(), W_OK) == 0) return folder;
        tried += " " + folder.string();
    }
    throw file_error(file_name, "no folder to keep the demo configuration in; tried" + tried +
                                    "; name one in HALOCLINE_DATA_DIR, or give --gauge");
}

/// Generates with all ranks of `j` and writes to `path`, unless another job has done so in the meantime.
void generate(const comm::job& j, const std::string& path, const std::function<void(std::string_view)>& tell) {
    const auto cut = lattice::decomposition::chosen(extents, j.ranks());
    const lattice::box local = cut.local_box(j.rank());
    auto links = gauge::cold_links(local);
    dirac::padded_links padded(j, cut, links);
    gauge::heatbath chain_state(j, cut, chain);
    char text[160];
    for (int n = 1; n <= sweeps; ++n) {
        chain_state.sweep(padded);
        if (n % 50 == 0 || n == sweeps) {
            const double plaquette = dirac::plaquette(j, cut, padded);
            std::snprintf(text, sizeof text, "generating the demo configuration: sweep %d of %d, plaquette %.6f", n,
                          sweeps, plaquette);
            if (j.rank() == 0) tell(text);
        }
    }
    padded.store(links);
    const double plaquette = dirac::plaquette(j, cut, padded);
    if (j.broadcast(fs::exists(path) ? "yes" : "no") == "no")
        dirac::write_configuration(j, cut, links, plaquette, lattice::gauge_format::ildg, path);
}

} // namespace

std::vector<std::string> demo_configuration_paths() {
    std::vector<std::string> paths;
    for (const fs::path& folder : data_folders()) paths.push_back((folder / file_name).string());
    return paths;
}

std::string demo_configuration(const comm::job& j, const std::function<void(std::string_view)>& tell) {
    std::string path;
    bool exists = false;
    j.collectively([&] {
        if (j.rank() != 0) return;
        const fs::path file = data_folder() / file_name;
        path = file.string();
        exists = fs::exists(file);
        const std::string partial = lattice::partial_name(path);
        if (!exists && fs::exists(partial) && lattice::partial_writer(path).empty())
            tell("warning: '" + partial +
                 "' is there: a run was ended while it wrote the demo configuration; it will be replaced");
        // Before the work, including its space, and not just by checking permissions: /proc is writable to root.
        if (!exists && lattice::partial_writer(path).empty())
            lattice::gauge_writer(path, lattice::gauge_format::ildg, extents).create();
    });
    path = j.broadcast(path);
    exists = j.broadcast(exists ? "yes" : "no") == "yes";
    if (exists) return path;

    // Several jobs may do this at once: they take turns writing, and write the same bytes.
    if (lattice::admissible_rank_grids(extents, j.ranks(), {1, 1, 1, 1}).empty()) {
        j.collectively([&] { // only rank 0: the links are the same for every rank grid
            if (j.rank() == 0) generate(comm::job::single(), path, tell);
        });
    } else {
        generate(j, path, tell);
    }
    return path;
}

} // namespace halocline::app
