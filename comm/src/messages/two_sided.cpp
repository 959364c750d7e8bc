// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/two_sided.hpp>

#include <halocline/base/error.hpp>
#include <halocline/comm/clock.hpp>
#include <halocline/comm/global_sum.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <string>

namespace halocline::comm::two_sided {
namespace {

// Tags of collectives, which have a context of their own. A barrier's tags are the distances of its partners, so they
// are smaller.
constexpr int bcast_tag = 1 << 30, reduce_tag = bcast_tag + 1;
constexpr int values_at_once = 64; // in one global_sum

/// Err: input_error: more than memory holds, as a negative number of MPI's would be.
std::size_t bytes_of(std::size_t count, datatype type) {
    constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
    if (count > most / size_of(type))
        throw input_error("a message of " + std::to_string(count) + " elements of " + std::to_string(size_of(type)) +
                          " bytes: more than memory holds; is the count negative?");
    return count * size_of(type);
}
std::span<const std::byte> bytes_of(const void* p, std::size_t count, datatype type) {
    return {static_cast<const std::byte*>(p), bytes_of(count, type)};
}
std::span<std::byte> bytes_of(void* p, std::size_t count, datatype type) {
    return {static_cast<std::byte*>(p), bytes_of(count, type)};
}
void tell(receive_status* s, const message_info& info) {
    if (s != nullptr) *s = {info.source, info.tag, info.bytes};
}
receive_status* of(receive_status* statuses, std::size_t i) { return statuses == nullptr ? nullptr : statuses + i; }

/// Reports a request that is done, and takes it back.
void end(request& r, communicator& c, receive_status* s) {
    tell(s, r->info());
    c.give(r);
    r = request_null;
}

/// Index of the first request that is done; `count` if none is.
std::size_t first_done(std::size_t count, const request* requests) {
    return static_cast<std::size_t>(
        std::find_if(requests, requests + count, [](request r) { return r != request_null && r->done(); }) - requests);
}

bool all_null(std::size_t count, const request* requests) {
    return std::all_of(requests, requests + count, [](request r) { return r == request_null; });
}

/// into <- into op more, element by element.
template <class T>
void combine(void* into, const std::byte* more, std::size_t count, op how) {
    T* const a = static_cast<T*>(into);
    for (std::size_t i = 0; i < count; ++i) {
        T b;
        std::memcpy(&b, more + i * sizeof(T), sizeof(T));
        a[i] = how == op::sum ? a[i] + b : how == op::min ? std::min(a[i], b) : std::max(a[i], b);
    }
}

} // namespace

struct communicator::shared {
    shared(const job& j, const messenger_options& options) : messages(j, options) {}
    messenger messages;
    std::deque<message_request> all;
    std::vector<request> free;
    std::uint32_t contexts = 2;    ///< handed out so far
    std::optional<global_sum> sum; ///< made when first needed
};

communicator::communicator(const job& j, const messenger_options& options)
    : all_(std::make_shared<shared>(j, options)), context_(0) {}

communicator dup(const communicator& c) {
    const std::uint32_t context = c.all_->contexts;
    c.all_->contexts += 2;
    return {c.all_, context};
}

messenger& communicator::messages() const { return all_->messages; }

request communicator::take() {
    if (all_->free.empty()) {
        all_->free.reserve(all_->all.size() + 1); // so that give() does not allocate
        return &all_->all.emplace_back();
    }
    const request r = all_->free.back();
    all_->free.pop_back();
    return r;
}

void communicator::give(request r) { all_->free.push_back(r); }

void communicator::fail(status s) const { messages().job().fail(s, messages().pending()); }

void communicator::reduce(std::span<double> values, op how) {
    if (!all_->sum) all_->sum.emplace(messages().job(), values_at_once);
    global_sum& sum = *all_->sum;
    const auto change_signs = [&] { // the minimum is the maximum with signs changed
        if (how == op::min) std::ranges::transform(values, values.begin(), std::negate<>());
    };
    change_signs();
    for (std::span<double> left = values; !left.empty();) {
        const std::span<double> now = left.first(std::min<std::size_t>(left.size(), values_at_once));
        const status s = how == op::sum ? sum(now) : sum.maximum(now);
        if (s != status::ok) messages().job().fail(s, sum.pending());
        left = left.subspan(now.size());
    }
    change_signs();
}

void send(const void* buffer, std::size_t count, datatype type, int to, int tag, communicator& c) {
    c.require(c.messages().send(bytes_of(buffer, count, type), to, tag, c.context()));
}

void recv(void* buffer, std::size_t count, datatype type, int from, int tag, communicator& c, receive_status* s) {
    message_info info;
    c.require(c.messages().recv(bytes_of(buffer, count, type), from, tag, &info, c.context()));
    tell(s, info);
}

void sendrecv(const void* out, std::size_t out_count, datatype out_type, int to, int out_tag, void* in,
              std::size_t in_count, datatype in_type, int from, int in_tag, communicator& c, receive_status* s) {
    message_info info;
    c.require(c.messages().sendrecv(bytes_of(out, out_count, out_type), to, out_tag, bytes_of(in, in_count, in_type),
                                    from, in_tag, &info, c.context()));
    tell(s, info);
}

void isend(const void* buffer, std::size_t count, datatype type, int to, int tag, communicator& c, request* r) {
    const auto bytes = bytes_of(buffer, count, type); // may be refused
    *r = c.take();
    c.messages().isend(**r, bytes, to, tag, c.context());
}

void irecv(void* buffer, std::size_t count, datatype type, int from, int tag, communicator& c, request* r) {
    const auto bytes = bytes_of(buffer, count, type); // may be refused
    *r = c.take();
    c.messages().irecv(**r, bytes, from, tag, c.context());
}

void probe(int from, int tag, communicator& c, receive_status* s) {
    message_info info;
    c.require(c.messages().wait_probe(from, tag, info, c.context()));
    tell(s, info);
}

void iprobe(int from, int tag, communicator& c, bool* there, receive_status* s) {
    message_info info;
    *there = c.messages().probe(from, tag, info, c.context());
    c.require(c.messages().state());
    if (*there) tell(s, info);
}

void wait(request* r, communicator& c, receive_status* s) { waitall(1, r, c, s); }

void waitall(std::size_t count, request* requests, communicator& c, receive_status* statuses) {
    for (std::size_t i = 0; i < count; ++i) {
        if (requests[i] == request_null) continue;
        c.require(c.messages().wait(*requests[i])); // every wait advances all of them
        end(requests[i], c, of(statuses, i));
    }
}

void waitany(std::size_t count, request* requests, int* index, communicator& c, receive_status* s) {
    *index = undefined;
    if (all_null(count, requests)) return;
    c.require(c.messages().wait_any({requests, count}));
    const std::size_t i = first_done(count, requests);
    *index = static_cast<int>(i);
    end(requests[i], c, s);
}

void waitsome(std::size_t count, request* requests, int* done_count, int* indices, communicator& c,
              receive_status* statuses) {
    *done_count = undefined;
    if (all_null(count, requests)) return;
    c.require(c.messages().wait_any({requests, count}));
    std::size_t done = 0;
    for (std::size_t i; (i = first_done(count, requests)) < count; ++done) {
        indices[done] = static_cast<int>(i);
        end(requests[i], c, of(statuses, done));
    }
    *done_count = static_cast<int>(done);
}

void test(request* r, bool* done, communicator& c, receive_status* s) { testall(1, r, done, c, s); }

void testall(std::size_t count, request* requests, bool* done, communicator& c, receive_status* statuses) {
    *done =
        std::all_of(requests, requests + count, [&](request r) { return r == request_null || c.messages().test(*r); });
    c.require(c.messages().state());
    for (std::size_t i = 0; *done && i < count; ++i)
        if (requests[i] != request_null) end(requests[i], c, of(statuses, i));
}

void testany(std::size_t count, request* requests, int* index, bool* done, communicator& c, receive_status* s) {
    *index = undefined;
    *done = all_null(count, requests);
    if (*done) return;
    for (std::size_t i = 0; i < count && !*done; ++i) {
        if (requests[i] == request_null || !c.messages().test(*requests[i])) continue;
        c.require(c.messages().state()); // if that is bad, it may not be done
        *index = static_cast<int>(i);
        *done = true;
        end(requests[i], c, s);
    }
}

void barrier(communicator& c) {
    messenger& m = c.messages();
    const std::uint32_t context = c.context() + 1;
    for (int distance = 1; distance < c.size(); distance *= 2) {
        message_request sending;
        m.isend(sending, {}, (c.rank() + distance) % c.size(), distance, context);
        c.require(m.recv({}, (c.rank() + c.size() - distance) % c.size(), distance, nullptr, context));
        c.require(m.wait(sending));
    }
}

void bcast(void* buffer, std::size_t count, datatype type, int root, communicator& c) {
    if (root < 0 || root >= c.size()) {
        throw input_error("bcast from rank " + std::to_string(root) + ": ranks are 0 to " +
                          std::to_string(c.size() - 1));
    }
    messenger& m = c.messages();
    const std::span<std::byte> data = bytes_of(buffer, count, type);
    // A binomial tree, with places counted from the root: each receives from the place without its lowest bit, and
    // sends to those with one lower bit more.
    const int place = (c.rank() - root + c.size()) % c.size();
    const auto rank_at = [&](int p) { return (p + root) % c.size(); };
    int bit = 1;
    for (; bit < c.size() && (place & bit) == 0; bit *= 2) {
    }
    if (place != 0) c.require(m.recv(data, rank_at(place - bit), bcast_tag, nullptr, c.context() + 1));
    while ((bit /= 2) > 0)
        if (place + bit < c.size()) c.require(m.send(data, rank_at(place + bit), bcast_tag, c.context() + 1));
}

void allreduce(const void* in, void* out, std::size_t count, datatype type, op how, communicator& c) {
    if (type == datatype::byte) throw input_error("allreduce of bytes: what they stand for is not known");
    const std::span<std::byte> values = bytes_of(out, count, type);
    if (in != out && count > 0) std::memcpy(out, in, values.size());
    if (type == datatype::float64) return c.reduce({static_cast<double*>(out), count}, how);
    messenger& m = c.messages();
    std::vector<std::byte> more(values.size());
    for (int distance = 1; distance < c.size(); distance *= 2) { // to rank 0, up the tree of bcast()
        if (c.rank() % (2 * distance) != 0) {
            c.require(m.send(values, c.rank() - distance, reduce_tag, c.context() + 1));
            break;
        }
        if (c.rank() + distance >= c.size()) continue;
        c.require(m.recv(more, c.rank() + distance, reduce_tag, nullptr, c.context() + 1));
        switch (type) {
        case datatype::int32: combine<std::int32_t>(out, more.data(), count, how); break;
        case datatype::int64: combine<std::int64_t>(out, more.data(), count, how); break;
        default: combine<float>(out, more.data(), count, how);
        }
    }
    bcast(out, count, type, 0, c);
}

double wtime() { return seconds(ticks()); }

} // namespace halocline::comm::two_sided
