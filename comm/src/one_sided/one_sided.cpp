// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/one_sided.hpp>

#include "job/waiting.hpp"
#include "rma_segment.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace halocline::comm {
namespace {

// What the halves of a line count.
constexpr int posts = 0;       // of the neighbour as a target
constexpr int completions = 1; // of the neighbour as an origin

struct alignas(64) signal_counter {
    std::atomic<std::uint64_t> count{0};
};

signal_counter& counter_at(std::byte* payload, int signal) {
    return reinterpret_cast<signal_counter*>(payload)[signal];
}

/// Bytes of the counters at the start of a segment's payload.
std::size_t counter_bytes(const exposure_options& o) {
    return static_cast<std::size_t>(o.signals) * sizeof(signal_counter);
}

} // namespace

exposure::exposure(const job& j, std::span<const int> neighbours, std::size_t bytes, exposure_options options)
    : options_(std::move(options)), segment_("an exposure", nullptr) {
    j.agree("the signals of '" + options_.name + "'", std::to_string(options_.signals));
    if (options_.signals < 0)
        throw input_error("'" + options_.name + "': " + std::to_string(options_.signals) +
                          " signals; 0 or more are possible");
    segment_.pointer() = std::make_unique<rma_segment>(
        j, options_.name, neighbours, sum_or_most(counter_bytes(options_), bytes),
        std::to_string(options_.signals) + " signals", std::max<std::size_t>(options_.direct_bytes, 1));
    // Zeroed memory is a set of counters that are 0; nobody adds before all ranks are here.
}

exposure::exposure(exposure&&) noexcept = default;
exposure& exposure::operator=(exposure&&) noexcept = default;
exposure::~exposure() = default;

std::span<std::byte> exposure::memory() const noexcept {
    const std::size_t counters = counter_bytes(options_);
    return {segment_->payload + counters, segment_->payload_bytes - counters};
}

exposure_counts exposure::counts() const noexcept { return segment_->counts(); }

std::size_t exposure::neighbours() const noexcept { return segment_->neighbours.size(); }

std::size_t exposure::bytes_at(std::size_t n) const noexcept {
    return segment_->neighbours[n].payload_bytes - counter_bytes(options_);
}

template <class Done>
status exposure::wait_until(const awaited& what, Done done) noexcept {
    segment_->poll();
    if (status_ == status::ok) status_ = segment_->job.core().failed_for_call();
    if (status_ != status::ok) return status_;
    const bool of_any = what.of == awaited::kind::signal;
    const status s = segment_->wait_until(of_any ? nullptr : &segment_->neighbours[what.which],
                                          [&] { return done() || status_ != status::ok; });
    if (status_ == status::ok) status_ = s;
    if (status_ != status::ok) failed_ = what;
    return status_;
}

/// Has neighbour n reported this many epochs? If it left before that, everything ends.
bool exposure::came(std::size_t n, int half, std::uint64_t epoch) noexcept {
    const rma_segment::neighbour& peer = segment_->neighbours[n];
    const bool left = rma_segment::left(peer); // read first: what was reported before is then visible
    if (rma_segment::told(peer, half) >= epoch) return true;
    if (left && status_ == status::ok) status_ = segment_->job.core().left_by(peer.rank);
    return false;
}

void exposure::post() noexcept {
    if (status_ != status::ok) return;
    if (posted_ != waited_) return misuse("post() before wait() of the last epoch");
    ++posted_;
    for (const auto& peer : segment_->neighbours) rma_segment::tell(peer, posts, posted_);
}

/// n: the first neighbour that has not completed; those before it have.
bool exposure::completed(std::size_t& n) noexcept {
    while (n < neighbours() && came(n, completions, posted_)) ++n;
    return n == neighbours();
}

bool exposure::test() noexcept {
    segment_->poll();
    std::size_t n = 0;
    return status_ != status::ok || completed(n) || failed_meanwhile(n);
}

/// After a fruitless poll of neighbour n: true if the job has failed in the meantime.
bool exposure::failed_meanwhile(std::size_t n) noexcept {
    if (status_ == status::ok)
        status_ = after_fruitless_test(segment_->job.core(), fruitless_tests_, segment_->neighbours[n].rank);
    return status_ != status::ok;
}

status exposure::wait() noexcept {
    if (status_ == status::ok && posted_ == waited_) misuse("wait() without post()");
    for (std::size_t n = 0; n < neighbours() && status_ == status::ok; ++n) {
        const status s =
            wait_until({awaited::kind::completion, n, posted_}, [&] { return came(n, completions, posted_); });
        if (s != status::ok) return s;
    }
    if (status_ == status::ok) waited_ = posted_;
    return status_;
}

void exposure::start() noexcept {
    if (status_ != status::ok) return;
    if (started_ != completed_) return misuse("start() before complete() of the last epoch");
    ++started_;
}

/// False: there is no neighbour n, which is misuse.
bool exposure::has_neighbour(std::size_t n) noexcept {
    const bool there = n < neighbours();
    if (!there) misuse("a neighbour was named that is not in the list; positions count from 0");
    return there;
}

bool exposure::ready(std::size_t n) noexcept {
    if (!has_neighbour(n)) return true;
    segment_->poll();
    return status_ != status::ok || came(n, posts, started_) || failed_meanwhile(n);
}

status exposure::await(std::size_t n) noexcept {
    if (!has_neighbour(n)) return status_;
    return wait_until({awaited::kind::post, n, started_}, [&] { return came(n, posts, started_); });
}

status exposure::put(std::size_t n, std::span<const std::byte> from, std::size_t offset) noexcept {
    if (status_ != status::ok || !has_neighbour(n)) return status_;
    if (started_ == completed_)
        misuse("put() without start(); outside of epochs there is put_signal()");
    else if (rma_segment::told(segment_->neighbours[n], posts) < started_)
        misuse("put() to a neighbour that has not posted; await() it, or ask ready()");
    return write(n, from, offset);
}

status exposure::write(std::size_t n, std::span<const std::byte> from, std::size_t offset) noexcept {
    if (status_ != status::ok) return status_;
    if (offset > bytes_at(n) || from.size() > bytes_at(n) - offset) {
        misuse("put() beyond the end of the neighbour's memory: see bytes_at()");
        return status_;
    }
    return status_ = segment_->write(segment_->neighbours[n], counter_bytes(options_) + offset, from);
}

status exposure::complete() noexcept {
    if (status_ == status::ok && started_ == completed_) misuse("complete() without start()");
    for (std::size_t n = 0; n < neighbours() && status_ == status::ok; ++n) {
        if (await(n) == status::ok) rma_segment::tell(segment_->neighbours[n], completions, started_);
    }
    for (std::size_t n = 0; n < neighbours() && status_ == status::ok; ++n)
        status_ = segment_->flush(segment_->neighbours[n]);
    if (status_ == status::ok) completed_ = started_;
    return status_;
}

/// False: there is no such counter, which is misuse.
bool exposure::has_signal(int signal) noexcept {
    const bool there = signal >= 0 && signal < options_.signals;
    if (!there) misuse("a signal was named beyond exposure_options::signals; they count from 0");
    return there;
}

status exposure::put_signal(std::size_t n, std::span<const std::byte> from, std::size_t offset, int signal) noexcept {
    if (!has_signal(signal) || !has_neighbour(n)) return status_;
    if (write(n, from, offset) != status::ok) return status_;
    const rma_segment::neighbour& peer = segment_->neighbours[n];
    status_ = segment_->add_one(peer, static_cast<std::size_t>(signal) * sizeof(signal_counter));
    if (status_ == status::ok) status_ = segment_->flush(peer);
    return status_;
}

std::uint64_t exposure::signals(int signal) const noexcept {
    segment_->poll();
    return counter_at(segment_->payload, signal).count.load(std::memory_order_acquire);
}

/// One of the neighbours, if all have left; else -1. This rank itself signals nothing while it waits.
int exposure::left_by_all() const noexcept {
    const int here = segment_->job.rank();
    int one = -1;
    for (const auto& n : segment_->neighbours) {
        if (n.rank != here && !rma_segment::left(n)) return -1;
        if (one < 0 || one == here) one = n.rank;
    }
    return one;
}

status exposure::wait_signals(int signal, std::uint64_t at_least) noexcept {
    if (!has_signal(signal) || status_ != status::ok) return status_;
    return wait_until({awaited::kind::signal, static_cast<std::size_t>(signal), at_least}, [&] {
        const int gone = left_by_all(); // read first: what they signalled before is then visible
        if (signals(signal) >= at_least) return true;
        if (gone >= 0 && status_ == status::ok) status_ = segment_->job.core().left_by(gone);
        return false;
    });
}

std::string exposure::pending() const {
    const rma_segment& segment = *segment_;
    const std::string text = "exposed memory '" + options_.name + "', epoch " + std::to_string(posted_) +
                             " as target, " + std::to_string(started_) + " as origin";
    const auto rank = [&] { return ": rank " + std::to_string(segment.neighbours[failed_.which].rank); };
    switch (failed_.of) {
    case awaited::kind::completion: return text + rank() + " to complete epoch " + std::to_string(failed_.value);
    case awaited::kind::post: return text + rank() + " to post epoch " + std::to_string(failed_.value);
    case awaited::kind::signal:
        return text + ": signal " + std::to_string(failed_.which) + " to reach " + std::to_string(failed_.value);
    case awaited::kind::nothing: break;
    }
    return text + (wrong_call_ ? ": " + wrong_call_.text() : "");
}

} // namespace halocline::comm
