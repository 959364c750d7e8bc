// SPDX-License-Identifier: Apache-2.0
// Random schedules of sends and receives with wildcards, compared with a reference matcher: two plain lists per rank,
// in the order of one global clock. The ranks (threads, or three processes over a transport) act one at a time, so
// which message meets which receive is determined.
#include "random_seeds.hpp"

#include <halocline/comm/messenger.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace halocline::comm;
using halocline_test::random_seeds;

constexpr int ranks = 3;

struct message {
    int id, from, to, tag;
    std::uint32_t context;
    std::size_t bytes;
};
struct receive {
    int id, at, from, tag;
    std::uint32_t context;
};

/// The reference: MPI's matching rule, as short as possible.
class reference_matcher {
  public:
    void send(const message& m) {
        auto& posted = posted_[m.to];
        for (auto r = posted.begin(); r != posted.end(); ++r) {
            if (!meet(*r, m)) continue;
            got[r->id] = m.id;
            posted.erase(r);
            return;
        }
        waiting[m.to].push_back(m);
    }
    void post(const receive& r) {
        got.resize(std::max(got.size(), static_cast<std::size_t>(r.id) + 1), -1);
        auto& early = waiting[r.at];
        for (auto m = early.begin(); m != early.end(); ++m) {
            if (!meet(r, *m)) continue;
            got[r.id] = m->id;
            early.erase(m);
            return;
        }
        posted_[r.at].push_back(r);
    }
    void withdraw(const receive& r) { // one that has matched keeps its message
        posted_[r.at].remove_if([&](const receive& p) { return p.id == r.id; });
    }
    /// False: it has met its receive, or was withdrawn before.
    bool withdraw(const message& m) {
        return waiting[m.to].remove_if([&](const message& w) { return w.id == m.id; }) != 0;
    }
    [[nodiscard]] const std::list<receive>& posted(int rank) const { return posted_[rank]; }

    std::vector<int> got; ///< by receive: the message, -1: none yet
    std::list<message> waiting[ranks];

  private:
    static bool meet(const receive& r, const message& m) {
        return r.context == m.context && (r.from == any_source || r.from == m.from) &&
               (r.tag == any_tag || r.tag == m.tag);
    }
    std::list<receive> posted_[ranks];
};

struct step {
    enum { send, post, withdraw_send, withdraw_receive } what;
    message m;
    receive r;
    bool discards = false; ///< the send that is withdrawn has not met a receive
};

/// From this size on a message stays at its sender until it is received: it is neither copied first nor whole in a
/// frame.
constexpr std::size_t least_withdrawn = 32'768;

/// Which sends are withdrawn.
struct withdrawals {
    bool unmet = false; ///< such as no receive has met, which are discarded
    bool met = false;   ///< others, too, because they are received all the same
};

/// A schedule that ends with every other message received. Some receives are withdrawn, and some sends.
std::vector<step> schedule(unsigned seed, int length, withdrawals may_withdraw, reference_matcher& reference,
                           std::vector<message>& messages) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    std::vector<step> steps;
    const auto send = [&](int from, int to, int tag, std::uint32_t context) {
        constexpr std::size_t some[] = {4,    40,   41,     256,    512,    1024,   1025,
                                        3000, 5000, 16'384, 32'767, 40'000, 65'536, 65'537};
        const message m{static_cast<int>(messages.size()), from, to, tag, context, some[below(12)]};
        messages.push_back(m);
        reference.send(m);
        steps.push_back({step::send, m, {}});
    };
    std::vector<receive> receives;
    const auto post = [&](int at, int from, int tag, std::uint32_t context) {
        const receive r{static_cast<int>(receives.size()), at, from, tag, context};
        receives.push_back(r);
        reference.post(r);
        steps.push_back({step::post, {}, r});
    };
    const auto one_of = [&](const auto& all) { // a recent one, which may still be under way
        const int n = static_cast<int>(all.size());
        return all[n - 1 - below(std::min(n, 12))];
    };
    for (int i = 0; i < length; ++i) {
        const int at = below(ranks), other = below(ranks), tag = below(3);
        const auto context = static_cast<std::uint32_t>(below(2));
        if (!receives.empty() && below(10) == 0) {
            const receive r = one_of(receives);
            reference.withdraw(r);
            steps.push_back({step::withdraw_receive, {}, r});
        }
        if (!messages.empty() && below(5) == 0) {
            const message m = one_of(messages); // withdrawing one to the own rank removes it
            const bool is_met =
                std::ranges::none_of(reference.waiting[m.to], [&](const message& w) { return w.id == m.id; });
            if (m.from != m.to && (is_met ? may_withdraw.met : may_withdraw.unmet && m.bytes >= least_withdrawn))
                steps.push_back({step::withdraw_send, m, {}, reference.withdraw(m)});
        }
        // Up to 40 messages wait at a rank: fewer than one sender may have under way.
        if (below(2) == 0 && reference.waiting[other].size() < 40)
            send(at, other, tag, context);
        else
            post(at, below(4) == 0 ? any_source : other, below(4) == 0 ? any_tag : tag, context);
    }
    for (int at = 0; at < ranks; ++at) {
        while (!reference.posted(at).empty()) {
            const receive r = reference.posted(at).front();
            send(r.from == any_source ? 0 : r.from, at, r.tag == any_tag ? 0 : r.tag, r.context);
        }
        while (!reference.waiting[at].empty()) {
            const message m = reference.waiting[at].front();
            post(at, m.from, m.tag, m.context);
        }
    }
    return steps;
}

/// Performs a schedule; this rank's receives must get what the reference says.
void expect_as_the_reference(const job& j, unsigned seed, bool within_a_node) {
    const bool small_frames = seed % 2 == 0; // smaller than least_withdrawn
    messenger m(j, {.unexpected = 200,
                    .synergistic_bytes = 4000,
                    .streamed_bytes = 20'000,
                    .frame_bytes = small_frames ? std::size_t{16} << 10 : 0,
                    .direct_bytes = seed % 2 == 0 ? 16'384u : 1'000'000u,
                    .read_processes = seed % 3 != 0});
    bool reads_all = within_a_node; // memory outside slabs, too
    for (const std::string& text : j.gather(m.describe()))
        reads_all = reads_all && text.find("other memory through copies") == std::string::npos;
    reference_matcher reference;
    std::vector<message> messages;
    const std::vector<step> steps =
        schedule(seed, 400, {.unmet = within_a_node || small_frames, .met = reads_all}, reference, messages);
    struct under_way {
        int message = -1, receive = -1; // one of the two is set
        std::optional<message_request> request{std::in_place};
        std::vector<int> buffer;
    };
    std::list<under_way> mine;
    message_info info;
    std::uint64_t sent_here = 0, discarded_here = 0;
    for (const step& s : steps) {
        if (s.what == step::send && s.m.from == j.rank()) {
            under_way& u = mine.emplace_back();
            u.message = s.m.id;
            u.buffer.assign((s.m.bytes + 3) / 4, s.m.id);
            m.isend(*u.request, std::as_bytes(std::span(u.buffer)).first(s.m.bytes), s.m.to, s.m.tag, s.m.context);
        } else if (s.what == step::post && s.r.at == j.rank()) {
            under_way& u = mine.emplace_back();
            u.receive = s.r.id;
            u.buffer.assign(10'000, -1);
            m.irecv(*u.request, std::as_writable_bytes(std::span(u.buffer)), s.r.from, s.r.tag, s.r.context);
        } else if (s.what == step::withdraw_send || s.what == step::withdraw_receive) {
            for (under_way& u : mine) {
                const bool is_it = s.what == step::withdraw_send ? s.m.from == j.rank() && u.message == s.m.id
                                                                 : s.r.at == j.rank() && u.receive == s.r.id;
                if (is_it) u.request.reset();
            }
        }
        if (s.discards && s.m.to == j.rank()) { // in the same step, too
            ++discarded_here;
            while (m.counts().withdrawn < discarded_here && m.state() == status::ok)
                (void)m.probe(any_source, any_tag, info, 99);
        }
        if (s.what == step::send && s.m.to == j.rank()) { // what is sent in a step arrives in it
            ++sent_here;
            while (m.counts().arrived < sent_here && m.state() == status::ok)
                (void)m.probe(any_source, any_tag, info, 99);
        }
        j.barrier();
    }
    for (under_way& u : mine) {
        if (!u.request) continue;
        if (const status s = m.wait(*u.request); s != status::ok) j.fail(s, m.pending());
    }
    for (const under_way& u : mine) {
        if (u.receive < 0 || !u.request) continue;
        const int expected = reference.got[u.receive];
        const message& sent = messages[expected];
        const message_info& i = u.request->info();
        EXPECT_EQ(i.source, sent.from);
        EXPECT_EQ(i.tag, sent.tag);
        ASSERT_EQ(i.bytes, sent.bytes);
        for (std::size_t w = 0; w < i.bytes / 4; ++w) ASSERT_EQ(u.buffer[w], expected) << "seed " << seed;
    }
    j.barrier();
}

/// A job of processes, over the transport that the environment names.
const job& world() {
    static const job j = [] {
        job_options options;
        options.transports = {std::getenv("HALOCLINE_TEST_TRANSPORT")};
        return job::from_environment(options);
    }();
    return j;
}

TEST(MessengerFuzz, MatchesAsTheReferenceDoes) {
    const char* const transport = std::getenv("HALOCLINE_TEST_TRANSPORT");
    if (transport == nullptr) {
        for (const unsigned seed : random_seeds(12)) {
            job_options options;
            options.path = seed % 2 == 0 ? path::streamed : path::direct;
            run_threads(
                ranks, [&](const job& j) { expect_as_the_reference(j, seed, true); }, options);
        }
        return;
    }
    const std::string_view name = transport;
    const unsigned seeds = name == "verbs" ? 1 : 3; // the emulated machine is slow
    for (const unsigned seed : random_seeds(seeds, &world())) expect_as_the_reference(world(), seed, name == "shm");
}

/// A message with the number `i` of its sender's steps repeats the word i * ranks + sender.
struct sent_message {
    int to = -1, tag = 0;
    std::size_t words = 0;
};
struct received_message {
    int from, tag;
    std::size_t bytes;
    int word;
};

/// Each was sent to this rank, as it came, and came once. `sent`: by this rank's steps. Collective.
void expect_were_sent(const job& j, const std::vector<sent_message>& sent,
                      const std::vector<received_message>& received, unsigned seed) {
    std::vector<std::vector<sent_message>> by_rank;
    for (const std::string& all :
         j.gather({reinterpret_cast<const char*>(sent.data()), sent.size() * sizeof(sent_message)})) {
        std::memcpy(by_rank.emplace_back(all.size() / sizeof(sent_message)).data(), all.data(), all.size());
    }
    for (const received_message& r : received) {
        ASSERT_EQ(r.word % j.ranks(), r.from) << "a message of another sender, seed " << seed;
        sent_message& s = by_rank.at(r.from).at(r.word / j.ranks());
        ASSERT_EQ(s.to, j.rank()) << "seed " << seed << ", step " << r.word / j.ranks() << " of rank " << r.from;
        ASSERT_EQ(s.tag, r.tag) << "seed " << seed;
        ASSERT_EQ(s.words * sizeof(int), r.bytes) << "seed " << seed;
        s.to = -1; // a second time it would be wrong
    }
}

/// Sends, receives and withdrawals by all ranks at once, and at the end a large message for each pair. What is received
/// is whole, and of a message that was sent here; nothing is written into withdrawn receives.
void expect_nobody_is_held_up(const job& j, unsigned seed, const messenger_options& options, bool withdraws_sends) {
    constexpr std::size_t steps = 400, most = 120'000 / sizeof(int), some_bytes[] = {8, 40, 500, 1500, 5000, 17'000};
    constexpr std::uint32_t last_words = 1, last_messages = 2;
    struct under_way {
        std::optional<message_request> request{std::in_place};
        bool is_send = false, is_withdrawn = false;
        std::vector<int> buffer; // kept, because within a node a peer may still read it
    };
    const auto ranks_here = static_cast<std::size_t>(j.ranks());
    std::mt19937 random(seed * 31 + static_cast<unsigned>(j.rank()));
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    std::vector<sent_message> sent(steps);
    std::vector<received_message> received;
    const auto check = [&](std::span<const int> got, const message_info& info) {
        for (const int word : got.first(info.bytes / sizeof(int))) ASSERT_EQ(word, got[0]) << "seed " << seed;
        received.push_back({info.source, info.tag, info.bytes, got[0]});
    };
    constexpr int gone = -7;
    std::list<under_way> all;
    messenger m(j, options);
    std::vector<under_way*> open;
    const auto withdraw = [&](under_way& u) {
        u.is_withdrawn = !u.request->done();
        if (!u.is_withdrawn && !u.is_send) check(u.buffer, u.request->info());
        u.request.reset();
        if (u.is_withdrawn && !u.is_send) std::ranges::fill(u.buffer, gone);
    };
    for (std::size_t i = 0; i < steps; ++i) {
        const int other = static_cast<int>(below(ranks_here)), tag = static_cast<int>(below(2));
        under_way& u = all.emplace_back();
        u.is_send = below(2) == 0;
        const std::size_t words =
            below(3) == 0 ? 1 + below(most) : some_bytes[below(std::size(some_bytes))] / sizeof(int);
        u.buffer.assign(u.is_send ? words : most, static_cast<int>(i) * j.ranks() + j.rank());
        if (u.is_send) {
            sent[i] = {other, tag, words};
            m.isend(*u.request, std::as_bytes(std::span(u.buffer)), other, tag);
        } else {
            m.irecv(*u.request, std::as_writable_bytes(std::span(u.buffer)), below(4) == 0 ? any_source : other,
                    below(4) == 0 ? any_tag : tag);
        }
        open.push_back(&u);
        for (std::size_t k = below(4); k > 0; --k) (void)m.test(*open[below(open.size())]->request);
        if (open.size() < 8 + below(30)) continue;
        const std::size_t which = below(open.size());
        under_way& chosen = *open[which];
        const bool must_wait = chosen.is_send && !withdraws_sends && !chosen.request->done();
        if (must_wait) continue;
        withdraw(chosen);
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
    }
    ASSERT_EQ(m.state(), status::ok) << m.pending();

    // Receives the rest, until every rank has announced that no more will come.
    std::vector<int> rest(most);
    const auto receive_the_rest = [&] {
        message_info info;
        while (m.state() == status::ok && m.probe(any_source, any_tag, info)) {
            message_request one;
            m.irecv(one, std::as_writable_bytes(std::span(rest)), info.source, info.tag);
            // If its send was withdrawn after the probe, nothing may come. Withdrawing this receive then, or in the
            // middle of a message, holds up nobody either.
            for (int tests = 0; !one.done() && tests < 1000 && m.state() == status::ok; ++tests) (void)m.test(one);
            if (one.done()) check(rest, one.info());
        }
    };
    for (under_way* u : open)
        if (!u->is_send || withdraws_sends) withdraw(*u);
    for (under_way* u : open) {
        while (u->request && !u->request->done() && m.state() == status::ok) {
            receive_the_rest();
            (void)m.test(*u->request);
        }
    }
    std::vector<message_request> words(2 * ranks_here);
    for (std::size_t r = 0; r < ranks_here; ++r) {
        m.isend(words[r], {}, static_cast<int>(r), 0, last_words);
        m.irecv(words[ranks_here + r], {}, static_cast<int>(r), 0, last_words);
    }
    for (message_request& w : words) {
        while (!w.done() && m.state() == status::ok) {
            receive_the_rest();
            (void)m.test(w);
        }
    }
    receive_the_rest();
    std::vector<message_request> requests(2 * ranks_here);
    std::vector<std::vector<int>> in(ranks_here, std::vector<int>(most));
    const std::vector<int> out(most, j.rank());
    for (std::size_t r = 0; r < ranks_here; ++r) {
        m.isend(requests[r], std::as_bytes(std::span(out)), static_cast<int>(r), 0, last_messages);
        m.irecv(requests[ranks_here + r], std::as_writable_bytes(std::span(in[r])), static_cast<int>(r), 0,
                last_messages);
    }
    if (const status s = m.wait_all(requests); s != status::ok) j.fail(s, m.pending());
    for (std::size_t r = 0; r < ranks_here; ++r)
        EXPECT_EQ(std::ranges::count(in[r], static_cast<int>(r)), static_cast<std::ptrdiff_t>(most));
    expect_were_sent(j, sent, received, seed);
    for (const under_way& u : all) {
        if (!u.is_withdrawn || u.is_send) continue;
        ASSERT_EQ(std::ranges::count(u.buffer, gone), static_cast<std::ptrdiff_t>(most)) << "seed " << seed;
    }
}

TEST(MessengerFuzz, WithdrawalsAtAnyTimeHoldUpNobody) {
    const char* const transport = std::getenv("HALOCLINE_TEST_TRANSPORT");
    const std::string_view name = transport == nullptr ? "" : transport;
    const auto body = [&](const job& j, unsigned seed) {
        messenger_options options{.synergistic_bytes = seed % 2 == 0 ? std::size_t{4000} : std::size_t{40'000}};
        if (seed % 3 == 0) options.streamed_bytes = 20'000;
        if (seed % 4 == 0) options.read_processes = false;
        if (seed % 2 == 1) options.direct_bytes = std::size_t{1} << 30;
        if (seed % 3 == 1) options.frame_bytes = 2048;
        expect_nobody_is_held_up(j, seed, options, name.empty());
    };
    if (name.empty()) {
        for (const unsigned seed : random_seeds(12)) {
            job_options options;
            options.path = seed % 2 == 0 ? path::streamed : path::direct;
            run_threads(
                ranks, [&](const job& j) { body(j, seed); }, options);
        }
        return;
    }
    const unsigned seeds = name == "verbs" ? 2 : 6; // the emulated machine is slow
    for (const unsigned seed : random_seeds(seeds, &world())) body(world(), seed);
}

} // namespace
