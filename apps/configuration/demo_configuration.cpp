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
#include <optional>
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

/// The chain that ends with the demo configuration, on all ranks of `j`.
class demo_chain {
  public:
    explicit demo_chain(const comm::job& j) : demo_chain(j, lattice::decomposition::chosen(extents, j.ranks())) {}

    void sweep(const std::function<void(std::string_view)>& tell) {
        chain_.sweep(links_);
        ++done_;
        if (done_ % 50 != 0 && done_ != sweeps) return;
        const double plaquette = dirac::plaquette(links_);
        char text[160];
        std::snprintf(text, sizeof text, "generating the demo configuration: sweep %d of %d, plaquette %.6f", done_,
                      sweeps, plaquette);
        if (links_.job().rank() == 0) tell(text);
    }
    /// Unless another job has done so in the meantime.
    void write(const std::string& path) const {
        const comm::job& j = links_.job();
        std::error_code unknown; // then writing reports what is wrong
        if (j.broadcast(j.rank() == 0 && fs::exists(path, unknown) ? "yes" : "no") == "yes") return;
        lattice::gauge_field owned(links_.extents(), lattice::gauge_components);
        links_.store(owned);
        dirac::write_configuration(j, links_.cut(), owned, dirac::plaquette(links_), lattice::gauge_format::ildg, path);
    }

  private:
    demo_chain(const comm::job& j, const lattice::decomposition& cut)
        : links_(j, cut, gauge::cold_links(cut.local_box(j.rank()))) {}

    dirac::padded_links links_;
    gauge::heatbath chain_{chain};
    int done_ = 0;
};

/// Several jobs may do this at once: they take turns writing, and write the same bytes. Collective.
void generate(const comm::job& j, const std::string& path, const std::function<void(std::string_view)>& tell) {
    if (!lattice::admissible_rank_grids(extents, j.ranks(), {1, 1, 1, 1}).empty()) {
        demo_chain together(j);
        for (int n = 0; n < sweeps; ++n) together.sweep(tell);
        together.write(path);
        return;
    }
    // The links are the same for every rank grid: rank 0 makes them alone. The others wait for one step at a time,
    // because the job's deadline is for each wait, and all steps may take longer.
    std::optional<demo_chain> alone;
    const auto step = [&](const std::function<void()>& work) {
        const auto on_rank_0 = [&] {
            if (j.rank() == 0) work();
        };
        j.collectively(on_rank_0, lattice::partial_file::patience); // it may wait for another job
    };
    step([&] { alone.emplace(comm::job::single()); });
    for (int n = 0; n < sweeps; ++n) step([&] { alone->sweep(tell); });
    step([&] { alone->write(path); });
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
    const auto look = [&] {
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
    };
    j.collectively(look, lattice::partial_file::patience);
    path = j.broadcast(path);
    exists = j.broadcast(exists ? "yes" : "no") == "yes";
    if (!exists) generate(j, path, tell);
    return path;
}

} // namespace halocline::app
