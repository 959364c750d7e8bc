// SPDX-License-Identifier: Apache-2.0
#include "connection_core.hpp"
#include "control/wire.hpp"
#include "job/waiting.hpp"
#include "window_end.hpp"

#include <halocline/comm/detail/mock_channel.hpp>

#include <exception>
#include <optional>

namespace halocline::comm {
namespace {

constexpr char counts_kind = 'c';

std::string key(int send_tag, int receive_tag, std::uint32_t ordinal, char kind, std::uint32_t n) {
    return wire_writer().number(send_tag).number(receive_tag).number(ordinal).number(kind).number(n).take();
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

std::string connection_core::title() const {
    return "connection '" + options.name + "' of rank " + std::to_string(job.rank()) + " with rank " +
           std::to_string(peer);
}

std::string connection_core::own_key(char kind, std::uint32_t n) const {
    return key(options.send_tag, options.receive_tag, ordinal, kind, n);
}

std::string connection_core::peers_key(char kind, std::uint32_t n) const {
    return key(options.receive_tag, options.send_tag, ordinal, kind, n);
}

void connection_core::send_letter(char kind, std::uint32_t n, const std::string& body) {
    job_core& core = job.core();
    core.windows.letters.send(core.post, core.rank, peer, own_key(kind, n), body);
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

connection::connection(const comm::job& j, int peer, connection_options options)
    : core_("a connection", std::make_shared<connection_core>(j, peer, std::move(options))) {}

void connection::connect() {
    connection_core& c = *core_;
    job_core& core = c.job.core();
    const std::uint32_t call = c.connects++;
    c.send_letter(counts_kind, call, wire_writer().number(c.sends).number(c.recvs).take());

    // The peer's numbers of windows, if it has sent them.
    const std::string counts_key = c.peers_key(counts_kind, call);
    struct counts {
        std::uint32_t sends, recvs;
    };
    const auto peers_counts = [&]() -> std::optional<counts> {
        const std::string* const body = core.windows.letters.find(c.peer, counts_key);
        if (body == nullptr) return std::nullopt;
        wire_reader reader(*body);
        const auto sends = reader.number<std::uint32_t>();
        return counts{sends, reader.number<std::uint32_t>()};
    };
    const auto refuse = [&](counts there) {
        throw input_error(c.title() + ": " + std::to_string(c.sends) + " send and " + std::to_string(c.recvs) +
                          " receive windows here, " + std::to_string(there.sends) + " send and " +
                          std::to_string(there.recvs) + " receive windows there; each needs one of the other kind");
    };

    std::exception_ptr refused; // the first window that was
    for (window_end* w : c.windows) {
        const std::string card_key = c.peers_key(w->sends() ? 'r' : 's', w->number());
        const std::string operation = "the other end of " + w->title() + " (send tag " +
                                      std::to_string(c.options.send_tag) + ", receive tag " +
                                      std::to_string(c.options.receive_tag) + " here; there the other way round)";
        const auto is_here = [&] { return core.windows.letters.find(c.peer, card_key) != nullptr; };
        try {
            for (waiter waiting(core); !is_here() && !refused;) {
                core.windows.letters.collect(core.post);
                if (is_here()) break;
                if (const auto there = peers_counts()) refuse(*there); // letters arrive in order: no such window
                if (const status s = waiting.again(c.peer); s != status::ok) core.raise(s, operation);
            }
            if (is_here()) w->connect(*core.windows.letters.find(c.peer, card_key));
        } catch (const input_error&) { // the other windows are joined all the same, so that they can say farewell
            if (!refused) refused = std::current_exception();
        }
        if (is_here()) core.windows.letters.forget(c.peer, card_key);
    }
    if (refused) std::rethrow_exception(refused);
    c.windows.clear();
    core.windows.letters.collect(core.post);
    if (const auto there = peers_counts(); there && (there->sends != c.recvs || there->recvs != c.sends))
        refuse(*there);
    core.windows.letters.forget(c.peer, counts_key);
}

int connection::peer() const { return core_->peer; }
const std::string& connection::name() const { return core_->options.name; }
const job& connection::job() const { return core_->job; }

} // namespace halocline::comm
