// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/two_sided.hpp>

#include <halocline/comm/clock.hpp>

namespace halocline::comm::two_sided {
namespace {

constexpr std::uint32_t barrier_context = 0xffffffffu; // programs use context 0

std::span<const std::byte> bytes_of(const void* p, std::size_t count, datatype type) {
    return {static_cast<const std::byte*>(p), count * static_cast<std::size_t>(type)};
}
std::span<std::byte> bytes_of(void* p, std::size_t count, datatype type) {
    return {static_cast<std::byte*>(p), count * static_cast<std::size_t>(type)};
}
void tell(receive_status* s, const message_info& info) {
    if (s != nullptr) *s = {info.source, info.tag, info.bytes};
}

} // namespace

request communicator::take() {
    if (free_.empty()) {
        free_.reserve(all_.size() + 1); // so that give() does not allocate
        return &all_.emplace_back();
    }
    const request r = free_.back();
    free_.pop_back();
    return r;
}

void communicator::fail(status s) const { messages_.job().fail(s, messages_.pending()); }

void send(const void* buffer, std::size_t count, datatype type, int to, int tag, communicator& c) {
    c.require(c.messages().send(bytes_of(buffer, count, type), to, tag));
}

void recv(void* buffer, std::size_t count, datatype type, int from, int tag, communicator& c, receive_status* s) {
    message_info info;
    c.require(c.messages().recv(bytes_of(buffer, count, type), from, tag, &info));
    tell(s, info);
}

void sendrecv(const void* out, std::size_t out_count, datatype out_type, int to, int out_tag, void* in,
              std::size_t in_count, datatype in_type, int from, int in_tag, communicator& c, receive_status* s) {
    messenger& m = c.messages();
    message_request sending, receiving;
    m.isend(sending, bytes_of(out, out_count, out_type), to, out_tag);
    m.irecv(receiving, bytes_of(in, in_count, in_type), from, in_tag);
    c.require(m.wait(receiving));
    c.require(m.wait(sending));
    tell(s, receiving.info());
}

void isend(const void* buffer, std::size_t count, datatype type, int to, int tag, communicator& c, request* r) {
    *r = c.take();
    c.messages().isend(**r, bytes_of(buffer, count, type), to, tag);
}

void irecv(void* buffer, std::size_t count, datatype type, int from, int tag, communicator& c, request* r) {
    *r = c.take();
    c.messages().irecv(**r, bytes_of(buffer, count, type), from, tag);
}

void wait(request* r, communicator& c, receive_status* s) { waitall(1, r, c, s); }

void waitall(std::size_t count, request* requests, communicator& c, receive_status* statuses) {
    for (std::size_t i = 0; i < count; ++i) {
        if (requests[i] == request_null) continue;
        c.require(c.messages().wait(*requests[i])); // every wait advances all of them
        tell(statuses == nullptr ? nullptr : statuses + i, requests[i]->info());
        c.give(requests[i]);
        requests[i] = request_null;
    }
}

void test(request* r, bool* done, communicator& c, receive_status* s) {
    *done = *r == request_null || c.messages().test(**r);
    c.require(c.messages().state());
    if (!*done || *r == request_null) return;
    tell(s, (*r)->info());
    c.give(*r);
    *r = request_null;
}

void iprobe(int from, int tag, communicator& c, bool* there, receive_status* s) {
    message_info info;
    *there = c.messages().probe(from, tag, info);
    c.require(c.messages().state());
    if (*there) tell(s, info);
}

void barrier(communicator& c) {
    messenger& m = c.messages();
    for (int distance = 1; distance < c.size(); distance *= 2) {
        message_request sending;
        m.isend(sending, {}, (c.rank() + distance) % c.size(), distance, barrier_context);
        c.require(m.recv({}, (c.rank() + c.size() - distance) % c.size(), distance, nullptr, barrier_context));
        c.require(m.wait(sending));
    }
}

double wtime() { return seconds(ticks()); }

} // namespace halocline::comm::two_sided
