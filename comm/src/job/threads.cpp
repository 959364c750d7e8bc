// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process: the same slabs, channels and failure records; peers use the owner's mapping.
#include "job_core.hpp"
#include "measure/measure_at_start.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/processors.hpp>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

namespace halocline::comm {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr int threads_of_sanitizer = 1;
#else
constexpr int threads_of_sanitizer = 0;
#endif

/// What the rank-threads share.
struct thread_world {
    explicit thread_world(int ranks) : mailbox(static_cast<std::size_t>(ranks)), left(static_cast<std::size_t>(ranks)) {
        for (auto& box : mailbox) box.from.resize(static_cast<std::size_t>(ranks));
    }
    struct mailbox_of {
        std::mutex mutex;
        std::condition_variable came;
        std::vector<std::deque<std::string>> from; // by sender
        std::deque<letter> letters;
    };
    std::deque<mailbox_of> mailbox; // by receiver; a deque because boxes can't be moved
    std::deque<std::atomic<bool>> left;
    std::vector<std::shared_ptr<node_slab>> slabs;
    int threads = 0; // job_core::known_threads
};

class thread_plane final : public pairwise_mail, public liveness {
  public:
    thread_plane(std::shared_ptr<thread_world> world, job_core& core)
        : pairwise_mail(core.rank, core.ranks), world_(std::move(world)), core_(core) {}
    ~thread_plane() override { world_->left[rank_].store(true, std::memory_order_release); }

    void send_letter(int peer, std::string_view text) override {
        auto& box = world_->mailbox[peer];
        const std::lock_guard lock(box.mutex);
        box.letters.push_back({rank_, std::string(text)});
    }
    std::optional<letter> take_letter() override {
        auto& box = world_->mailbox[rank_];
        const std::lock_guard lock(box.mutex);
        if (box.letters.empty()) return std::nullopt;
        std::optional<letter> first = std::move(box.letters.front());
        box.letters.pop_front();
        return first;
    }
    void look() noexcept override {} // threads of one process die together
    [[nodiscard]] bool left(int r) const noexcept override { return world_->left[r].load(std::memory_order_acquire); }

  protected:
    std::vector<std::string> transfer(std::span<const int> to, std::span<const std::string> out,
                                      std::span<const int> from, std::string_view operation) override {
        for (std::size_t i = 0; i < to.size(); ++i) {
            auto& box = world_->mailbox[to[i]];
            const std::lock_guard lock(box.mutex);
            box.from[rank_].push_back(out[i]);
            box.came.notify_one();
        }
        std::vector<std::string> in;
        const awaiting_scope waits(core_);
        auto& box = world_->mailbox[rank_];
        std::unique_lock lock(box.mutex);
        const std::uint64_t since = ticks();
        for (const int peer : from) {
            auto& queue = box.from[peer];
            while (queue.empty()) {
                const bool gone = left(peer); // under the lock: anything it sent before leaving would be in the queue
                lock.unlock();
                core_.awaits(peer);
                core_.check_or_raise(peer, since, operation, gone);
                lock.lock();
                if (queue.empty()) box.came.wait_for(lock, std::chrono::milliseconds(20));
            }
            in.push_back(std::move(queue.front()));
            queue.pop_front();
        }
        return in;
    }

  private:
    std::shared_ptr<thread_world> world_;
    job_core& core_;
};

/// This thread's job, as rank r on `processor` (job_core::processor), under `quota`.
job join_threads(const std::shared_ptr<thread_world>& world, int r, int processor,
                 const std::optional<exceeded_quota>& quota, int ranks, const job_options& options) {
    auto core = std::make_shared<job_core>(r, ranks, options, "threads", world->slabs[r]);
    for (int p = 0; p < ranks; ++p) {
        core->peer_base[p] = world->slabs[p]->base();
        core->members[p].pid = core->members[r].pid;
        core->members[p].host = core->members[r].host;
    }
    core->known_threads = world->threads;
    core->processor = processor;
    core->spin = {options, core->processor >= 0, quota};
    auto plane = std::make_unique<thread_plane>(world, *core);
    core->setup_mail = plane.get();
    core->alive = std::move(plane);
    const std::vector<std::string> why_not(static_cast<std::size_t>(ranks), "the ranks are threads of one process");
    core->choose_transports({{}, {{"verbs", why_not}, {"ofi", why_not}}});
    core->compare_transports();
    job j(std::move(core));
    measure_at_start(j);
    return j;
}

/// Throws what went wrong, if anything did: the cause in preference to its consequences, the rank failures through
/// which other ranks noticed it.
void throw_cause(const std::vector<std::exception_ptr>& errors) {
    std::exception_ptr first;
    for (const std::exception_ptr& e : errors) {
        if (!e) continue;
        try {
            std::rethrow_exception(e);
        } catch (const rank_failure&) {
            if (!first) first = e;
        } catch (...) {
            std::rethrow_exception(e);
        }
    }
    if (first) std::rethrow_exception(first);
}

} // namespace

void run_threads(int ranks, const std::function<void(const job&)>& body, const job_options& options) {
    if (ranks < 1) throw input_error("run_threads: " + std::to_string(ranks) + " ranks; at least 1 is needed");
    check_transport_names(options.transports, false, ranks);
    const auto world = std::make_shared<thread_world>(ranks);
    for (int r = 0; r < ranks; ++r) world->slabs.push_back(std::make_shared<node_slab>(options.slab_bytes));

    const processor_share each{usable_processors(), processor_quotas(), threads_per_rank()};
    const std::vector<int> given = one_processor_each({static_cast<std::size_t>(ranks), each.processors});
    const auto quotas = exceeded_quotas(std::vector(static_cast<std::size_t>(ranks), each));
    world->threads = ranks + threads_of_sanitizer;
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
    const auto run = [&](int r) {
        try {
            const auto own = static_cast<std::size_t>(r);
            const job j = join_threads(world, r, given[own], quotas[own], ranks, options);
            try {
                body(j);
            } catch (const std::exception& e) {
                errors[r] = std::current_exception();
                j.abort(e.what());
            } catch (...) {
                errors[r] = std::current_exception();
                j.abort("an exception of unknown type");
            }
        } catch (...) {
            errors[r] = std::current_exception();
        }
    };
    std::vector<std::jthread> threads;
    for (int r = 1; r < ranks; ++r) {
        try {
            threads.emplace_back(run, r);
        } catch (const std::system_error& e) {
            for (int missing = r; missing <= ranks; ++missing) world->left[missing % ranks] = true; // rank 0, too
            threads.clear();                                                                        // joins them
            throw error("no thread for rank " + std::to_string(r) + " of " + std::to_string(ranks) + ": " + e.what() +
                        "; raise 'ulimit -u' or 'ulimit -v', or start fewer ranks");
        }
    }
    run(0);
    threads.clear();
    throw_cause(errors);
}

} // namespace halocline::comm
