// SPDX-License-Identifier: Apache-2.0
// The calls that all ranks of a job make together during set-up. Each message opens with the kind of call that it
// belongs to, so that ranks in different calls find out.
#include <halocline/comm/job.hpp>
#include <halocline/comm/out_of_memory.hpp>
#include <halocline/comm/slab_full.hpp>

#include "control/wire_format.hpp"
#include "job_core.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <new>
#include <utility>

namespace halocline::comm {
namespace {

enum class call : char {
    gather = 'g',
    broadcast = 'b',
    barrier = '|',
    exchange = 'x',
    agree = '=',
    collectively = 'c',
    sum = '+'
};

std::string_view to_string(call kind) {
    switch (kind) {
    case call::gather: return "gather";
    case call::broadcast: return "broadcast";
    case call::barrier: return "barrier";
    case call::exchange: return "exchange";
    case call::agree: return "a check that settings agree";
    case call::collectively: return "a decision on errors";
    case call::sum: return "a sum";
    }
    return "?";
}

std::string opened(call kind, std::string_view bytes) {
    std::string s(1, static_cast<char>(kind));
    return s.append(bytes);
}

constexpr const char* make_the_same =
    ": the ranks make different collective calls; make the same ones on all ranks, in one order";

/// Rank `here` is in one call, rank `there` in another.
[[noreturn]] void refuse_different_calls(const job_core& core, int here, call kind_here, int there, call kind_there,
                                         std::string_view operation) {
    throw rank_failure("rank " + std::to_string(here) + " is in " + std::string(to_string(kind_here)) + ", but " +
                           core.name_of(there) + " is in " + std::string(to_string(kind_there)) + make_the_same,
                       status::wrong_data, there, core.members[there].pid, core.members[there].host,
                       std::string(operation));
}

/// Removes the opening byte.  Err: rank_failure: it belongs to another call.
void strip(const job_core& core, call kind, int from, std::string& message) {
    const call theirs = message.empty() ? call{} : static_cast<call>(message.front());
    if (theirs != kind) refuse_different_calls(core, core.rank, kind, from, theirs, to_string(kind));
    message.erase(0, 1);
}

/// The joint contribution of a range of ranks to a combining call, or that two of them are in different calls.
struct joint {
    call kind{};
    int here = -1, there = -1; ///< the two ranks; -1: none
    call kind_there{};
    std::string value;

    template <class Self, class Pass>
    static void fields(Self& j, Pass& pass) {
        pass(j.kind, j.here, j.there, j.kind_there, j.value);
    }
    /// Reads only the kind of a message from a different call.
    static joint of(const std::string& bytes) {
        joint j;
        j.kind = wire_reader(bytes).number<call>();
        return j.kind == call::exchange ? j : from_wire<joint>(bytes);
    }
    void differ(int me, int other, call other_kind) {
        here = me;
        there = other;
        kind_there = other_kind;
    }
};

/// A call begins.  Err: rank_failure if the job has ended, whatever the others' messages say that have come.
void require_job(job_core& core, std::string_view operation) {
    if (const status s = core.failed_for_call(); s != status::ok) core.raise(s, operation);
}

/// The ranks' values joined in order of rank, the same on every rank.  Err: rank_failure, which includes ranks in
/// different calls.
std::string combine_as(job_core& core, call kind, std::string mine, const mail::joiner& join,
                       std::string_view operation) {
    require_job(core, operation);
    if (core.ranks == 1) return mine;
    const auto join_alike = [&](const std::string& lower, const std::string& upper, int first) {
        joint low = joint::of(lower);
        const joint up = joint::of(upper);
        if (low.there >= 0) return lower;
        if (up.there >= 0) return upper;
        if (low.kind == up.kind)
            low.value = join(low.value, up.value, first);
        else
            low.differ(core.rank, first, up.kind);
        return to_wire(low);
    };
    joint own;
    own.kind = kind;
    own.value = std::move(mine);
    joint all = joint::of(core.setup_mail->combine(to_wire(own), join_alike, operation));
    if (all.there < 0 && all.kind == kind) return std::move(all.value);
    if (all.there < 0) { // the ranks above have agreed on another call
        const call theirs = std::exchange(all.kind, kind);
        all.differ(core.rank, core.rank & (core.rank - 1), theirs);
    }
    refuse_different_calls(core, all.here, all.kind, all.there, all.kind_there, operation);
}

/// The first of two values that is not empty.
std::string first_said(const std::string& lower, const std::string& upper, int) {
    return lower.empty() ? upper : lower;
}

/// Waits of this rank may last longer while it lives.
class longer_waits {
  public:
    longer_waits(std::atomic<std::int64_t>& sum, std::chrono::milliseconds by)
        : sum_(sum), by_(std::clamp(by, std::chrono::milliseconds(0), longest_deadline).count()) {
        sum_.fetch_add(by_, std::memory_order_relaxed);
    }
    ~longer_waits() { sum_.fetch_sub(by_, std::memory_order_relaxed); }
    longer_waits(const longer_waits&) = delete;
    longer_waits& operator=(const longer_waits&) = delete;

  private:
    std::atomic<std::int64_t>& sum_;
    std::int64_t by_;
};

/// Err: input_error if there is no such rank.
void require_rank(int rank, int ranks, const char* call) {
    if (rank < 0 || rank >= ranks)
        throw input_error(std::string(call) + " rank " + std::to_string(rank) + ", which is none of 0 to " +
                          std::to_string(ranks - 1));
}

/// What a rank passes to agree().
struct opinion {
    std::string what, value;
    friend bool operator==(const opinion&, const opinion&) = default;

    template <class Self, class Pass>
    static void fields(Self& o, Pass& pass) {
        pass(o.what, o.value);
    }
};

/// The opinion of the lowest rank of a range, and the lowest rank that has another opinion.
struct opinions {
    opinion lowest;
    int other = -1; ///< -1: they agree
    opinion others;

    template <class Self, class Pass>
    static void fields(Self& o, Pass& pass) {
        pass(o.lowest, o.other, o.others);
    }
};

/// A range of ranks in a broadcast: the root that its lowest rank names, the lowest rank that names another one, and the
/// value, once the range contains the root.
struct broadcast_part {
    int root = 0;
    int other = -1; ///< -1: they agree
    int others_root = 0;
    bool has_value = false;
    std::string value;

    template <class Self, class Pass>
    static void fields(Self& p, Pass& pass) {
        pass(p.root, p.other, p.others_root, p.has_value, p.value);
    }
};

/// For error messages: the first of two values that differ, cut to a part of its line that shows the first difference.
std::string shown(std::string_view value, std::string_view other) {
    constexpr std::size_t most = 120, before = 40;
    const auto [mine, theirs] = std::ranges::mismatch(value, other);
    const std::size_t line = value.substr(0, static_cast<std::size_t>(mine - value.begin())).rfind('\n') + 1; // npos: 0
    value = value.substr(line, value.find('\n', line) - line);
    const auto at = static_cast<std::size_t>(mine - value.begin());
    const std::size_t first = value.size() > most && at > most - before ? at - before : 0;
    return std::string(first > 0 ? "'..." : "'") + std::string(value.substr(first, most)) +
           (value.size() > first + most ? "...'" : "'");
}

} // namespace

std::vector<std::string> job::gather(std::string_view mine) const {
    const auto append = [](const std::string& lower, const std::string& upper, int) { return lower + upper; };
    const std::string parts =
        combine_as(*core_, call::gather, wire_writer().text(mine).take(), append, "every rank's part of a gather");
    wire_reader reader(parts);
    std::vector<std::string> all(static_cast<std::size_t>(ranks()));
    for (std::string& part : all) part = reader.text();
    return all;
}

std::string job::broadcast(std::string_view mine, int root) const {
    const auto join = [](const std::string& lower, const std::string& upper, int first) {
        broadcast_part low = from_wire<broadcast_part>(lower), up = from_wire<broadcast_part>(upper);
        if (low.other < 0 && low.root != up.root) {
            low.other = first;
            low.others_root = up.root;
        } else if (low.other < 0) {
            low.other = up.other;
            low.others_root = up.others_root;
        }
        if (low.other >= 0) { // nobody gets a value
            low.value.clear();
        } else if (up.has_value) { // of two ranges only one can contain the root
            low.has_value = true;
            low.value = std::move(up.value);
        }
        return to_wire(low);
    };
    broadcast_part own;
    own.root = root;
    own.has_value = rank() == root;
    if (own.has_value) own.value = mine;
    broadcast_part all = from_wire<broadcast_part>(
        combine_as(*core_, call::broadcast, to_wire(own), join, "a broadcast of rank " + std::to_string(root)));
    if (all.other < 0) { // checked only now, so that no rank waits for one that names another root
        require_rank(root, ranks(), "broadcast of");
        return std::move(all.value);
    }
    throw input_error("ranks disagree on the root of a broadcast: rank 0 names rank " + std::to_string(all.root) +
                      ", rank " + std::to_string(all.other) + " names rank " + std::to_string(all.others_root) +
                      "; name the same one on all ranks");
}

void job::barrier() const { combine_as(*core_, call::barrier, {}, first_said, "every rank at a barrier"); }

std::uint64_t set_up_sum(const job& j, std::uint64_t mine) {
    const auto number = [](const std::string& bytes) { return wire_reader(bytes).number<std::uint64_t>(); };
    const auto text = [](std::uint64_t n) { return wire_writer().number(n).take(); };
    return number(combine_as(
        j.core(), call::sum, text(mine),
        [&](const std::string& lower, const std::string& upper, int) { return text(number(lower) + number(upper)); },
        "every rank's part of a sum"));
}

std::vector<std::string> job::exchange(std::span<const int> peers, std::span<const std::string> out) const {
    if (out.size() != peers.size())
        throw input_error("exchange with " + std::to_string(peers.size()) + " peers of " + std::to_string(out.size()) +
                          " messages: one for each peer is expected");
    std::vector<int> others;
    std::vector<std::string> messages;
    std::vector<std::string> in(peers.size());
    for (std::size_t i = 0; i < peers.size(); ++i) {
        require_rank(peers[i], ranks(), "exchange with");
        if (peers[i] == rank()) {
            in[i] = out[i];
        } else {
            others.push_back(peers[i]);
            messages.push_back(opened(call::exchange, out[i]));
        }
    }
    constexpr std::string_view operation = "a set-up exchange with its peers";
    require_job(*core_, operation);
    if (others.empty()) return in;
    std::vector<std::string> got = core_->setup_mail->exchange(others, messages, operation);
    for (std::size_t i = 0, k = 0; i < peers.size(); ++i) {
        if (peers[i] == rank()) continue;
        strip(*core_, call::exchange, peers[i], got[k]);
        in[i] = std::move(got[k++]);
    }
    return in;
}

void job::agree(std::string_view what, std::string_view value) const {
    const auto join = [](const std::string& lower, const std::string& upper, int first) {
        opinions low = from_wire<opinions>(lower), up = from_wire<opinions>(upper);
        if (low.other >= 0) return lower;
        const bool alike = low.lowest == up.lowest;
        low.other = alike ? up.other : first;
        low.others = alike ? std::move(up.others) : std::move(up.lowest);
        return to_wire(low);
    };
    opinions mine;
    mine.lowest = {std::string(what), std::string(value)};
    const opinions all = from_wire<opinions>(
        combine_as(*core_, call::agree, to_wire(mine), join, "every rank's value of " + std::string(what)));
    if (all.other < 0) return;
    const opinion &zero = all.lowest, &other = all.others;
    const std::string who = "rank " + std::to_string(all.other);
    if (zero.what != other.what)
        throw input_error("rank 0 compares " + zero.what + ", " + who + " " + other.what + make_the_same);
    throw input_error("ranks disagree on " + zero.what + ": rank 0 has " + shown(zero.value, other.value) + ", " + who +
                      " has " + shown(other.value, zero.value) + "; give every rank the same");
}

void job::collectively(const std::function<void()>& work, std::chrono::milliseconds more_time) const {
    const longer_waits patient(core_->more_time, more_time);
    enum class outcome : char { fine, input, job, full, memory, other };
    outcome mine = outcome::fine;
    std::string text;
    std::exception_ptr own;
    const auto note = [&](outcome o, std::string what) {
        mine = o;
        text = std::move(what);
        own = std::current_exception();
    };
    try {
        work();
    } catch (const rank_failure& e) {
        if (core_->failed() != status::ok) throw; // the job has ended; nobody is left to decide with
        note(outcome::job, e.what());
    } catch (const job_error& e) {
        note(outcome::job, e.what());
    } catch (const input_error& e) {
        note(outcome::input, e.what());
    } catch (const slab_full& e) {
        note(outcome::full, e.what());
    } catch (const std::bad_alloc&) {
        note(outcome::memory, core_->name_of(rank()) + " is out of memory");
    } catch (const std::exception& e) {
        note(outcome::other, e.what());
    } catch (...) {
        note(outcome::other, "rank " + std::to_string(rank()) + " threw something that is no std::exception");
    }
    // The lowest rank that failed speaks for all; empty if none did.
    const std::string said =
        mine == outcome::fine ? std::string() : wire_writer().number(rank()).number(mine).text(text).take();
    const std::string worst =
        combine_as(*core_, call::collectively, said, first_said, "every rank's decision on errors");
    if (worst.empty()) return;
    wire_reader reader(worst);
    const int first = reader.number<int>();
    const auto what = reader.number<outcome>();
    if (what == outcome::memory) throw out_of_memory(reader.text());
    if (first == rank()) std::rethrow_exception(own);
    switch (what) {
    case outcome::input: throw input_error(reader.text());
    case outcome::job: throw job_error(reader.text());
    case outcome::full: throw slab_full(reader.text());
    default: throw error(reader.text());
    }
}

} // namespace halocline::comm
