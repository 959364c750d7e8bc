// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

#include "control/wire.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/detail/launch.hpp>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <map>
#include <numeric>

namespace halocline::comm {

namespace {

/// Keeps an exception that may not pass through a C callback, to be thrown after the call.
class carried_exception {
  public:
    explicit carried_exception(const mpi_world::progress& check) : check_(check) {}
    static int give_up(void* self) {
        auto& carried = *static_cast<carried_exception*>(self);
        if (!carried.check_) return 0;
        try {
            carried.check_();
        } catch (...) {
            carried.thrown_ = std::current_exception();
        }
        return carried.thrown_ ? 1 : 0;
    }
    void rethrow() const {
        if (thrown_) std::rethrow_exception(thrown_);
    }

  private:
    const mpi_world::progress& check_;
    std::exception_ptr thrown_;
};

} // namespace

mpi_world::mpi_world(const mpi_launch& launch, const progress& check) {
    const auto loaded = load_mpi_module(launch);
    module_ = loaded.table;

    carried_exception carried(check);
    const int code =
        module_->open(launch.communicator, launch.communicator_bytes, carried_exception::give_up, &carried, &world_);
    // An exception from here on ends no mpi_world, whose destructor would do this.
    const auto close = [this, code](halocline_mpi_world* opened) {
        const bool fine = code == HALOCLINE_MPI_OK; // then what is thrown is thrown on every rank
        module_->close(opened, fine ? 1 : 0, fine ? 0 : 1);
    };
    std::unique_ptr<halocline_mpi_world, decltype(close)> opened(world_, close);
    version_ = module_->version();
    carried.rethrow();
    require_opened(code, launch, loaded.path);
    rank_ = module_->rank(world_);
    ranks_ = module_->size(world_);
    check_world_size(launch, loaded.path);
    opened.release(); // NOLINT: kept in world_
}

void mpi_world::require_opened(int code, const mpi_launch& launch, const std::filesystem::path& path) const {
    if (code == HALOCLINE_MPI_LEFT) {
        throw job_error("MPI: a job of this process has failed before, and " + version_ +
                        " may still write what was under way in it, so no other job can be made over it: start the "
                        "program again");
    }
    if (code == HALOCLINE_MPI_NO_COMMUNICATOR) {
        throw input_error("MPI: what was given is MPI_COMM_NULL or no communicator of " + version_ + " (" +
                          path.string() + "), or MPI_Init was not called: " + launch.evidence +
                          "; if its MPI is another one, name that in HALOCLINE_MPI");
    }
    if (code == HALOCLINE_MPI_INTERCOMMUNICATOR) {
        throw input_error("MPI: what was given is an intercommunicator, and a job is made of one group of ranks: join "
                          "its two groups by MPI_Intercomm_merge first");
    }
    if (code == HALOCLINE_MPI_WRONG_THREAD) {
        throw input_error(
            "MPI: " + version_ +
            " was initialised with MPI_THREAD_SINGLE or MPI_THREAD_FUNNELED, so only the thread that did it "
            "may make a job, and this is another; initialise it by MPI_Init_thread with "
            "MPI_THREAD_SERIALIZED");
    }
    require(code, launch.communicator ? "duplicating the communicator" : "joining the world");
}

void mpi_world::check_world_size(const mpi_launch& launch, const std::filesystem::path& path) const {
    if (!launch.communicator && launch.ranks > 0 && launch.ranks != ranks_) {
        leave(); // N singletons that each believe they are alone must not wait for one another at exit
        throw input_error("MPI: the launcher is " + (launch.title.empty() ? "unknown" : launch.title) +
                          "'s and started " + std::to_string(launch.ranks) + " ranks (" + launch.evidence + "), but " +
                          version_ + " sees a world of " + std::to_string(ranks_) + " (" + path.string() +
                          "): start the program with the mpirun of " + version_ + ", or unset HALOCLINE_MPI");
    }
    // Started by another launcher, the ranks are N worlds of one rank each.
    if (!launch.communicator || launch.title.empty() || module_->started_ranks() != 1) return;
    const auto started = mpi_launch_from_environment();
    const char* const by_us = std::getenv(launch::ranks_variable);
    if (!started && by_us != nullptr && std::string_view(by_us) != "1") {
        throw input_error(std::string("MPI: halocline-run started ") + by_us + " ranks (" + launch::ranks_variable +
                          "), but " + launch.evidence + ", which sees a world of 1: start it with the mpirun of " +
                          version_ + ", or make the job by job::from_environment()");
    }
    if (started && started->ranks > 1 && !started->title.empty() && started->title != launch.title) {
        throw input_error("MPI: the launcher is " + started->title + "'s and started " +
                          std::to_string(started->ranks) + " ranks (" + started->evidence + "), but " +
                          launch.evidence + ", which sees a world of 1: start it with the mpirun of " + version_);
    }
}

mpi_world::~mpi_world() {
    close_ends();
    // Not clean if windows are left: under MPICH, later jobs would stand still (docs/decisions/0005).
    module_->close(world_, clean_ && windows_.empty() ? 1 : 0, given_up_ ? 1 : 0);
}

std::string mpi_world::describe(int code) const {
    if (code == HALOCLINE_MPI_TRUNCATED) return version_ + ": a message was longer than planned";
    if (code == HALOCLINE_MPI_LEFT)
        return version_ +
               " is not called any more: the job has failed, MPI_Finalize was called, or a large message was "
               "given up half-way";
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
    carried_exception carried(check);
    int code = module_->allgather(world_, &own, eight.data(), bytes.data(), carried_exception::give_up, &carried);
    carried.rethrow();
    require(code, "gathering sizes");

    std::string all(std::reduce(bytes.begin(), bytes.end()), '\0');
    code = module_->allgather(world_, mine.data(), bytes.data(), all.data(), carried_exception::give_up, &carried);
    carried.rethrow();
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

void mpi_world::leave() const noexcept { module_->leave(world_); }

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
    // So that giving a tag back never allocates.
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
    std::map<std::uint64_t, int> closed; // number -> ranks on which it is closed
    for (const std::string& bytes : allgather(mine.take(), check)) {
        wire_reader reader(bytes);
        count = std::max(count, reader.number<std::size_t>());
        while (!reader.empty()) ++closed[reader.number<std::uint64_t>()];
    }
    for (auto w = windows_.begin(); w != windows_.end();) {
        if (closed[(*w)->number] != ranks_) {
            ++w;
            continue;
        }
        const blocking_call call(doing_, -1);
        require(module_->windows_free((*w)->handle), "freeing windows");
        w = windows_.erase(w);
    }
    if (count == 0) return nullptr;

    std::vector<void*> places(2 * count, nullptr);
    std::vector<std::uint64_t> bytes(count, 0);
    for (std::size_t i = 0; i < slots.size(); ++i) {
        std::ranges::copy(slots[i].slot, places.begin() + static_cast<std::ptrdiff_t>(2 * i));
        bytes[i] = slots[i].bytes;
    }
    auto made = std::make_shared<mpi_windows>(mpi_windows{nullptr, plans_exposed_++, slots.size()});
    const blocking_call call(doing_, -1);
    const int code = module_->windows_open(world_, static_cast<int>(count), places.data(), bytes.data(), &made->handle);
    if (code != HALOCLINE_MPI_OK) { // MPI may have some of them
        clean_ = false;
        holds_memory_ = true;
    }
    require(code, "making windows (MPI_Win_create)");
    return windows_.emplace_back(std::move(made));
}

void mpi_world::return_tag(int tag) noexcept { free_tags_.push_back(tag); }

} // namespace halocline::comm
