// SPDX-License-Identifier: Apache-2.0
// The control plane of ranks that are processes: a stream socket per pair for set-up mail and liveness. Within a node
// these are Unix sockets, over which slab descriptors pass, plus a pidfd per peer. Between nodes they are TCP
// connections (tcp_link.hpp), on which the kernels watch the link. A socket ends with its rank only if no child of the
// rank holds it.
#pragma once

#include "at_fork.hpp"
#include "at_good_exit.hpp"
#include "descriptor.hpp"
#include "socket_frames.hpp"
#include "tcp_link.hpp"
#include "job/job_core.hpp"

#include <halocline/comm/detail/byte_queue.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/types.h>
#include <vector>

namespace halocline::comm {

/// A listening socket under a random name in the abstract namespace: not in the file system, and gone with its owner.
class unix_listener {
  public:
    explicit unix_listener(int backlog);
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] int fd() const { return socket_.fd(); }

  private:
    std::string name_;
    descriptor socket_;
};

/// A peer to connect to.
struct peer_address {
    int rank = 0;
    std::string socket_name;
    int pid = 0; ///< 0: in another pid namespace, where this pid is not valid
};

/// A peer of another node.
struct far_address {
    int rank = 0;
    std::string endpoint; ///< tcp_listener::name()
};

/// Frames (socket_frames.hpp) are taken in two stages, because the look for deaths reads sockets between start() and
/// finish() too, where nothing may be allocated. receive() moves bytes from a socket to link::received, where hear()
/// acts at once on everything but mail. Messages and letters stay there until a set-up call, which may allocate, moves
/// them to their queues: take_mail().
class socket_plane final : public pairwise_mail, public liveness {
  public:
    /// Connects to each of these ranks, swaps the job's secret and the slabs' descriptors, and maps the peers' slabs
    /// into core.peer_base.  Err: rank_failure.
    socket_plane(job_core& core, unix_listener own, const std::vector<peer_address>& peers, const std::string& secret);
    /// Connects to each of these ranks on other nodes; each end proves that it knows the secret. Other programs that
    /// connect have no effect: they are dropped after 2 seconds, or sooner if there are many.  Err: rank_failure.
    void connect_far(tcp_listener own, const std::vector<far_address>& peers, const std::string& secret);
    /// After the job has ended while this rank joined: for a moment, connects and tells those of these ranks that come.
    void tell_end(tcp_listener own, const std::vector<far_address>& peers, const std::string& secret);
    /// Says goodbye, so that the end of the sockets isn't taken for a death.
    ~socket_plane() override;

    void send_letter(int peer, std::string_view text) override;
    std::optional<letter> take_letter() override;
    void look() noexcept override;
    [[nodiscard]] bool left(int rank) const noexcept override;
    [[nodiscard]] std::vector<pollfd> ends() const override;
    /// Reports the end of the job to the ranks of other nodes; only the first call does.
    void tell_far(const job_end& end) noexcept override;
    void say_far(int rank, far_word word, int about) noexcept override;
    [[nodiscard]] int pid_here(int rank) const noexcept override;

  protected:
    std::vector<std::string> transfer(std::span<const int> to, std::span<const std::string> out,
                                      std::span<const int> from, std::string_view operation) override;

  private:
    struct link {
        int rank = 0;
        int pid = 0;
        descriptor socket, process;
        byte_queue unsent;                // frames still to be written
        bool held_back = false;           // until the peer reads, although the kernel would take them (far)
        std::string received;             // frames that were heard, then possibly an incomplete one
        std::uint64_t mail_moved = 0;     // bytes that went or came while more of a large message was to come
        std::size_t heard_bytes = 0;      // of the heard frames; the mail among them has not been taken yet
        std::size_t heard_messages = 0;   // messages among them, not counting letters
        std::deque<std::string> messages; // taken
        std::deque<std::string> letters;  // taken
        bool goodbye = false;             // it closed its job in good order
        bool told_goodbye = false;        // this rank did
        bool gone = false;                // its socket or process has ended
        bool far = false;                 // on another node
        bool owes = false;                // this rank owes the peer an answer to are_you_awake
        bool awaits = false;              // this rank awaits the peer's answer
        std::string own_address, address; // of the link's two ends, if far
    };
    class near_connector; // makes the links within the node
    class far_connector;  // makes those to other nodes
    /// Null if there is no link.
    [[nodiscard]] const link* find(int rank) const noexcept;
    /// Err: job_error if there is no link.
    [[nodiscard]] link& link_to(int rank);
    void connect_near(unix_listener own, const std::vector<peer_address>& peers, const std::string& secret);
    static constexpr std::size_t large_mail = 1 << 16; ///< bytes; the kernel takes less at once, from anybody
    void send_frame(link& l, frame_kind kind, std::string_view body);
    /// Sends a frame that is not mail, if the link is to another node and not gone.
    void tell(link& l, frame_kind kind, std::string_view body);
    [[nodiscard]] static std::string frame_of(const job_end& end);
    /// Writes as much as the socket takes; to another node, as the peer's kernel has room for.
    void write_unsent(link& l);
    [[nodiscard]] bool must_hold_back(const link& l) const { return l.far && !l.gone && !l.told_goodbye && !told_far_; }
    /// Reads and hears what has arrived, and notices the end. Allocates only for more than a few KiB of mail.
    void receive(link& l);
    void hear(link& l);
    void take_mail(link& l);
    /// Takes the messages of `from` that have arrived, in that order. Returns the rank that this one is waiting for,
    /// for its message or for it to read; none if all messages have been received and sent.
    std::optional<int> take_messages(std::span<const int> from, std::vector<std::string>& in);
    /// link::mail_moved of that peer.
    [[nodiscard]] std::uint64_t mail_moved(int peer);
    /// Waits for at most `ms` until sockets can be read or written, and does that. True if `peer` had already left in
    /// good order: everything it sent before has now been read.
    bool read_and_write(int peer, bool awaits_message, int ms);
    /// Is the peer's process alive although it closed the socket? Waits a moment for the process to end.
    [[nodiscard]] static bool lives_on(const link& l) noexcept;
    /// `error`: how the socket ended, 0 if in good order.
    void note_end(link& l, int error) noexcept;
    void watch_all();
    /// Tells all peers that this rank closes its job in good order.
    void say_goodbye() noexcept;
    /// In a child of fork(): while it held the sockets, they would not end with its parent.
    void leave_to_parent() noexcept;

    job_core& core_;
    mutable std::recursive_mutex mutex_; // the rank and its watchdog; publish() calls back into tell_far()
    std::vector<link> links_;            // one per peer
    std::vector<pollfd> polled_;         // of each link, for take_letter()
    std::vector<int> link_of_;           // by rank, -1: none
    std::vector<pollfd> watched_;        // sockets, then processes; look() must not allocate
    std::vector<int> watched_links_;     // whose each of them is
    bool told_far_ = false;
    bool owes_ = false;     // on any link
    bool is_child_ = false; // of fork()
    at_fork child_{[this] { leave_to_parent(); }};
    at_good_exit exit_{[this] { say_goodbye(); }};
};

} // namespace halocline::comm
