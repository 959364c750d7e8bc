// SPDX-License-Identifier: Apache-2.0
// Ranks that connect while strangers do so, too, or while another rank is stopped. Rank 0 is a thread that joins; the
// test plays rank 1. Or the other way round.
#include "control/socket_frames.hpp"
#include "control/tcp_link.hpp"
#include "control/wire.hpp"
#include "job/bootstrap.hpp"
#include "job/business_card.hpp"

#include <halocline/base/error.hpp>

#include <gtest/gtest.h>
#include <halocline_test/few_descriptors.hpp>
#include <halocline_test/other_user.hpp>
#include <halocline_test/refusal.hpp>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <list>
#include <mutex>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline::comm;
using namespace halocline_test;
using namespace std::chrono_literals;

/// A launcher's gather, for two or three ranks that are threads.
class meeting {
  public:
    explicit meeting(int ranks) : parts_(static_cast<std::size_t>(ranks)) {}
    std::vector<std::string> gather(int rank, std::string_view mine) {
        std::unique_lock lock(mutex_);
        const int round = round_;
        parts_[rank] = mine;
        if (++came_ == static_cast<int>(parts_.size())) {
            all_ = parts_;
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
    std::vector<std::string> parts_, all_;
    int came_ = 0, round_ = 0;
};

/// The first words of a rank that connects, without anything that only a rank knows.
void say_hello(int socket, std::int32_t from, std::int32_t to) {
    pollfd p{socket, POLLOUT, 0};
    poll(&p, 1, 1000);
    const std::string hello = "halofar1" + wire_writer().number(from).number(to).number(std::array<char, 32>{}).take();
    [[maybe_unused]] const ssize_t n = send(socket, hello.data(), hello.size(), MSG_NOSIGNAL);
}

/// How the rank that joins sees the end of its job.
struct seen {
    status why = status::ok;
    int culprit = -1;
};

/// A job of two ranks: one has a thread of its own, the other one is the caller. Of three ranks the caller plays two.
class job_of_two {
  public:
    explicit job_of_two(std::chrono::milliseconds deadline, int rank_that_joins = 0,
                        std::chrono::milliseconds link_timeout = job_options().link_timeout, int ranks = 2)
        : both(ranks), ranks_(ranks) {
        options.deadline = deadline;
        options.link_timeout = link_timeout;
        survivor = std::async(std::launch::async, [this, rank_that_joins] {
            try {
                (void)join(start_of(rank_that_joins), options);
            } catch (const rank_failure& e) {
                return seen{e.why(), e.culprit()};
            }
            return seen{};
        });
    }
    bootstrap start_of(int rank) {
        bootstrap start;
        start.rank = rank;
        start.ranks = ranks_;
        start.launcher = "a test";
        start.gather = [this, rank](std::string_view mine) { return both.gather(rank, mine); };
        return start;
    }
    [[nodiscard]] bool goes_on(std::chrono::milliseconds time) const {
        return survivor.wait_for(time) != std::future_status::ready;
    }

    job_options options;
    meeting both;
    int ranks_;
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

/// In a process of its own, because a soft limit would be raised.  Exit code 0: both ranks got the error.
[[noreturn]] void join_without_descriptors() {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    job_of_two job(std::chrono::seconds(20));
    const std::string text =
        refusal([&] { (void)swap_cards(job.start_of(1), own_card(job.start_of(1), job.options, "nobody", "")); });
    const std::string other = refusal([&] { (void)job.survivor.get(); });
    std::fprintf(stderr, "%s\n%s\n", text.c_str(), other.c_str());
    const bool told = text.starts_with("rank 0 on ") && text.find("raise 'ulimit -n'") != std::string::npos;
    std::_Exit(told && other != "accepted" ? 0 : 1);
}

TEST(NearConnect, ARankThatCanOpenNothingIsTheErrorOfAll) {
    if (halocline_test::checks_take_descriptors) GTEST_SKIP() << halocline_test::why_descriptors_are_needed;
    EXPECT_EXIT(join_without_descriptors(), testing::ExitedWithCode(0), "");
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

/// The caller joins as far as its listener, as a rank of another node. Returns the other rank's listener, and the
/// job's secret.
std::pair<std::string, std::string> listen_elsewhere(job_of_two& job, int rank, const std::string& listener) {
    business_card card = own_card(job.start_of(rank), job.options, "nobody", "");
    card.node += ", another" + std::to_string(rank);
    const auto cards = swap_cards(job.start_of(rank), card);
    const auto names = job.both.gather(rank, wire_writer().text("").text(listener).take());
    wire_reader of_other(names[names.size() - 1 - static_cast<std::size_t>(rank)]);
    EXPECT_EQ(of_other.text(), "");
    return {of_other.text(), cards[0].secret};
}

TEST(FarConnect, ARankThatStopsBeforeItConnectsIsNotDeadUntilItEnds) {
    job_of_two job(30s, 0, 2s);
    {
        const tcp_listener listener("127.0.0.1", 2); // full if rank 0 comes more than three times
        listen_elsewhere(job, 1, listener.name());

        EXPECT_TRUE(job.goes_on(5s)) << "more than two link timeouts";
    } // rank 1 dies

    const seen s = job.survivor.get();
    EXPECT_EQ(s.why, status::peer_died) << "not the deadline";
    EXPECT_EQ(s.culprit, 1);
}

/// So it is with a rank that was stopped itself: its connection has been closed meanwhile.
TEST(FarConnect, AConnectionThatIsClosedAfterTheLinkTimeoutIsMadeAgain) {
    job_of_two job(30s, 1, 2s);
    const tcp_listener listener("127.0.0.1", 16);
    const auto accept_one = [&] {
        pollfd p{listener.fd(), POLLIN, 0};
        poll(&p, 1, 5000);
        return listener.accept();
    };
    const auto [endpoint, secret] = listen_elsewhere(job, 0, listener.name());

    {
        const descriptor first = accept_one();
        EXPECT_TRUE(first);
        EXPECT_TRUE(job.goes_on(2500ms)) << "longer than the link timeout";
    }
    authentication second(accept_one(), secret, 0);
    authentication::state s = authentication::state::going;
    for (int n = 0; n < 1000 && s == authentication::state::going; ++n) {
        s = second.step();
        std::this_thread::sleep_for(1ms);
    }

    EXPECT_EQ(s, authentication::state::done);
    EXPECT_EQ(second.peer(), 1);
    EXPECT_TRUE(second.admit());
    second.take(); // rank 0 dies
    EXPECT_EQ(job.survivor.get().culprit, 0);
}

/// A rank that ends because another has died stops listening, and would be taken for dead itself.
TEST(FarConnect, ARankThatGivesUpSaysWhyToThoseThatItHasNotMet) {
    job_of_two job(30s, 2, 2s, 3);
    std::string dead;
    {
        const tcp_listener listener("127.0.0.1", 16);
        dead = listener.name();
    }
    const tcp_listener listener("127.0.0.1", 16);
    auto other = std::async(std::launch::async, [&] { listen_elsewhere(job, 1, dead); });
    const auto [endpoint, secret] = listen_elsewhere(job, 0, listener.name());
    other.get();

    pollfd p{listener.fd(), POLLIN, 0};
    poll(&p, 1, 5000);
    authentication peer(listener.accept(), secret, 0);
    authentication::state s = authentication::state::going;
    for (int n = 0; n < 3000 && s == authentication::state::going; ++n) {
        s = peer.step();
        poll(nullptr, 0, 1);
    }
    ASSERT_EQ(s, authentication::state::done);
    EXPECT_TRUE(peer.admit());
    const descriptor link = peer.take();
    std::string words;
    pollfd came{link.fd(), POLLIN, 0};
    for (char c = 0; poll(&came, 1, 5000) == 1 && recv(link.fd(), &c, 1, MSG_DONTWAIT) == 1;) words += c;

    const std::optional<socket_frame> first = first_frame(words);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->kind, frame_kind::end_of_job);
    wire_reader end(first->body);
    EXPECT_EQ(end.number<status>(), status::peer_died);
    EXPECT_EQ(end.number<std::int32_t>(), 1);
    EXPECT_EQ(job.survivor.get().culprit, 1);
}

} // namespace
