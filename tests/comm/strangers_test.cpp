// SPDX-License-Identifier: Apache-2.0
// Ranks that connect while strangers do so, too. Rank 0 is a thread that joins; the test plays rank 1.
#include "control/tcp_link.hpp"
#include "control/wire.hpp"
#include "job/bootstrap.hpp"
#include "job/business_card.hpp"

#include <halocline/base/error.hpp>

#include <gtest/gtest.h>
#include <halocline_test/other_user.hpp>
#include <halocline_test/refusal.hpp>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <list>
#include <mutex>
#include <poll.h>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline::comm;
using namespace halocline_test;

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

/// The first words of a rank that connects, without anything that only a rank knows.
void say_hello(int socket, std::int32_t from, std::int32_t to) {
    pollfd p{socket, POLLOUT, 0};
    poll(&p, 1, 1000);
    const std::string hello = "halofar1" + wire_writer().number(from).number(to).number(std::array<char, 32>{}).take();
    [[maybe_unused]] const ssize_t n = send(socket, hello.data(), hello.size(), MSG_NOSIGNAL);
}

/// How rank 0 sees the end of its job.
struct seen {
    status why = status::ok;
    int culprit = -1;
};

/// A job of rank 0, which has a thread of its own, and rank 1, which is the caller.
class job_of_two {
  public:
    explicit job_of_two(std::chrono::milliseconds deadline) {
        options.deadline = deadline;
        survivor = std::async(std::launch::async, [this] {
            try {
                (void)join(start_of(0), options);
            } catch (const rank_failure& e) {
                return seen{e.why(), e.culprit()};
            }
            return seen{};
        });
    }
    bootstrap start_of(int rank) {
        bootstrap start;
        start.rank = rank;
        start.ranks = 2;
        start.launcher = "a test";
        start.gather = [this, rank](std::string_view mine) { return both.gather(rank, mine); };
        return start;
    }
    [[nodiscard]] bool goes_on(std::chrono::milliseconds time) const {
        return survivor.wait_for(time) != std::future_status::ready;
    }

    job_options options;
    meeting both;
    std::future<seen> survivor;
};

/// Is a connection that another user makes closed by the other end within 2 s?  Pre: in a process of its own.
bool is_closed_for_another_user(const std::string& socket_name) {
    if (!drop_privileges()) return false;
    const descriptor stranger(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    std::memcpy(a.sun_path + 1, socket_name.data(), socket_name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + socket_name.size());
    if (connect(stranger.fd(), reinterpret_cast<const sockaddr*>(&a), length) != 0) return false;
    pollfd p{stranger.fd(), POLLIN, 0};
    return poll(&p, 1, 2000) == 1 && (p.revents & POLLHUP) != 0;
}

TEST(NearConnect, ARankThatCanOpenNothingIsTheErrorOfAll) {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    const rlimit none{0, files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);

    job_of_two job(std::chrono::seconds(20));
    const std::string text =
        refusal([&] { (void)swap_cards(job.start_of(1), own_card(job.start_of(1), job.options, "nobody", "")); });
    EXPECT_THROW((void)job.survivor.get(), input_error);
    setrlimit(RLIMIT_NOFILE, &files);

    EXPECT_TRUE(text.starts_with("rank 0 on ")) << text;
    EXPECT_NE(text.find("raise 'ulimit -n'"), std::string::npos) << text;
}

TEST(NearConnect, AnotherUserDoesNotTakeTheDescriptorsOfARank) {
    if (geteuid() != 0 || !can_drop_privileges()) GTEST_SKIP() << "only root has another user at hand";
    job_of_two job(std::chrono::seconds(5));
    const auto cards = swap_cards(job.start_of(1), own_card(job.start_of(1), job.options, "nobody", ""));

    const pid_t child = fork();
    if (child == 0) _exit(is_closed_for_another_user(cards[0].socket_name) ? 0 : 1);
    int how = -1;
    waitpid(child, &how, 0);

    EXPECT_EQ(how, 0);
    EXPECT_EQ(job.survivor.get().why, status::timed_out) << "rank 1 never connects";
}

TEST(FarConnect, AStrangerThatClaimsToBeADeadRankDoesNotHideItsDeath) {
    job_of_two job(std::chrono::seconds(30));
    business_card card = own_card(job.start_of(1), job.options, "nobody", "");
    card.node += ", another";
    (void)swap_cards(job.start_of(1), card);
    std::string endpoint;
    {
        const tcp_listener listener("127.0.0.1", 16);
        const auto names = job.both.gather(1, wire_writer().text("").text(listener.name()).take());
        wire_reader of_0(names[0]);
        EXPECT_EQ(of_0.text(), "");
        endpoint = of_0.text();
    } // rank 1 dies

    std::list<descriptor> strangers;
    do {
        strangers.push_back(connect_to(endpoint));
        say_hello(strangers.back().fd(), 1, 0);
    } while (job.goes_on(std::chrono::milliseconds(200)));

    const seen s = job.survivor.get();
    EXPECT_EQ(s.why, status::peer_died) << "not the deadline";
    EXPECT_EQ(s.culprit, 1);
}

} // namespace
