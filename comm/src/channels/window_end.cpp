// SPDX-License-Identifier: Apache-2.0
#include "window_end.hpp"

#include "control/wire_format.hpp"
#include "job/waiting.hpp"

#include <halocline/comm/detail/copy_bytes.hpp>

#include <exception>
#include <utility>

namespace halocline::comm {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 56; // per window: the size of its two slots doesn't overflow

std::string shown(std::size_t count, const std::string& element) { return std::to_string(count) + " of " + element; }

/// How the cards of all windows begin; what its way tells follows.
struct window_card {
    std::string element;
    std::uint64_t count = 0;
    std::string connection, transport;

    template <class Self, class Pass>
    static void fields(Self& c, Pass& pass) {
        pass(c.element, c.count, c.connection, c.transport);
    }
};

} // namespace

window_end::window_end(std::shared_ptr<connection_core> c, window_request r)
    : connection_(std::move(c)), core_(connection_->job.core()), request_(std::move(r)),
      number_(request_.sends ? connection_->sends : connection_->recvs),
      never_connected_(connection_->peer, connection_->peers_key(never_connected(!request_.sends), number_)),
      way_(make_way()) {
    job_core& job = core();
    job.windows.due.reserve(job.windows.count + 1); // so that the data path never allocates
    wire_writer card;
    write_fields(card,
                 window_card{to_string(request_.element), request_.count, connection_->options.name, transport()});
    std::visit([&](const auto& w) { w.tell(card); }, way_);
    connection_->send_letter(card_of(request_.sends), number_, card.take());

    ++job.windows.count;
    ++(request_.sends ? connection_->sends : connection_->recvs);
    connection_->windows.push_back(this);
}

window_end::way window_end::make_way() {
    if (request_.count > most_bytes / request_.element.bytes) throw input_error(title() + ": larger than any memory");
    core().sweep();
    const auto far = [&]<class Way>(std::in_place_type_t<Way> kind) {
        return way(kind, *connection_, request_, number_, connection_->agreed_id(request_.sends, number_));
    };
    if (request_.bytes() >= least_straight) { // known to both ends
        const bool writes_memory = direct_obstacle(connection_->job, connection_->peer).empty();
        if (transport() == verbs_channel::transport && writes_memory)
            return far(std::in_place_type<straight_window_end<verbs_window_channel>>);
        if (transport() == ofi_channel::transport && writes_memory)
            return far(std::in_place_type<straight_window_end<ofi_window_channel>>);
    }
    if (transport() == verbs_channel::transport) return far(std::in_place_type<far_window_end<verbs_channel>>);
    if (transport() == ofi_channel::transport) return far(std::in_place_type<far_window_end<ofi_channel>>);
    if (transport() == mpi_channel::transport) return far(std::in_place_type<far_window_end<mpi_channel>>);
    if (request_.bytes() <= small_window_end::most_bytes)
        return way(std::in_place_type<small_window_end>, core(), request_, never_connected_);
    return way(std::in_place_type<near_window_end>, core(), request_, never_connected_);
}

window_end::~window_end() {
    job_core& job = core();
    if (!job.in_forked_child()) job.windows.driver.take_over(); // in a child, its driver no longer runs
    // In a job that has failed, that is what its partner has to report.
    if (phase_ == phase::made && !job.in_forked_child() && job.failed() == status::ok) say_never_connected();
    std::erase(connection_->windows, this);
    std::erase(job.windows.due, this);
    --job.windows.count;
    if (request_.sends && phase_ == phase::posted) --job.windows.sending;
}

void window_end::say_never_connected() noexcept {
    try {
        connection_->send_letter(never_connected(request_.sends), number_, "");
    } catch (const std::exception&) { // the peer is gone, too
    }
}

bool window_end::partner_never_connected() noexcept {
    open_windows& windows = core().windows;
    windows.look_for_letters(core().setup_mail);
    return windows.letters.find(never_connected_) != nullptr;
}

void window_end::connect(const std::string& peer_card) {
    const int peer = connection_->peer;
    wire_reader card(peer_card);
    const auto there = read_fields<window_card>(card);
    const auto refuse = [&](const std::string& mine, const std::string& theirs) {
        std::visit([](auto& w) { w.refuse(); }, way_); // as the other end does, which compares the same
        throw input_error(title() + ": " + mine + " here, " + theirs + " at rank " + std::to_string(peer) + " ('" +
                          there.connection + "'); make both ends' windows alike, in the same order");
    };
    if (there.element != to_string(request_.element) || there.count != request_.count)
        refuse(shown(request_.count, to_string(request_.element)), shown(there.count, there.element));
    if (there.transport != transport()) refuse("transport " + transport(), there.transport);
    if (partner_never_connected()) {
        std::visit([](auto& w) { w.refuse(); }, way_);
        throw input_error(title() + ": rank " + std::to_string(peer) +
                          " has destroyed the other end without connecting it");
    }

    const auto join = [&](auto& w) {
        w.connect(card, peer, connection_->agreed_id(request_.sends, number_));
        if (request_.sends && request_.buffer == nullptr && w.token_to_fill(1) == 1)
            spare_.reset(new (std::align_val_t{128}) std::byte[request_.bytes()]); // touched only if it is needed
    };
    std::visit(join, way_);
    phase_ = phase::idle;
}

template <class Done>
status window_end::until(Done done) noexcept {
    waiter waiting(core());
    std::uint64_t looks = 0;
    while (status_ == status::ok && !done(waiting)) {
        core().windows.push_due(); // the peer may be waiting for what this rank still has to send
        help();                    // after that, so that the peer copies, too
        if (const status s = waiting.again(connection_->peer); s != status::ok) status_ = s;
        if (waiting.checked_job() && status_ == status::ok && ++looks % looks_per_partner_check == 0 &&
            partner_never_connected())
            status_ = core().left_by(connection_->peer);
    }
    return status_;
}

template <window_way Way>
[[gnu::always_inline]] inline bool window_end::accept(Way& w, std::uint64_t epoch) noexcept {
    const status s = w.check(epoch);
    if (s != status::ok) status_ = s == status::aborted ? core().left_by(connection_->peer) : s;
    return s == status::ok;
}

template <window_way Way>
[[gnu::always_inline]] inline bool window_end::may_write(Way& w, std::uint64_t token) noexcept {
    if (token > 0 && (!w.has_token(token) || !accept(w, token))) return false;
    return w.sent(step_ - 1);
}

bool window_end::may_fill(std::size_t at, std::size_t bytes) noexcept {
    if (phase_ != phase::begun)
        misused("insert() that is not between init() and post()");
    else if (at > request_.bytes() || bytes > request_.bytes() - at)
        misused("insert() of elements that the window doesn't have");
    return seen_status() == status::ok;
}

bool window_end::has_member(team t) noexcept {
    if (!t.is_member()) misused(t);
    return t.is_member();
}

void window_end::write(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    if (source_ != nullptr) return copy_bytes(to, from, bytes); // into spare_
    on_way([&](auto& w) { w.write(to, from, bytes); });
}

template <window_way Way>
[[gnu::always_inline]] inline bool window_end::send(Way& w) noexcept {
    if (!request_.sends) {
        if (!w.sent(step_ - 1)) return false;
        w.send_token(step_);
        return true;
    }
    if (sent_ != step_) {
        const std::uint64_t token = w.token_to_send(step_);
        const bool waited = source_ == nullptr && token == w.token_to_fill(step_); // by fill()
        if (!waited && !may_write(w, token)) return false;
        if (source_ != nullptr) {
            w.look_for_peer(step_, w.target(step_), post_bytes_);
            w.copy(step_, source_, post_bytes_);
        }
        w.send_message(step_, post_bytes_);
        sent_ = step_;
    }
    return w.is_copied(step_, post_bytes_);
}

template <window_way Way>
[[gnu::always_inline]] inline void window_end::take(Way& w) noexcept {
    if (!accept(w, step_)) return;
    received_bytes_ = w.bytes(step_);
    if (received_bytes_ > request_.bytes()) {
        status_ = status::wrong_data;
    } else if (request_.buffer == nullptr) {
        buffer_ = const_cast<std::byte*>(w.received(step_));
    } else {
        w.take(step_, received_bytes_);
    }
}

[[gnu::always_inline]] inline bool window_end::push() noexcept {
    if (due_ && status_ == status::ok) due_ = !on_way([this](auto& w) { return w.is_connected(status_) && send(w); });
    return !due_ || status_ != status::ok;
}

[[gnu::always_inline]] inline void window_end::send_soon() noexcept {
    due_ = true;
    if (push() || listed_) return;
    listed_ = true;
    core().windows.due.push_back(this);
}

bool window_end::push_listed() noexcept {
    listed_ = !push();
    return !listed_;
}

status window_end::begin() noexcept {
    core().windows.driver.take_over();
    if (status_ != status::ok) return status_;
    if (phase_ != phase::idle) {
        return misused(phase_ == phase::made ? "init() before the connection's connect()" : "init() before wait()");
    }
    ++step_;
    phase_ = phase::begun;
    if (request_.sends) {
        source_ = request_.buffer;
        on_way([this](auto& w) { w.step_begins(step_); });
        return status_;
    }
    send_soon();
    return status_;
}

status window_end::fill() noexcept {
    if (begin() != status::ok) return status_;
    const auto fillable = [this](auto& w) {
        if (!may_write(w, w.token_to_fill(step_))) return false;
        buffer_ = w.target(step_);
        w.look_for_peer(step_, buffer_, request_.bytes());
        return true;
    };
    return until([&](const waiter& waiting) {
        if (on_way(fillable)) return true;
        if (spare_ == nullptr || !(receiver_is_late_ || waiting.yielded())) return false;
        source_ = buffer_ = spare_.get();
        ++spared_;
        return true;
    });
}

status window_end::post(std::size_t bytes_now) noexcept {
    core().windows.driver.take_over();
    if (status_ != status::ok) return status_;
    if (phase_ != phase::begun) return misused("post() without init()");
    if (bytes_now > request_.bytes()) return misused("post() of more elements than the window has");
    phase_ = phase::posted;
    if (request_.sends) {
        post_bytes_ = bytes_now;
        ++core().windows.sending;
        send_soon();
        receiver_is_late_ = due_ && spare_ != nullptr && source_ == spare_.get();
    } else {
        move_on();
    }
    return status_;
}

[[gnu::always_inline]] inline bool window_end::move_on() noexcept {
    if (!push()) return false;
    const auto over = [this](auto& w) { return request_.sends ? w.sent(step_) : w.arrived(step_); };
    return on_way(over);
}

void window_end::help() noexcept {
    // If this rank sends, too, its peers most likely do as well: each core is busy with its own copy.
    if (!request_.sends && core().windows.sending == 0) on_way([this](auto& w) { w.help(step_); });
}

bool window_end::test() noexcept {
    core().windows.driver.take_over();
    if (status_ != status::ok || phase_ != phase::posted) return true; // wait() would return at once
    if (move_on()) return true;
    help();
    if (status_ == status::ok) status_ = after_fruitless_test(core(), fruitless_tests_, connection_->peer);
    if (status_ == status::ok && fruitless_tests_ % (looks_per_partner_check * tests_per_death_check) == 0 &&
        partner_never_connected())
        status_ = core().left_by(connection_->peer);
    return status_ != status::ok;
}

status window_end::wait() noexcept {
    core().windows.driver.take_over();
    if (status_ == status::ok) status_ = core().failed_for_call();
    if (status_ != status::ok) return status_;
    if (phase_ != phase::posted) return misused("wait() without post()");
    if (!move_on()) (void)until([this](const waiter&) { return move_on(); });
    if (status_ != status::ok) return status_;
    phase_ = phase::idle;
    if (request_.sends) {
        --core().windows.sending;
        on_way([this](auto& w) { w.step_ended(step_); });
    } else {
        on_way([this](auto& w) { take(w); });
    }
    return status_;
}

std::string window_end::title() const {
    return (request_.sends ? "send window " : "receive window ") + std::to_string(number_) + " of " +
           connection_->title();
}

std::string window_end::pending() const {
    std::string text = title() + ", step " + std::to_string(step_) + ": " +
                       shown(request_.count, to_string(request_.element)) + " over " + transport();
    if (misuse_)
        text += ": " + misuse_.text();
    else if (request_.sends && request_.buffer == nullptr && phase_ == phase::begun)
        text += ", whose init() waits until the receiver has begun the step before, or an earlier one";
    return text;
}

std::string window_end::describe() const {
    return title() + ": " + shown(request_.count, to_string(request_.element)) + " over " + transport() + ", " +
           std::visit([](const auto& w) { return w.describe(); }, way_) +
           (spared_ > 0 ? ", copied there in " + std::to_string(spared_) + " steps, in which the receiver was late"
                        : "");
}

} // namespace halocline::comm
