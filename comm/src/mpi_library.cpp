// SPDX-License-Identifier: Apache-2.0
#include "mpi_library.hpp"

#include "wire.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <numeric>
#include <system_error>

#include <dlfcn.h>
#include <sched.h>

namespace halocline::comm {

namespace {

struct known_mpi {
    const char* module;
    const char* title;
    const char* launcher;
    const char* variable; // that its launcher sets to the number of ranks
    const char* package;
};
// Open MPI first: its mpirun may also speak PMI.
constexpr known_mpi known[] = {
    {"openmpi", "Open MPI", "mpirun.openmpi", "OMPI_COMM_WORLD_SIZE", "libopenmpi-dev openmpi-bin"},
    {"mpich", "MPICH", "mpirun.mpich", "PMI_SIZE", "libmpich-dev mpich"},
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

/// What a C callback may not throw is kept here and thrown after the call.
class guard {
  public:
    explicit guard(const mpi_world::progress& check) : check_(check) {}
    static int give_up(void* self) {
        auto& g = *static_cast<guard*>(self);
        if (!g.check_) return 0;
        try {
            g.check_();
        } catch (...) {
            g.thrown_ = std::current_exception();
        }
        return g.thrown_ ? 1 : 0;
    }
    void rethrow() const {
        if (thrown_) std::rethrow_exception(thrown_);
    }

  private:
    const mpi_world::progress& check_;
    std::exception_ptr thrown_;
};

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
        if (!launch) launch = mpi_launch{{}, {}, std::string("HALOCLINE_MPI=") + choice, 0};
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

/// What this program's run path names: Halocline's CMake package and halocline.pc put the folder of an installation there.
void append_run_path(std::vector<std::filesystem::path>& folders) {
    void* self = dlopen(nullptr, RTLD_LAZY);
    Dl_serinfo needed;
    if (!self || dlinfo(self, RTLD_DI_SERINFOSIZE, &needed) != 0) return;
    std::vector<std::max_align_t> room(needed.dls_size / sizeof(std::max_align_t) + 1);
    auto* paths = reinterpret_cast<Dl_serinfo*>(room.data());
    *paths = needed; // the second call wants to be told size and number again
    if (dlinfo(self, RTLD_DI_SERINFO, paths) == 0) {
        for (unsigned i = 0; i < paths->dls_cnt; ++i) {
            const std::filesystem::path folder = paths->dls_serpath[i].dls_name;
            if (folder.filename() == "halocline") folders.push_back(folder); // the others are the system's
        }
    }
    dlclose(self);
}

} // namespace

std::vector<std::filesystem::path> mpi_module_folders() {
    std::vector<std::filesystem::path> folders;
    if (const char* path = environment("HALOCLINE_MODULE_PATH")) {
        for (std::string_view rest = path; !rest.empty();) {
            const auto end = std::min(rest.find(':'), rest.size());
            if (end > 0) folders.emplace_back(rest.substr(0, end));
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
    }
    std::error_code failed;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
    if (!failed) folders.push_back(program.parent_path().parent_path() / "lib" / "halocline");
    append_run_path(folders);
    folders.emplace_back(HALOCLINE_MODULE_DIR);
    folders.emplace_back(HALOCLINE_MODULE_INSTALL_DIR);
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

struct loaded_module {
    const halocline_mpi_module* table = nullptr;
    std::filesystem::path path;
};

/// Loaded for good: an MPI library does not survive being unloaded.
loaded_module load(const mpi_launch& launch) {
    std::vector<std::filesystem::path> candidates;
    if (launch.module.find('/') != std::string::npos) {
        candidates.emplace_back(launch.module);
    } else {
        for (const auto& folder : mpi_module_folders()) candidates.push_back(folder / module_file(launch.module));
    }

    std::string refused;
    for (const auto& path : candidates) {
        std::error_code failed;
        if (!std::filesystem::exists(path, failed)) continue;
        // RTLD_LOCAL: the program's own libraries must not see this MPI's symbols.
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            const char* why = dlerror();
            refused += "\n  " + path.string() + ": " + (why ? why : "can't be loaded");
            continue;
        }
        void* entry = dlsym(library, HALOCLINE_MPI_MODULE_ENTRY);
        if (!entry) {
            refused += "\n  " + path.string() + ": no symbol '" HALOCLINE_MPI_MODULE_ENTRY "'";
            continue;
        }
        const auto* table = reinterpret_cast<halocline_mpi_module_entry>(entry)();
        if (table->abi != HALOCLINE_MPI_MODULE_ABI || table->bytes != sizeof(halocline_mpi_module)) {
            refused += "\n  " + path.string() + ": module interface " + std::to_string(table->abi) +
                       ", this program needs " + std::to_string(HALOCLINE_MPI_MODULE_ABI) + ": rebuild both together";
            continue;
        }
        return {table, path};
    }

    const std::string name = launch.module.find('/') == std::string::npos ? module_file(launch.module) : launch.module;
    if (!refused.empty()) throw input_error("MPI: no usable module " + name + refused);
    std::string text = "MPI: no module " + name + " (" + launch.evidence + "): looked in " + list(mpi_module_folders());
    for (const auto& mpi : known) {
        if (launch.module != mpi.module) continue;
        text += std::string("; this build has none if mpicxx.") + mpi.module +
                " was missing when it was configured: install " + mpi.package + ", configure and build again";
    }
    const auto present = mpi_modules_present();
    for (const auto& mpi : known) {
        for (const auto& other : present) {
            if (other == mpi.module)
                text += std::string("; or start it with ") + mpi.launcher + ", whose module is there";
        }
    }
    throw input_error(text);
}

} // namespace

mpi_world::mpi_world(const mpi_launch& launch, const progress& check) {
    const auto loaded = load(launch);
    module_ = loaded.table;
    path_ = loaded.path;

    guard g(check);
    const int code = module_->open(launch.communicator, launch.communicator_bytes, guard::give_up, &g, &world_);
    version_ = module_->version();
    g.rethrow();
    if (code == HALOCLINE_MPI_NO_COMMUNICATOR) {
        throw input_error("MPI: what was given is no communicator of " + version_ + " (" + path_.string() +
                          "), or MPI_Init was not called: " + launch.evidence +
                          "; if its MPI is another one, name that in HALOCLINE_MPI");
    }
    require(code, launch.communicator ? "duplicating the communicator" : "joining the world");
    rank_ = module_->rank(world_);
    ranks_ = module_->size(world_);
    if (!launch.communicator && launch.ranks > 0 && launch.ranks != ranks_) {
        module_->leave(); // N singletons that each believe to be alone: don't wait for one another at exit
        throw input_error("MPI: the launcher is " + (launch.title.empty() ? "unknown" : launch.title) +
                          "'s and started " + std::to_string(launch.ranks) + " ranks (" + launch.evidence + "), but " +
                          version_ + " sees a world of " + std::to_string(ranks_) + " (" + path_.string() +
                          "): start the program with the mpirun of " + version_ + ", or unset HALOCLINE_MPI");
    }
    if (!launch.communicator || launch.title.empty() || module_->started_ranks() != 1) return;
    const auto started = mpi_launch_from_environment(); // the other MPI's: N worlds of one rank each
    if (started && started->ranks > 1 && !started->title.empty() && started->title != launch.title) {
        throw input_error("MPI: the launcher is " + started->title + "'s and started " +
                          std::to_string(started->ranks) + " ranks (" + started->evidence + "), but " +
                          launch.evidence + ", which sees a world of 1: start it with the mpirun of " + version_);
    }
}

mpi_world::~mpi_world() {
    for (auto& end : ends_) close_end(*end);
    module_->close(world_);
}

std::string mpi_world::describe(int code) const {
    if (code == HALOCLINE_MPI_TRUNCATED) return version_ + ": a message was longer than planned";
    char text[512];
    module_->describe(code, text, sizeof text);
    return version_ + ": " + text;
}

void mpi_world::require(int code, std::string_view call) const {
    if (code != HALOCLINE_MPI_OK) throw job_error("MPI: " + std::string(call) + " failed: " + describe(code));
}

std::vector<std::string> mpi_world::allgather(std::string_view mine, const progress& check) const {
    const auto ranks = static_cast<std::size_t>(ranks_);
    const std::vector<std::uint64_t> eight(ranks, sizeof(std::uint64_t));
    std::vector<std::uint64_t> bytes(ranks);
    const std::uint64_t own = mine.size();
    guard g(check);
    int code = module_->allgather(world_, &own, eight.data(), bytes.data(), guard::give_up, &g);
    g.rethrow();
    require(code, "gathering sizes");

    std::string all(std::reduce(bytes.begin(), bytes.end()), '\0');
    code = module_->allgather(world_, mine.data(), bytes.data(), all.data(), guard::give_up, &g);
    g.rethrow();
    require(code, "gathering " + std::to_string(all.size()) + " bytes");

    std::vector<std::string> parts;
    parts.reserve(ranks);
    std::size_t place = 0;
    for (const auto n : bytes) {
        parts.push_back(all.substr(place, n));
        place += n;
    }
    return parts;
}

void mpi_world::poll() noexcept {
    sweep();
    module_->progress(world_);
}

void mpi_world::leave() const noexcept { module_->leave(); }
void mpi_world::abort(int exit_code) const noexcept { module_->abort(exit_code); }

int mpi_world::take_tag() {
    sweep();
    if (!free_tags_.empty()) {
        const int tag = free_tags_.back();
        free_tags_.pop_back();
        return tag;
    }
    if (next_tag_ >= module_->max_tag(world_)) {
        throw job_error("MPI: " + std::to_string(next_tag_) + " channels are open to this rank, and " + version_ +
                        " has no more message tags (MPI_TAG_UB)");
    }
    // So that giving one back never allocates.
    const auto issued = static_cast<std::size_t>(next_tag_) + 1;
    if (free_tags_.capacity() < issued) free_tags_.reserve(2 * issued);
    return next_tag_++;
}

std::shared_ptr<mpi_windows> mpi_world::expose(std::span<const mpi_slots> slots, const progress& check) {
    sweep();
    wire_writer mine;
    mine.number(slots.size());
    for (const auto& w : windows_) {
        if (w->channels == 0) mine.number(w->number);
    }
    std::size_t count = 0;
    std::map<std::uint64_t, int> closed; // on so many ranks
    for (const std::string& bytes : allgather(mine.take(), check)) {
        wire_reader reader(bytes);
        count = std::max(count, reader.number<std::size_t>());
        while (!reader.empty()) ++closed[reader.number<std::uint64_t>()];
    }
    std::erase_if(windows_, [&](const auto& w) {
        if (closed[w->number] != ranks_) return false;
        require(module_->windows_free(w->handle), "freeing windows");
        return true;
    });
    if (count == 0) return nullptr;

    std::vector<void*> places(2 * count, nullptr);
    std::vector<std::uint64_t> bytes(count, 0);
    for (std::size_t i = 0; i < slots.size(); ++i) {
        std::ranges::copy(slots[i].slot, places.begin() + static_cast<std::ptrdiff_t>(2 * i));
        bytes[i] = slots[i].bytes;
    }
    auto made = std::make_shared<mpi_windows>(mpi_windows{nullptr, plans_exposed_++, slots.size()});
    require(module_->windows_open(world_, static_cast<int>(count), places.data(), bytes.data(), &made->handle),
            "making windows (MPI_Win_create)");
    return windows_.emplace_back(std::move(made));
}

void mpi_world::return_tag(int tag) noexcept { free_tags_.push_back(tag); }

} // namespace halocline::comm
