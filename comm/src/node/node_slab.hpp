// SPDX-License-Identifier: Apache-2.0
// The slab of one rank, a peer's view of it, and the failure record at its start.
#pragma once

#include <halocline/comm/slab.hpp>
#include <halocline/comm/status.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace halocline::comm {

/// What ended a job.
struct end_words {
    status why = status::ok;
    std::int32_t culprit = -1;
    std::int32_t pid = 0;
    char host[64]{};
    char text[960]{}; ///< how it died, or why it gave up
};

/// The first object in each slab: what ended the job, written once by the rank that noticed it first; the rank that the
/// slab's owner waits for; and the rank that reports it as unresponsive. Changes raise layout_number
/// (job/layout_number.hpp).
struct failure_record {
    /// 0: the job goes on. 2 n - 1: writer n, from 1, is at work. 2 n: what it wrote is there, for good. If a writer
    /// does not finish, the next one writes to the other of `words`: the first may have been killed, or only delayed.
    std::atomic<std::uint32_t> state{0};
    end_words words[2]{};

    /// nullptr: the job goes on, or its end is still being written.
    [[nodiscard]] const end_words* end() const noexcept {
        const std::uint32_t s = state.load(std::memory_order_acquire);
        return s == 0 || s % 2 == 1 ? nullptr : &words[s / 2 % 2];
    }

    static constexpr std::int32_t nobody = -2; ///< -1: no rank in particular
    std::atomic<std::int32_t> awaited{nobody}; ///< the rank awaited by a wait that has lasted some time
    std::atomic<std::uint64_t> awake{0};       ///< when it last checked in, in ticks; updated while it waits

    // Which rank reports unresponsive ranks on stderr (stall_watch): written by ranks of this node; nobody: none does.
    std::atomic<std::int32_t> reported_by{nobody}; ///< the rank that reports the slab's owner
    std::atomic<std::int32_t> reports_far{nobody}; ///< the rank that reports one elsewhere; in the node's first slab
};

/// A mapping of a slab's file, at a multiple of 2 MiB; unmapped at destruction.
class slab_mapping {
  public:
    slab_mapping() = default;
    slab_mapping(int fd, std::size_t bytes);
    slab_mapping(slab_mapping&& other) noexcept;
    slab_mapping& operator=(slab_mapping&& other) noexcept;
    ~slab_mapping();
    [[nodiscard]] std::byte* base() const { return base_; }

  private:
    std::byte* base_ = nullptr;
    std::size_t bytes_ = 0;
};

/// The remedy where `ulimit` imposes this limit: "-v" or "-f".
[[nodiscard]] std::string smaller_slab(const char* limit);

class node_slab final : public slab {
  public:
    /// Err: error naming need, supply and remedy; input_error if a limit is in the way.
    explicit node_slab(std::size_t bytes);
    ~node_slab() override;
    node_slab(const node_slab&) = delete;
    node_slab& operator=(const node_slab&) = delete;

    [[nodiscard]] std::byte* base() const override { return mapping_.base(); }
    [[nodiscard]] std::size_t bytes() const override { return bytes_; }
    [[nodiscard]] std::size_t used() const override;
    [[nodiscard]] std::size_t peak() const override;
    [[nodiscard]] std::size_t huge() const override;
    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] failure_record& record() const { return *reinterpret_cast<failure_record*>(base()); }

    /// Memory for what peers write: as do_allocate(), but preferably from what the start of the job has paid for. Other
    /// large blocks, above all fields, leave that to the slots of plans: whoever fills a field waits for its pages
    /// anyway.
    [[nodiscard]] void* allocate_for_peers(std::size_t bytes, std::size_t alignment);

    /// Memory that may never be needed: it takes pages only when it is touched, so that a lack of memory shows only
    /// then. It lies at the far end of the slab, since whatever lies below used memory counts as used.  Err: slab_full.
    [[nodiscard]] void* reserve(std::size_t bytes, std::size_t alignment);
    /// Where memory of this slab lies in every rank's mapping of it.
    [[nodiscard]] std::uint64_t offset_of(const void* p) const noexcept {
        return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - base());
    }

    /// If given back, memory that holds p stays taken until unpin(p) has been called as often as pin(p): peers write
    /// it.
    void pin(const void* p);
    void unpin(const void* p) noexcept;

    static constexpr std::size_t default_bytes = std::size_t{64} << 30;

  private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override;
    void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override;
    [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
    void commit(std::size_t end);
    /// First fit at or after `from`; nullptr: there is none.  Pre: mutex_ is held.
    void* take(std::size_t bytes, std::size_t alignment, std::size_t from);
    /// Counts [at, at + need) of the free piece `it` as used.
    void* use(std::map<std::size_t, std::size_t>::iterator it, std::size_t at, std::size_t need);
    [[noreturn]] void throw_full(std::size_t bytes) const;
    void give_back(std::size_t start, std::size_t size);
    [[nodiscard]] bool is_pinned(std::size_t start, std::size_t size) const;

    int fd_ = -1;
    std::size_t bytes_ = 0;
    slab_mapping mapping_;
    mutable std::mutex mutex_;
    std::map<std::size_t, std::size_t> free_;     // offset -> bytes, no two adjacent
    std::map<std::size_t, int> pins_;             // offset -> number of pins
    std::map<std::size_t, std::size_t> deferred_; // offset -> bytes: given back while pinned
    std::size_t committed_ = 0, huge_ = 0, used_ = 0, peak_ = 0;
    bool can_be_huge_ = true;
};

} // namespace halocline::comm
