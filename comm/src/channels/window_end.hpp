// SPDX-License-Identifier: Apache-2.0
// One end of a window: messages go one way, and tokens come back. Token k says that the receiver has begun step k: it is
// done with message k - 1, and its own buffer may be written.
//
// The sender may therefore send k into one of two slots once token k - 1 is here, and straight into the receiver's only
// buffer once token k is here: over shared memory and, if the window is large, over networks that write memory
// (straight_window_end.hpp). Small windows of shared memory have more slots and need older tokens
// (small_window_end.hpp).
#pragma once

#include "connection_core.hpp"
#include "far_window_end.hpp"
#include "near_window_end.hpp"
#include "small_window_end.hpp"
#include "straight_window_end.hpp"
#include "window_way.hpp"

#include <halocline/comm/detail/mpi_channel.hpp>
#include <halocline/comm/detail/ofi_channel.hpp>
#include <halocline/comm/detail/verbs_channel.hpp>
#include <halocline/comm/wrong_call.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <variant>

namespace halocline::comm {

class window_end final : public due_send {
  public:
    /// Local: allocates memory, and sends a card to the peer.
    window_end(std::shared_ptr<connection_core> c, window_request r);
    ~window_end();
    window_end(const window_end&) = delete;
    window_end& operator=(const window_end&) = delete;

    /// Joins the two ends.  Err: input_error, at both ends, if the peer's is another kind of window.
    void connect(const std::string& peer_card);

    // The calls of a step, as the windows' init(), post(), test() and wait() make them (window.hpp).
    status begin() noexcept;
    /// begin() for a sender that writes its elements itself, at buffer(): waits until it may. Where that is the receiver's
    /// word in this very step, it does not wait long: the receiver may be a rank that waits here, too.
    status fill() noexcept;
    /// `bytes`: the size of the message; for a receiver, at most that of the window.
    status post(std::size_t bytes) noexcept;
    [[nodiscard]] bool test() noexcept;
    [[nodiscard]] status wait() noexcept;
    /// Sends what is due, if that is possible now. True if nothing is due any more.
    bool push() noexcept;
    bool push_listed() noexcept override;

    [[nodiscard]] const comm::job& job() const { return connection_->job; }
    [[nodiscard]] std::string title() const; ///< "send window 0 of connection 'x-low' of rank 0 with rank 3"
    [[nodiscard]] std::string pending() const;
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] bool sends() const { return request_.sends; }
    [[nodiscard]] std::uint32_t number() const { return number_; }
    [[nodiscard]] std::size_t received_bytes() const noexcept { return received_bytes_; }
    [[nodiscard]] std::byte* buffer() const noexcept { return buffer_; }
    /// May a caller write bytes [at, at + bytes) of the window's own buffer? If not, the window is misused, unless its
    /// status is bad already.
    [[nodiscard]] bool may_fill(std::size_t at, std::size_t bytes) noexcept;
    /// t.is_member(); otherwise the window is misused.
    [[nodiscard]] bool has_member(team t) noexcept;
    /// Copies a thread's part of a message to where the peer reads it.
    void write(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
    [[nodiscard]] status state() const noexcept { return status_; }

  private:
    /// Aligned like the slots that it stands for.
    struct spare_deleter {
        void operator()(std::byte* p) const noexcept { ::operator delete[](p, std::align_val_t{128}); }
    };
    using spare_buffer = std::unique_ptr<std::byte[], spare_deleter>;
    /// How the messages travel, chosen when the window is made.
    using way = std::variant<small_window_end, near_window_end, far_window_end<verbs_channel>,
                             far_window_end<ofi_channel>, far_window_end<mpi_channel>,
                             straight_window_end<verbs_window_channel>, straight_window_end<ofi_window_channel>>;
    enum class phase : std::uint8_t { made, idle, begun, posted };

    [[nodiscard]] way make_way();
    /// This window is destroyed before it was connected: its partner, which may be, gets a letter for a farewell.
    void say_never_connected() noexcept;
    /// Has the partner done so?
    [[nodiscard]] bool partner_never_connected() noexcept;
    /// std::visit() for the calls of a step, whose overhead counts where messages are small.
    template <class F>
    [[gnu::always_inline]] decltype(auto) on_way(F&& f) noexcept {
        if (auto* const small = std::get_if<small_window_end>(&way_)) return f(*small);
        return std::visit(f, way_);
    }
    [[nodiscard]] job_core& core() const { return core_; }
    [[nodiscard]] const std::string& transport() const { return core().members[connection_->peer].transport; }
    /// looks_per_partner_check: a partner that is destroyed before it connects is noticed after so many milliseconds.
    static constexpr std::uint64_t looks_per_partner_check = 32;
    template <class Done>
    status until(Done done) noexcept;
    /// Checks the message or token of that epoch. If false, the error became the window's status.
    template <window_way Way>
    bool accept(Way& w, std::uint64_t epoch) noexcept;
    /// Has the previous message left, and has that token come?
    template <window_way Way>
    bool may_write(Way& w, std::uint64_t token) noexcept;
    /// Sends this step's message or token, as far as possible now. True if nothing is left to do for it.
    template <window_way Way>
    bool send(Way& w) noexcept;
    /// Delivers a message that is here to the user's buffer, if there is one.
    template <window_way Way>
    void take(Way& w) noexcept;
    /// Sends what is due. True if the step's message has left, or is here.
    bool move_on() noexcept;
    /// Copies the receiver's part of a message that is on its way.
    void help() noexcept;
    /// Sends this step's message or token, now or in a later wait.
    void send_soon() noexcept;
    /// `how`: a literal, or a team that has no such member. Members of a team may be refused at the same time.
    template <class How>
    status misused(How how) noexcept {
        misuse_.note_first(how, status_);
        return seen_status();
    }
    /// status_, where another member of a team may be refused meanwhile.
    [[nodiscard]] status seen_status() noexcept { return std::atomic_ref(status_).load(std::memory_order_acquire); }

    std::shared_ptr<connection_core> connection_;
    job_core& core_; // connection_'s
    window_request request_;
    std::uint32_t number_ = 0;            // among this connection's windows in this direction
    keyed_letters::name never_connected_; // the letter of a partner that never did
    way way_;

    std::uint64_t step_ = 0, sent_ = 0; // sent_: the last step whose message has gone
    std::size_t post_bytes_ = 0, received_bytes_ = 0;
    // Windows without a user's buffer have one that is valid between init and post (sender), or wait and init (receiver).
    std::byte* buffer_ = nullptr;
    // Sender: what post() copies in this step; nullptr: the message is where it goes.
    const std::byte* source_ = nullptr;
    spare_buffer spare_;            // where fill() does not wait long: filled instead of the peer's buffer
    std::uint64_t spared_ = 0;      // steps in which it was
    bool receiver_is_late_ = false; // it had not begun the last such step when that was posted
    wrong_call misuse_;
    phase phase_ = phase::made;
    bool due_ = false;    // a message or token still has to be sent, or the receiver has pieces to copy
    bool listed_ = false; // in open_windows::due
    std::uint64_t fruitless_tests_ = 0;
    status status_ = status::ok;
};

} // namespace halocline::comm
