// SPDX-License-Identifier: Apache-2.0
// The world of the MPI that started this process (or a communicator of the program), as set-up and channels see it.
#pragma once

#include "end.hpp"
#include "job/activity.hpp"
#include "library.hpp"

#include <halocline/comm/job.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halocline::comm {

/// The windows of a plan, in one-sided mode.
struct mpi_windows {
    halocline_mpi_windows* handle = nullptr;
    std::uint64_t number = 0; ///< the plan's, the same on every rank
    std::size_t channels = 0; ///< still using them on this rank
};

/// The memory of one window pair: the two slots of a channel.
struct mpi_slots {
    std::array<std::byte*, 2> slot{};
    std::size_t bytes = 0;
};

/// The network_world of MPI, through a loaded module (network/network_world.hpp). It can't be moved, because channels
/// point to it.
class mpi_world {
  public:
    /// Called while something waits; it may throw, which ends the wait.
    using progress = std::function<void()>;

    /// Loads the module and joins its world, or the given communicator. Collective over its ranks.
    /// Err: input_error: no such module, another ABI, the launcher started several ranks but this MPI sees only one, or
    ///      MPI forbids this thread to call it.
    explicit mpi_world(const mpi_launch& launch, const progress& check = {});
    ~mpi_world();
    mpi_world(const mpi_world&) = delete;
    mpi_world& operator=(const mpi_world&) = delete;

    /// How plans' channels are made from now on.
    void use(mpi_mode mode) { mode_ = mode; }
    [[nodiscard]] mpi_mode mode() const { return mode_; }
    /// Sets where one-sided calls that block in MPI are recorded; nullptr: nowhere.
    void tell_calls(activity* doing) { doing_ = doing; }

    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] int ranks() const { return ranks_; }
    /// May any thread of this rank use it, one at a time? If not, only the thread that initialised MPI.
    [[nodiscard]] bool may_call() const { return module_->may_call() != 0; }
    /// "Open MPI 4.1.4"
    [[nodiscard]] const std::string& version() const { return version_; }

    /// Bytes of every rank, by rank. Collective.  Err: what `check` throws; job_error if MPI fails.
    [[nodiscard]] std::vector<std::string> allgather(std::string_view mine, const progress& check) const;
    /// Advances started sends and farewells while the rank waits for something other than MPI.
    void poll() noexcept;
    /// The job failed: from now on no MPI call is made for it, not even MPI_Finalize, so that this process can end
    /// although others are dead. Any thread may call this, even while others are in calls.
    void leave() const noexcept;
    /// Only this rank has failed. Its program may end while the others continue; MPI_Finalize would wait for them.
    void give_up() noexcept { given_up_ = true; }

    /// A tag for messages to this rank, used by no live channel of this world.  Err: job_error if MPI has no more.
    [[nodiscard]] int take_tag();
    void return_tag(int tag) noexcept;

    /// Numbers the channels of a plan: 0, 1, ...
    [[nodiscard]] int next_window(std::uint32_t plan_id) {
        if (std::exchange(window_plan_, plan_id) != plan_id) next_window_ = 0;
        return next_window_++;
    }
    /// Windows over the slots of a plan's channels on every rank; frees those of plans that are closed on all ranks.
    /// Collective.  Err: what `check` throws; job_error.
    [[nodiscard]] std::shared_ptr<mpi_windows> expose(std::span<const mpi_slots> slots, const progress& check);

    /// An end with memory and a tag for what the peer will send here.  Err: job_error; what `memory` throws.
    [[nodiscard]] mpi_end& open(std::pmr::memory_resource& memory, int peer, std::uint32_t plan_id,
                                std::size_t send_bytes, std::size_t receive_bytes);
    /// card(): an end's part of its channel's card; connect(): makes its requests and posts the first receive.  Err:
    /// job_error.
    [[nodiscard]] std::string card(const mpi_end& end) const;
    void connect(mpi_end& end, const std::string& peer_card);
    static void greet(mpi_end&) noexcept {}
    /// Sends the first `bytes` of the message of that epoch.  Pre: the previous one is sent, and the peer's has
    /// arrived.
    void send(mpi_end& end, std::uint64_t epoch, std::size_t bytes) noexcept;
    /// Tests the receive and the send that are under way.
    void poll(mpi_end& end) noexcept;
    void say_farewell(mpi_end& end) noexcept;
    /// The channel is gone: its end is destroyed when the peer has said farewell, or with the world.
    void release(mpi_end& end) noexcept;
    /// Receives the farewells of peers whose ends were closed here: until there are no more, `give_up` says so, or 2
    /// seconds have passed; at its end MPI would complain about unreceived messages, or hang. Then closes all ends,
    /// which may block if one-sided, so it happens while the rank named by tell_calls() is watched. Leaves MPI if
    /// `give_up` says so.
    /// Pre: all ends were released.
    void finish(const std::function<bool()>& give_up) noexcept;
    /// Whether MPI may, in any later call, still read or write the memory of a closed end, which must stay mapped then.
    [[nodiscard]] bool holds_memory() const { return holds_memory_; }

    [[nodiscard]] const halocline_mpi_module& module() const { return *module_; }
    [[nodiscard]] halocline_mpi_world* handle() const { return world_; }
    /// MPI's text for an error code.
    [[nodiscard]] std::string describe(int code) const;
    [[nodiscard]] std::string describe(const mpi_end& end) const;

  private:
    /// `code`: of the module's open(); `path`: the module's.  Err: input_error, job_error.
    void require_opened(int code, const mpi_launch& launch, const std::filesystem::path& path) const;
    /// Err: input_error: the launcher started several ranks, but this MPI sees only one.
    void check_world_size(const mpi_launch& launch, const std::filesystem::path& path) const;
    bool post(mpi_end& end, std::uint64_t epoch) noexcept;
    bool closed(mpi_end& end) noexcept;
    void close_end(mpi_end& end) noexcept;
    void close_ends() noexcept;
    static void fail(mpi_end& end, int code) noexcept;
    void sweep() noexcept;
    void require(int code, std::string_view call) const;

    const halocline_mpi_module* module_ = nullptr;
    halocline_mpi_world* world_ = nullptr;
    std::string version_;
    int rank_ = 0, ranks_ = 1;
    mpi_mode mode_ = mpi_mode::two_sided;
    bool clean_ = true; // so far no end was closed with something under way, or that may have been to come
    bool given_up_ = false, holds_memory_ = false;
    activity* doing_ = nullptr;
    int next_tag_ = 0, next_window_ = 0;
    std::uint32_t window_plan_ = 0;
    std::uint64_t plans_exposed_ = 0;
    std::vector<std::shared_ptr<mpi_windows>> windows_;
    std::vector<int> free_tags_;
    std::vector<std::unique_ptr<mpi_end>> ends_;
};

} // namespace halocline::comm
