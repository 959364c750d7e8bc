// SPDX-License-Identifier: Apache-2.0
#include "job_core.hpp"

#include "channels/window_end.hpp"
#include "mpi/world.hpp"
#include "ofi/world.hpp"
#include "verbs/world.hpp"
#include "witness.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/shm_channel.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sched.h>
#include <unistd.h>

namespace halocline::comm {
namespace {

bool always() { return true; }

struct known_transport {
    std::string_view name;
    bool (*built)();
    std::string_view remedy; ///< if it is not
};
constexpr std::array known_transports{
    known_transport{"self", always, ""},
    known_transport{"shm", always, ""},
    known_transport{"verbs", verbs_is_built, "; install libibverbs-dev and configure again"},
    known_transport{"ofi", ofi_is_built, "; install libfabric-dev and configure again"},
    known_transport{"mpi", always, ""},
    known_transport{"mock", always, ""},
};

/// First writer wins.
void write(failure_record& record, status why, int culprit, const rank_info* who, std::string_view text) noexcept {
    std::uint32_t expected = failure_record::none;
    if (!record.state.compare_exchange_strong(expected, failure_record::being_written, std::memory_order_acq_rel))
        return;
    record.why = why;
    record.culprit = culprit;
    if (who != nullptr) {
        record.pid = who->pid;
        std::strncpy(record.host, who->host.c_str(), sizeof record.host - 1);
    }
    const std::size_t n = std::min(text.size(), sizeof record.text - 1);
    std::memcpy(record.text, text.data(), n);
    record.text[n] = '\0';
    record.state.store(failure_record::there, std::memory_order_release);
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
    std::string s;
    for (const std::string& w : words) s.append(s.empty() ? "" : between).append(w);
    return s;
}

/// The command of this process, as the shell would need it.
std::string command_line() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    std::string all((std::istreambuf_iterator<char>(file)), {});
    if (all.empty()) return "<program> ...";
    all.pop_back();
    std::replace(all.begin(), all.end(), '\0', ' ');
    return all;
}

} // namespace

int allowed_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return std::max(1, CPU_COUNT(&set));
}

std::string host_name() {
    char name[256]{};
    if (gethostname(name, sizeof name - 1) != 0) return "localhost";
    return name;
}

job_core::job_core(int own_rank, int job_ranks, job_options choices, std::string started_by,
                   std::shared_ptr<node_slab> own_slab)
    : rank(own_rank), ranks(job_ranks), options(std::move(choices)), launcher(std::move(started_by)),
      members(static_cast<std::size_t>(job_ranks)), memory(std::move(own_slab)),
      peer_base(static_cast<std::size_t>(job_ranks), nullptr) {
    for (int r = 0; r < ranks; ++r) members[r].rank = r;
    members[rank] = {rank, static_cast<int>(getpid()), host_name(), "self", ""};
    peer_base[rank] = memory->base();
    seconds_per_tick(); // measured now, not in the first wait
}

job_core::~job_core() {
    const closing_scope closing(doing);
    // Farewells of closed channels may be under way, and the last messages before them.
    const auto over = [&] {
        if (watch) watch->look();
        return failed() != status::ok;
    };
    const auto alone = [&] {
        const bool ended = over();
        bool somebody = false;
        for (int r = 0; r < ranks; ++r) somebody = somebody || (r != rank && watch && !watch->left(r));
        return ended || !somebody;
    };
    if (mpi) mpi->finish(over);
    if (verbs) verbs->finish(alone);
    if (ofi) ofi->finish(alone);
    if (guard) guard->stop_looking();
    // Here, where the witness still looks on: libraries may not return. Memory first that is registered with them.
    parked.clear();
    watch.reset();
    ofi.reset();
    verbs.reset();
}

std::string job_core::why_not(const std::string& transport, int peer, const refusals& refused) const {
    if (transport == "shm") return peer_base[peer] != nullptr ? "" : refused.shm[peer];
    if (transport == "mpi") return mpi ? "" : "this job was not started by an MPI launcher";
    if (const auto it = refused.networks.find(transport); it != refused.networks.end()) return it->second[peer];
    return transport == "self" ? "serves only the own rank" : "";
}

void job_core::choose_transports(const refusals& refused) {
    const bool mock = options.transports == std::vector<std::string>{"mock"};
    for (rank_info& member : members) {
        if (member.rank == rank && !mock) {
            member.transport = "self";
            continue;
        }
        member.transport.clear();
        std::vector<std::string> reasons;
        for (const std::string& t : options.transports) {
            const std::string reason = why_not(t, member.rank, refused);
            if (reason.empty()) {
                member.transport = t;
                break;
            }
            reasons.push_back(t + ": " + reason);
        }
        member.refused = joined(reasons, "; ");
        if (member.transport.empty()) {
            throw input_error("no transport of [" + joined(options.transports, ", ") + "] reaches " +
                              name_of(member.rank) + " from " + name_of(rank) + " (" + member.refused + ")");
        }
    }
}

void check_transport_names(const std::vector<std::string>& names, bool mpi_there, int ranks) {
    std::vector<std::string> built;
    for (const known_transport& k : known_transports) {
        if (k.built()) built.emplace_back(k.name);
    }
    const std::string all = joined(built, ", ");
    bool usable = false;
    for (const std::string& t : names) {
        const auto known = std::find_if(known_transports.begin(), known_transports.end(),
                                        [&](const known_transport& k) { return k.name == t; });
        if (known == known_transports.end()) throw input_error("unknown transport '" + t + "'; known are " + all);
        if (!known->built()) {
            throw input_error("transport '" + t + "' is not built in; this build has " + all +
                              std::string(known->remedy));
        }
        usable = usable || (t == "mpi" ? mpi_there : t != "self" || ranks == 1);
    }
    if (names.size() > 1 && std::find(names.begin(), names.end(), "mock") != names.end())
        throw input_error("transport 'mock' moves nothing between ranks: it is for benches and tests, and named alone");
    if (names.empty()) throw input_error("no transport was named; known are " + all);
    if (!usable && std::find(names.begin(), names.end(), "mpi") != names.end()) {
        throw input_error("transport 'mpi' needs an MPI launcher: mpirun -n " + std::to_string(ranks) + " " +
                          command_line());
    }
    if (!usable)
        throw input_error("transport 'self' serves only the own rank; " + std::to_string(ranks) +
                          " ranks need another; known are " + all);
}

std::vector<std::string> default_transports() {
    std::vector<std::string> names{"shm", "verbs", "mpi", "ofi"};
    std::erase_if(names, [](const std::string& n) {
        return !std::ranges::find(known_transports, n, &known_transport::name)->built();
    });
    return names;
}

void job_core::sweep() noexcept {
    if (verbs) verbs->sweep();
    if (ofi) ofi->sweep();
    std::erase_if(parked, [&](parked_block& block) {
        for (const control_line* line : block.lines) {
            if (!shm_channel::closed(*line)) return false;
        }
        for (const auto& e : block.exposed) {
            if (e.use_count() > 1) return false;
        }
        block.exposed.clear(); // before its memory goes
        memory->deallocate(block.start, block.bytes, alignof(control_line));
        for (const void* p : block.pinned) memory->unpin(p);
        return true;
    });
}

void job_core::publish(status why, int culprit, std::string_view text) noexcept {
    const rank_info* who = culprit >= 0 ? &members[culprit] : nullptr;
    write(memory->record(), why, culprit, who, text);
    if (mpi) mpi->leave(); // MPI_Finalize would wait for the dead
    // What this rank reports is what the others get: another's record may have been first.
    const failure_record& mine = memory->record();
    while (mine.state.load(std::memory_order_acquire) == failure_record::being_written) sched_yield();
    if (watch) watch->tell_far(mine);
    for (int r = 0; r < ranks; ++r) {
        if (r == rank || peer_base[r] == nullptr) continue;
        write(*reinterpret_cast<failure_record*>(peer_base[r]), mine.why, mine.culprit,
              mine.culprit >= 0 ? &members[mine.culprit] : nullptr, mine.text);
    }
}

status job_core::failed() const noexcept {
    const failure_record& mine = memory->record();
    return mine.state.load(std::memory_order_acquire) == failure_record::there ? mine.why : status::ok;
}

status job_core::check(int peer, std::uint64_t since, int gone) noexcept {
    const status s = look(peer, since, gone);
    if (s != status::ok) doing.noticed.store(true, std::memory_order_relaxed);
    return s;
}

status job_core::look(int peer, std::uint64_t since, int gone) noexcept {
    if (const status s = failed(); s != status::ok) return s;
    // A wait over sockets must not stop what these have under way.
    if (mpi) mpi->poll();
    if (ofi) ofi->poll();
    push_windows(*this);
    if (watch) {
        watch->look();
        if (const status s = failed(); s != status::ok) return s;
        if (peer >= 0 && peer == gone) {
            publish(status::peer_died, peer, "left the job");
            return failed();
        }
    }
    if (seconds(ticks() - since) > std::chrono::duration<double>(options.deadline).count()) {
        publish(status::timed_out, silent_behind(peer), "");
        return failed();
    }
    return status::ok;
}

void job_core::awaits(int peer) noexcept {
    failure_record& mine = memory->record();
    mine.awake.store(ticks(), std::memory_order_relaxed);
    mine.awaited.store(peer, std::memory_order_release);
}

int job_core::silent_behind(int peer) const noexcept {
    const double asleep = std::chrono::duration<double>(options.deadline).count() / 2;
    int last = peer;
    for (int hops = 0; hops < ranks; ++hops) {
        if (last < 0 || peer_base[last] == nullptr) return last;
        const auto& record = *reinterpret_cast<const failure_record*>(peer_base[last]);
        const int next = record.awaited.load(std::memory_order_acquire);
        if (next < 0 || seconds(ticks() - record.awake.load(std::memory_order_relaxed)) > asleep) return last;
        last = next;
    }
    return peer;
}

status job_core::lost(int peer, std::string_view how) noexcept {
    const std::uint64_t since = ticks();
    while (failed() == status::ok && watch && seconds(ticks() - since) < 0.5) {
        watch->look();
        sched_yield();
    }
    if (failed() == status::ok) publish(status::peer_died, peer, how);
    doing.noticed.store(true, std::memory_order_relaxed);
    return failed();
}

void job_core::check_or_raise(int peer, std::uint64_t since, std::string_view operation, int gone) {
    work();
    if (const status s = check(peer, since, gone); s != status::ok) raise(s, operation);
}

std::string job_core::cut_link(int peer, std::string_view own_address, std::string_view address) const {
    return "can't be reached any more: the link from " + members[rank].host + " (" + std::string(own_address) +
           ") to " + members[peer].host + " (" + std::string(address) + ") has been silent for " +
           std::to_string(options.link_timeout.count()) + " ms";
}

std::string job_core::name_of(int r) const {
    if (r < 0) return "a rank";
    const rank_info& m = members[r];
    std::string s = "rank " + std::to_string(r);
    if (m.pid != 0) s += " (pid " + std::to_string(m.pid) + (m.host.empty() ? "" : " on " + m.host) + ")";
    return s;
}

job_core::ending job_core::end_of_job(std::string_view sentence_end) const {
    const failure_record& record = memory->record();
    ending end{record.why, record.culprit,
               "rank " + std::to_string(rank) + " (pid " + std::to_string(members[rank].pid) + "): "};
    const std::string how = record.text;
    switch (end.why) {
    case status::peer_died: end.text += name_of(end.culprit) + " " + (how.empty() ? "died" : how); break;
    case status::timed_out:
        end.text += "nothing came" + (end.culprit >= 0 ? " from " + name_of(end.culprit) : std::string()) + " within " +
                    std::to_string(options.deadline.count()) + " ms, although nobody died,";
        break;
    default:
        if (!how.empty()) {
            end.text += name_of(end.culprit) + " gave up" + std::string(sentence_end) + ": " + how;
            return end;
        }
        end.text += "a peer closed its end";
    }
    end.text += sentence_end;
    return end;
}

void job_core::raise(status why, std::string_view operation) const {
    doing.noticed.store(true, std::memory_order_relaxed);
    if (mpi) mpi->leave();
    const std::string waited = " while this rank waited for " + std::string(operation);
    const bool own = why == status::wrong_data || why == status::misused;
    const bool ended = memory->record().state.load(std::memory_order_acquire) == failure_record::there;
    ending end;
    if (!own && ended) {
        end = end_of_job(waited);
    } else {
        end = {why, -1, "rank " + std::to_string(rank) + " (pid " + std::to_string(members[rank].pid) + "): "};
        switch (why) {
        case status::misused: end.text += "a wrong call: " + std::string(operation); break;
        case status::wrong_data:
            end.text += "what came is not what was agreed (other plan, epoch or size)" + waited;
            break;
        case status::aborted: end.text += "a peer closed its end" + waited; break;
        default: end.text += std::string(to_string(why)) + waited;
        }
    }
    if (guard) guard->leave_to_rank(end.text);
    throw rank_failure(end.text, end.why, end.culprit, end.culprit >= 0 ? members[end.culprit].pid : 0,
                       end.culprit >= 0 ? members[end.culprit].host : std::string(), std::string(operation));
}

} // namespace halocline::comm
