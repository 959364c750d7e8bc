// SPDX-License-Identifier: Apache-2.0
// All channels of one plan or sum, in lanes: one for each transport and kind of channel, so that all channels of a lane
// are of one class. Which lane a channel belongs to is data, fixed at set-up; the loops over a lane are concrete code
// (no virtual call, no switch per message).
//
// The contract (docs/architecture.md, "the life of one exchange"): a channel joins one end here with one end at a peer,
// both directions. In epoch k = 1, 2, … this rank fills target(k), calls send(k), and may read received(k) once
// arrived(k). Two slots per direction: k + 1 may be sent as soon as the peer's k has arrived here, because the peer
// sent its k only after it was done with the k - 1 that slot k + 1 reuses.
#pragma once

#include <halocline/comm/detail/channel_kind.hpp>
#include <halocline/comm/detail/direct_channel.hpp>
#include <halocline/comm/detail/direct_memory.hpp>
#include <halocline/comm/detail/joint_channel.hpp>
#include <halocline/comm/detail/mock_channel.hpp>
#include <halocline/comm/detail/mpi_channel.hpp>
#include <halocline/comm/detail/network_direct_channel.hpp>
#include <halocline/comm/detail/ofi_channel.hpp>
#include <halocline/comm/detail/pause.hpp>
#include <halocline/comm/detail/self_channel.hpp>
#include <halocline/comm/detail/shm_channel.hpp>
#include <halocline/comm/detail/thread_mark.hpp>
#include <halocline/comm/detail/verbs_channel.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/comm/transport_counts.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace halocline::comm {

/// Request for one end of a channel. The two ends must match: each one's send_bytes is the other's receive_bytes.
struct channel_request {
    int peer = 0;
    std::uint32_t key = 0;                   ///< names this end; unique among this rank's ends in the set
    std::uint32_t peer_key = 0;              ///< names the other end, at the peer
    std::size_t send_bytes = 0;              ///< payload per message
    std::size_t receive_bytes = 0;           ///< payload per message
    std::string label;                       ///< in error messages, e.g. "t-high"
    channel_kind kind = channel_kind::slots; ///< the same at both ends; direct ones only if direct_obstacle() is empty
    std::string note{};                      ///< for the other end, which gets it from channel_set::take_note()
    // Only for a direct channel over a network.
    std::vector<direct_write> writes{}; ///< the writes that make up one message
    std::shared_ptr<const direct_memory> fields{};
};

struct channel_set_options {
    std::string name;  ///< the plan's name, in error messages
    std::string shape; ///< anything else that both ends must agree on; compared as text
    /// Slab memory that peers of this node write through direct channels. If it is freed before they have said
    /// farewell, the slab holds on to it until they have.
    std::vector<const void*> written_by_peers{};
};

class channel_set {
  public:
    channel_set() = default;
    /// Collective over the whole job (each rank passes its own requests, possibly none).
    /// Err: input_error on every rank naming both ranks and both values if ends disagree; slab_full; job_error.
    /// Cost: O(own requests) messages and memory, and one job-wide error decision.
    channel_set(const job& j, std::span<const channel_request> requests, const channel_set_options& options);
    channel_set(channel_set&& other) noexcept;
    channel_set& operator=(channel_set&& other) noexcept;
    /// Says farewell to the peers without waiting for theirs: the memory is parked until those have arrived. A peer
    /// that still waits for an epoch from this rank gets status::aborted.
    ~channel_set();

    /// Whether send() calls a network's library, as any wait of this rank may: then one thread makes all these calls,
    /// or they are made one after the other.
    [[nodiscard]] bool over_network() const noexcept;
    /// Whether this thread may call MPI, if channels use it. False if another thread initialised it, with less than
    /// MPI_THREAD_SERIALIZED.  Cost: nothing without such channels, otherwise a call of MPI.
    [[nodiscard]] bool may_call_mpi() const noexcept {
        return std::get<std::vector<mpi_channel>>(lanes_).empty() || may_call_its_mpi();
    }

    // Visiting.
    /// Calls visit(channel) for each channel whose messages all lie in slots, lane by lane. channel.index() is the
    /// position of its request.
    template <class Visit>
    void for_each(Visit&& visit) noexcept {
        for_each_lane([&]<class C>(std::vector<C>& lane) { visit_if<channel<C>>(lane, visit); });
    }
    template <class Visit>
    void for_each(Visit&& visit) const noexcept {
        for_each_lane([&]<class C>(const std::vector<C>& lane) { visit_if<channel<C>>(lane, visit); });
    }
    /// for_each() over the direct channels within the node.
    template <class Visit>
    void for_each_direct(Visit&& visit) noexcept {
        for_each_lane([&]<class C>(std::vector<C>& lane) { visit_if<direct_channel<C>>(lane, visit); });
    }
    template <class Visit>
    void for_each_direct(Visit&& visit) const noexcept {
        for_each_lane([&]<class C>(const std::vector<C>& lane) { visit_if<direct_channel<C>>(lane, visit); });
    }
    /// for_each() over the direct channels across networks, whose devices write.
    template <class Visit>
    void for_each_rdma(Visit&& visit) noexcept {
        for_each_lane([&]<class C>(std::vector<C>& lane) { visit_if<rdma_channel<C>>(lane, visit); });
    }
    template <class Visit>
    void for_each_rdma(Visit&& visit) const noexcept {
        for_each_lane([&]<class C>(const std::vector<C>& lane) { visit_if<rdma_channel<C>>(lane, visit); });
    }

    // One epoch: preparing it, and waiting for it.
    /// Prefetches the control lines that send(epoch) will write at the peers, while the messages are filled. A hint:
    /// call it before the first message is filled, or not at all.
    void prepare(std::uint64_t epoch) noexcept {
        for_each_lane([&]<class C>(std::vector<C>& lane) {
            if constexpr (requires(C & c) { c.prepare(epoch); })
                for (C& c : lane) c.prepare(epoch);
        });
    }
    /// Waits until every channel's epoch k has arrived and every send of k is done (its target may be reused).
    /// noexcept, no allocation, and no lock but that of the look for deaths, beyond the spin budget. Within that a wait
    /// on self and shm makes no system call; in a job with peers over ofi or mpi that holds for the first 10 us, after
    /// which these are polled as well.
    [[nodiscard]] status wait(std::uint64_t epoch) noexcept { return wait(epoch, nullptr, nullptr); }
    /// wait() that calls step() before each poll, for work that belongs to the wait, such as copies to fields that
    /// peers have freed. A step that returns a bad status ends the wait with that status.  Pre: step is noexcept.
    template <class Step>
    [[nodiscard]] status wait(std::uint64_t epoch, Step&& step) noexcept {
        return wait(epoch, &step, [](void* s) {
            auto& f = *static_cast<std::remove_reference_t<Step>*>(s);
            if constexpr (std::is_void_v<decltype(f())>) {
                f();
                return status::ok;
            } else {
                return f();
            }
        });
    }
    /// Polls met() for about a microsecond and returns whether it became true. Does nothing else meanwhile, so it suits
    /// what peers on this host are about to do; wait() is for anything longer.
    template <class Condition>
    [[nodiscard]] bool spin(Condition&& met) const noexcept {
        for (int polls = short_spin_; !met(); --polls) {
            if (polls <= 0) return false;
            pause();
        }
        return true;
    }
    /// From now on every wait of this rank, on whatever object, also calls step(object), because a peer may be waiting
    /// for what step does: once in so many polls while the wait spins, after that between any two.
    /// Pre: step is noexcept and never waits; no wait of this rank is in progress; polls > 0.
    void work_in_every_wait(void* object, void (*step)(void* object), std::uint32_t polls = 1);
    /// From now on a wait for an epoch of this set ends the job, with an error that names both, once it is certain that
    /// a peer on this host waits for an epoch of another such set, and that each rank has not begun what the other
    /// waits for. Sets of one owner are not compared. Ranks that are found to have several such threads are left alone.
    /// begun(owner): the epoch of this set that this rank has begun last; ~0: this set is not to be told.
    /// Pre: epochs are begun only in calls of the program, never in the work of a wait, and after note_thread().
    /// Cost: nothing until a wait has lasted for some milliseconds.
    void find_crossed_waits(const void* owner, std::uint64_t (*begun)(const void* owner));
    /// This thread is about to begin an epoch (find_crossed_waits()).  Cost: below a nanosecond.
    void note_thread() noexcept {
        if (noted_thread_ != nullptr && noted_thread_->load(std::memory_order_relaxed) != thread_mark())
            note_other_thread();
    }
    /// True if wait(epoch) would return at once, which includes, after a while, that a rank has died. While it is false
    /// each call also does the work of every wait (work_in_every_wait()), so a loop around it advances the rank's other
    /// exchanges too.
    [[nodiscard]] bool test(std::uint64_t epoch) noexcept;
    /// test() of this set alone, for the step() of work_in_every_wait().
    [[nodiscard]] bool has_arrived(std::uint64_t epoch) noexcept;
    /// Call this when has_arrived() was false: does the work of every wait, and yields the core if ranks share it.
    void give_way() noexcept;
    /// True if all of an epoch is here or arrives within about a microsecond, and nothing is wrong: wait() would return
    /// ok. If false, call wait(). Polls only channels that arrive in memory, one after the other: the next message may
    /// arrive at any moment, and polling all lanes takes as long as a flag.
    [[nodiscard]] bool arrives_soon(std::uint64_t epoch) const noexcept {
        bool all = status_ == status::ok && ended_->load(std::memory_order_relaxed) == 0;
        for_each_lane([&]<class C>(const std::vector<C>& lane) {
            if constexpr (requires(const C& c) { c.arrived(epoch), c.check(epoch); })
                for (const C& c : lane)
                    all =
                        all && spin([&] { return c.arrived(epoch) && c.sent(epoch); }) && c.check(epoch) == status::ok;
            else
                all = false;
        });
        return all;
    }
    /// Says farewell now: from here on no epoch of this rank comes, and near peers begin no copy into its fields or pieces
    /// out of them. A peer that waits for such an epoch gets status::aborted. If the job has ended, far peers are left
    /// to learn that. The set stays, for reports only.
    /// Pre: nothing is freed, sent, offered or helped with afterwards.  Cost: a few stores per near peer, a message per
    /// far one; never waits, but for a rank that is just writing why the job ended.
    void leave() noexcept;
    /// The status of the first wait that failed; ok until then.
    [[nodiscard]] status state() const noexcept { return status_; }

    // Reports.
    /// Waits that yielded their core: more ranks than cores, or a late peer.
    [[nodiscard]] std::uint64_t waits_yielded() const { return waits_yielded_; }
    /// Pieces of arriving messages that this rank has copied itself (joint_channel.hpp).
    [[nodiscard]] std::uint64_t pieces_helped() const;
    [[nodiscard]] std::vector<transport_counts> counts(std::uint64_t epochs) const;
    [[nodiscard]] std::size_t size() const;
    /// Bytes of this rank's slab that the channels occupy: slots, buffers and control lines.
    [[nodiscard]] std::size_t memory_bytes() const { return memory_bytes_; }
    [[nodiscard]] const channel_request& request(std::size_t index) const { return requests_[index]; }
    /// The note of the request at the other end of that channel. Only once: it is not kept.
    [[nodiscard]] std::string take_note(std::size_t index) { return std::exchange(requests_[index].note, {}); }
    /// What the last failed wait was waiting for: "'coarse' epoch 17: t-low from rank 3 over shm".
    [[nodiscard]] std::string pending(std::uint64_t epoch) const;

  private:
    static constexpr int nobody = -1;
    void note_other_thread() noexcept;
    status wait(std::uint64_t epoch, void* object, status (*step)(void* object)) noexcept;
    /// A peer whose message of this epoch has not arrived, or to which ours has not been sent yet; nobody if there is
    /// none.
    [[nodiscard]] int missing(std::uint64_t epoch) noexcept;
    void close() noexcept;
    /// Says farewell to near peers, unless they have heard it, and to far ones if `far`.
    void say_farewell(bool far) noexcept;
    [[nodiscard]] bool may_call_its_mpi() const noexcept;
    /// Checks the message of an epoch that has arrived; a bad result becomes the state of the set.
    template <class Channel>
    void check_arrived(Channel& c, std::uint64_t epoch) noexcept;
    template <bool Wanted, class Lane, class Visit>
    static void visit_if(Lane& lane, Visit& visit) noexcept {
        if constexpr (Wanted)
            for (auto& c : lane) visit(c);
    }
    /// Calls visit(lane) for each lane that has channels, and looks at no lane after the last of them.
    template <class Visit>
    void for_each_lane(Visit&& visit) {
        visit_lanes(lanes_, visit, lanes_used_);
    }
    template <class Visit>
    void for_each_lane(Visit&& visit) const {
        visit_lanes(lanes_, visit, lanes_used_);
    }
    template <class Lanes, class Visit>
    static void visit_lanes(Lanes& lanes, Visit& visit, int left) {
        const auto visit_one = [&](auto& lane) {
            if (lane.empty()) return;
            visit(lane);
            --left;
        };
        std::apply([&](auto&... lane) { (void)((left > 0 && (visit_one(lane), true)) && ...); }, lanes);
    }

    // First those whose messages are quickest, so that the lanes before them cost least in proportion.
    std::tuple<std::vector<mock_channel>, std::vector<self_channel>, std::vector<shm_channel>,
               std::vector<self_direct_channel>, std::vector<shm_direct_channel>, std::vector<shm_joint_channel>,
               std::vector<shm_joint_direct_channel>, std::vector<shm_slotted_channel>, std::vector<verbs_channel>,
               std::vector<ofi_channel>, std::vector<mpi_channel>, std::vector<verbs_direct_channel>,
               std::vector<ofi_direct_channel>>
        lanes_;
    int lanes_used_ = 0; // that have channels
    std::vector<channel_request> requests_;
    channel_set_options options_;
    std::shared_ptr<job_core> core_;
    std::byte* block_ = nullptr; // control lines and slots of the self and shm lanes, in this rank's slab
    std::size_t block_bytes_ = 0;
    std::size_t memory_bytes_ = 0; // the block and the buffers of the other lanes
    std::uint32_t plan_id_ = 0;
    int short_spin_ = 0; // polls of spin(); 0 if a transport of this set needs calls to make progress
    const std::atomic<const void*>* noted_thread_ = nullptr; // nullptr: crossed waits are not looked for
    void* worker_ = nullptr;                                 // this set's entry in work_in_every_wait()
    std::uint64_t waits_yielded_ = 0, fruitless_tests_ = 0;
    status status_ = status::ok;
    bool left_ = false; // have near peers heard the farewell? Their memory may then be in other use
    static constexpr std::atomic<std::uint32_t> never_ended{0};
    const std::atomic<std::uint32_t>* ended_ = &never_ended; ///< not 0: the job has ended (failure_record::state)
};

/// Checks that peers name each other; an exchange between ranks that don't would hang.  Collective.
/// Err: input_error on every rank, naming two ranks.  Cost: 8 bytes per rank.
void require_mutual(const job& j, std::span<const int> peers, const std::string& name);

} // namespace halocline::comm
