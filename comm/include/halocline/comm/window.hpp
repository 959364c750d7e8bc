// SPDX-License-Identifier: Apache-2.0
// Windows, as in pMR [Georg2016]: a persistent message from this rank to a peer (send) or from the peer (recv), with
// three calls per step. init() says that the buffer is free, post() that it is filled; wait() returns when the step is
// done.
//
// The receiver drives: its init() tells the sender that the message of this step may come. Over shared memory windows of
// up to 256 bytes go through eight slots, so a sender may be a few steps ahead. One of more than 1 KiB whose receive
// buffer lies in the slab (job::memory()) is copied once, into that buffer; any other goes through one of two slots
// (docs/decisions/0011-windows.md). From 16 KiB on, if the sent buffer lies in the slab
// too, a waiting receiver copies a part of it (docs/decisions/0044-windows-copied-by-both.md); from 64 KiB on it does
// so for other memory as well, by a system call, if that is allowed (docs/decisions/0047-ordinary-memory.md). Where
// cores are far apart large messages bypass the sender's cache (docs/decisions/0032-paths-follow-the-machine.md).
//
// Over a network that writes memory (verbs, libfabric with RMA) a window of 64 KiB or more needs no copy between arrays
// in slabs; an end whose array lies elsewhere copies its messages. Smaller windows, and all over MPI, are copied at
// both ends.
#pragma once

#include <halocline/base/checked_pointer.hpp>
#include <halocline/comm/connection.hpp>
#include <halocline/comm/element_type.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/comm/team.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

namespace halocline::comm {

class window_end; // private: comm/src/channels/window_end.hpp

/// What all windows can do. After the connection's connect() every member except wait_or_throw(), pending() and
/// describe() is noexcept, and neither allocates (over verbs: once the peer has connected, too) nor locks, but for the
/// look for deaths of a wait that exceeds its spin budget, which also takes set-up letters. Over shared memory the only
/// system calls are made by such a wait, and by a receiver's wait() or test() that copies a part of a message of 64 KiB
/// or more out of memory outside slabs (process_vm_readv). A bad status is permanent, so checking wait()'s is enough.
/// One thread at a time drives the windows of a job; what they still have to send is sent in that thread's waits,
/// whatever it waits for.
class window {
  public:
    window(window&&) noexcept;
    window& operator=(window&&) noexcept;
    /// Never waits for the peer. A buffer in the slab that the peer may still write, because of an init() without a
    /// wait(), goes back to the slab when the peer has said farewell. A message whose sender did not wait() may be
    /// lost with the sender's buffer; its receiver's status is then aborted.
    ~window();

    /// True if wait() would return at once.
    [[nodiscard]] bool test() noexcept;
    /// Ends the step. For a sender: the buffer may be written again. For a receiver: the message is here.
    [[nodiscard]] status wait() noexcept;
    /// wait(), with a bad status as an exception that says who, what and why.  Err: rank_failure.
    void wait_or_throw();
    /// ok, or the first bad status.
    [[nodiscard]] status state() const noexcept;

    /// What the window is waiting for: "send window 0 of connection 'x-low' of rank 0 with rank 3, step 17: 4096 of
    /// float64 over shm".
    [[nodiscard]] std::string pending() const;
    /// How the bytes go: "... over shm, into the receiver's buffer"; over a network also how many bytes this end has
    /// copied so far.
    [[nodiscard]] std::string describe() const;

  protected:
    static constexpr std::size_t beyond = static_cast<std::size_t>(-1); ///< no window has that many bytes
    struct spec {
        bool sends = false;
        element_type element{};
        std::size_t count = 0;
        std::byte* buffer = nullptr; ///< the user's; nullptr: the window's own
    };
    /// The user's buffer. An empty vector's null address must not be taken for "the window's own", so it gets another.
    [[nodiscard]] static std::byte* buffer_at(const void* first) noexcept {
        static std::byte of_nothing;
        return first != nullptr ? static_cast<std::byte*>(const_cast<void*>(first)) : &of_nothing;
    }
    window(connection& c, const spec& s);
    status begin() noexcept;
    [[nodiscard]] status fill() noexcept; ///< waits until the window's own buffer may be written
    status post_bytes(std::size_t bytes) noexcept;
    /// post_bytes(count * bytes); a product that would overflow is refused as too many bytes.
    status post_elements(std::size_t count, std::size_t bytes) noexcept {
        return post_bytes(count > beyond / bytes ? beyond : count * bytes);
    }
    [[nodiscard]] std::size_t received_bytes() const noexcept;
    [[nodiscard]] std::byte* buffer() const noexcept;
    /// Copies this thread's share of `bytes`, cut at cache lines, into the window's own buffer `at` bytes from its
    /// start; extract_share() copies out of it.
    void insert_share(std::size_t at, const std::byte* from, std::size_t bytes, team t) noexcept;
    void extract_share(std::byte* to, const std::byte* from, std::size_t bytes, team t) const noexcept;

  private:
    checked_pointer<std::unique_ptr<window_end>> end_;
};

/// Sends the user's buffer.
template <class T>
requires std::is_trivially_copyable_v<T>
class send_window : public window {
  public:
    /// Local; the connection's connect() makes it ready.  Pre: the buffer outlives the window.
    /// Err: input_error: more bytes than there can be; slab_full. So it is of every window.
    send_window(connection& c, std::span<const T> buffer)
        : window(c, {true, element_type_of<T>(), buffer.size(), buffer_at(buffer.data())}), count_(buffer.size()) {}
    /// Begins a step. Never waits.
    status init() noexcept { return begin(); }
    /// Sends the first `count` elements. Never waits: if they can't go yet, they go in test() or in any window's
    /// wait(). The buffer must not be written until wait() has returned.  Pre: init(); count <= the buffer's size.
    status post(std::size_t count) noexcept { return post_elements(count, sizeof(T)); }
    status post() noexcept { return post(count_); }
    /// init() and post(), for where an MPI code has MPI_Isend or MPI_Start.
    status start() noexcept {
        init();
        return post();
    }

  private:
    std::size_t count_;
};

/// Receives into the user's buffer.
template <class T>
requires std::is_trivially_copyable_v<T>
class recv_window : public window {
  public:
    /// Local; the connection's connect() makes it ready.  Pre: the buffer outlives the window.
    recv_window(connection& c, std::span<T> buffer)
        : window(c, {false, element_type_of<T>(), buffer.size(), buffer_at(buffer.data())}), count_(buffer.size()) {}
    /// Begins a step: the peer may write the buffer from now on, until wait(). Never waits.
    status init() noexcept { return begin(); }
    /// Must be called between init() and wait(), like a sender's; makes progress on operations under way. Never waits.
    status post() noexcept { return post_bytes(count_ * sizeof(T)); }
    /// init() and post(), for where an MPI code has MPI_Irecv or MPI_Start.
    status start() noexcept {
        init();
        return post();
    }
    /// Number of elements received; at most the window's.  Pre: wait() was ok.
    [[nodiscard]] std::size_t count() const noexcept { return received_bytes() / sizeof(T); }

  private:
    std::size_t count_;
};

/// Sends what insert() or the caller writes into the window's own buffer, which over shared memory is the receiver's
/// slot or buffer, and over a network a registered buffer at this end.
template <class T>
requires std::is_trivially_copyable_v<T>
class buffered_send_window : public window {
  public:
    buffered_send_window(connection& c, std::size_t count)
        : window(c, {true, element_type_of<T>(), count, nullptr}), count_(count) {}
    /// Begins a step, and waits until the buffer may be written: until the receiver has begun the previous step, or an
    /// earlier one if the window is small. If it receives straight into a user's buffer in its slab, it must have begun
    /// this step; as long as it is late, the buffer is one at this end, after a short wait, and post() copies.
    [[nodiscard]] status init() noexcept { return fill(); }
    /// Copies `from` to the elements [at, at + from.size()); in a team, this thread's share of it. The caller
    /// synchronises the team before post(). Does nothing once the status is bad.
    /// Err: status::misused, in post() and wait(): elements that the window doesn't have; not between init() and
    /// post().
    void insert(std::span<const T> from, std::size_t at = 0, team t = {}) noexcept {
        const bool fits = at <= count_ && from.size() <= count_ - at;
        insert_share(fits ? at * sizeof(T) : beyond, reinterpret_cast<const std::byte*>(from.data()), from.size_bytes(),
                     t);
    }
    /// This step's buffer, for packing in place; the next step has another one.  Pre: between init() and post().
    [[nodiscard]] std::span<T> target() const noexcept { return {reinterpret_cast<T*>(buffer()), count_}; }
    status post(std::size_t count) noexcept { return post_elements(count, sizeof(T)); }
    status post() noexcept { return post(count_); }

  private:
    std::size_t count_;
};

/// Receives into the window's own buffer, from which extract() or the caller reads.
template <class T>
requires std::is_trivially_copyable_v<T>
class buffered_recv_window : public window {
  public:
    buffered_recv_window(connection& c, std::size_t count)
        : window(c, {false, element_type_of<T>(), count, nullptr}), count_(count) {}
    /// Begins a step: what was received before is no longer needed. Never waits.
    status init() noexcept { return begin(); }
    /// Must be called between init() and wait(), like a sender's; makes progress on operations under way. Never waits.
    status post() noexcept { return post_bytes(count_ * sizeof(T)); }
    /// Number of elements received.  Pre: wait() was ok.
    [[nodiscard]] std::size_t count() const noexcept { return received_bytes() / sizeof(T); }
    /// The received elements; valid until init().  Pre: wait() was ok.
    [[nodiscard]] std::span<const T> received() const noexcept {
        return {reinterpret_cast<const T*>(buffer()), count()};
    }
    /// Copies the elements [at, at + to.size()), as far as they arrived, to `to`. Teams: see insert().
    /// Pre: between wait() and init().
    void extract(std::span<T> to, std::size_t at = 0, team t = {}) const noexcept {
        const std::size_t there = count() > at ? count() - at : 0;
        extract_share(reinterpret_cast<std::byte*>(to.data()),
                      reinterpret_cast<const std::byte*>(received().data() + at),
                      std::min(to.size(), there) * sizeof(T), t);
    }

  private:
    std::size_t count_;
};

} // namespace halocline::comm
