// SPDX-License-Identifier: Apache-2.0
// TCP connections between nodes: other programs, replays, slow connections; and the address where nodes meet.
#include "control/tcp_link.hpp"
#include "control/host_addresses.hpp"

#include <halocline/base/error.hpp>

#include <gtest/gtest.h>
#include <halocline_test/refusal.hpp>

#include <algorithm>
#include <chrono>
#include <netinet/in.h>
#include <poll.h>
#include <random>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline::comm;
using state = authentication::state;

const std::string secret(32, 's');

/// Steps both ends until both have decided; b admits a.
std::pair<state, state> run(authentication& a, authentication& b) {
    state of_a = state::going, of_b = state::going;
    for (int n = 0; n < 10'000 && (of_a == state::going || of_b == state::going); ++n) {
        if (of_a == state::going) of_a = a.step();
        if (of_a == state::refused) a.take(); // closes
        if (of_b == state::going) of_b = b.step();
        if (of_b == state::done && of_a == state::going) {
            EXPECT_TRUE(b.admit());
            of_a = a.step();
        }
        if (of_b == state::refused) b.take();
    }
    return {of_a, of_b};
}

descriptor accept_one(const tcp_listener& listener) {
    pollfd p{listener.fd(), POLLIN, 0};
    poll(&p, 1, 5000);
    return listener.accept();
}

std::string received(int socket) {
    std::string all(4096, '\0');
    pollfd p{socket, POLLIN, 0};
    poll(&p, 1, 1000);
    const ssize_t n = recv(socket, all.data(), all.size(), MSG_DONTWAIT);
    all.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return all;
}

TEST(TcpLink, AuthenticatesWhoKnowsTheSecret) {
    const tcp_listener listener("127.0.0.1", 16);
    authentication connector(connect_to(listener.name()), secret, 3, 1);
    authentication acceptor(accept_one(listener), secret, 1);

    EXPECT_EQ(run(connector, acceptor), std::pair(state::done, state::done));
    EXPECT_EQ(acceptor.peer(), 3);
    EXPECT_EQ(address_at(acceptor.fd(), true), "127.0.0.1");
}

/// The accepting end may drop a connection after the proof, because others came or because it took too long.
TEST(TcpLink, TheConnectingEndIsDoneOnlyOnceAdmitted) {
    const tcp_listener listener("127.0.0.1", 16);
    authentication connector(connect_to(listener.name()), secret, 3, 1);
    authentication acceptor(accept_one(listener), secret, 1);
    for (state s = state::going; s == state::going; s = acceptor.step()) ASSERT_EQ(connector.step(), state::going);
    ASSERT_EQ(connector.step(), state::going) << "both have proved who they are, but nobody has admitted it";

    acceptor.take(); // closes

    state s = state::going;
    for (int n = 0; n < 10'000 && s == state::going; ++n) s = connector.step();
    EXPECT_EQ(s, state::refused);
}

TEST(TcpLink, RefusesAnotherSecretAndAnotherRank) {
    const tcp_listener listener("127.0.0.1", 16);
    std::string other = secret;
    other[31] ^= 1;
    for (const auto& [key, wanted] : {std::pair(other, 1), std::pair(secret, 2)}) {
        authentication connector(connect_to(listener.name()), key, 3, wanted);
        authentication acceptor(accept_one(listener), secret, 1);
        EXPECT_EQ(run(connector, acceptor), std::pair(state::refused, state::refused));
    }
}

TEST(TcpLink, RefusesAReplay) {
    const tcp_listener listener("127.0.0.1", 16);
    // A man in the middle hears everything that the connecting end says.
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    const descriptor heard(ends[1]);
    authentication connector(descriptor{ends[0]}, secret, 3, 1);
    const descriptor first = connect_to(listener.name());
    authentication acceptor(accept_one(listener), secret, 1);
    ASSERT_EQ(connector.step(), state::going);
    const std::string hello = received(heard.fd());
    send(first.fd(), hello.data(), hello.size(), MSG_NOSIGNAL);
    while (received(first.fd()).empty()) ASSERT_EQ(acceptor.step(), state::going);

    // The same words again: the accepting end's random number is a different one, so no old signature fits, not even
    // its own.
    const descriptor second = connect_to(listener.name());
    authentication again(accept_one(listener), secret, 1);
    send(second.fd(), hello.data(), hello.size(), MSG_NOSIGNAL);
    std::string its_answer;
    while ((its_answer = received(second.fd())).empty()) ASSERT_EQ(again.step(), state::going);
    ASSERT_EQ(its_answer.size(), 64u);
    send(second.fd(), its_answer.data() + 32, 32, MSG_NOSIGNAL);
    state s = state::going;
    for (int n = 0; n < 10'000 && s == state::going; ++n) s = again.step();
    EXPECT_EQ(s, state::refused);
}

TEST(TcpLink, OtherProgramsHaveNoEffect) {
    const tcp_listener listener("127.0.0.1", 64);
    std::mt19937 random(3);
    int refused = 0, silent = 0;
    for (int n = 0; n < 3000; ++n) {
        const descriptor stranger = connect_to(listener.name());
        authentication acceptor(accept_one(listener), secret, 1);
        std::string words(random() % 300, '\0');
        for (char& c : words) c = static_cast<char>(random());
        if (n % 3 == 0)
            words.replace(0, std::min<std::size_t>(words.size(), 8), "halofar1",
                          std::min<std::size_t>(words.size(), 8));
        if (!words.empty()) send(stranger.fd(), words.data(), words.size(), MSG_NOSIGNAL);
        if (n % 2 == 0) shutdown(stranger.fd(), SHUT_WR);
        state s = state::going;
        for (int k = 0; k < 20 && s == state::going; ++k) s = acceptor.step();
        ASSERT_NE(s, state::done);
        (s == state::refused ? refused : silent) += 1;
    }
    EXPECT_GT(refused, 1000);
    EXPECT_GT(silent, 10); // too few words but no end: the listener gives them two seconds
}

/// Sends as much as there is room for. Returns the number of bytes.
std::size_t fill(const descriptor& end) {
    std::size_t sent = 0;
    while (const std::size_t room = room_on_link(end.fd())) {
        const std::string words(std::min<std::size_t>(room, 1000), 'w');
        const ssize_t n = send(end.fd(), words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0) break;
        sent += static_cast<std::size_t>(n);
    }
    return sent;
}

TEST(TcpLink, OutlivesAnEndThatDoesNotReadWhileNoMoreIsSentThanItHasRoomFor) {
    const tcp_listener listener("127.0.0.1", 16);
    const descriptor writer = connect_to(listener.name());
    const descriptor reader = accept_one(listener);
    watch_link(writer.fd(), std::chrono::milliseconds(1000));

    std::size_t sent = 0;
    for (int n = 0; n < 30; ++n) { // three seconds, of whole windows and of what acknowledged bytes leave
        sent += fill(writer);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }

    pollfd ended{writer.fd(), POLLIN, 0};
    EXPECT_EQ(poll(&ended, 1, 0), 0) << "the link was declared dead";
    EXPECT_EQ(room_on_link(writer.fd()), 0U);
    EXPECT_GE(sent, 16U << 10);
    std::size_t came = 0;
    while (came < std::size_t{4} << 20) { // there is room again once it reads
        const std::size_t words = received(reader.fd()).size();
        if (words == 0) break;
        came += words;
        sent += fill(writer);
    }
    EXPECT_GE(came, std::size_t{4} << 20);
}

TEST(TcpLink, OfADeadRankRefusesConnections) {
    std::string name;
    {
        const tcp_listener listener("127.0.0.1", 16);
        name = listener.name();
    }
    const descriptor s = connect_to(name);
    pollfd p{s.fd(), POLLOUT, 0};
    ASSERT_EQ(poll(&p, 1, 5000), 1);
    EXPECT_NE(p.revents & (POLLERR | POLLHUP), 0);
}

using nodes = std::vector<std::vector<host_address>>;

TEST(MeetingAddress, IsInTheFirstNetworkWhereEveryNodeHasItsOwn) {
    const host_address bridge{"docker0", "172.17.0.1", "172.17.0.0/16"}; // the same inside each host
    const nodes two{{bridge, {"eth0", "10.1.0.1", "10.1.0.0/16"}}, {bridge, {"eth7", "10.1.0.2", "10.1.0.0/16"}}};
    EXPECT_EQ(meeting_address("", two, 0), "10.1.0.1");
    EXPECT_EQ(meeting_address("", two, 1), "10.1.0.2");
}

TEST(MeetingAddress, IsTheOneAskedFor) {
    const nodes one{{{"eth0", "10.1.0.1", "10.1.0.0/16"}, {"ib0", "10.2.0.1", "10.2.0.0/16"}}};
    for (const char* wanted : {"ib0", "10.2.0.1", "10.2.0.0/16"})
        EXPECT_EQ(meeting_address(wanted, one, 0), "10.2.0.1");
    for (const char* wanted : {"ib1", "10.3.0.0/16", "10.2.0.2", "10.2.0.0/31x"})
        EXPECT_NE(halocline_test::refusal([&] { (void)meeting_address(wanted, one, 0); }), "accepted") << wanted;
    try {
        meeting_address("ib1", one, 0);
        FAIL();
    } catch (const input_error& e) {
        EXPECT_NE(std::string(e.what()).find("it has eth0 10.1.0.1 in 10.1.0.0/16, ib0"), std::string::npos)
            << e.what();
    }
}

/// As other programs that take a prefix: hosts of a fabric whose switches route may each have a network of their own.
TEST(MeetingAddress, IsTheFirstInTheNetworkAskedFor) {
    const nodes one{{{"eth0", "192.168.0.7", "192.168.0.0/24"},
                     {"ib0", "10.1.3.7", "10.1.3.6/31"},
                     {"ib1", "10.1.3.9", "10.1.3.8/31"},
                     {"ib1", "fd00::a7", "fd00::/64"}}};
    const std::pair<const char*, const char*> asked[]{
        {"10.0.0.0/8", "10.1.3.7"},  {"10.1.3.7/31", "10.1.3.7"}, {"10.1.3.9/31", "10.1.3.9"},
        {"10.1.3.8/29", "10.1.3.9"}, {"10.1.3.9/32", "10.1.3.9"}, {"0.0.0.0/0", "192.168.0.7"},
        {"FD00::0/16", "fd00::a7"},  {"FD00::00A7", "fd00::a7"},  {"::/0", "fd00::a7"},
    };
    for (const auto& [wanted, address] : asked) EXPECT_EQ(meeting_address(wanted, one, 0), address) << wanted;
}

} // namespace
