// SPDX-License-Identifier: Apache-2.0
// Messages that sender and receiver copy together: each piece once, by one of them; no sender may change what is still
// being read; and what a sender that left may have changed is no message. Ranks are threads.
#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/slab.hpp>

#include <gtest/gtest.h>
#include <halocline_test/refusal.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory_resource>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace halocline::comm;

constexpr std::size_t bytes = 300'000; // of no whole number of pieces
constexpr std::int64_t sites = 3'000, site_bytes = 100;

void run(const std::function<void(const job&)>& body) {
    job_options options;
    options.transports = {"shm"};
    options.path = path::direct; // nothing is measured
    options.slab_bytes = 64 << 20;
    options.deadline = std::chrono::seconds(20);
    run_threads(2, body, options);
}

/// One end of a channel from rank 0 to rank 1.
class end {
  public:
    explicit end(const job& j) : values(bytes, &j.memory()), job_(j) {
        const bool sends = j.rank() == 0;
        channel_request r{1 - j.rank(), 0, 0, sends ? bytes : 0, sends ? 0 : bytes, "bytes"};
        r.kind = channel_kind::joint_slots;
        r.note = "from rank " + std::to_string(j.rank());
        set.emplace(j, std::array{r}, channel_set_options{"joint", "", {}});
    }
    void fill(std::uint64_t epoch) {
        for (std::size_t i = 0; i < bytes; ++i) values[i] = value(i, epoch);
    }
    static std::byte value(std::size_t i, std::uint64_t epoch) {
        return static_cast<std::byte>(i * 7 + i / 256 + epoch);
    }
    /// Sender: offers and copies what is left; `before` is called between the two, `each` before each piece.
    template <class Before, class Each>
    void send(std::uint64_t epoch, Before&& before, Each&& each) {
        for_joint([&](auto& c) {
            c.offer(epoch, {.component_bytes = 1,
                            .fields = 1,
                            .places = {static_cast<std::uint64_t>(values.data() - job_.memory().base())}});
            before();
            c.copy_offered(epoch, sites, [&](std::int64_t first, std::int64_t last) {
                each();
                std::memcpy(c.target(epoch) + first * site_bytes, values.data() + first * site_bytes,
                            static_cast<std::size_t>((last - first) * site_bytes));
            });
            c.send(epoch, 0);
        });
    }
    /// Receiver: copies what is left; `each` is called before each piece, when its values have been read.
    template <class Each>
    void help(std::uint64_t epoch, Each&& each) {
        for_joint([&](auto& c) {
            c.help(epoch, sites,
                   [&](std::int64_t first, std::int64_t last, const joint_source& source, const std::byte* memory) {
                       std::memcpy(c.slot(epoch) + first * site_bytes, memory + source.places[0] + first * site_bytes,
                                   static_cast<std::size_t>((last - first) * site_bytes));
                       each();
                   });
        });
    }
    void help(std::uint64_t epoch) {
        help(epoch, [] {});
    }
    [[nodiscard]] std::int64_t wrong(std::uint64_t epoch) {
        std::int64_t wrong = 0;
        for_joint([&](auto& c) {
            for (std::size_t i = 0; i < bytes; ++i) wrong += c.received(epoch)[i] != value(i, epoch);
        });
        return wrong;
    }
    void answer(std::uint64_t epoch) {
        for_joint([&](auto& c) { c.send(epoch, 0); });
    }
    [[nodiscard]] bool sent(std::uint64_t epoch) {
        bool all = true;
        for_joint([&](auto& c) { all = c.sent(epoch); });
        return all;
    }

    std::optional<channel_set> set;
    std::pmr::vector<std::byte> values;

  private:
    template <class Visit>
    void for_joint(Visit&& visit) {
        set->for_each([&]<class C>(C& c) {
            if constexpr (joint_channel<C>) visit(c);
        });
    }
    job job_;
};

constexpr auto nothing = [] {};

TEST(JointChannel, EndsReadEachOthersNotesOnce) {
    run([](const job& j) {
        end e(j);
        EXPECT_EQ(e.set->take_note(0), "from rank " + std::to_string(1 - j.rank()));
        EXPECT_EQ(e.set->take_note(0), "");
    });
}

TEST(JointChannel, WhatTheReceiverDoesNotTakeTheSenderCopies) {
    run([](const job& j) {
        end e(j);
        for (std::uint64_t k = 1; k <= 4; ++k) {
            if (j.rank() == 0) {
                e.fill(k);
                e.send(k, nothing, nothing);
                EXPECT_TRUE(e.sent(k)) << "nothing was taken";
                ASSERT_EQ(e.set->wait(k), status::ok);
            } else {
                ASSERT_EQ(e.set->wait(k), status::ok);
                e.help(k); // too late
                EXPECT_EQ(e.wrong(k), 0);
                e.answer(k);
            }
        }
        EXPECT_EQ(e.set->pieces_helped(), 0U);
    });
}

TEST(JointChannel, TheReceiverCopiesEverythingIfTheSenderIsBusy) {
    std::barrier meet(2);
    run([&](const job& j) {
        end e(j);
        for (std::uint64_t k = 1; k <= 4; ++k) {
            if (j.rank() == 0) {
                int own = 0;
                e.fill(k);
                e.send(
                    k,
                    [&] {
                        meet.arrive_and_wait(); // it is offered
                        meet.arrive_and_wait(); // it is copied
                    },
                    [&] { ++own; });
                EXPECT_EQ(own, 0);
                ASSERT_EQ(e.set->wait(k), status::ok);
            } else {
                e.help(k); // perhaps it is not offered yet
                meet.arrive_and_wait();
                e.help(k);
                e.help(k); // nothing is left
                EXPECT_EQ(e.set->pieces_helped(), k * pieces_of(bytes));
                meet.arrive_and_wait();
                ASSERT_EQ(e.set->wait(k), status::ok);
                EXPECT_EQ(e.wrong(k), 0);
                e.answer(k);
            }
        }
    });
}

TEST(JointChannel, EachPieceIsCopiedByOneEnd) {
    run([](const job& j) {
        end e(j);
        std::uint64_t own = 0;
        constexpr std::uint64_t epochs = 500;
        for (std::uint64_t k = 1; k <= epochs; ++k) {
            if (j.rank() == 0) {
                e.fill(k);
                e.send(k, nothing, [&] { ++own; });
                ASSERT_EQ(e.set->wait(k), status::ok);
            } else {
                ASSERT_EQ(e.set->wait(k, [&] { e.help(k); }), status::ok);
                ASSERT_EQ(e.wrong(k), 0) << k;
                e.answer(k);
            }
        }
        std::uint64_t all = 0;
        for (const std::string& text : j.gather(std::to_string(own + e.set->pieces_helped()))) all += std::stoull(text);
        EXPECT_EQ(all, epochs * pieces_of(bytes));
    });
}

TEST(JointChannel, ASenderWaitsForThePiecesThatItsReceiverTook) {
    std::barrier meet(2);
    run([&](const job& j) {
        end e(j);
        if (j.rank() == 0) {
            e.fill(1);
            e.send(
                1, [&] { meet.arrive_and_wait(); },
                [&, first = true]() mutable {
                    if (std::exchange(first, false)) meet.arrive_and_wait(); // the receiver holds a piece
                });
            EXPECT_FALSE(e.sent(1));
            EXPECT_FALSE(e.set->test(1));
            EXPECT_NE(e.set->pending(1).find("bytes to rank 1 over shm, of which that rank is copying pieces"),
                      std::string::npos)
                << e.set->pending(1);
            meet.arrive_and_wait();
            ASSERT_EQ(e.set->wait(1), status::ok);
            EXPECT_TRUE(e.sent(1));
        } else {
            meet.arrive_and_wait();
            e.help(1, [&, first = true]() mutable {
                if (!std::exchange(first, false)) return;
                meet.arrive_and_wait();
                meet.arrive_and_wait();
            });
            EXPECT_GT(e.set->pieces_helped(), 0U);
            ASSERT_EQ(e.set->wait(1), status::ok);
            EXPECT_EQ(e.wrong(1), 0);
            e.answer(1);
        }
    });
}

// An exception between start() and finish(): the field may have been freed, or written, before the piece was read.
TEST(JointChannel, WhatASenderLeftBehindIsNoMessage) {
    std::barrier meet(2);
    run([&](const job& j) {
        end e(j);
        if (j.rank() == 0) {
            e.fill(1);
            e.send(
                1, [&] { meet.arrive_and_wait(); },
                [&, first = true]() mutable {
                    if (std::exchange(first, false)) meet.arrive_and_wait();
                });
            e.set.reset(); // its farewell, while the receiver holds a piece
            meet.arrive_and_wait();
        } else {
            meet.arrive_and_wait();
            e.help(1, [&, first = true]() mutable {
                if (!std::exchange(first, false)) return;
                meet.arrive_and_wait();
                meet.arrive_and_wait();
            });
            EXPECT_EQ(e.set->wait(1), status::aborted);
        }
        j.barrier(); // the job itself continues
    });
}

TEST(JointChannel, BothEndsMustAskForIt) {
    std::array<std::string, 2> texts;
    run([&](const job& j) {
        channel_request r{1 - j.rank(), 0, 0, 8, 8, "a face"};
        if (j.rank() == 1) r.kind = channel_kind::joint_slots;
        texts[static_cast<std::size_t>(j.rank())] = halocline_test::refusal([&] {
            channel_set(j, std::array{r}, {"odd", "", {}});
        });
    });
    for (const std::string& text : texts)
        EXPECT_EQ(text, "'odd': rank 0 'a face' has slots, rank 1 'a face' has slots and is copied by both ends; ask "
                        "for the same kind on both ranks");
}

TEST(JointChannel, IsRefusedWhereMemoryIsNotShared) {
    run([&](const job& j) {
        channel_request r{j.rank(), 0, 0, 8, 8, "a face"};
        r.kind = channel_kind::joint_slots;
        EXPECT_EQ(halocline_test::refusal([&] {
                      channel_set(j, std::array{r}, {"own", "", {}});
                  }),
                  "'own': a channel for 'a face' that has slots and is copied by both ends can't be made: to rank 0 it "
                  "goes over self, and only shm has these");
    });
}

} // namespace
