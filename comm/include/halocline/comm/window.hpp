// SPDX-License-Identifier: Apache-2.0
// Windows, the pMR way [GeorgRichtmannWettig2016]: a persistent message from this rank to a peer (send) or back (recv),
// in three calls per step. init(): the buffer is free. post(): the buffer is filled. wait(): until it is done.
//
// The receiver drives: its init() tells the sender that the step's message may come. A message of more than 1 KiB
// into a buffer in the receiver's slab (job::memory()) is one copy, into the buffer itself, over shared memory; any
// other lands in one of two slots first (docs/decisions/0011-windows.md).
#pragma once

#include <halocline/comm/connection.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/comm/team.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

namespace halocline::comm {

class window_end; // private: comm/src/channels/window_end.hpp

/// "float64", "int32", "24-byte element": what both ends of a window compare.
std::string element_name(char kind, std::size_t bytes);
template <class T>
std::string element_name() {
    char kind = 'b';
    if constexpr (std::is_floating_point_v<T>) {
        kind = 'f';
    } else if constexpr (std::is_integral_v<T> && sizeof(T) > 1) {
        kind = std::is_signed_v<T> ? 'i' : 'u';
    }
    return element_name(kind, sizeof(T));
}

/// What all windows can do. After the connection's connect() every member is noexcept, allocates nothing (over verbs:
/// once the peer has connected, too) and takes no lock; over shared memory there is no system call but in a wait that
/// exceeds its spin budget. A bad status is sticky: whoever looks at wait()'s sees it.
/// One thread at a time drives the windows of a job.
class window {
  public:
    window(window&&) noexcept;
    window& operator=(window&&) noexcept;
    /// Says farewell and never waits for the peer's: a buffer in the slab that the peer may still write, because of an
    /// init() without wait(), goes back to the slab only when that has come.
    ~window();

    /// True if wait() would return at once.
    [[nodiscard]] bool test() noexcept;
    /// Ends the step. Sender: the buffer may be written again. Receiver: the message is here.
    [[nodiscard]] status wait() noexcept;
    /// wait(), with a bad status as the exception that says who, what and why.  Err: rank_failure.
    void wait_or_throw();
    [[nodiscard]] status state() const noexcept;

    /// For messages: "send window 0 of 'x-low', step 17: 4096 float64 to rank 3 over shm".
    [[nodiscard]] std::string pending() const;
    /// How the bytes go: "shm: one copy, into the receiver's buffer".
    [[nodiscard]] std::string describe() const;

  protected:
    struct spec {
        bool sends = false;
        std::string element;
        std::size_t element_bytes = 0, count = 0;
        std::byte* buffer = nullptr; ///< of the user; nullptr: the window's own
    };
    window(connection& c, const spec& s);
    status begin() noexcept;
    [[nodiscard]] status fill() noexcept; ///< of windows with their own buffer: until it may be written
    status post_bytes(std::size_t bytes) noexcept;
    [[nodiscard]] std::size_t came_bytes() const noexcept;
    [[nodiscard]] std::byte* buffer() const noexcept;
    /// Bytes [first, last) of `bytes` for one of the team, cut at cache lines.
    static void copy_share(void* to, const void* from, std::size_t bytes, team t) noexcept;

  private:
    std::unique_ptr<window_end> end_;
};

/// Sends what is in the user's buffer.
template <class T>
requires std::is_trivially_copyable_v<T>
class send_window : public window {
  public:
    /// Local; the connection's connect() makes it ready. The buffer outlives the window.
    send_window(connection& c, std::span<const T> buffer)
        : window(c, {true, element_name<T>(), sizeof(T), buffer.size(),
                     const_cast<std::byte*>(reinterpret_cast<const std::byte*>(buffer.data()))}),
          count_(buffer.size()) {}
    /// Begins a step. Never waits.
    status init() noexcept { return begin(); }
    /// The first `count` elements are filled: send them. Never waits; what can't go yet goes in test() or in any
    /// window's wait(). Don't write the buffer until wait().
    status post(std::size_t count) noexcept { return post_bytes(count * sizeof(T)); }
    status post() noexcept { return post(count_); }
    /// init() and post(): where an MPI code has MPI_Isend or MPI_Start.
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
    /// Local; the connection's connect() makes it ready. The buffer outlives the window.
    recv_window(connection& c, std::span<T> buffer)
        : window(c, {false, element_name<T>(), sizeof(T), buffer.size(), reinterpret_cast<std::byte*>(buffer.data())}),
          count_(buffer.size()) {}
    /// The buffer is free: the peer may write it from now on, until wait(). Never waits.
    status init() noexcept { return begin(); }
    /// Moves on what is under way. Never waits.
    status post() noexcept { return post_bytes(count_ * sizeof(T)); }
    /// init() and post(): where an MPI code has MPI_Irecv or MPI_Start.
    status start() noexcept {
        init();
        return post();
    }
    /// Elements that came; at most the window's.  Pre: wait() was ok.
    [[nodiscard]] std::size_t count() const noexcept { return came_bytes() / sizeof(T); }

  private:
    std::size_t count_;
};

/// Sends what insert() or the caller puts into the window's buffer: over shared memory the receiver's slot itself.
template <class T>
requires std::is_trivially_copyable_v<T>
class buffered_send_window : public window {
  public:
    buffered_send_window(connection& c, std::size_t count)
        : window(c, {true, element_name<T>(), sizeof(T), count, nullptr}), count_(count) {}
    /// Begins a step and waits until the buffer may be written: the receiver has begun its last step (this one, if it
    /// receives into a buffer of its user's in its slab).
    [[nodiscard]] status init() noexcept { return fill(); }
    /// from -> elements [at, at + from.size()); with a team, this thread's share of that. The team comes together
    /// outside.  Pre: between init() and post().
    void insert(std::span<const T> from, std::size_t at = 0, team t = {}) noexcept {
        copy_share(target().data() + at, from.data(), std::min(from.size(), count_ - at) * sizeof(T), t);
    }
    /// The buffer of this step, for packing in place; another one in the next.  Pre: between init() and post().
    [[nodiscard]] std::span<T> target() const noexcept { return {reinterpret_cast<T*>(buffer()), count_}; }
    status post(std::size_t count) noexcept { return post_bytes(count * sizeof(T)); }
    status post() noexcept { return post(count_); }

  private:
    std::size_t count_;
};

/// Receives into the window's buffer, from where extract() or the caller takes it.
template <class T>
requires std::is_trivially_copyable_v<T>
class buffered_recv_window : public window {
  public:
    buffered_recv_window(connection& c, std::size_t count)
        : window(c, {false, element_name<T>(), sizeof(T), count, nullptr}), count_(count) {}
    /// What came before is not needed any more. Never waits.
    status init() noexcept { return begin(); }
    /// Moves on what is under way. Never waits.
    status post() noexcept { return post_bytes(count_ * sizeof(T)); }
    /// Elements that came.  Pre: wait() was ok.
    [[nodiscard]] std::size_t count() const noexcept { return came_bytes() / sizeof(T); }
    /// What came; valid until init().  Pre: wait() was ok.
    [[nodiscard]] std::span<const T> received() const noexcept {
        return {reinterpret_cast<const T*>(buffer()), count()};
    }
    /// Elements [at, at + to.size()), as far as they came -> to. Teams: see insert().  Pre: between wait() and init().
    void extract(std::span<T> to, std::size_t at = 0, team t = {}) const noexcept {
        const std::size_t there = count() > at ? count() - at : 0;
        copy_share(to.data(), received().data() + at, std::min(to.size(), there) * sizeof(T), t);
    }

  private:
    std::size_t count_;
};

} // namespace halocline::comm
