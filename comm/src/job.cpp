// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/job.hpp>

#include "job_core.hpp"

#include <algorithm>

namespace halocline::comm {
namespace {

// Each set-up message opens with the kind of call it belongs to, so that ranks in different calls find out.
enum class call : char {
    gather = 'g',
    broadcast = 'b',
    barrier = '|',
    exchange = 'x',
    agree = '=',
    collectively = 'c'
};

std::string_view to_string(call kind) {
    switch (kind) {
    case call::gather: return "gather";
    case call::broadcast: return "broadcast";
    case call::barrier: return "barrier";
    case call::exchange: return "exchange";
    case call::agree: return "agree";
    case call::collectively: return "a decision on errors";
    }
    return "?";
}

std::string opened(call kind, std::string_view bytes) {
    std::string s(1, static_cast<char>(kind));
    return s.append(bytes);
}

/// Takes the opening byte off.
void strip(const job_core& core, call kind, int from, std::string& message) {
    if (message.empty() || message.front() != static_cast<char>(kind)) {
        const std::string theirs(message.empty() ? "?" : to_string(static_cast<call>(message.front())));
        throw rank_failure("rank " + std::to_string(core.rank) + " is in " + std::string(to_string(kind)) + ", but " +
                               core.name_of(from) + " is in " + theirs + ": the ranks make different collective calls",
                           status::wrong_data, from, core.members[from].pid, core.members[from].host,
                           std::string(to_string(kind)));
    }
    message.erase(0, 1);
}

std::vector<std::string> gather_as(job_core& core, call kind, std::string_view mine, std::string_view operation) {
    std::vector<std::string> all;
    if (core.ranks == 1) {
        all.emplace_back(mine);
        return all;
    }
    all = core.post->gather(opened(kind, mine), operation);
    for (int r = 0; r < core.ranks; ++r) strip(core, kind, r, all[r]);
    return all;
}

/// For messages: long values are cut.
/// Of two values that differ the first, at most so much of it that the first difference is seen.
std::string shown(std::string_view value, std::string_view other) {
    constexpr std::size_t most = 120, before = 40;
    const auto [mine, theirs] = std::ranges::mismatch(value, other);
    const auto at = static_cast<std::size_t>(mine - value.begin());
    const std::size_t first = value.size() > most && at > most - before ? at - before : 0;
    return std::string(first > 0 ? "'..." : "'") + std::string(value.substr(first, most)) +
           (value.size() > first + most ? "...'" : "'");
}

} // namespace

std::string_view to_string(status s) {
    switch (s) {
    case status::ok: return "ok";
    case status::peer_died: return "a peer died";
    case status::timed_out: return "timed out";
    case status::aborted: return "aborted";
    case status::wrong_data: return "wrong data";
    case status::misused: return "misused";
    }
    return "unknown status";
}

std::string_view to_string(mpi_mode m) { return m == mpi_mode::one_sided ? "one-sided" : "two-sided"; }

mpi_mode mpi_mode_of(std::string_view text) {
    for (const mpi_mode m : {mpi_mode::two_sided, mpi_mode::one_sided}) {
        if (text == to_string(m)) return m;
    }
    throw input_error("unknown mode of MPI '" + std::string(text) + "'; known are two-sided, one-sided");
}

job job::single(const job_options& options) {
    check_transport_names(options.transports, false, 1);
    auto core = std::make_shared<job_core>(0, 1, options, "single", std::make_shared<node_slab>(options.slab_bytes));
    core->spin_polls = polls_before_yielding(options, 1, 1);
    core->choose_transports({});
    return job(std::move(core));
}

int job::rank() const { return core_->rank; }
int job::ranks() const { return core_->ranks; }
const job_options& job::options() const { return core_->options; }
const std::vector<rank_info>& job::members() const { return core_->members; }
std::vector<int> job::nodes() const {
    std::vector<int> nodes;
    for (const rank_info& member : core_->members) nodes.push_back(member.node);
    return nodes;
}
std::string job::launcher() const { return core_->launcher; }
slab& job::memory() const { return *core_->memory; }

std::string job::transport() const {
    if (core_->ranks == 1) return core_->members[0].transport;
    std::string used;
    for (const std::string& t : core_->options.transports) {
        const bool serves = std::any_of(core_->members.begin(), core_->members.end(),
                                        [&](const rank_info& m) { return m.rank != core_->rank && m.transport == t; });
        if (serves) used += (used.empty() ? "" : "+") + t;
    }
    return used;
}

std::vector<std::string> job::gather(std::string_view mine) const {
    return gather_as(*core_, call::gather, mine, "every rank's part of a gather");
}

std::string job::broadcast(std::string_view mine, int root) const {
    const bool send = rank() == root;
    return gather_as(*core_, call::broadcast, send ? mine : std::string_view(),
                     "a broadcast of rank " + std::to_string(root))[root];
}

void job::barrier() const { gather_as(*core_, call::barrier, {}, "every rank at a barrier"); }

std::vector<std::string> job::exchange(std::span<const int> peers, std::span<const std::string> out) const {
    std::vector<int> others;
    std::vector<std::string> messages;
    std::vector<std::string> in(peers.size());
    for (std::size_t i = 0; i < peers.size(); ++i) {
        if (peers[i] < 0 || peers[i] >= ranks()) {
            throw input_error("exchange with rank " + std::to_string(peers[i]) + " of " + std::to_string(ranks()));
        }
        if (peers[i] == rank()) {
            in[i] = out[i];
        } else {
            others.push_back(peers[i]);
            messages.push_back(opened(call::exchange, out[i]));
        }
    }
    if (others.empty()) return in;
    std::vector<std::string> got = core_->post->exchange(others, messages, "a set-up exchange with its peers");
    for (std::size_t i = 0, k = 0; i < peers.size(); ++i) {
        if (peers[i] == rank()) continue;
        strip(*core_, call::exchange, peers[i], got[k]);
        in[i] = std::move(got[k++]);
    }
    return in;
}

void job::agree(std::string_view what, std::string_view value) const {
    const std::string operation = "every rank's value of " + std::string(what);
    const std::vector<std::string> all = gather_as(*core_, call::agree, value, operation);
    for (int r = 1; r < ranks(); ++r) {
        if (all[r] != all[0]) {
            throw input_error("ranks disagree on " + std::string(what) + ": rank 0 has " + shown(all[0], all[r]) +
                              ", rank " + std::to_string(r) + " has " + shown(all[r], all[0]));
        }
    }
}

void job::collectively(const std::function<void()>& work) const {
    enum : char { fine = 0, input = 1, other = 2 };
    std::string outcome(1, fine);
    std::exception_ptr own;
    try {
        work();
    } catch (const rank_failure&) {
        throw; // the job has ended; nobody is left to decide with
    } catch (const input_error& e) {
        outcome = std::string(1, input) + e.what();
        own = std::current_exception();
    } catch (const std::exception& e) {
        outcome = std::string(1, other) + e.what();
        own = std::current_exception();
    }
    const std::vector<std::string> all =
        gather_as(*core_, call::collectively, outcome, "every rank's decision on errors");
    for (int r = 0; r < ranks(); ++r) {
        const char kind = all[r].empty() ? char{fine} : all[r].front();
        if (kind == fine) continue;
        if (r == rank()) std::rethrow_exception(own);
        if (kind == input) throw input_error(all[r].substr(1));
        throw error(all[r].substr(1));
    }
}

void job::abort(std::string_view why) const noexcept {
    core_->doing.noticed.store(true, std::memory_order_relaxed);
    core_->publish(status::aborted, core_->rank, why);
}

void job::fail(status why, std::string_view operation) const { core_->raise(why, operation); }

} // namespace halocline::comm
