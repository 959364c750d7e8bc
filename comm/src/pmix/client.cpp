// SPDX-License-Identifier: Apache-2.0
// A job under a launcher that speaks PMIx (Open MPI's mpirun, PRRTE, Slurm), without any MPI: rank, size and the first
// gathers come from the launcher's own server. libpmix is loaded at run time (decision 0014).
#include "job/bootstrap.hpp"
#include "network/loaded_functions.hpp"

#include <halocline/comm/bad_input.hpp>
#include <halocline/comm/detail/launch.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <pmix.h>
#include <unistd.h>

namespace halocline::comm {
namespace {

/// Called by PMIx when its server is gone. A killed launcher ends nobody: without this its ranks would run forever.
void end_without_launcher(std::size_t, pmix_status_t, const pmix_proc_t*, pmix_info_t*, std::size_t, pmix_info_t*,
                          std::size_t, pmix_event_notification_cbfunc_fn_t, void*) {
    constexpr std::string_view words = "halocline: the launcher of this job has ended (its PMIx server is gone)\n";
    [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, words.data(), words.size());
    _exit(launch::job_ended);
}

/// The library and this process's place in its namespace. PMIx allows one client per process: made once, left at exit.
class client {
  public:
    client() {
        std::string why_not;
        loaded_functions from("libpmix.so.2", why_not);
        from.find(init_, "PMIx_Init");
        from.find(finalize_, "PMIx_Finalize");
        from.find(put_, "PMIx_Put");
        from.find(commit_, "PMIx_Commit");
        from.find(fence_nb_, "PMIx_Fence_nb");
        from.find(get_, "PMIx_Get");
        from.find(on_event_, "PMIx_Register_event_handler");
        from.find(error_string_, "PMIx_Error_string");
        from.find(version_, "PMIx_Get_version");
        if (!why_not.empty()) throw input_error("bootstrap 'pmix': " + why_not);
        require(init_(&self_, nullptr, 0), "PMIx_Init");
        pmix_status_t lost = PMIX_ERR_LOST_CONNECTION;
        const pmix_status_t handler = on_event_(&lost, 1, nullptr, 0, end_without_launcher, nullptr, nullptr);
        require(std::min(handler, PMIX_SUCCESS), "PMIx_Register_event_handler"); // a positive result is its number
        ranks_ = static_cast<int>(job_size());
    }
    ~client() {
        // Otherwise the launcher takes the end of this process for a failure. In a child of fork() it would wait for
        // threads that only its parent has.
        if (getpid() == pid_) finalize_(nullptr, 0);
    }
    client(const client&) = delete;
    client& operator=(const client&) = delete;

    [[nodiscard]] int rank() const { return static_cast<int>(self_.rank); }
    [[nodiscard]] int ranks() const { return ranks_; }
    /// "OpenPMIx 4.2.2"
    [[nodiscard]] std::string version() const {
        const std::string all = version_();
        return all.substr(0, std::min(all.find(','), all.find(" (")));
    }

    /// Err: rank_failure at the deadline; unshared_input_error if a rank has joined in another way.
    std::vector<std::string> gather(std::string_view mine, std::chrono::milliseconds deadline) {
        const std::string key = "halocline." + std::to_string(++gathers_);
        pmix_value_t value{};
        value.type = PMIX_BYTE_OBJECT;
        value.data.bo.bytes = const_cast<char*>(mine.data()); // copied, not changed
        value.data.bo.size = mine.size();
        require(put_(PMIX_GLOBAL, key.c_str(), &value), "PMIx_Put");
        require(commit_(), "PMIx_Commit");
        fence(key, deadline);
        std::vector<std::string> all;
        for (int r = 0; r < ranks_; ++r) {
            auto bytes = bytes_of(r, key);
            if (!bytes) refuse_other_ways(r > 0 ? 0 : first_with(key), r);
            all.push_back(std::move(*bytes));
        }
        return all;
    }

  private:
    struct fence_state {
        std::mutex mutex;
        std::condition_variable done;
        bool over = false;
        pmix_status_t result = PMIX_SUCCESS;
    };

    void require(pmix_status_t code, const char* what) const {
        if (code != PMIX_SUCCESS) throw job_error(std::string(what) + ": " + error_string_(code));
    }

    [[nodiscard]] pmix_proc_t process(pmix_rank_t rank) const {
        pmix_proc_t p{};
        std::memcpy(p.nspace, self_.nspace, sizeof p.nspace);
        p.rank = rank;
        return p;
    }

    std::uint32_t job_size() {
        const pmix_proc_t all = process(PMIX_RANK_WILDCARD);
        pmix_value_t* value = nullptr;
        require(get_(&all, PMIX_JOB_SIZE, nullptr, 0, &value), "PMIx_Get of the number of ranks");
        const std::uint32_t size = value->data.uint32;
        std::free(value); // PMIx returns memory from malloc
        return size;
    }

    /// What a rank has put under `key`. nullopt if it is not there, for a rank of another node within a second.
    std::optional<std::string> bytes_of(int rank, const std::string& key) {
        pmix_info_t timeout{};
        std::strncpy(timeout.key, PMIX_TIMEOUT, sizeof timeout.key - 1);
        timeout.value.type = PMIX_INT;
        timeout.value.data.integer = 1; // seconds
        const pmix_proc_t who = process(static_cast<pmix_rank_t>(rank));
        pmix_value_t* value = nullptr;
        if (get_(&who, key.c_str(), &timeout, 1, &value) != PMIX_SUCCESS) return std::nullopt;
        std::string bytes(value->data.bo.bytes, value->data.bo.size);
        std::free(value->data.bo.bytes);
        std::free(value);
        return bytes;
    }

    /// The first rank that has put something under `key`, at most this one.
    int first_with(const std::string& key) {
        int r = 0;
        while (r < rank() && !bytes_of(r, key)) ++r;
        return r;
    }

    /// A rank came to the server's fence, perhaps to that of MPI_Init, but put nothing there, so no rank can tell all
    /// others. The first of those that did reports it for all: the launcher then ends the job.
    [[noreturn]] void refuse_other_ways(int joined, int other) const {
        if (rank() != joined) wait_for_rank_0_to_report();
        throw unshared_input_error(
            "ranks disagree on how they join the job: rank " + std::to_string(joined) + " does through " + version() +
            ", since its [comm] transports have no 'mpi', and rank " + std::to_string(other) +
            " does not: its transports have 'mpi', or its [comm] bootstrap is another, or it is no program of "
            "halocline; give every rank the same, in the program, in the file of $HALOCLINE_CONFIG (has every host the "
            "same one?) and in HALOCLINE_COMM_...");
    }

    /// ", missing: rank 1, rank 4,": the ranks whose part of this gather the server lacks; "" if it does not say. For
    /// ranks of other nodes their servers are asked; a rank may also have arrived after the deadline.
    std::string missing(const std::string& key) {
        constexpr int most_named = 4; // each may take a second
        std::string names;
        for (int r = 0, named = 0; r < ranks_ && named < most_named; ++r) {
            if (r == rank() || bytes_of(r, key)) continue;
            names += (names.empty() ? ", missing: rank " : ", rank ") + std::to_string(r);
            if (++named == most_named) names += ", perhaps more";
        }
        return names.empty() ? names : names + ",";
    }

    /// Waits for every rank, and fetches their data, by `key`.
    void fence(const std::string& key, std::chrono::milliseconds deadline) {
        pmix_info_t collect{};
        std::strncpy(collect.key, PMIX_COLLECT_DATA, sizeof collect.key - 1);
        collect.value.type = PMIX_BOOL;
        collect.value.data.flag = true;
        // Shared with the callback, which may run after the deadline.
        auto state = std::make_shared<fence_state>();
        auto* const for_callback = new std::shared_ptr<fence_state>(state);
        const auto finished = [](pmix_status_t result, void* data) {
            const std::unique_ptr<std::shared_ptr<fence_state>> owner(static_cast<std::shared_ptr<fence_state>*>(data));
            fence_state& s = **owner;
            const std::lock_guard lock(s.mutex);
            s.result = result;
            s.over = true;
            s.done.notify_one();
        };
        const pmix_status_t begun = fence_nb_(nullptr, 0, &collect, 1, finished, for_callback);
        if (begun != PMIX_SUCCESS) delete for_callback; // the callback will not be called
        if (begun == PMIX_OPERATION_SUCCEEDED) return;
        require(begun, "PMIx_Fence_nb");
        std::unique_lock lock(state->mutex);
        if (!state->done.wait_for(lock, deadline, [&] { return state->over; })) {
            lock.unlock(); // the callback runs in a thread that also serves missing()
            throw rank_failure("rank " + std::to_string(rank()) + " (pid " + std::to_string(getpid()) +
                                   "): not every rank came within " + std::to_string(deadline.count()) + " ms" +
                                   missing(key) + " while this rank waited for every rank to join the job",
                               status::timed_out, -1, 0, {}, "every rank to join the job");
        }
        require(state->result, "PMIx_Fence");
    }

    decltype(&::PMIx_Init) init_ = nullptr;
    decltype(&::PMIx_Finalize) finalize_ = nullptr;
    decltype(&::PMIx_Put) put_ = nullptr;
    decltype(&::PMIx_Commit) commit_ = nullptr;
    decltype(&::PMIx_Fence_nb) fence_nb_ = nullptr;
    decltype(&::PMIx_Get) get_ = nullptr;
    decltype(&::PMIx_Register_event_handler) on_event_ = nullptr;
    decltype(&::PMIx_Error_string) error_string_ = nullptr;
    decltype(&::PMIx_Get_version) version_ = nullptr;
    pmix_proc_t self_{};
    pid_t pid_ = getpid();
    int ranks_ = 0;
    int gathers_ = 0;
};

} // namespace

bool pmix_is_built() { return true; }

std::optional<bootstrap> pmix_bootstrap(const job_options& options) {
    if (std::getenv("PMIX_RANK") == nullptr || std::getenv("PMIX_NAMESPACE") == nullptr) return std::nullopt;
    static client of_process;
    bootstrap start;
    start.rank = of_process.rank();
    start.ranks = of_process.ranks();
    start.launcher = of_process.version();
    start.gather = [deadline = options.deadline](std::string_view mine) { return of_process.gather(mine, deadline); };
    return start;
}

} // namespace halocline::comm
