// SPDX-License-Identifier: Apache-2.0
// Ranks of different nodes that connect while other programs do, too. Rank 0 is a thread that joins; the test plays
// rank 1.
#include "control/tcp_link.hpp"
#include "control/wire.hpp"
#include "job/bootstrap.hpp"
#include "job/business_card.hpp"

#include <halocline/base/error.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <list>
#include <mutex>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline::comm;

/// A launcher's gather, for two ranks that are threads.
class meeting {
  public:
    std::vector<std::string> gather(int rank, std::string_view mine) {
        std::unique_lock lock(mutex_);
        const int round = round_;
        parts_[rank] = mine;
        if (++came_ == 2) {
            all_ = {parts_[0], parts_[1]};
            came_ = 0;
            ++round_;
            next_.notify_all();
        }
        next_.wait(lock, [&] { return round_ != round; });
        return all_;
    }

  private:
    std::mutex mutex_;
    std::condition_variable next_;
    std::array<std::string, 2> parts_;
    std::vector<std::string> all_;
    int came_ = 0, round_ = 0;
};

/// Sends the first message of a connecting rank, which proves nothing yet.
void say_hello(int socket, std::int32_t from, std::int32_t to) {
    pollfd p{socket, POLLOUT, 0};
    poll(&p, 1, 1000);
    const std::string hello = "halofar1" + wire_writer().number(from).number(to).number(std::array<char, 32>{}).take();
    [[maybe_unused]] const ssize_t n = send(socket, hello.data(), hello.size(), MSG_NOSIGNAL);
}

TEST(FarConnect, AStrangerThatClaimsToBeADeadRankDoesNotHideItsDeath) {
    job_options options;
    options.deadline = std::chrono::seconds(30);
    meeting both;
    const auto start_of = [&](int rank) {
        bootstrap start;
        start.rank = rank;
        start.ranks = 2;
        start.launcher = "a test";
        start.gather = [&both, rank](std::string_view mine) { return both.gather(rank, mine); };
        return start;
    };
    struct seen {
        status why = status::ok;
        int culprit = -1;
    };
    auto survivor = std::async(std::launch::async, [&] {
        try {
            (void)join(start_of(0), options);
        } catch (const rank_failure& e) {
            return seen{e.why(), e.culprit()};
        }
        return seen{};
    });
    business_card card = own_card(start_of(1), options, "nobody", "");
    card.node += ", another";
    (void)swap_cards(start_of(1), card);
    std::string endpoint;
    {
        const tcp_listener listener("127.0.0.1", 16);
        const auto names = both.gather(1, wire_writer().text("").text(listener.name()).take());
        wire_reader of_0(names[0]);
        ASSERT_EQ(of_0.text(), "");
        endpoint = of_0.text();
    } // rank 1 dies

    std::list<descriptor> strangers;
    do {
        strangers.push_back(connect_to(endpoint));
        say_hello(strangers.back().fd(), 1, 0);
    } while (survivor.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready);

    const seen s = survivor.get();
    EXPECT_EQ(s.why, status::peer_died) << "not the deadline";
    EXPECT_EQ(s.culprit, 1);
    EXPECT_GE(strangers.size(), 5u) << "they are given time to prove it";
}

} // namespace
