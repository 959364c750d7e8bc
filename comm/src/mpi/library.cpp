// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include <dlfcn.h>
#include <link.h>

namespace halocline::comm {

namespace {

struct known_mpi {
    const char* module;
    const char* title;
    const char* launcher;
    const char* variable; // set by its launcher to the number of ranks
    const char* wrapper;  // the CMake variable that names its mpicxx
    const char* package;
};
// Open MPI first: its mpirun may also speak PMI.
constexpr known_mpi known[] = {
    {"openmpi", "Open MPI", "mpirun.openmpi", "OMPI_COMM_WORLD_SIZE", "HALOCLINE_MPICXX_OPENMPI",
     "libopenmpi-dev openmpi-bin"},
    {"mpich", "MPICH", "mpirun.mpich", "PMI_SIZE", "HALOCLINE_MPICXX_MPICH", "libmpich-dev mpich"},
};

const char* environment(const char* name) {
    const char* value = std::getenv(name);
    return value && *value ? value : nullptr;
}

std::string module_file(std::string_view module) { return "halocline-mpi-" + std::string(module) + ".so"; }

std::string list(const std::vector<std::filesystem::path>& folders) {
    std::string text;
    for (const auto& folder : folders) text += (text.empty() ? "" : ", ") + folder.string();
    return text;
}

} // namespace

std::optional<mpi_launch> mpi_launch_from_environment() {
    std::optional<mpi_launch> launch;
    for (const auto& mpi : known) {
        if (const char* value = environment(mpi.variable)) {
            launch = mpi_launch{mpi.module, mpi.title, std::string(mpi.variable) + "=" + value, 0};
            const std::string_view text = value;
            std::from_chars(text.data(), text.data() + text.size(), launch->ranks);
            break;
        }
    }
    if (const char* choice = environment("HALOCLINE_MPI")) {
        const std::string said = std::string("HALOCLINE_MPI=") + choice;
        if (!launch)
            launch = mpi_launch{{}, {}, said, 0};
        else
            launch->evidence += ", " + said;
        launch->module = choice;
    }
    return launch;
}

std::optional<mpi_launch> mpi_of_program() {
    auto launch = mpi_launch_from_environment();
    if (environment("HALOCLINE_MPI")) return launch;
    using version_call = int (*)(char*, int*); // may be called before MPI_Init; the same in every MPI
    const auto version = reinterpret_cast<version_call>(dlsym(RTLD_DEFAULT, "MPI_Get_library_version"));
    if (!version) return launch;
    std::array<char, 8192> text{}; // both define less
    int length = 0;
    if (version(text.data(), &length) != 0) return launch;
    const std::string_view said(text.data());
    for (const auto& mpi : known) {
        if (said.substr(0, std::strlen(mpi.title)) != mpi.title) continue;
        return mpi_launch{mpi.module, mpi.title, "this program uses " + std::string(mpi.title)};
    }
    throw input_error("MPI: this program uses '" + std::string(said.substr(0, said.find_first_of(",\n"))) +
                      "'; modules exist for Open MPI and MPICH (HALOCLINE_MPI names one that fits)");
}

namespace {

/// The object that contains this code: the program, or a shared library that has Halocline in it, as an extension of an
/// interpreter does. nullptr: the program.
const char* object_of_this_code() {
    static const char here = 0;
    Dl_info info;
    void* entry = nullptr;
    if (dladdr1(&here, &info, &entry, RTLD_DL_LINKMAP) == 0 || !entry) return nullptr;
    const char* name = static_cast<const link_map*>(entry)->l_name;
    return name && *name ? name : nullptr; // the program's is empty
}

void append(std::vector<std::filesystem::path>& folders, const std::filesystem::path& folder) {
    if (std::ranges::find(folders, folder) == folders.end()) folders.push_back(folder);
}

/// Appends the folders in the run path of that object (nullptr: of the program): Halocline's CMake package and
/// halocline.pc put the folder of an installation there.
void append_run_path(std::vector<std::filesystem::path>& folders, const char* object) {
    void* self = dlopen(object, RTLD_LAZY | (object ? RTLD_NOLOAD : 0));
    if (!self) return;
    Dl_serinfo needed;
    if (dlinfo(self, RTLD_DI_SERINFOSIZE, &needed) == 0) {
        std::vector<std::max_align_t> room(needed.dls_size / sizeof(std::max_align_t) + 1);
        auto* paths = reinterpret_cast<Dl_serinfo*>(room.data());
        *paths = needed; // the second call expects size and number again
        if (dlinfo(self, RTLD_DI_SERINFO, paths) == 0) {
            for (unsigned i = 0; i < paths->dls_cnt; ++i) {
                const std::filesystem::path folder = paths->dls_serpath[i].dls_name;
                if (folder.filename() == "halocline") append(folders, folder); // the others are the system's
            }
        }
    }
    dlclose(self);
}

/// Does that file lie in the folder of this build?
bool is_in_build(const std::filesystem::path& file) {
    std::error_code failed;
    const auto build = std::filesystem::weakly_canonical(HALOCLINE_BUILD_DIR, failed);
    if (failed) return false;
    const auto real = std::filesystem::weakly_canonical(file, failed);
    return !failed && std::ranges::mismatch(build, real).in1 == build.end();
}

} // namespace

std::vector<std::filesystem::path> mpi_module_folders() {
    std::vector<std::filesystem::path> folders;
    if (const char* path = environment("HALOCLINE_MODULE_PATH")) {
        for (std::string_view rest = path; !rest.empty();) {
            const auto end = std::min(rest.find(':'), rest.size());
            if (end > 0) append(folders, rest.substr(0, end));
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
    }
    const char* const object = object_of_this_code();
    std::error_code failed;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
    if (object) append_run_path(folders, object);
    append_run_path(folders, nullptr);
    if (!failed) append(folders, (program.parent_path() / HALOCLINE_MODULES_FROM_PROGRAMS).lexically_normal());
    // An installed program must not get a module of the build folder, which may be another version by now.
    if (is_in_build(program) || (object && is_in_build(object))) append(folders, HALOCLINE_MODULE_DIR);
    append(folders, HALOCLINE_MODULE_INSTALL_DIR);
    return folders;
}

std::vector<std::string> mpi_modules_present() {
    std::vector<std::string> present;
    std::error_code ignored;
    for (const auto& mpi : known) {
        for (const auto& folder : mpi_module_folders()) {
            if (!std::filesystem::exists(folder / module_file(mpi.module), ignored)) continue;
            present.emplace_back(mpi.module);
            break;
        }
    }
    return present;
}

namespace {

bool is_path(const std::string& module) { return module.find('/') != std::string::npos; }

/// The module in that file; if it can't be opened, nothing, and `why_not` says why.
std::optional<loaded_mpi_module> open_module(const std::filesystem::path& path, std::string& why_not) {
    // RTLD_LOCAL: the program's own libraries must not see this MPI's symbols.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char* said = dlerror();
        why_not = said ? said : "can't be loaded";
        return std::nullopt;
    }
    void* entry = dlsym(library, HALOCLINE_MPI_MODULE_ENTRY);
    if (!entry) {
        why_not = "no symbol '" HALOCLINE_MPI_MODULE_ENTRY "'";
        return std::nullopt;
    }
    const auto* table = reinterpret_cast<halocline_mpi_module_entry>(entry)();
    if (table->abi != HALOCLINE_MPI_MODULE_ABI || table->bytes != sizeof(halocline_mpi_module)) {
        why_not = "module interface " + std::to_string(table->abi) + ", this program needs " +
                  std::to_string(HALOCLINE_MPI_MODULE_ABI) + ": rebuild both together";
        return std::nullopt;
    }
    return loaded_mpi_module{table, path};
}

/// The error text: where the module was searched for, and what would help.
std::string no_module(const mpi_launch& launch, const std::string& file) {
    std::string text = "MPI: no module " + file + " (" + launch.evidence + "): looked in " + list(mpi_module_folders());
    for (const auto& mpi : known) {
        if (launch.module != mpi.module) continue;
        text += std::string("; this build has none if the mpicxx of ") + mpi.title +
                " was not found when it was configured: put it into $PATH, name it by cmake -D" + mpi.wrapper +
                "=..., or install " + mpi.package + "; then configure and build again";
    }
    const auto present = mpi_modules_present();
    for (const auto& mpi : known) {
        if (std::ranges::find(present, mpi.module) == present.end()) continue;
        if (launch.title == mpi.title)
            text +=
                "; or unset HALOCLINE_MPI: the module of " + launch.title + ", which started this program, is there";
        else
            text += std::string("; or start it with ") + mpi.launcher + ", whose module is there";
    }
    return text;
}

} // namespace

loaded_mpi_module load_mpi_module(const mpi_launch& launch) {
    const std::string file = is_path(launch.module) ? launch.module : module_file(launch.module);
    std::vector<std::filesystem::path> candidates;
    if (is_path(launch.module)) {
        candidates.emplace_back(file);
    } else {
        for (const auto& folder : mpi_module_folders()) candidates.push_back(folder / file);
    }

    std::string refused;
    for (const auto& path : candidates) {
        std::error_code ignored;
        if (!std::filesystem::exists(path, ignored)) continue;
        std::string why_not;
        if (const auto module = open_module(path, why_not)) return *module;
        refused += "\n  " + path.string() + ": " + why_not;
    }
    throw input_error(refused.empty() ? no_module(launch, file) : "MPI: no usable module " + file + refused);
}

} // namespace halocline::comm
