// SPDX-License-Identifier: Apache-2.0
#include "window_end.hpp"

#include "control/wire.hpp"
#include "job/waiting.hpp"
#include "network/worlds.hpp"
#include "node/copy_claimed.hpp"

#include <halocline/comm/claim_lines.hpp>
#include <halocline/comm/clock.hpp>
#include <halocline/comm/stream_bytes.hpp>
#include <halocline/comm/take_line.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace halocline::comm {
namespace {

constexpr std::uint64_t no_stamp = 0; // nobody asks of a window when its sender began

constexpr std::uint64_t nowhere = ~std::uint64_t{0};

/// Through slots nobody waits for this step's token; up to here that saves more than the receiver's copy costs
/// (docs/decisions/0011-windows.md).
constexpr std::size_t largest_in_slot = 1024;

std::string shown(std::size_t count, const std::string& element) { return std::to_string(count) + " of " + element; }

} // namespace

template <class Work>
bool window_end::with_channel(Work&& work) {
    if (auto* shm = std::get_if<shm_channel>(&channel_)) return work(*shm);
    if (auto* verbs = std::get_if<verbs_channel>(&channel_)) return work(*verbs);
    if (auto* ofi = std::get_if<ofi_channel>(&channel_)) return work(*ofi);
    if (auto* mpi = std::get_if<mpi_channel>(&channel_)) return work(*mpi);
    return true;
}

window_end::window_end(std::shared_ptr<connection_core> c, request r)
    : connection_(std::move(c)), request_(std::move(r)),
      number_(request_.sends ? connection_->sends : connection_->recvs) {
    job_core& job = core();
    job.sweep();
    job.due.reserve(job.windows + 1); // so that the data path never allocates
    const std::string& transport = job.members[connection_->peer].transport;
    const std::size_t in = request_.sends ? 0 : bytes();
    std::uint64_t buffer_offset = nowhere;
    std::string channel_card;
    if (!open<verbs_channel>(channel_card) && !open<ofi_channel>(channel_card) && !open<mpi_channel>(channel_card)) {
        direct_ = in > largest_in_slot && job.memory->contains(request_.buffer);
        if (direct_) buffer_offset = static_cast<std::uint64_t>(request_.buffer - job.memory->base());
        block_bytes_ = shm_channel::block_bytes(direct_ ? 0 : in);
        block_ = static_cast<std::byte*>(job.memory->allocate_for_peers(block_bytes_, alignof(control_line)));
        new (block_) control_line;
        if (direct_) job.memory->pin(request_.buffer);
    }
    wire_writer card;
    card.text(request_.element).number<std::uint64_t>(request_.count).text(connection_->options.name).text(transport);
    card.number(block_ == nullptr ? nowhere : static_cast<std::uint64_t>(block_ - job.memory->base()));
    card.number(buffer_offset).text(channel_card);
    connection_->send_letter(request_.sends ? 's' : 'r', number_, card.take());

    ++job.windows;
    ++(request_.sends ? connection_->sends : connection_->recvs);
    connection_->windows.push_back(this);
}

template <class Channel>
bool window_end::open(std::string& card) {
    job_core& job = core();
    const int peer = connection_->peer;
    if (job.members[peer].transport != Channel::transport) return false;
    const std::size_t out = request_.sends ? bytes() : 0, in = request_.sends ? 0 : bytes();
    auto& world = world_of(job, static_cast<Channel*>(nullptr));
    auto& c = channel_.emplace<Channel>(world, *job.memory, 0, peer, agreed_id(), out, in);
    if constexpr (requires { &Channel::complete; }) Channel::complete(world, agreed_id());
    card = c.card();
    return true;
}

window_end::~window_end() {
    job_core& job = core();
    const closing_scope closing(job.doing);
    std::erase(connection_->windows, this);
    std::erase(job.due, this);
    --job.windows;
    auto* shm = std::get_if<shm_channel>(&channel_);
    if (shm != nullptr) shm->close();
    if (block_ != nullptr) {
        parked_block parked{block_, block_bytes_, {reinterpret_cast<const control_line*>(block_)}};
        if (direct_ && !request_.sends) parked.pinned.push_back(request_.buffer);
        job.parked.push_back(std::move(parked));
        job.sweep();
    }
}

void window_end::connect(const std::string& peer_card) {
    job_core& job = core();
    const int peer = connection_->peer;
    wire_reader reader(peer_card);
    const std::string element = reader.text();
    const auto count = reader.number<std::uint64_t>();
    const std::string name = reader.text(), transport = reader.text();
    const auto block_offset = reader.number<std::uint64_t>(), buffer_offset = reader.number<std::uint64_t>();
    const std::string channel_card = reader.text();

    const auto refuse = [&](const std::string& mine, const std::string& theirs) {
        throw input_error(title() + ": " + mine + " here, " + theirs + " at rank " + std::to_string(peer) + " ('" +
                          name + "'); make both ends' windows alike, in the same order");
    };
    if (element != request_.element || count != request_.count) {
        refuse(shown(request_.count, request_.element), shown(count, element));
    }
    if (transport != job.members[peer].transport) refuse("transport " + job.members[peer].transport, transport);

    if (block_ == nullptr) {
        with_channel([&](auto& c) {
            if constexpr (requires { c.connect(channel_card); }) c.connect(channel_card);
            return true;
        });
    } else {
        connect_lines(block_offset, buffer_offset);
    }
    if (std::holds_alternative<verbs_channel>(channel_)) {
        connection_->send_letter(request_.sends ? 'S' : 'R', number_, "");
        peer_connected_ = false;
    }
    phase_ = phase::idle;
}

void window_end::connect_lines(std::uint64_t block_offset, std::uint64_t buffer_offset) {
    const job_core& job = core();
    std::byte* const base = job.peer_base[connection_->peer];
    if (request_.sends && buffer_offset != nowhere) {
        direct_ = true;
        remote_ = base + buffer_offset;
    }
    const std::size_t out = request_.sends && !direct_ ? bytes() : 0, in = !request_.sends && !direct_ ? bytes() : 0;
    channel_.emplace<shm_channel>(std::size_t{0}, connection_->peer, agreed_id(), out, in, base + block_offset, block_);
    if (!request_.sends) return;
    const path wish = job.options.path;
    const costs c = leaves_streaming(wish) && job.measured ? *job.measured : costs{};
    streaming_ = streaming_watch(c, bytes(), streaming_pays(wish, c, bytes()));
    claims_ = bytes() > largest_in_slot && bytes() <= largest_claimed();
}

bool window_end::peer_connected() noexcept {
    if (peer_connected_) return true;
    try {
        job_core& job = core();
        const std::string word = connection_->peers_key(request_.sends ? 'R' : 'S', number_);
        job.letters.collect(job.post);
        if (job.letters.find(connection_->peer, word) == nullptr) return false;
        job.letters.forget(connection_->peer, word);
    } catch (const std::exception& e) {
        status_ = core().lost(connection_->peer, e.what());
        return false;
    }
    return peer_connected_ = true;
}

std::uint32_t window_end::agreed_id() const {
    const connection_options& o = connection_->options;
    int from = core().rank, to = connection_->peer, out = o.send_tag, back = o.receive_tag;
    if (!request_.sends) {
        std::swap(from, to);
        std::swap(out, back);
    }
    std::uint32_t hash = 2166136261u; // FNV-1a
    for (const char c : wire_writer()
                            .number(from)
                            .number(to)
                            .number(out)
                            .number(back)
                            .number(connection_->ordinal)
                            .number(number_)
                            .take()) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    }
    return hash | 0x80000000u; // plans count from 1
}

template <class Done>
status window_end::until(Done done) noexcept {
    waiter waiting(core());
    while (status_ == status::ok && !done()) {
        push_windows(core()); // what this rank still has to send may be what the peer waits for
        if (const status s = waiting.again(connection_->peer); s != status::ok) status_ = s;
    }
    return status_;
}

template <class Channel>
bool window_end::is_good(Channel& c, std::uint64_t epoch) noexcept {
    const status s = c.check_part(epoch);
    if (s == status::ok) return true;
    status_ = s;
    if constexpr (requires { c.trouble(); }) {
        if (s == status::peer_died) status_ = core().lost(connection_->peer, "can't be reached: " + c.trouble());
    }
    return false;
}

/// May this step's payload be written to where it goes?
template <class Channel>
bool window_end::may_write(Channel& c) noexcept {
    const std::uint64_t token = direct_ ? step_ : step_ - 1;
    if (token > 0 && (!c.arrived(token) || !is_good(c, token))) return false;
    return c.sent(step_ - 1);
}

/// Fetches the line of a token that is there by now, if all goes well, before post() looks at it.
void window_end::expect_token(std::uint64_t token) noexcept {
    if (const auto* shm = std::get_if<shm_channel>(&channel_)) __builtin_prefetch(&shm->header(token));
}

void window_end::look_for_peer(std::byte* to, std::size_t bytes) noexcept {
    if (bytes == 0 || !streaming_.due(stamp_)) return;
    std::byte* const middle = to + bytes / 2;
    streaming_.read(ticks_to_take(middle, *middle), stamp_);
}

void window_end::write(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    if (streamed()) {
        stream_bytes(to, from, bytes);
        finish_streams();
        return;
    }
    if (claims_)
        copy_claimed(to, from, bytes);
    else
        std::memcpy(to, from, bytes);
}

template <class Channel>
bool window_end::send(Channel& c) noexcept {
    if (!request_.sends) {
        if (!c.sent(step_ - 1)) return false;
        c.send(step_, no_stamp);
        return true;
    }
    if (request_.buffer != nullptr) {
        if (!may_write(c)) return false;
        std::byte* const to = direct_ ? remote_ : c.target(step_);
        look_for_peer(to, post_bytes_);
        write(to, request_.buffer, post_bytes_);
    }
    c.send_part(step_, no_stamp, post_bytes_);
    return true;
}

bool window_end::push() noexcept {
    if (due_ && status_ == status::ok && peer_connected() && with_channel([this](auto& c) { return send(c); }))
        due_ = false;
    return !due_ || status_ != status::ok;
}

void window_end::send_later() noexcept {
    if (listed_) return;
    listed_ = true;
    core().due.push_back(this);
}

void push_windows(job_core& core) noexcept {
    std::erase_if(core.due, [](window_end* w) { return w->push_listed(); });
}

bool window_end::push_listed() noexcept {
    listed_ = !push();
    return !listed_;
}

status window_end::misused(const char* how) noexcept {
    if (status_ != status::ok) return status_;
    misuse_ = how;
    return status_ = status::misused;
}

status window_end::begin() noexcept {
    if (status_ != status::ok) return status_;
    if (phase_ != phase::idle) {
        return misused(phase_ == phase::made ? "init() before the connection's connect()" : "init() before wait()");
    }
    ++step_;
    phase_ = phase::begun;
    stamp_ = ticks();
    if (request_.sends) {
        if (direct_) expect_token(step_);
        return status_;
    }
    due_ = true;
    if (!push()) send_later();
    return status_;
}

status window_end::fill() noexcept {
    if (begin() != status::ok) return status_;
    return until([this] {
        return with_channel([this](auto& c) {
            if (!may_write(c)) return false;
            buffer_ = direct_ ? remote_ : c.target(step_);
            look_for_peer(buffer_, bytes());
            return true;
        });
    });
}

status window_end::post(std::size_t bytes_now) noexcept {
    if (status_ != status::ok) return status_;
    if (phase_ != phase::begun) return misused("post() without init()");
    if (bytes_now > bytes()) return misused("post() of more elements than the window has");
    phase_ = phase::posted;
    if (request_.sends) {
        post_bytes_ = bytes_now;
        due_ = true;
        if (!push()) send_later();
    } else {
        done();
    }
    return status_;
}

bool window_end::done() noexcept {
    if (!push()) return false;
    return with_channel([this](auto& c) { return request_.sends ? c.sent(step_) : c.arrived(step_); });
}

bool window_end::test() noexcept {
    if (status_ != status::ok || phase_ == phase::idle) return true;
    if (phase_ != phase::posted) return false;
    if (done()) return true;
    if (status_ == status::ok) status_ = found_nothing(core(), tests_for_nothing_, connection_->peer);
    return status_ != status::ok;
}

status window_end::wait() noexcept {
    if (status_ != status::ok) return status_;
    if (phase_ != phase::posted) return misused("wait() without post()");
    if (until([this] { return done(); }) != status::ok) return status_;
    phase_ = phase::idle;
    if (request_.sends) {
        if (!direct_) expect_token(step_);
        return status_;
    }
    with_channel([this](auto& c) {
        if (!is_good(c, step_)) return true;
        came_bytes_ = c.header(step_).bytes;
        if (came_bytes_ > bytes()) {
            status_ = status::wrong_data;
        } else if (request_.buffer == nullptr) {
            buffer_ = const_cast<std::byte*>(c.received(step_));
        } else if (!direct_) {
            std::memcpy(request_.buffer, c.received(step_), came_bytes_);
        }
        return true;
    });
    return status_;
}

std::string window_end::title() const {
    return (request_.sends ? "send window " : "receive window ") + std::to_string(number_) + " of " +
           connection_->title();
}

std::string window_end::pending() const {
    std::string text = title() + ", step " + std::to_string(step_) + ": " + shown(request_.count, request_.element) +
                       " over " + core().members[connection_->peer].transport;
    if (misuse_ != nullptr) text += std::string(": ") + misuse_;
    return text;
}

std::string window_end::describe() const {
    const std::string& transport = core().members[connection_->peer].transport;
    const bool packed = transport == "verbs" || transport == "ofi" || transport == "mpi";
    const bool own = request_.buffer == nullptr;
    std::string how = "into the receiver's slot";
    if (direct_) how = "into the receiver's buffer";
    if (packed) how = std::string(own ? "from" : "copied to") + " a send buffer, " + how;
    if (!request_.sends && !direct_ && !own) how += ", copied from there";
    if (streamed()) how += ", past the sender's cache";
    if (const std::string when = streaming_.describe(); !when.empty()) how += "; " + when;
    return title() + ": " + shown(request_.count, request_.element) + " over " + transport + ", " + how;
}

} // namespace halocline::comm
