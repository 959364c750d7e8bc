// SPDX-License-Identifier: Apache-2.0
// Ranks of a node that connect while the system's limits on sockets and descriptors are in their way.
#include "control/descriptor.hpp"
#include "control/socket_plane.hpp"

#include <halocline/comm/job.hpp>

#include <gtest/gtest.h>
#include <halocline_test/few_descriptors.hpp>
#include <halocline_test/other_user.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <poll.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline::comm;
using namespace halocline_test;
using namespace std::chrono_literals;

/// What the ranks of a test share.
struct meeting_place {
    static constexpr int most_ranks = 32;
    std::atomic<int> listening{0}, connected{0};
    std::array<std::array<char, 64>, most_ranks> name{};
    std::array<int, most_ranks> pid{};
    std::array<std::array<char, 1024>, most_ranks> trouble{}; ///< "": the rank has connected with all others
};

void wait_until(const std::atomic<int>& count, int n) {
    for (const auto end = std::chrono::steady_clock::now() + 30s; count < n;) {
        if (std::chrono::steady_clock::now() > end) return;
        std::this_thread::sleep_for(1ms);
    }
}

class node {
  public:
    explicit node(int count) : ranks(count) {
        void* p = mmap(nullptr, sizeof(meeting_place), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (p != MAP_FAILED) place_ = new (p) meeting_place;
    }
    ~node() { munmap(place_, sizeof *place_); }
    node(const node&) = delete;
    node& operator=(const node&) = delete;

    /// Connects that many processes, and returns the trouble of each.
    std::vector<std::string> connect() {
        std::vector<pid_t> children;
        for (int r = 0; r < ranks; ++r) {
            const pid_t child = fork();
            if (child == 0) {
                be(r);
                _exit(0);
            }
            children.push_back(child);
        }
        for (const pid_t child : children) waitpid(child, nullptr, 0);
        std::vector<std::string> all;
        for (int r = 0; r < ranks; ++r) all.emplace_back(place_->trouble[r].data());
        return all;
    }

    const int ranks;
    int backlog = 100;
    int late = 0;                                        ///< ranks below this one begin when the others have connected
    std::function<void(int rank)> at_start = [](int) {}; ///< called before a rank listens
    std::function<void(int rank)> at_last = [](int) {};  ///< called before it connects
    bool knows_pids = true;                              ///< otherwise each is in a pid namespace of its own
    bool knows_hosts = false;                            ///< each rank's host has a name of its own
    std::function<std::string(job_core&)> body = [](job_core&) { return std::string(); }; ///< once it has connected

  private:
    void be(int rank) const {
        std::string trouble;
        try {
            close_range(3, ~0U, 0); // what the test was started with: limits are about the largest number in use
            at_start(rank);
            job_options options;
            options.deadline = 20s;
            job_core core(rank, ranks, options, "a test", std::make_shared<node_slab>(std::size_t{2} << 20));
            for (rank_info& m : core.members) m.host = "host" + (knows_hosts ? std::to_string(m.rank) : "");
            unix_listener listener(backlog);
            std::ranges::copy(listener.name(), place_->name[rank].begin());
            place_->pid[rank] = getpid();
            ++place_->listening;
            wait_until(place_->listening, ranks);

            std::vector<peer_address> peers;
            for (int r = 0; r < ranks; ++r)
                if (r != rank) peers.push_back({r, place_->name[r].data(), knows_pids ? place_->pid[r] : 0});
            if (rank < late) std::this_thread::sleep_for(500ms);
            at_last(rank);
            core.alive = std::make_unique<socket_plane>(core, std::move(listener), peers, std::string(32, 's'));
            ++place_->connected;
            wait_until(place_->connected, ranks); // nobody leaves before that and is taken for dead
            trouble = std::ranges::count(core.peer_base, nullptr) == 0 ? body(core) : "a slab is not mapped";
        } catch (const std::exception& e) {
            trouble = e.what();
            ++place_->connected;
        }
        trouble.copy(place_->trouble[rank].data(), place_->trouble[rank].size() - 1);
    }

    meeting_place* place_ = nullptr;
};

void allow_descriptors(rlim_t n) {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = n;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0) throw error("setrlimit");
}

/// From now on this process may open n more.
void allow_more_descriptors(std::uint64_t n) {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    allow_descriptors(files.rlim_cur - descriptor_room() + n);
}

TEST(Descriptors, RoomIsMadeOnlyWhereThereIsTooLittle) {
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const auto soft_limit = [] {
        rlimit now{};
        getrlimit(RLIMIT_NOFILE, &now);
        return now.rlim_cur;
    };
    allow_more_descriptors(20);
    const rlim_t few = soft_limit();

    make_descriptor_room(20);
    EXPECT_EQ(soft_limit(), few);
    make_descriptor_room(50);
    EXPECT_EQ(descriptor_room(), 50U);
    setrlimit(RLIMIT_NOFILE, &before);
}

TEST(Descriptors, WaitsLastAlthoughSignalsComeAllTheTime) {
    struct sigaction ignored {
    }, before{};
    ignored.sa_handler = [](int) {};
    sigaction(SIGALRM, &ignored, &before);
    const itimerval every_millisecond{{0, 1000}, {0, 1000}}, never{};
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    pollfd p{ends[0], POLLIN, 0};
    const auto begin = std::chrono::steady_clock::now();

    setitimer(ITIMER_REAL, &every_millisecond, nullptr);
    const int ready = poll_in_spite_of_signals({&p, 1}, 100ms);
    const auto took = std::chrono::steady_clock::now() - begin;
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before, nullptr);

    EXPECT_EQ(ready, 0);
    EXPECT_GE(took, 100ms);
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_EQ(poll_in_spite_of_signals({&p, 1}, 0ms), 1);
    for (const int fd : ends) ::close(fd);
}

TEST(NearConnect, WaitsForRoomForTheDescriptorsOfAllSlabs) {
    if (!can_drop_privileges()) GTEST_SKIP() << "there is no user without privileges, for whom Linux counts them";
    node n(24);
    n.late = 12; // 144 descriptors are sent before anybody receives one
    n.at_start = [](int) {
        if (!drop_privileges()) throw error("setresuid");
        allow_descriptors(80);
    };

    EXPECT_EQ(n.connect(), std::vector<std::string>(24));
}

TEST(NearConnect, WaitsForRoomInABacklogThatIsSmallerThanTheNode) {
    node n(24);
    n.late = 1;
    n.backlog = 1; // at least 16 are made of it

    EXPECT_EQ(n.connect(), std::vector<std::string>(24));
}

void expect_remedy_on_every_rank(const std::vector<std::string>& troubles, const std::string& what) {
    for (const std::string& t : troubles) {
        EXPECT_NE(t.find(what), std::string::npos) << t;
        EXPECT_NE(t.find("ulimit -n"), std::string::npos) << t;
    }
}

TEST(NearConnect, ARankThatCanAcceptNoMoreSaysSo) {
    if (halocline_test::checks_take_descriptors) GTEST_SKIP() << halocline_test::why_descriptors_are_needed;
    node n(8);
    n.late = 1;
    n.at_last = [](int rank) {
        if (rank == 0) allow_more_descriptors(7 + 3); // all pidfds, some of the sockets
    };

    expect_remedy_on_every_rank(n.connect(), "cannot accept the connections of the other ranks of this node");
}

TEST(NearConnect, ARankThatCanReceiveNoSlabSaysSo) {
    if (halocline_test::checks_take_descriptors) GTEST_SKIP() << halocline_test::why_descriptors_are_needed;
    node n(8);
    n.late = 1;
    n.at_last = [](int rank) {
        if (rank == 0) allow_more_descriptors(7 + 7); // all pidfds and sockets
    };

    expect_remedy_on_every_rank(n.connect(), "can't be received");
}

/// As on two hosts that look like one: nothing there has the socket's name, or the process's number.
TEST(NearConnect, ARankThatIsNotThereMayBeOnAnotherHost) {
    for (const bool knows_hosts : {false, true}) {
        for (const bool knows_pids : {false, true}) {
            node n(3);
            n.late = 3;
            n.knows_hosts = knows_hosts;
            n.knows_pids = knows_pids;
            n.at_last = [](int rank) {
                if (rank == 0) kill(getpid(), SIGKILL);
                std::this_thread::sleep_for(200ms); // until it is gone
            };

            const std::string told = n.connect()[2];

            const char* const how =
                knows_hosts ? "rank 0 is not there: it died, or its host is another" : "rank 0 died";
            EXPECT_NE(told.find(how), std::string::npos) << told;
            EXPECT_EQ(told.find("HALOCLINE_NODE") != std::string::npos, knows_hosts) << told;
        }
    }
}

TEST(NearConnect, ADeathIsSeenByARankThatMayNotOpenTwoDescriptorsPerPeer) {
    if (halocline_test::checks_take_descriptors) GTEST_SKIP() << halocline_test::why_descriptors_are_needed;
    node n(12);
    n.knows_pids = false; // so there is nothing to watch but sockets
    n.body = [](job_core& core) {
        allow_descriptors(16); // at least as many as it watches
        if (core.rank == 11) _exit(1);
        const auto end = std::chrono::steady_clock::now() + 30s;
        while (core.failed() == status::ok && std::chrono::steady_clock::now() < end) core.alive->look();
        return core.failed() == status::peer_died ? std::string() : "it does not know that rank 11 died";
    };

    EXPECT_EQ(n.connect(), std::vector<std::string>(12));
}

/// A letter that its socket has no room for, to a rank that reads nothing and leaves in good order.
TEST(NearConnect, MailForARankThatHasLeftHoldsUpNobody) {
    node n(3);
    n.body = [](job_core& core) {
        auto& plane = static_cast<socket_plane&>(*core.alive);
        if (core.rank == 1) {
            std::this_thread::sleep_for(500ms);
            return std::string();
        }
        if (core.rank == 0) {
            plane.send_letter(1, std::string(8 << 20, 'x'));
            const auto end = std::chrono::steady_clock::now() + 30s;
            while (!plane.left(1) && std::chrono::steady_clock::now() < end) plane.look();
        }
        const int other = 2 - core.rank;
        const std::string part = "part";
        return std::string(plane.exchange({&other, 1}, {&part, 1}, "an exchange")[0] == part ? ""
                                                                                             : "another part came");
    };

    EXPECT_EQ(n.connect(), std::vector<std::string>(3));
}

} // namespace
