// SPDX-License-Identifier: Apache-2.0
// The channel of a large window over a network whose writes overtake each other in every order. The test is the
// network, and delivers them one by one.
#include "network/network_window_channel_body.hpp"

#include <halocline/comm/slab.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace halocline::comm;

/// Counts as ofi_end does.
struct shuffled_end : network_end {
    shuffled_end* there = nullptr;
    std::uint64_t came[2]{}, values_came[2]{}, parts_came[2]{}, promised = 0;

    [[nodiscard]] bool has(std::uint64_t epoch) const { return came[epoch & 1] >= (epoch + 1) / 2; }
    [[nodiscard]] bool over() const {
        return farewell_came &&
               came[0] + came[1] + values_came[0] + values_came[1] + parts_came[0] + parts_came[1] >= promised;
    }
    [[nodiscard]] bool has_room() const { return true; }
    [[nodiscard]] bool greeting_done() const { return true; }
    [[nodiscard]] bool values_gone() const { return true; }
    [[nodiscard]] static std::uint64_t counted_values(std::uint64_t writes) { return writes; }
    [[nodiscard]] bool has_values(std::uint64_t) const { return false; } // only direct channels ask
};

struct shuffled_world {
    static constexpr std::size_t largest_write = 1000;
    std::vector<std::unique_ptr<shuffled_end>> ends;
    std::vector<std::function<void()>> wire; ///< deliveries under way
    std::uint64_t given = 0;

    ~shuffled_world() {
        for (auto& e : ends) e->deallocate();
    }
    shuffled_end& open(std::pmr::memory_resource& memory, int, std::uint32_t, std::size_t out, std::size_t in) {
        ends.push_back(std::make_unique<shuffled_end>());
        ends.back()->allocate(memory, out, in);
        return *ends.back();
    }
    static std::string card(const shuffled_end&) { return {}; }
    void connect(shuffled_end& e, const std::string&) const { e.there = ends[&e == ends[0].get() ? 1 : 0].get(); }
    void greet(shuffled_end&) noexcept {}
    void send(shuffled_end& e, std::uint64_t epoch, std::size_t bytes) noexcept {
        std::vector<std::byte> data(e.outgoing(), e.outgoing() + bytes);
        give([&e, epoch, data] {
            std::ranges::copy(data, e.there->slot(epoch & 1) + message_slots::label_at);
            ++e.there->came[epoch & 1];
        });
    }
    static void open_values(shuffled_end& e, std::span<const direct_write> writes) {
        e.values.writes = direct_values::split(writes, largest_write);
    }
    void send_values(shuffled_end& e) noexcept {
        for (const direct_write& w : e.values.writes) {
            const std::byte* const from = e.values.source(w).start + w.from;
            std::vector<std::byte> data(from, from + w.bytes);
            auto* const to = reinterpret_cast<std::byte*>(e.values.target(w).address) + w.to;
            give([&e, data, to, part = e.values.is_part, half = e.values.given & 1] {
                std::ranges::copy(data, to);
                ++(part ? e.there->parts_came : e.there->values_came)[half];
            });
        }
    }
    void poll(shuffled_end&) noexcept {}
    void say_farewell(shuffled_end& e) noexcept {
        wire.push_back([&e, n = given] {
            e.there->promised = n;
            e.there->farewell_came = true;
        });
    }
    void release(shuffled_end&) noexcept {}
    static std::string describe(const shuffled_end&) { return "nothing is wrong"; }

  private:
    void give(std::function<void()> write) {
        wire.push_back(std::move(write));
        ++given;
    }
};

using channel_under_test = network_window_channel<shuffled_world, shuffled_end>;

struct known_memory : exposed_memory {
    explicit known_memory(std::byte* start) { ticket.address = reinterpret_cast<std::uintptr_t>(start); }
};

/// A window of 3500 bytes, and therefore four writes, into two slots.
struct shuffled_window {
    static constexpr std::size_t most = 3500;
    shuffled_world world;
    std::shared_ptr<node_slab> slab = std::make_shared<node_slab>(std::size_t{8} << 20);
    std::byte* const memory = static_cast<std::byte*>(slab->allocate(3 * most, 64));
    channel_under_test to = end(true), from = end(false);
    std::mt19937 random{11};

    shuffled_window() {
        to.connect(from.card());
        from.connect(to.card());
    }
    [[nodiscard]] std::byte* slot(std::uint64_t epoch) const { return memory + most * (1 + (epoch & 1)); }
    void send(std::uint64_t epoch, std::size_t bytes) {
        std::memset(memory, static_cast<int>(epoch), most);
        to.send_part(epoch, 0, bytes);
    }
    [[nodiscard]] bool is_whole(std::uint64_t epoch, std::size_t bytes) const {
        return from.bytes(epoch) == bytes &&
               std::count(slot(epoch), slot(epoch) + bytes, static_cast<std::byte>(epoch)) ==
                   static_cast<std::ptrdiff_t>(bytes);
    }

  private:
    channel_under_test end(bool sends) {
        auto places = std::make_shared<direct_memory>(slab);
        for (std::size_t n = sends ? 0 : 1; n < (sends ? 1U : 3U); ++n)
            places->add(memory + n * most, std::make_shared<known_memory>(memory + n * most));
        return {world, *std::pmr::new_delete_resource(), 0, 7, sends, most, places};
    }
};

/// Two messages under way, in pieces that come in any order: each has arrived when its last piece has, and not before.
TEST(WindowChannel, WritesOfTheNextMessageMayOvertakeThoseOfThisOne) {
    shuffled_window w;
    constexpr std::size_t sizes[] = {3500, 3500, 3500, 0, 1, 1000, 1001, 3499};
    std::uint64_t k = 1;
    for (int round = 0; round < 2000; ++round, k += 2) {
        const std::size_t bytes[] = {sizes[w.random() % 8], sizes[w.random() % 8]};
        std::vector<std::pair<int, std::function<void()>>> pieces; // its message, its delivery
        for (int m = 0; m < 2; ++m) {
            w.send(k + static_cast<unsigned>(m), bytes[m]);
            for (auto& piece : w.world.wire) pieces.emplace_back(m, std::move(piece));
            w.world.wire.clear();
        }
        std::shuffle(pieces.begin(), pieces.end(), w.random);
        int missing[] = {0, 0}, taken = 0;
        for (const auto& piece : pieces) ++missing[piece.first];
        for (const auto& [message, deliver] : pieces) {
            deliver();
            --missing[message];
            while (taken < 2 && missing[taken] == 0) {
                const std::uint64_t epoch = k + static_cast<unsigned>(taken);
                ASSERT_TRUE(w.from.message_arrived(epoch));
                ASSERT_EQ(w.from.check_message(epoch), status::ok);
                ASSERT_TRUE(w.is_whole(epoch, bytes[taken])) << epoch << ": " << bytes[taken];
                ++taken;
            }
            ASSERT_TRUE(taken == 2 || !w.from.message_arrived(k + static_cast<unsigned>(taken))) << round;
        }
        ASSERT_EQ(taken, 2);
    }
}

TEST(WindowChannel, AFarewellThatOvertakesTheMessageEndsNothingBeforeThatIsHere) {
    for (const std::size_t bytes : {3500, 1500, 0}) {
        shuffled_window w;
        w.send(1, bytes);
        w.to.close();
        std::ranges::reverse(w.world.wire);
        for (const auto& deliver : w.world.wire) {
            EXPECT_FALSE(w.from.message_arrived(1));
            deliver();
        }
        ASSERT_TRUE(w.from.message_arrived(1));
        EXPECT_EQ(w.from.check_message(1), status::ok);
        EXPECT_TRUE(w.is_whole(1, bytes));
        ASSERT_TRUE(w.from.message_arrived(2));
        EXPECT_EQ(w.from.check_message(2), status::aborted);
    }
}

} // namespace
