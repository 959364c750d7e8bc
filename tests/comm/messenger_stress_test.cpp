// SPDX-License-Identifier: Apache-2.0
// Random programs of messages of all sizes, with wildcards, probes and several messengers and contexts, among waits of
// every other kind. Each is correct by MPI's rules without any buffering, so it has to end; a rank that hangs ends it
// at its deadline. A message is checked against the order in which its sender sent, and each of its words.
#include "random_seeds.hpp"

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/messenger.hpp>
#include <halocline/comm/one_sided.hpp>
#include <halocline/comm/slab.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace {

using namespace halocline::comm;
using halocline_test::random_seeds;
using buffer = std::vector<std::byte, std::pmr::polymorphic_allocator<std::byte>>;

constexpr int messengers = 2, contexts = 4, tags = 3;
/// After so many steps all ranks finish all their requests: so fewer messages are under way than a sender has room for.
/// None continues before all others are there: its next messages could meet receives that are meant for these.
constexpr std::size_t steps_per_part = 50;
/// What the receives of a context name. Receives of one context are alike, so that none takes a message that another
/// one needs.
enum context_kind : std::uint32_t { exact, from_any_rank, of_any_tag, of_anything };

constexpr std::size_t sizes[] = {8,    16,   40,     41,     48,     100,    512,     1024,    1025,    2048,      3000,
                                 4096, 4104, 16'384, 16'392, 40'000, 65'536, 131'072, 131'080, 300'000, 1'000'000, 0};

/// A step of the program. All ranks know all steps; what a rank does are those that name it, in their order. If every
/// rank did its steps in the global order, one after the other, each would be able to end.
struct step {
    enum {
        message,
        finish_some, ///< rank `from` waits for one of its requests, or for all
        sum,
        start_sum, ///< the sum is finished by the next step of any collective kind
        barrier,
        exchange, ///< all ranks, in channels
        signal,   ///< rank `from` puts bytes to rank `to`, which waits for them
        dangling  ///< rank `from` posts a receive that nothing matches, and withdraws an earlier one
    } kind = message;
    int from = 0, to = 0, tag = 0, which = 0; // messenger
    std::uint32_t context = 0;
    std::size_t bytes = 0;
    int send_style = 0, receive_style = 0, delay = 0;
    bool from_slab = false, to_slab = false;
};

std::vector<step> program(unsigned seed, int ranks, int length) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    std::vector<step> steps;
    const int largest = below(4) == 0 ? static_cast<int>(std::size(sizes)) : static_cast<int>(std::size(sizes)) - 3;
    for (int i = 0; i < length; ++i) {
        step s;
        s.from = below(ranks);
        s.to = below(ranks);
        s.delay = below(12) == 0 ? below(300) : 0;
        switch (below(16)) {
        case 0: s.kind = step::sum; break;
        case 1: s.kind = step::start_sum; break;
        case 2: s.kind = below(4) == 0 ? step::barrier : step::sum; break;
        case 3: s.kind = step::exchange; break;
        case 4: s.kind = step::signal; break;
        case 5: s.kind = step::dangling; break;
        case 6:
        case 7: s.kind = step::finish_some; break;
        default: break;
        }
        s.tag = below(tags);
        s.which = below(messengers);
        s.context = static_cast<std::uint32_t>(below(contexts));
        s.bytes = sizes[below(s.context == exact ? largest : largest - 1)];
        if (s.context != exact && s.bytes == 0) s.bytes = 8;
        s.send_style = below(4);
        s.receive_style = below(5);
        s.from_slab = below(2) == 0;
        s.to_slab = below(2) == 0;
        steps.push_back(s);
        for (int burst = s.kind == step::message && below(6) == 0 ? below(20) : 0; burst > 0; --burst)
            steps.push_back(s);
    }
    return steps;
}

/// One rank's part in a program.
class runner {
  public:
    runner(const job& j, unsigned seed)
        : j_(j), random_(seed * 977 + static_cast<unsigned>(j.rank())), sum_(j, 1),
          exposed_(j, everyone(j), places * put_bytes * static_cast<std::size_t>(j.ranks()), signals(j)) {
        std::vector<channel_request> requests;
        for (int p = 0; p < j.ranks(); ++p)
            if (p != j.rank())
                requests.push_back({p, static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(j.rank()),
                                    exchanged_bytes, exchanged_bytes, "x"});
        channels_ = channel_set(j, requests, {"stress", ""});
        for (int i = 0; i < messengers; ++i) {
            messenger_options o;
            o.name = "messages " + std::to_string(i) + " of program " + std::to_string(seed);
            o.unexpected = 400;
            if ((seed + i) % 3 == 0) o.immediate_bytes = 0;
            if ((seed + i) % 4 == 1) o.immediate_bytes = 100;
            if ((seed + i) % 2 == 0) o.synergistic_bytes = 5000;
            if ((seed + i) % 5 == 0) o.streamed_bytes = 20'000;
            if ((seed + i) % 3 == 1) o.read_processes = false;
            messages_.push_back(std::make_unique<messenger>(j, o));
        }
    }

    void run(const std::vector<step>& steps) {
        for (std::size_t i = 0; i < steps.size() && ok(); ++i) {
            const step& s = steps[i];
            if (i % steps_per_part == 0) end_part();
            const bool sends = s.from == j_.rank(), receives = s.to == j_.rank();
            if (s.delay > 0 && (sends || receives) && below(2) == 0) pass_time(s.delay);
            switch (s.kind) {
            case step::message: message(s); break;
            case step::finish_some:
                if (sends) finish_some();
                break;
            case step::sum: sum(); break;
            case step::start_sum: {
                end_sum();
                const double mine = 1;
                sum_.start({&mine, 1});
                sum_started_ = true;
                break;
            }
            case step::barrier:
                end_sum();
                j_.barrier();
                break;
            case step::exchange: exchange(); break;
            case step::signal: signal(s); break;
            case step::dangling:
                if (sends) dangle(s);
                break;
            }
        }
        end_sum();
        finish_all();
        dangling_.clear();
        if (ok()) j_.barrier();
    }

  private:
    /// A request, and what a receive should get.
    struct operation {
        std::optional<message_request> request{std::in_place};
        buffer data;
        step s;
        bool is_send = false;
        std::uint64_t posted = 0;
    };

    static std::vector<int> everyone(const job& j) {
        std::vector<int> all;
        for (int p = 0; p < j.ranks(); ++p) all.push_back(p);
        return all;
    }
    static exposure_options signals(const job& j) {
        exposure_options o;
        o.signals = j.ranks();
        return o;
    }
    [[nodiscard]] bool ok() const {
        return std::ranges::all_of(messages_, [](const auto& m) { return m->state() == status::ok; });
    }
    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    void check(messenger& m, status s) {
        if (s != status::ok) j_.fail(s, m.pending());
    }
    void pass_time(int microseconds) {
        if (below(2) == 0) return std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
        const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
        while (std::chrono::steady_clock::now() < until) {
        }
    }
    std::pmr::memory_resource* memory(bool in_slab) const {
        return in_slab ? static_cast<std::pmr::memory_resource*>(&j_.memory()) : std::pmr::new_delete_resource();
    }

    /// A message's first word says which of its sender's messages it is, in its messenger, context and tag.
    static std::uint64_t word(int from, int tag, std::uint64_t number, std::size_t place) {
        return place == 0 ? number : (static_cast<std::uint64_t>(from * tags + tag) << 48) + number * 1'000'003 + place;
    }
    void fill(buffer& data, const step& s) {
        const std::uint64_t number = ++sent_[{s.which, s.context, s.tag, s.to}];
        for (std::size_t w = 0; w < data.size() / 8; ++w) {
            const std::uint64_t value = word(s.from, s.tag, number, w);
            std::memcpy(&data[8 * w], &value, 8);
        }
    }
    /// Receives that are alike get the messages of one sender and tag in the order in which they were posted.
    void check_received(const operation& o, const message_info& info) {
        const step& s = o.s;
        ASSERT_TRUE(s.context != exact || info.bytes == s.bytes) << info.bytes << ", not " << s.bytes;
        ASSERT_TRUE(source_of(s) == any_source || info.source == s.from) << info.source << ", not " << s.from;
        ASSERT_TRUE(tag_of(s) == any_tag || info.tag == s.tag) << info.tag << ", not " << s.tag;
        ASSERT_LE(info.bytes, o.data.size());
        std::uint64_t number = 0;
        if (info.bytes >= 8) std::memcpy(&number, o.data.data(), 8);
        for (std::size_t w = 1; w < info.bytes / 8; ++w) {
            std::uint64_t got = 0;
            std::memcpy(&got, &o.data[8 * w], 8);
            ASSERT_EQ(got, word(info.source, info.tag, number, w)) << info.bytes << " bytes, word " << w;
        }
        if (info.bytes >= 8) got_[{s.which, s.context, info.tag, info.source}].emplace(o.posted, number);
    }
    void check_order() {
        for (const auto& [what, numbers] : got_) {
            std::uint64_t last = 0;
            for (const auto& [posted, number] : numbers) {
                ASSERT_GT(number, last) << "messenger " << std::get<0>(what) << ", context " << std::get<1>(what);
                last = number;
            }
        }
        got_.clear();
    }

    void message(const step& s) {
        messenger& m = *messages_[s.which];
        const bool to_self = s.from == s.to;
        if (s.to == j_.rank() && to_self) post(s);
        if (s.from == j_.rank()) send(s);
        if (s.to == j_.rank() && !to_self) receive(m, s);
        if (open_.size() > 60) finish_all_but_wild();
    }
    void send(const step& s) {
        messenger& m = *messages_[s.which];
        operation& o = open_.emplace_back();
        o.s = s;
        o.is_send = true;
        o.data = buffer(s.bytes, memory(s.from_slab));
        fill(o.data, s);
        // A receive of another kind than `exact` may take another message, so the send must not wait for it here.
        if (s.send_style < 2 && s.context == exact && s.from != s.to) {
            check(m, m.send(o.data, s.to, s.tag, s.context));
            open_.pop_back();
        } else {
            m.isend(*o.request, o.data, s.to, s.tag, s.context);
        }
    }
    [[nodiscard]] static int source_of(const step& s) {
        return s.context == exact || s.context == of_any_tag ? s.from : any_source;
    }
    [[nodiscard]] static int tag_of(const step& s) {
        return s.context == exact || s.context == from_any_rank ? s.tag : any_tag;
    }
    operation& receiving(const step& s) {
        operation& o = open_.emplace_back();
        o.s = s;
        o.posted = ++posted_;
        o.data = buffer(s.context == exact ? s.bytes : 1'000'000, memory(s.to_slab));
        return o;
    }
    void post(const step& s) {
        operation& o = receiving(s);
        messages_[s.which]->irecv(*o.request, o.data, source_of(s), tag_of(s), s.context);
    }
    void receive(messenger& m, const step& s) {
        if (s.receive_style < 2) return post(s);
        operation& o = receiving(s);
        message_info info{source_of(s), tag_of(s), 0};
        if (s.receive_style == 2) check(m, m.wait_probe(info.source, info.tag, info, s.context));
        while (s.receive_style == 3 && m.state() == status::ok && !m.probe(info.source, info.tag, info, s.context)) {
        }
        check(m, m.recv(o.data, info.source, info.tag, &info, s.context));
        check_received(o, info);
        open_.pop_back();
    }

    [[nodiscard]] static bool may_wait(const operation& o) { return !o.is_send || o.s.context == exact; }
    void finish(std::list<operation>::iterator o) {
        messenger& m = *messages_[o->s.which];
        switch (below(4)) {
        case 0: check(m, m.wait(*o->request)); break;
        case 1:
            while (m.state() == status::ok && !m.test(*o->request)) {
            }
            break;
        case 2: {
            message_request* const both[] = {nullptr, &*o->request};
            check(m, m.wait_any(both));
            break;
        }
        default: {
            status s = status::timed_out;
            while (s == status::timed_out) s = m.wait_all_for({&*o->request, 1}, std::chrono::microseconds(below(200)));
            check(m, s);
        }
        }
        end(o);
    }
    void end(std::list<operation>::iterator o) {
        check(*messages_[o->s.which], messages_[o->s.which]->state());
        ASSERT_TRUE(o->request->done());
        if (!o->is_send) check_received(*o, o->request->info());
        open_.erase(o);
    }
    void finish_some() {
        std::vector<std::list<operation>::iterator> may;
        for (auto o = open_.begin(); o != open_.end(); ++o)
            if (may_wait(*o)) may.push_back(o);
        if (may.empty()) return;
        if (below(3) == 0) return finish_all_but_wild();
        finish(may[static_cast<std::size_t>(below(static_cast<int>(may.size())))]);
    }
    void finish_all_but_wild() { wait_all(false); }
    void finish_all() {
        wait_all(true);
        ASSERT_TRUE(open_.empty());
        check_order();
    }
    void wait_all(bool wild) {
        for (int which = 0; which < messengers; ++which) {
            std::vector<message_request*> all;
            for (operation& o : open_)
                if (o.s.which == which && (wild || may_wait(o))) all.push_back(&*o.request);
            std::shuffle(all.begin(), all.end(), random_);
            check(*messages_[which], messages_[which]->wait_all(all));
        }
        for (auto o = open_.begin(); o != open_.end();) {
            const auto next = std::next(o);
            if (wild || may_wait(*o)) end(o);
            o = next;
        }
    }

    void end_part() {
        finish_all();
        sum();
    }
    void sum() {
        end_sum();
        double one = j_.rank();
        if (const status s = sum_({&one, 1}); s != status::ok) j_.fail(s, sum_.pending());
        EXPECT_EQ(one, j_.ranks() * (j_.ranks() - 1) / 2);
    }
    void end_sum() {
        if (!sum_started_) return;
        sum_started_ = false;
        for (int i = below(20); i > 0 && !sum_.test(); --i) {
        }
        double all = 0;
        if (const status s = sum_.finish({&all, 1}); s != status::ok) j_.fail(s, sum_.pending());
        EXPECT_EQ(all, j_.ranks());
    }
    static constexpr std::size_t exchanged_bytes = 64, put_bytes = 40;
    /// For the puts of one rank to another: more than a part has steps, so that none is overwritten before it is read.
    static constexpr std::size_t places = steps_per_part + 1;
    static std::size_t place_of(int from, std::uint64_t number) {
        return put_bytes * (places * static_cast<std::size_t>(from) + number % places);
    }
    /// What one rank tells another for the `number`th time.
    template <std::size_t Bytes>
    static std::array<std::uint64_t, Bytes / 8> told(int from, int to, std::uint64_t number) {
        std::array<std::uint64_t, Bytes / 8> words{};
        for (std::size_t w = 0; w < words.size(); ++w)
            words[w] = (static_cast<std::uint64_t>(from * 64 + to) << 48) + number * 1'000'003 + w;
        return words;
    }
    void exchange() {
        ++epoch_;
        channels_.for_each([&](auto& c) {
            const auto words = told<exchanged_bytes>(j_.rank(), channels_.request(c.index()).peer, epoch_);
            std::memcpy(c.target(epoch_), words.data(), exchanged_bytes);
            c.send(epoch_, 0);
        });
        for (const bool tests = below(2) == 0; tests && !channels_.test(epoch_);) {
        }
        if (const status s = channels_.wait(epoch_); s != status::ok) j_.fail(s, channels_.pending(epoch_));
        channels_.for_each([&](auto& c) {
            const int peer = channels_.request(c.index()).peer;
            EXPECT_EQ(
                std::memcmp(c.received(epoch_), told<exchanged_bytes>(peer, j_.rank(), epoch_).data(), exchanged_bytes),
                0)
                << "exchange " << epoch_ << " from rank " << peer;
        });
    }
    void signal(const step& s) {
        if (s.from == j_.rank()) {
            const std::uint64_t number = ++puts_[s.to];
            const auto words = told<put_bytes>(s.from, s.to, number);
            const status st = exposed_.put_signal(static_cast<std::size_t>(s.to), std::as_bytes(std::span(words)),
                                                  place_of(s.from, number), s.from);
            if (st != status::ok) j_.fail(st, exposed_.pending());
        }
        if (s.to != j_.rank()) return;
        const std::uint64_t number = ++signals_[s.from];
        const status st = exposed_.wait_signals(s.from, number);
        if (st != status::ok) j_.fail(st, exposed_.pending());
        EXPECT_EQ(std::memcmp(&exposed_.memory()[place_of(s.from, number)],
                              told<put_bytes>(s.from, s.to, number).data(), put_bytes),
                  0)
            << "put " << number << " of rank " << s.from;
    }
    void dangle(const step& s) {
        if (dangling_.size() > 4) dangling_.pop_front();
        operation& o = dangling_.emplace_back();
        o.data = buffer(100, memory(s.to_slab));
        messages_[s.which]->irecv(*o.request, o.data, s.tag == 0 ? any_source : s.to, 77, exact);
    }

    const job& j_;
    std::mt19937 random_;
    global_sum sum_;
    exposure exposed_;
    channel_set channels_;
    std::vector<std::unique_ptr<messenger>> messages_;
    std::list<operation> open_, dangling_;
    std::map<std::tuple<int, std::uint32_t, int, int>, std::uint64_t> sent_; ///< by messenger, context, tag and rank
    std::map<std::tuple<int, std::uint32_t, int, int>, std::map<std::uint64_t, std::uint64_t>> got_;
    std::map<int, std::uint64_t> signals_, puts_; ///< by the other rank
    std::uint64_t posted_ = 0, epoch_ = 0;
    bool sum_started_ = false;
};

void run_program(const job& j, unsigned seed) {
    SCOPED_TRACE("program " + std::to_string(seed));
    runner r(j, seed);
    constexpr int length = 300;
    r.run(program(seed, j.ranks(), length));
}

TEST(MessengerStress, CorrectProgramsEndAndGetWhatWasSent) {
    job_options options;
    options.deadline = std::chrono::seconds(60);
    if (const char* const transport = std::getenv("HALOCLINE_TEST_TRANSPORT")) {
        options.transports = {transport};
        const job j = job::from_environment(options);
        for (const unsigned seed : random_seeds(4, &j)) run_program(j, seed);
        return;
    }
    constexpr path paths[] = {path::direct, path::streamed};
    for (const unsigned seed : random_seeds(4)) {
        options.path = paths[seed % 2];
        run_threads(
            2 + static_cast<int>(seed / 2 % 5), [&](const job& j) { run_program(j, seed); }, options);
    }
}

} // namespace
