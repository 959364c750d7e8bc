// SPDX-License-Identifier: Apache-2.0
// The calls of a messenger, progress, and waits.
#include "message_engine.hpp"

#include "job/waiting.hpp"

#include <algorithm>
#include <utility>

namespace halocline::comm {
namespace {

/// For checking whether a peer has left in good order: of polls that spin, and of those that yield or sleep.
constexpr std::uint64_t polls_per_departure_check = 4096, yields_per_departure_check = 64;
constexpr auto is_done = [](const message_operation& o) { return o.done(); };

/// Sets a flag for the duration of a call.
class flag_scope {
  public:
    explicit flag_scope(bool& flag) noexcept : flag_(flag), before_(std::exchange(flag, true)) {}
    ~flag_scope() { flag_ = before_; }
    flag_scope(const flag_scope&) = delete;
    flag_scope& operator=(const flag_scope&) = delete;

  private:
    bool& flag_;
    bool before_;
};

} // namespace

message_operation& message_engine::start_operation(message_request& r, std::byte* data, std::size_t bytes, int peer,
                                                   int tag, std::uint32_t context) noexcept {
    message_operation& o = r.operation_;
    o.data = data;
    o.bytes = bytes;
    o.peer = peer;
    o.tag = tag;
    o.context = context;
    o.fruitless_polls = 0;
    o.owner = &core_.owner;
    ++core_.owner.under_way;
    return o;
}

void message_engine::isend(message_request& r, std::span<const std::byte> data, int to, int tag,
                           std::uint32_t context) noexcept {
    if (!is_rank(to) || tag < 0 || !r.done()) return core_.misuse(true, to, tag, !r.done());
    message_link& l = link_to(to);
    l.send_or_queue(start_operation(r, const_cast<std::byte*>(data.data()), data.size(), to, tag, context));
    if (!l.network) return;
    if (core_.options.test_on_init) l.network->progress();
    if (core_.options.wait_on_send.count() > 0) (void)start_all({&r, 1}, core_.options.wait_on_send);
}

void message_engine::irecv(message_request& r, std::span<std::byte> into, int from, int tag,
                           std::uint32_t context) noexcept {
    if (!can_come(from, tag) || !r.done()) return core_.misuse(false, from, tag, !r.done());
    message_operation& receive = start_operation(r, into.data(), into.size(), from, tag, context);
    matching_.number(receive);
    if (unexpected_message* const m = find(from, tag, context)) {
        receive_kept(receive, *m);
        count_unattended();
        return;
    }
    matching_.post(receive);
    if (from == any_source || !core_.options.test_on_init) return;
    if (message_link& l = link_to(from); l.network) l.network->progress();
}

unexpected_message* message_engine::find(int from, int tag, std::uint32_t context) noexcept {
    const unexpected_message* const m = matching_.find(from, tag, context);
    if (m != nullptr && !core_.is_immediate(m->bytes)) link_to(m->source).progress(); // which takes in withdrawals
    return find_kept(from, tag, context);
}

unexpected_message* message_engine::find_kept(int from, int tag, std::uint32_t context) noexcept {
    unexpected_message* m = nullptr;
    while ((m = matching_.find(from, tag, context)) != nullptr && !core_.is_immediate(m->bytes) &&
           link_to(m->source).discard_if_withdrawn(*m)) {
    }
    return m;
}

// By a link that is making progress: it must not do so again.
void message_engine::receive_another(message_operation& r) noexcept {
    if (r.is_withdrawn || is_ending_ || core_.state != status::ok) return r.finish();
    if (r.from_any) r.peer = any_source;
    r.info = {};
    if (unexpected_message* const m = find_kept(r.peer, r.tag, r.context)) return receive_kept(r, *m);
    matching_.post_again(r);
}

void messenger_core::receive_another(message_operation& receive) noexcept { owner.engine->receive_another(receive); }

bool message_engine::try_send_immediate(std::span<const std::byte> data, int to, int tag,
                                        std::uint32_t context) noexcept {
    if (!is_rank(to) || tag < 0 || has_failed()) return false; // isend() and its wait report that
    message_link& l = link_to(to);
    if (!core_.is_immediate(data.size()) || !l.queued.empty() || !l.shm) return false;
    if (!l.shm->try_send_immediate(data, tag, context)) return false;
    count_unattended();
    return true;
}

bool message_engine::try_receive_immediate(std::span<std::byte> into, int from, int tag, std::uint32_t context,
                                           message_info& info) noexcept {
    if (!is_rank(from) || has_failed()) return false;
    message_link& l = link_to(from);
    if (!l.shm || !matching_.nothing_waits(from)) return false;
    if (!l.shm->try_receive(into, tag, context, patience(), info)) return false;
    count_unattended();
    return true;
}

int message_engine::patience() const noexcept {
    constexpr int alone = 200; // some microseconds; after that other messages may need progress()
    return core_.job.spin.has_own_core() ? alone : 1;
}

bool message_engine::try_complete_receive(message_operation& r, int patience) noexcept {
    if (r.state != operation_state::posted || r.peer == any_source) return r.done();
    if (has_failed()) return false;
    message_link& l = link_to(r.peer);
    if (!l.shm || !matching_.is_next(r)) return false;
    if (!l.shm->try_receive({r.data, r.bytes}, r.tag, r.context, patience, r.info)) return false;
    matching_.withdraw(r);
    r.finish();
    count_unattended();
    return true;
}

status message_engine::send(std::span<const std::byte> data, int to, int tag, std::uint32_t context) noexcept {
    message_request r;
    r.operation_.is_waited_for = true;
    isend(r, data, to, tag, context);
    return wait_one(r);
}

status message_engine::recv(std::span<std::byte> into, int from, int tag, std::uint32_t context,
                            message_info& info) noexcept {
    message_request r;
    irecv(r, into, from, tag, context);
    const status s = wait_one(r);
    info = r.info();
    return s;
}

void message_engine::progress() noexcept {
    unattended_ = 0;
    for (message_link& l : links_) l.progress();
}

void message_engine::attend() noexcept {
    progress();
    const flag_scope running(in_own_call_);
    core_.job.background.run_all();
}

/// The operations of a wait, by position; null pointers are ignored.
template <class OperationAt, class IsSettled>
class message_engine::awaited_operations {
  public:
    awaited_operations(std::size_t count, OperationAt& operation_at, IsSettled& is_settled, until how) noexcept
        : count_(count), operation_at_(operation_at), is_settled_(is_settled), how_(how) {}

    [[nodiscard]] bool is_settled(const message_operation& o) const noexcept { return is_settled_(o); }
    /// Is the wait over?
    [[nodiscard]] bool done() noexcept {
        for (; first_ < count_; ++first_) {
            const message_operation* const o = operation_at_(first_);
            if (o == nullptr) continue;
            if (!is_settled_(*o)) break;
            if (how_ == until::any) return true;
        }
        if (how_ == until::all) return first_ == count_;
        for (std::size_t k = first_ + 1; k < count_; ++k)
            if (const message_operation* const o = operation_at_(k); o != nullptr && is_settled_(*o)) return true;
        return false;
    }
    /// The first one that was not settled in done(); else the last one that is. nullptr: there is none.
    [[nodiscard]] message_operation* first() const noexcept {
        if (first_ < count_) return operation_at_(first_);
        for (std::size_t k = count_; k-- > 0;)
            if (message_operation* const o = operation_at_(k)) return o;
        return nullptr;
    }
    /// Calls visit(o) for each that is not settled until that returns true. nullptr: it never did.
    template <class Visit>
    message_operation* find(Visit&& visit) const noexcept {
        for (std::size_t k = first_; k < count_; ++k) {
            message_operation* const o = operation_at_(k);
            if (o != nullptr && !is_settled_(*o) && visit(*o)) return o;
        }
        return nullptr;
    }
    /// The number of those that are not settled, without that one.
    [[nodiscard]] std::size_t unsettled_besides(const message_operation& one) const noexcept {
        std::size_t n = 0;
        (void)find([&](const message_operation& o) {
            n += &o != &one;
            return false;
        });
        return n;
    }

  private:
    std::size_t count_;
    OperationAt& operation_at_;
    IsSettled& is_settled_;
    until how_;
    std::size_t first_ = 0; // that is not settled
};

int message_engine::gone(int peer) const noexcept {
    if (peer != any_source) return links_[peer].peer_has_left() ? peer : -1;
    int first = -1;
    for (const message_link& l : links_) { // itself it sends nothing while it waits
        if (l.self) continue;
        if (!l.peer_has_left()) return -1;
        if (first < 0) first = l.peer;
    }
    return first;
}

template <class Awaited>
status message_engine::left_by_one(const Awaited& operations, message_operation*& culprit) noexcept {
    int who = -1;
    message_operation* const o = operations.find([&](const message_operation& x) {
        const bool settles = x.peer != any_source && links_[x.peer].still_settles(x);
        return !settles && (who = gone(x.peer)) >= 0;
    });
    if (o == nullptr) return status::ok;
    progress(); // takes in what its peer did before it left, which may have withdrawn what a receive from any rank had met
    culprit = o;
    return operations.is_settled(*o) || (who = gone(o->peer)) < 0 ? status::ok : core_.job.left_by(who);
}

template <class OperationAt, class IsSettled>
status message_engine::wait(std::size_t count, OperationAt&& operation_at, IsSettled&& is_settled, until how,
                            std::optional<std::chrono::nanoseconds> longest) noexcept {
    if (core_.state != status::ok) return core_.state;
    awaited_operations<OperationAt, IsSettled> operations(count, operation_at, is_settled, how);
    const bool is_over = operations.done();
    if (const status ended = core_.job.failed_for_call(); ended != status::ok) {
        message_operation* const culprit = operations.first();
        if (culprit == nullptr) return core_.state;
        core_.fail(ended, *culprit, is_over ? 0 : operations.unsettled_besides(*culprit));
        core_.failed.is_settled = is_over;
        return ended;
    }
    if (is_over) return core_.state;
    const std::uint64_t begin = longest ? ticks() : 0;
    std::uint64_t moved = core_.moved.count();
    waiter waiting(core_.job);
    const flag_scope running(in_own_call_);
    for (std::uint64_t polls = 0; !operations.done(); ++polls) {
        progress();
        if (core_.state != status::ok || operations.done()) break;
        if (polls % polls_per_pause_ != 0) continue;
        message_operation* culprit = operations.first();
        if (const std::uint64_t before = std::exchange(moved, core_.moved.count()); before != moved) {
            // As long as what it waits for moves, a large message may take longer than the deadline.
            if (operations.find([&](const message_operation& o) { return core_.moved.since(before, o.peer); }))
                waiting.restart_deadline();
        }
        status bad = core_.broken != status::ok ? core_.broken : waiting.again(culprit->peer);
        const std::uint64_t now = longest ? ticks() : 0;
        const bool over = longest && seconds(now - begin) > std::chrono::duration<double>(*longest).count();
        if (bad == status::ok &&
            (over ||
             (polls != 0 && polls % (waiting.yielded() ? yields_per_departure_check : polls_per_departure_check) == 0)))
            bad = left_by_one(operations, culprit);
        if (bad == status::ok && over) bad = look_after_short_wait(culprit->peer, now);
        if (core_.state != status::ok || operations.done()) break; // all of the above makes progress, too
        // The look may have completed it: a peer that has left since is no trouble for the others.
        if (bad != status::ok && !operations.is_settled(*culprit))
            core_.fail(bad, *culprit, operations.unsettled_besides(*culprit));
        else if (over)
            return status::timed_out;
    }
    return core_.state;
}

status message_engine::look_after_short_wait(int peer, std::uint64_t now) noexcept {
    constexpr double look_every = 1e-3; // as a long wait does
    if (seconds(now - looked_) < look_every) return status::ok;
    looked_ = now;
    return core_.job.check_wait(peer, now, false);
}

template <class Request>
status message_engine::wait_for(std::span<Request> all, until how,
                                std::optional<std::chrono::nanoseconds> longest) noexcept {
    const auto needs_progress = [](Request& r) {
        const message_operation* const o = operation_of(r);
        return o != nullptr && !o->done() && o->state != operation_state::posted;
    };
    if (how == until::all && std::ranges::none_of(all, needs_progress))
        for (Request& r : all)
            if (message_operation* const o = operation_of(r); o != nullptr && !try_complete_receive(*o, patience()))
                break;
    return wait(
        all.size(), [&](std::size_t i) { return operation_of(all[i]); }, is_done, how, longest);
}

status message_engine::wait_one(message_request& r) noexcept {
    (void)try_complete_receive(r.operation_, patience());
    return wait(
        1, [&](std::size_t) { return &r.operation_; }, is_done);
}

status message_engine::wait_all(std::span<message_request> all,
                                std::optional<std::chrono::nanoseconds> longest) noexcept {
    return wait_for(all, until::all, longest);
}

status message_engine::wait_all(std::span<message_request* const> all) noexcept { return wait_for(all, until::all); }

status message_engine::wait_any(std::span<message_request* const> all) noexcept {
    if (std::ranges::all_of(all, [](const message_request* r) { return r == nullptr; })) return core_.state;
    return wait_for(all, until::any);
}

bool message_engine::has_started(const message_operation& o) const noexcept {
    switch (o.state) {
    case operation_state::queued:
    case operation_state::framed:
    case operation_state::called_for:
    case operation_state::admitted:
    case operation_state::writing: return false;
    case operation_state::announced: return !links_[o.peer].network;
    default: return true;
    }
}

status message_engine::start_all(std::span<message_request> all, std::chrono::nanoseconds longest) noexcept {
    return wait(
        all.size(), [&](std::size_t i) { return operation_of(all[i]); },
        [this](const message_operation& o) { return has_started(o); }, until::all, longest);
}

bool message_engine::test(message_request& r) noexcept {
    if (try_complete_receive(r.operation_, 1)) return true;
    const flag_scope running(in_own_call_);
    progress();
    if (r.done() || core_.state != status::ok) return true;
    status s = core_.broken;
    if (s == status::ok) s = after_fruitless_test(core_.job, fruitless_calls_, r.operation_.peer);
    if (s != status::ok) core_.fail(s, r.operation_, 0);
    return core_.state != status::ok;
}

bool message_engine::probe(int from, int tag, std::uint32_t context, message_info& info) noexcept {
    if (!can_come(from, tag)) {
        core_.misuse(false, from, tag);
        return false;
    }
    if (core_.state == status::misused) return false;
    const flag_scope running(in_own_call_);
    progress();
    if (const unexpected_message* const m = find(from, tag, context)) {
        info = {m->source, m->tag, m->bytes};
        return true;
    }
    if (core_.state != status::ok) return false;
    const status s =
        core_.broken != status::ok ? core_.broken : after_fruitless_test(core_.job, fruitless_calls_, from);
    if (s == status::ok || core_.state != status::ok) return false; // a receive may have failed in the meantime
    core_.state = s;
    core_.failed = {false, from, tag};
    return false;
}

status message_engine::wait_probe(int from, int tag, std::uint32_t context, message_info& info) noexcept {
    if (!can_come(from, tag)) {
        core_.misuse(false, from, tag);
        return core_.state;
    }
    message_operation receive; // never posted; it names what was waited for if the wait fails
    receive.state = operation_state::posted;
    receive.peer = from;
    receive.tag = tag;
    const unexpected_message* m = nullptr;
    const status s = wait(
        1, [&](std::size_t) { return &receive; },
        [&](const message_operation&) { return (m = find(from, tag, context)) != nullptr; });
    if (m != nullptr) info = {m->source, m->tag, m->bytes};
    return s;
}

void message_engine::withdraw(message_request& r) noexcept {
    if (core_.job.in_forked_child()) return;
    message_operation& o = r.operation_;
    o.is_withdrawn = true;
    switch (o.state) {
    case operation_state::done: break;
    case operation_state::queued: link_to(o.peer).queued.remove(o); break;
    case operation_state::posted: matching_.withdraw(o); break;
    default: link_to(o.peer).withdraw(o);
    }
    o.finish();
}

} // namespace halocline::comm
