// SPDX-License-Identifier: Apache-2.0
#include "circular_wait.hpp"
#include "connection_core.hpp"
#include "control/wire_format.hpp"
#include "job/waiting.hpp"
#include "window_end.hpp"

#include <halocline/comm/detail/mock_channel.hpp>

#include <exception>
#include <optional>

namespace halocline::comm {
namespace {

/// How the keys of all letters from one end begin.
std::string beginning(int send_tag, int receive_tag, std::uint32_t ordinal) {
    return wire_writer().number(send_tag).number(receive_tag).number(ordinal).take();
}
std::string key(int send_tag, int receive_tag, std::uint32_t ordinal, letter_kind kind, std::uint32_t n) {
    return beginning(send_tag, receive_tag, ordinal) + wire_writer().number(kind).number(n).take();
}

} // namespace

connection_core::connection_core(const comm::job& j, int to, connection_options o)
    : job(j), peer(to), options(std::move(o)), ordinal(0) {
    job_core& core = j.core();
    if (peer < 0 || peer >= core.ranks) {
        throw input_error("connection '" + options.name + "': peer " + std::to_string(peer) +
                          " is not a rank of this job (0 to " + std::to_string(core.ranks - 1) + ")");
    }
    const std::string& transport = core.members[peer].transport;
    if (transport == mock_channel::transport) {
        throw input_error(title() + ": windows don't go over '" + transport + "'; choose among shm, verbs, ofi, mpi");
    }
    ordinal = core.windows.connections[{peer, options.send_tag, options.receive_tag}]++;
}

connection_core::~connection_core() { // of the last window, too: only its parked memory still looks for letters
    job.core().sweep();
    job.core().windows.letters.forget_all(peer, beginning(options.receive_tag, options.send_tag, ordinal));
}

std::string connection_core::title() const {
    return "connection '" + options.name + "' of rank " + std::to_string(job.rank()) + " with rank " +
           std::to_string(peer);
}

std::string connection_core::own_key(letter_kind kind, std::uint32_t n) const {
    return key(options.send_tag, options.receive_tag, ordinal, kind, n);
}

std::string connection_core::peers_key(letter_kind kind, std::uint32_t n) const {
    return key(options.receive_tag, options.send_tag, ordinal, kind, n);
}

void connection_core::send_letter(letter_kind kind, std::uint32_t n, const std::string& body) {
    job_core& core = job.core();
    core.windows.letters.send(core.setup_mail, core.rank, peer, own_key(kind, n), body);
}

std::uint32_t connection_core::agreed_id(bool outgoing, std::uint32_t n) const {
    const int here = job.rank(), out = options.send_tag, back = options.receive_tag;
    wire_writer name;
    if (outgoing)
        name.number(here).number(peer).number(out).number(back);
    else
        name.number(peer).number(here).number(back).number(out);
    std::uint32_t hash = 2166136261u; // FNV-1a
    for (const char c : name.number(ordinal).number(n).take())
        hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash | 0x80000000u; // distinct from plan ids, which count from 1
}

namespace {

/// Numbers of windows of one end.
struct window_counts {
    std::uint32_t sends = 0, recvs = 0;
};

/// The peer's, if they have come; `key`: of the letter.
std::optional<window_counts> peers_counts(const connection_core& c, const std::string& key) {
    const std::string* const body = c.job.core().windows.letters.find(c.peer, key);
    if (body == nullptr) return std::nullopt;
    return from_wire<window_counts>(*body);
}

[[noreturn]] void refuse(const connection_core& c, window_counts there) {
    throw input_error(c.title() + ": " + std::to_string(c.sends) + " send and " + std::to_string(c.recvs) +
                      " receive windows here, " + std::to_string(there.sends) + " send and " +
                      std::to_string(there.recvs) + " receive windows there; each needs one of the other kind");
}

/// "send window 0 of connection 'x-low' of rank 0 with rank 3 (send tag 1, receive tag 0)"
std::string titled_with_tags(const connection_core& c, const window_end& w) {
    return w.title() + " (send tag " + std::to_string(c.options.send_tag) + ", receive tag " +
           std::to_string(c.options.receive_tag) + ")";
}

/// Joins a window with its other end, if that one's card is here; `waits`: waits for it.
/// Err: input_error: there is no such end, neither rank can make it, or it is another kind of window; rank_failure.
void join_window(connection_core& c, window_end& w, const std::string& counts_key, bool waits) {
    job_core& core = c.job.core();
    keyed_letters& letters = core.windows.letters;
    const std::string card_key = c.peers_key(card_of(!w.sends()), w.number());
    const std::string title = titled_with_tags(c, w);
    const auto is_here = [&] { return letters.find(c.peer, card_key) != nullptr; };
    circular_wait circle(core, c.peer, title);
    for (waiter waiting(core); waits && !is_here();) {
        letters.collect(core.setup_mail);
        if (is_here()) break;
        if (const auto there = peers_counts(c, counts_key))
            refuse(c, *there); // letters arrive in order: no such window
        if (c.peer == core.rank)
            throw input_error(title + ": this rank has not made its other end; " + circular_wait::remedy);
        if (waiting.checked_job()) circle.look(waiting.since());
        if (const status s = waiting.again(c.peer); s != status::ok) core.raise(s, "the other end of " + title);
    }
    if (!is_here()) return;
    const std::string card = *letters.find(c.peer, card_key);
    letters.forget(c.peer, card_key);
    w.connect(card);
}

} // namespace

connection::connection(const comm::job& j, int peer, connection_options options)
    : core_("a connection", std::make_shared<connection_core>(j, peer, std::move(options))) {}

void connection::connect() {
    connection_core& c = *core_;
    if (c.was_refused)
        throw input_error(c.title() + ": an earlier connect() was refused; make a new connection, at both ends");
    keyed_letters& letters = c.job.core().windows.letters;
    const std::uint32_t call = c.connects++;
    c.send_letter(letter_kind::window_counts, call, to_wire(window_counts{c.sends, c.recvs}));
    const std::string counts_key = c.peers_key(letter_kind::window_counts, call);

    std::exception_ptr refused; // the first window that was
    for (window_end* w : c.windows) {
        try {
            join_window(c, *w, counts_key, !refused);
        } catch (const input_error&) { // the other windows are joined all the same, so that they can say farewell
            if (!refused) refused = std::current_exception();
            c.was_refused = true;
        }
    }
    if (refused) std::rethrow_exception(refused);
    c.windows.clear();
    letters.collect(c.job.core().setup_mail);
    if (const auto there = peers_counts(c, counts_key); there && (there->sends != c.recvs || there->recvs != c.sends)) {
        c.was_refused = true;
        refuse(c, *there);
    }
    letters.forget(c.peer, counts_key);
}

int connection::peer() const { return core_->peer; }
const std::string& connection::name() const { return core_->options.name; }
const job& connection::job() const { return core_->job; }

} // namespace halocline::comm
