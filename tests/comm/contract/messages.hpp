// SPDX-License-Identifier: Apache-2.0
// Message contents by which a byte of another epoch, sender, end or place is noticed: each message is a stretch of one
// long tape of random bytes, and its sender and epoch decide where it begins. Filling is one memcpy, checking one
// memcmp.
#pragma once

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/clock.hpp>

#include <cstring>
#include <random>
#include <vector>

namespace halocline_test {

using namespace halocline::comm;

class tape {
  public:
    /// For messages of up to `most_bytes`.
    explicit tape(std::size_t most_bytes) : words_((most_bytes + starts) / 8 + 1) {
        std::mt19937_64 random(1);
        for (std::uint64_t& w : words_) w = random();
    }
    /// The message of this end in this epoch. Neighbouring epochs, ends and ranks begin elsewhere.
    [[nodiscard]] const std::byte* message(int sender, std::uint32_t key, std::uint64_t epoch) const {
        const std::uint64_t place = (static_cast<std::uint64_t>(sender) * 521 + key * 67 + epoch * 7) % starts;
        return reinterpret_cast<const std::byte*>(words_.data()) + place;
    }

  private:
    static constexpr std::uint64_t starts = 4093;
    std::vector<std::uint64_t> words_;
};

/// Two ends per rank in a ring: on 2 ranks both neighbours are the same rank, on 1 rank it is the rank itself.
inline std::vector<channel_request> ring(const job& j, std::size_t bytes) {
    const int next = (j.rank() + 1) % j.ranks(), before = (j.rank() + j.ranks() - 1) % j.ranks();
    return {{next, 1, 0, bytes, bytes, "high"}, {before, 0, 1, bytes, bytes, "low"}};
}

template <class Channel>
void fill(Channel& c, const channel_set& set, const tape& t, int me, std::uint64_t epoch) {
    const channel_request& r = set.request(c.index());
    if (r.send_bytes > 0) std::memcpy(c.target(epoch), t.message(me, r.key, epoch), r.send_bytes);
}
inline void fill_and_send(channel_set& set, const tape& t, int me, std::uint64_t epoch) {
    set.for_each([&](auto& c) {
        fill(c, set, t, me, epoch);
        c.send(epoch, ticks());
    });
}
/// Number of messages of `epoch` that differ from what their sender wrote.
[[nodiscard]] inline int wrong_messages(channel_set& set, const tape& t, std::uint64_t epoch) {
    int wrong = 0;
    set.for_each([&](auto& c) {
        const channel_request& r = set.request(c.index());
        const std::byte* expected = t.message(r.peer, r.peer_key, epoch);
        wrong += r.receive_bytes > 0 && std::memcmp(c.received(epoch), expected, r.receive_bytes) != 0;
    });
    return wrong;
}
/// wait() that throws on a bad status.
inline void wait_for(const job& j, channel_set& set, std::uint64_t epoch) {
    if (const status s = set.wait(epoch); s != status::ok) j.fail(s, set.pending(epoch));
}

} // namespace halocline_test
