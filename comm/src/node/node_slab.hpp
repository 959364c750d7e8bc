// SPDX-License-Identifier: Apache-2.0
// The slab of one rank, a peer's view of it, and the failure record at its start.
#pragma once

#include "failure_record.hpp"

#include "control/at_fork.hpp"

#include <halocline/comm/slab.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace halocline::comm {

/// A mapping of a slab's file, at a multiple of 2 MiB; unmapped at destruction. A child of fork() can only read it: it
/// would write for its parent.
class slab_mapping {
  public:
    slab_mapping() = default;
    slab_mapping(int fd, std::size_t bytes);
    slab_mapping(slab_mapping&& other) noexcept;
    slab_mapping& operator=(slab_mapping&& other) noexcept;
    ~slab_mapping();
    [[nodiscard]] std::byte* base() const { return base_; }

    /// What it takes of the address space for a moment, beyond its own size.
    static constexpr std::size_t room_to_align = std::size_t{2} << 20;

  private:
    std::byte* base_ = nullptr;
    std::size_t bytes_ = 0;
    std::unique_ptr<at_fork> child_;
};

/// The remedy where `ulimit` imposes this limit: "-v" or "-f".
[[nodiscard]] std::string limit_remedy(const char* limit);

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
    /// Offset and bytes. Memory that is given back brings the node along that it needs, so that this takes no memory.
    using pieces = std::map<std::size_t, std::size_t>;

    void* do_allocate(std::size_t bytes, std::size_t alignment) override;
    void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override;
    [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
    void commit(std::size_t end);
    /// First fit at or after `from`; nullptr: there is none.  Pre: mutex_ is held.
    void* take(std::size_t bytes, std::size_t alignment, std::size_t from);
    /// Counts [at, at + need) of the free piece `it` as used.
    void* use(pieces::iterator it, std::size_t at, std::size_t need);
    [[noreturn]] void throw_full(std::size_t bytes) const;
    void give_back(pieces::node_type block) noexcept;
    [[nodiscard]] bool is_pinned(std::size_t start, std::size_t size) const;

    int fd_ = -1;
    std::size_t bytes_ = 0;
    slab_mapping mapping_;
    mutable std::mutex mutex_;
    pieces free_;                     // no two adjacent
    pieces taken_;                    // blocks
    pieces deferred_;                 // those that were given back while pinned
    std::map<std::size_t, int> pins_; // offset -> number of pins
    std::size_t committed_ = 0, huge_ = 0, used_ = 0, peak_ = 0;
    bool can_be_huge_ = true;
    std::optional<at_fork> child_; // which gets a copy of what it writes: its program may change fields
};

} // namespace halocline::comm
