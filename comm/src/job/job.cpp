// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/job.hpp>

#include "job_core.hpp"
#include "say.hpp"
#include "waiting.hpp"

#include <algorithm>
#include <utility>

namespace halocline::comm {

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

std::string_view to_string(mpi_mode m) {
    switch (m) {
    case mpi_mode::two_sided: return "two-sided";
    case mpi_mode::one_sided: return "one-sided";
    }
    return "?";
}

mpi_mode mpi_mode_of(std::string_view text) {
    for (const mpi_mode m : {mpi_mode::two_sided, mpi_mode::one_sided}) {
        if (text == to_string(m)) return m;
    }
    throw input_error("unknown mode of MPI '" + std::string(text) + "'; known are two-sided, one-sided");
}

job job::single(const job_options& options) {
    check_transport_names(options.transports, false, 1);
    auto core = std::make_shared<job_core>(0, 1, options, "single", std::make_shared<node_slab>(options.slab_bytes));
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
void job::progress() const noexcept {
    std::uint64_t calls = core_->progress_calls.fetch_add(1, std::memory_order_relaxed);
    give_way(*core_, calls);
    core_->make_progress();
}
void job::warn(std::string_view text) const noexcept {
    if (core_->in_forked_child()) return;
    try {
        say("halocline: " + core_->name_of(rank()) + ": " + std::string(text));
    } catch (...) { // no memory for it
    }
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

void job::abort(std::string_view why) const noexcept {
    core_->own_activity.knows_of_end.store(true, std::memory_order_relaxed);
    core_->publish(status::aborted, core_->rank, why);
}

void job::fail(status why, std::string_view operation) const { core_->raise(why, operation); }

} // namespace halocline::comm
