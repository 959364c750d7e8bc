// SPDX-License-Identifier: Apache-2.0
// Whether a large message arrives sooner if the rank that waits for it copies, too (costs.cpp).
#pragma once

#include "write_probe.hpp"

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/costs.hpp>
#include <halocline/comm/detail/copy_bytes.hpp>
#include <halocline/comm/detail/joint_channel.hpp>
#include <halocline/comm/slab.hpp>

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

namespace halocline::comm {

/// Messages of joint_bytes from one rank to its partner, which waits for them and answers with an empty epoch.
class joint_probe {
  public:
    /// Collective.  peer: -1: none.
    joint_probe(const job& j, int peer) : job_(j), sends_(j.rank() < peer), source_(&j.memory()) {
        std::vector<channel_request> requests;
        if (peer >= 0) {
            channel_request& r = requests.emplace_back(channel_request{peer, 0, 0, 0, 0, "probe"});
            (sends_ ? r.send_bytes : r.receive_bytes) = joint_bytes;
            r.kind = channel_kind::joint_slots;
        }
        j.collectively([&] {
            if (sends_) source_.resize(joint_bytes);
        });
        set_ = channel_set(j, requests, {"costs of joint copies", "", {}});
    }
    /// In smaller slabs there may be no room for it. All ranks have equal ones.
    static constexpr std::size_t least_slab = 64 * joint_bytes;
    /// Time of a message and its answer.
    [[nodiscard]] double seconds_of(bool joint) {
        step(joint); // the lines of slots and source are where they are from now on
        return least_seconds(3, [&] { step(joint); });
    }

  private:
    static constexpr std::size_t line = 64;
    static constexpr auto lines = static_cast<std::int64_t>(joint_bytes / line);

    /// The source changes, travels, and is read.
    void step(bool joint) {
        ++epoch_;
        if (sends_) send(joint);
        const status s = set_.wait(epoch_, [this] {
            if (!sends_) help();
        });
        if (s != status::ok) job_.fail(s, set_.pending(epoch_));
        if (!sends_) read_and_answer();
    }
    void send(bool joint) {
        std::byte* const from = source_.data();
        for (std::size_t i = 0; i < joint_bytes; i += line) from[i] = static_cast<std::byte>(epoch_);
        const std::uint64_t place = static_cast<std::uint64_t>(from - job_.memory().base());
        set_.for_each([&]<class Channel>(Channel& c) {
            if constexpr (joint_channel<Channel>) {
                const auto copy = [&](std::int64_t first, std::int64_t last) noexcept {
                    copy_lines(c.target(epoch_), from, first, last);
                };
                if (joint) {
                    c.offer(epoch_, {.component_bytes = 1, .fields = 1, .places = {place}});
                    c.copy_offered(epoch_, lines, copy);
                } else {
                    copy(0, lines);
                }
                c.send(epoch_, 0);
            }
        });
    }
    void help() {
        set_.for_each([&]<class Channel>(Channel& c) {
            if constexpr (joint_channel<Channel>) {
                c.help(epoch_, lines,
                       [&](std::int64_t first, std::int64_t last, const joint_source& source,
                           const std::byte* memory) noexcept {
                           copy_lines(c.slot(epoch_), memory + source.places[0], first, last);
                       });
            }
        });
    }
    void read_and_answer() {
        set_.for_each([&](auto& c) {
            const auto* const message = const_cast<const volatile std::byte*>(c.received(epoch_));
            for (std::size_t i = 0; i < joint_bytes; i += line) (void)message[i];
            c.send(epoch_, 0);
        });
    }
    static void copy_lines(std::byte* to, const std::byte* from, std::int64_t first, std::int64_t last) noexcept {
        copy_bytes(to + first * line, from + first * line, static_cast<std::size_t>(last - first) * line);
    }

    job job_;
    bool sends_;
    std::pmr::vector<std::byte> source_; // in the slab
    channel_set set_;
    std::uint64_t epoch_ = 0;
};

} // namespace halocline::comm
