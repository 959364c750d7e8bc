// SPDX-License-Identifier: Apache-2.0
// Random schedules of sends and receives with wildcards, beside a reference matcher: two plain lists per rank, in the
// order of one global clock. The ranks (threads) act one at a time, so which message meets which receive is determined.
#include <halocline/comm/messenger.hpp>

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <list>
#include <memory>
#include <random>
#include <vector>

namespace {

using namespace halocline::comm;

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

/// The reference: MPI's matching rule, as short as it can be said.
class reference_matcher {
  public:
    void send(const message& m) {
        auto& posted = posted_[static_cast<std::size_t>(m.to)];
        for (auto r = posted.begin(); r != posted.end(); ++r) {
            if (!meet(*r, m)) continue;
            got[static_cast<std::size_t>(r->id)] = m.id;
            posted.erase(r);
            return;
        }
        waiting[static_cast<std::size_t>(m.to)].push_back(m);
    }
    void post(const receive& r) {
        got.resize(std::max(got.size(), static_cast<std::size_t>(r.id) + 1), -1);
        auto& early = waiting[static_cast<std::size_t>(r.at)];
        for (auto m = early.begin(); m != early.end(); ++m) {
            if (!meet(r, *m)) continue;
            got[static_cast<std::size_t>(r.id)] = m->id;
            early.erase(m);
            return;
        }
        posted_[static_cast<std::size_t>(r.at)].push_back(r);
    }
    [[nodiscard]] const std::list<receive>& posted(int rank) const { return posted_[static_cast<std::size_t>(rank)]; }

    std::vector<int> got; ///< by receive: the message, -1 none yet
    std::list<message> waiting[ranks];

  private:
    static bool meet(const receive& r, const message& m) {
        return r.context == m.context && (r.from == any_source || r.from == m.from) &&
               (r.tag == any_tag || r.tag == m.tag);
    }
    std::list<receive> posted_[ranks];
};

struct step {
    bool is_send;
    message m;
    receive r;
};

/// A schedule that ends with every message received.
std::vector<step> schedule(unsigned seed, int length, reference_matcher& reference, std::vector<message>& messages,
                           int& receives) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    std::vector<step> steps;
    const auto send = [&](int from, int to, int tag, std::uint32_t context) {
        constexpr std::size_t some[] = {4, 40, 41, 296, 297, 3000, 5000, 40'000};
        const message m{static_cast<int>(messages.size()), from, to, tag, context, some[below(8)]};
        messages.push_back(m);
        reference.send(m);
        steps.push_back({true, m, {}});
    };
    const auto post = [&](int at, int from, int tag, std::uint32_t context) {
        const receive r{receives++, at, from, tag, context};
        reference.post(r);
        steps.push_back({false, {}, r});
    };
    for (int i = 0; i < length; ++i) {
        const int at = below(ranks), other = below(ranks), tag = below(3);
        const auto context = static_cast<std::uint32_t>(below(2));
        // Up to 40 messages wait at a rank: fewer than what one sender may have under way.
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

TEST(MessengerFuzz, MatchesAsTheReferenceDoes) {
    for (unsigned seed = 1; seed <= 12; ++seed) {
        reference_matcher reference;
        std::vector<message> messages;
        int receives = 0;
        const std::vector<step> steps = schedule(seed, 400, reference, messages, receives);
        std::vector<int> got(static_cast<std::size_t>(receives), -2), sources(got), tags(got);
        std::vector<std::size_t> sizes(got.size(), 0);
        std::barrier turn(ranks);

        run_threads(ranks, [&](const job& j) {
            messenger m(j, {.unexpected = 200, .synergistic_bytes = 4000});
            std::list<message_request> requests;
            std::list<std::vector<int>> buffers;
            std::vector<std::pair<int, std::pair<message_request*, int*>>> mine;
            message_info info;
            for (const step& s : steps) {
                if (s.is_send ? s.m.from == j.rank() : s.r.at == j.rank()) {
                    requests.emplace_back();
                    if (s.is_send) {
                        buffers.emplace_back((s.m.bytes + 3) / 4, s.m.id);
                        m.isend(requests.back(), std::as_bytes(std::span(buffers.back())).first(s.m.bytes), s.m.to,
                                s.m.tag, s.m.context);
                    } else {
                        buffers.emplace_back(10'000, -1);
                        m.irecv(requests.back(), std::as_writable_bytes(std::span(buffers.back())), s.r.from, s.r.tag,
                                s.r.context);
                        mine.push_back({s.r.id, {&requests.back(), buffers.back().data()}});
                    }
                }
                turn.arrive_and_wait();
                (void)m.probe(any_source, any_tag, info, 99); // what was sent in this step arrives in it
                turn.arrive_and_wait();
            }
            for (message_request& r : requests)
                if (const status s = m.wait(r); s != status::ok) j.fail(s, m.pending());
            for (const auto& [id, what] : mine) {
                const auto at = static_cast<std::size_t>(id);
                const message_info& i = what.first->info();
                got[at] = what.second[0];
                sources[at] = i.source;
                tags[at] = i.tag;
                sizes[at] = i.bytes;
                for (std::size_t w = 0; w < i.bytes / 4; ++w)
                    if (what.second[w] != got[at]) got[at] = -3; // a mix of messages
            }
            j.barrier();
        });

        ASSERT_EQ(got, reference.got) << "seed " << seed;
        for (std::size_t i = 0; i < got.size(); ++i) {
            const message& m = messages[static_cast<std::size_t>(got[i])];
            EXPECT_EQ(sources[i], m.from);
            EXPECT_EQ(tags[i], m.tag);
            EXPECT_EQ(sizes[i], m.bytes);
        }
    }
}

} // namespace
