// SPDX-License-Identifier: Apache-2.0
#include "job/job_core.hpp"
#include "job/watchdog.hpp"

#include <halocline/comm/bad_input.hpp>
#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/messenger.hpp>
#include <halocline/comm/one_sided.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/comm/window.hpp>
#include <halocline_test/awake_clock.hpp>
#include <halocline_test/forbid_system_calls.hpp>
#include <halocline_test/killed_job.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <list>
#include <string>
#include <string_view>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" [[gnu::weak]] void __lsan_disable(); // from the address sanitizer, if there is one

namespace halocline_test {
namespace {

using namespace halocline;
using namespace halocline::comm;

/// Small messages to any rank and large ones round a ring, from and to slabs and ordinary memory in turn,
/// forever. `announces`: before the first one. Until then a rank zeroes its memory, which on a loaded machine may take
/// longer than a watchdog lets a rank compute that does not notice a death.
template <std::size_t n, bool announces = false>
[[noreturn]] int exchange_messages(const job& j) {
    messenger m(j);
    const std::span out(static_cast<std::byte*>(j.memory().allocate(n)), n),
        in(static_cast<std::byte*>(j.memory().allocate(n)), n);
    std::vector<std::byte> ordinary_out(n), ordinary_in(n);
    const int next = (j.rank() + 1) % j.ranks();
    if (announces) announce(j.rank());
    for (bool ordinary = false;; ordinary = !ordinary) {
        message_request small, large;
        m.isend(small, out.first(8), next, 1);
        m.isend(large, ordinary ? std::span(ordinary_out) : out, next, 2);
        status s = m.recv(in, any_source, 1);
        if (s == status::ok) s = m.recv(ordinary ? std::span(ordinary_in) : in, any_source, 2);
        if (s == status::ok) s = m.wait(large);
        if (s != status::ok) j.fail(s, m.pending());
    }
}

/// Waits forever for a message from any of the others, which send none.
int wait_for_any(const job& j) {
    messenger m(j);
    std::vector<message_request> receives(static_cast<std::size_t>(j.ranks()));
    std::vector<message_request*> all;
    for (int r = 0; r < j.ranks(); ++r) {
        if (r == j.rank()) continue;
        all.push_back(&receives[static_cast<std::size_t>(r)]);
        m.irecv(*all.back(), {}, r, 1);
    }
    if (const status s = m.wait_any(all); s != status::ok) j.fail(s, m.pending());
    return 0;
}

/// Rank 0 waits for a message from rank 1, which never comes, while large ones from rank 2 arrive piece by piece.
int wait_beside_large_messages(const job& j) {
    constexpr std::size_t n = 1 << 24, for_a_minute = 10'000;
    messenger m(j, {.read_processes = false});
    std::vector<std::byte> data(n);
    std::vector<message_request> others(j.rank() == 0 ? for_a_minute : 0);
    message_request awaited;
    for (message_request& r : others) m.irecv(r, data, 2, 2);
    if (j.rank() < 2) m.irecv(awaited, {}, 1 - j.rank(), 1);
    announce(j.rank());
    status s = status::ok;
    if (j.rank() == 0) s = m.wait(awaited);
    if (j.rank() == 1) // in waits that are too short for the deadline
        do s = m.wait_all_for({&awaited, 1}, std::chrono::milliseconds(20));
        while (s == status::timed_out && m.state() == status::ok);
    while (j.rank() == 2 && s == status::ok) s = m.send(data, 0, 2);
    j.fail(s, m.pending());
}

/// Computes sums forever.
[[noreturn]] void add_for_ever(global_sum& sum) {
    for (double v[3]{};;) sum.sum_or_throw(v);
}
[[noreturn]] int add_for_ever(const job& j) {
    global_sum sum(j, 8);
    add_for_ever(sum);
}
/// add_for_ever() for tests that wait until ranks add numbers.
[[noreturn]] int announce_and_add(const job& j) {
    global_sum sum(j, 8);
    announce(j.rank());
    add_for_ever(sum);
}
[[noreturn]] int meet_for_ever(const job& j) {
    while (true) j.barrier();
}
[[noreturn]] int make_sums_for_ever(const job& j) {
    while (true) global_sum(j, 4);
}
/// Connected windows with every other rank: each is sent `out` and writes its part of `in`, of the same size, by rank.
struct windows_with_all {
    windows_with_all(const job& j, std::span<double> out, std::span<double> in) {
        for (int r = 0; r < j.ranks(); ++r) {
            if (r == j.rank()) continue;
            connection& c = connections.emplace_back(j, r);
            sends.emplace_back(c, out);
            recvs.emplace_back(c, in.subspan(out.size() * static_cast<std::size_t>(r), out.size()));
        }
        for (connection& c : connections) c.connect();
    }
    std::list<connection> connections;
    std::vector<send_window<double>> sends;
    std::vector<recv_window<double>> recvs;
};
/// Makes what a program makes before its first step, forever: messages of a plan with the neighbours in a ring, and
/// windows with all others.
[[noreturn]] int connect_for_ever(const job& j) {
    const int next = (j.rank() + 1) % j.ranks(), before = (j.rank() + j.ranks() - 1) % j.ranks();
    std::vector<double> out(1000), in(1000 * static_cast<std::size_t>(j.ranks()));
    const std::vector<channel_request> ring{{next, 1, 0, 5000, 5000, "high"}, {before, 0, 1, 5000, 5000, "low"}};
    while (true) {
        const channel_set messages(j, ring, {"ring", ""});
        const windows_with_all windows(j, out, in);
        j.barrier(); // nobody leaves a peer that still connects
    }
}
/// Leaves what libfabric would leave if the rank were killed before its file has lost its name.
[[noreturn]] int leave_a_file(const job& j) {
    std::ofstream("/dev/shm/halocline-ofi-" + std::to_string(getpid()) + "-left") << "something";
    announce(j.rank());
    add_for_ever(j);
}
[[noreturn]] int end_with_rank_1(const job& j) {
    if (j.rank() == 1) std::_Exit(7);
    add_for_ever(j);
}

/// Large puts round a ring, forever.
[[noreturn]] int put_for_ever(const job& j) {
    constexpr std::size_t n = 1 << 20;
    std::vector<int> near;
    for (int r = 0; r < j.ranks(); ++r)
        if (r != j.rank()) near.push_back(r);
    exposure e(j, near, n, {"large puts", 1});
    const std::vector<std::byte> out(n);
    const int next = (j.rank() + 1) % j.ranks();
    const auto at = static_cast<std::size_t>(std::find(near.begin(), near.end(), next) - near.begin());
    for (std::uint64_t k = 1;; ++k) {
        status s = e.put_signal(at, out, 0, 0);
        if (s == status::ok) s = e.wait_signals(0, k);
        if (s != status::ok) j.fail(s, e.pending());
    }
}

/// Windows with every other rank, forever, from memory in the slab or elsewhere. `size`: large enough for a copy by
/// both ends.
[[noreturn]] int step_windows(const job& j, std::pmr::memory_resource& from, std::size_t size) {
    std::pmr::vector<double> out(size, &from), in(size * static_cast<std::size_t>(j.ranks()), &j.memory());
    windows_with_all w(j, out, in);
    const auto all = [&](auto& windows, auto call) {
        for (auto& window : windows) {
            if (const status s = call(window); s != status::ok) j.fail(s, window.pending());
        }
    };
    while (true) {
        all(w.recvs, [](auto& window) { return window.init(); });
        all(w.sends, [](auto& window) { return window.init(); });
        all(w.sends, [](auto& window) { return window.post(); });
        all(w.recvs, [](auto& window) { return window.post(); });
        all(w.recvs, [](auto& window) { return window.wait(); });
        all(w.sends, [](auto& window) { return window.wait(); });
    }
}

/// Waits forever: each rank has posted a large window whose receiver never begins its step.
int wait_for_tokens(const job& j) {
    constexpr std::size_t size = 20'000;
    std::pmr::vector<double> out(size, &j.memory()), in(size, &j.memory());
    connection to_next(j, (j.rank() + 1) % j.ranks()), from_before(j, (j.rank() + j.ranks() - 1) % j.ranks());
    send_window<double> to(to_next, out);
    recv_window<double> from(from_before, in);
    to_next.connect();
    from_before.connect();
    to.start();
    if (const status s = to.wait(); s != status::ok) j.fail(s, to.pending());
    return 0;
}

/// Does nothing that the library notices.
void compute_for(std::chrono::steady_clock::duration time) {
    awake_clock clock;
    while (clock.look() < time) {
    }
}

/// Rank 1 dies while the others compute.
int compute_beside_dead(const job& j) {
    j.barrier();
    if (j.rank() == 1) raise(SIGKILL);
    compute_for(std::chrono::seconds(60));
    return 0;
}

/// Adds numbers until rank 0 says that it is over(); after 100 sums rank 1 does something else for `pause`.
/// Returns 0, or 5 if a sum is wrong.
template <class Over>
int add_until(global_sum& sum, Over over, std::chrono::milliseconds pause = {}) {
    const job& j = sum.job();
    for (double k = 0;; ++k) {
        if (k == 100 && j.rank() == 1) compute_for(pause);
        double v[]{k + j.rank(), j.rank() == 0 && over() ? 1.0 : 0.0};
        sum.sum_or_throw(v);
        if (v[0] != j.ranks() * k + j.ranks() * (j.ranks() - 1) / 2) return 5;
        if (v[1] != 0) return 0;
    }
}

int add_while_rank_1_computes(const job& j) {
    global_sum sum(j, 2);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    return add_until(
        sum, [&] { return std::chrono::steady_clock::now() > end; }, 5 * stall);
}

volatile std::sig_atomic_t signalled = 0;
void await_signal(int) {
    std::signal(SIGUSR1, [](int) { signalled = 1; });
}
bool is_signalled() { return signalled != 0; }

int add_until_signalled(const job& j) {
    global_sum sum(j, 2);
    return add_until(sum, is_signalled);
}
int add_in_two_threads(const job& j) {
    global_sum one(j, 2), two(j, 2);
    int other = 0;
    std::exception_ptr failed;
    std::jthread second([&] {
        try {
            other = add_until(two, is_signalled);
        } catch (...) {
            failed = std::current_exception();
        }
    });
    const int own = add_until(one, is_signalled);
    second.join();
    if (failed) std::rethrow_exception(failed);
    return std::max(own, other);
}

/// Rank 1 has a child that runs all destructors and exit handlers while its parent continues. Returns 0 if all ranks
/// can.
int fork_and_go_on(const job& j) {
    constexpr std::size_t n = 1 << 20; // large messages and puts
    const int next = (j.rank() + 1) % j.ranks(), before = (j.rank() + j.ranks() - 1) % j.ranks();
    global_sum sum(j, 1);
    messenger m(j);
    const std::vector<int> near{next, before};
    exposure e(j, near, n, {"puts", 1});
    std::vector<double> out(1000), in(1000);
    connection to_next(j, next), from_before(j, before);
    send_window<double> send(to_next, out);
    recv_window<double> recv(from_before, in);
    to_next.connect();
    from_before.connect();

    const std::vector<std::byte> bytes(n);
    std::vector<std::byte> room(n);
    std::uint64_t step = 0;
    const auto exchange = [&] {
        double one[]{1};
        if (const status s = sum(one); s != status::ok || one[0] != j.ranks()) j.fail(s, sum.pending());
        message_request request;
        m.isend(request, bytes, next, 1);
        status s = m.recv(room, before, 1);
        if (s == status::ok) s = m.wait(request);
        if (s != status::ok) j.fail(s, m.pending());
        s = e.put_signal(0, bytes, 0, 0);
        if (s == status::ok) s = e.wait_signals(0, ++step);
        if (s != status::ok) j.fail(s, e.pending());
        for (const status begun : {recv.init(), send.init(), recv.post(), send.post()})
            if (begun != status::ok) j.fail(begun, send.pending());
        send.wait_or_throw();
        recv.wait_or_throw();
    };
    exchange();
    message_request unmatched, announced;
    m.irecv(unmatched, room, before, 2);
    m.isend(announced, bytes, next, 3);
    const pid_t child = j.rank() == 1 ? fork() : -1;
    if (child == 0) {
        if (__lsan_disable != nullptr) __lsan_disable(); // what is left to the parent counts as lost here
        return 0;
    }
    int how = 0;
    if (child > 0 && (waitpid(child, &how, 0) != child || how != 0)) return 6;
    j.barrier();
    for (int k = 0; k < 5; ++k) exchange();
    if (const status s = m.send(std::span(bytes).first(8), next, 2); s != status::ok) j.fail(s, m.pending());
    if (const status s = m.recv(room, before, 3); s != status::ok) j.fail(s, m.pending());
    for (message_request* const r : {&unmatched, &announced})
        if (const status s = m.wait(*r); s != status::ok) j.fail(s, m.pending());
    return 0;
}

/// Rank 1 has a child of fork() that uses the job as if it were its own. Nothing of that reaches another rank, or its
/// parent's memory; it may end the child.
int let_a_child_use_the_job(const job& j) {
    constexpr int not_refused = 8;
    messenger m(j);
    auto* const value = static_cast<std::byte*>(j.memory().allocate(1));
    *value = std::byte{1};
    const std::span one(value, 1);
    const pid_t child = j.rank() == 1 ? fork() : -1;
    if (child == 0) {
        *value = std::byte{2};
        try {
            j.barrier();
            _exit(not_refused);
        } catch (const error&) {
        }
        message_request never;
        m.irecv(never, one, 0, 6);
        if (m.wait(never) != status::aborted) _exit(not_refused);
        (void)m.send(one, 0, 5);
        _exit(0);
    }
    int how = 0;
    if (child > 0 && waitpid(child, &how, 0) != child) return 5;
    if (WIFEXITED(how) && WEXITSTATUS(how) == not_refused) return 6;
    j.barrier();
    message_info info;
    for (int k = 0; k < 1000; ++k)
        if (j.rank() == 0 && m.probe(1, 5, info)) return 7;
    j.barrier();
    return *value == std::byte{1} ? 0 : 9;
}

/// All but rank 0 end well, at the same time, but do not close their jobs. Rank 0 still has work, and nothing to ask of
/// them.
int leave_rank_0(const job& j) {
    j.barrier();
    if (j.rank() != 0) std::exit(0);
    compute_for(std::chrono::seconds(2)); // four times the grace time
    return 0;
}

/// Rank 1 has a child of fork() that outlives it.
int leave_a_child(const job& j) {
    if (j.rank() == 1 && fork() == 0) {
        ::close(STDOUT_FILENO); // its end is taken for the job's
        ::close(STDERR_FILENO);
        std::this_thread::sleep_for(under_load);
        _exit(0);
    }
    return announce_and_add(j);
}

/// Rank 1 closes everything that is open except its streams, as daemons do, and continues.
int close_all_descriptors(const job& j) {
    j.barrier();
    if (j.rank() == 1 && close_range(STDERR_FILENO + 1, ~0U, 0) != 0) return 6;
    while (true) j.barrier();
}

/// Notices the death, then waits for a library in a destructor, forever.
[[noreturn]] int end_and_get_stuck(const job& j) {
    try {
        while (true) j.barrier();
    } catch (const rank_failure&) {
        const closing_scope closing(j.core().own_activity);
        compute_for(std::chrono::seconds(60));
        throw;
    }
}

/// Rank 1 gives up. The others have begun to close their jobs before their watchdogs notice, and wait for a library.
[[noreturn]] int close_and_get_stuck(const job& j) {
    if (j.rank() == 1) {
        j.abort("enough");
        compute_for(std::chrono::seconds(60));
    }
    try {
        while (true) j.barrier();
    } catch (const rank_failure&) {
        j.core().own_watchdog->stop_looking();
        const closing_scope closing(j.core().own_activity);
        std::printf("closing\n");
        std::fflush(stdout);
        compute_for(std::chrono::seconds(60));
        throw;
    }
}

/// Notices the death, then has something to save before it reports.
[[noreturn]] int end_after_other_work(const job& j) {
    try {
        while (true) j.barrier();
    } catch (const rank_failure&) {
        compute_for(std::chrono::seconds(1)); // twice the grace time
        throw;
    }
}

/// Sleeps until shortly after a signal, then notices the death. (One that computes is spared on a busy machine.)
[[noreturn]] int sleep_until_signalled(const job& j) {
    await_signal(j.rank());
    announce(j.rank());
    while (!is_signalled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    meet_for_ever(j);
}
void set_paused_grace(int) { setenv("HALOCLINE_GRACE_MS", std::to_string(paused_grace.count()).c_str(), 1); }

/// The others wait for rank 1.
void keep_rank_1_from_joining(int rank) {
    announce(rank);
    if (rank != 1) return;
    std::this_thread::sleep_for(std::chrono::seconds(20));
}

/// Rank 1 ends before it joins; the others arrive one after the other.
void end_rank_1_before_joining(int rank) {
    if (rank == 1) announce(rank);
    std::this_thread::sleep_for(std::chrono::milliseconds(30 * rank));
    if (rank == 1) std::_Exit(7);
}

/// Rank 2, the last of three, is killed while all connect, and has ended before any other could get a pidfd of it.
void end_rank_2_before_it_is_watched(int rank) {
    const bool last = rank == 2;
    if (last) announce(rank);
    if (!filter_system_call(SYS_pidfd_open, last ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | ESRCH))
        std::_Exit(77);
}

/// What a rank does: once it has joined, until it ends with an exit code; and before that.
struct mode {
    std::string_view name;
    int (*run)(const job& j);
    bool announces_itself = false; ///< run() calls announce()
    void (*before_joining)(int rank) = nullptr;
};
constexpr mode modes[]{
    {"ok", [](const job&) { return 0; }},
    {"sum", add_for_ever},
    {"adding", announce_and_add, true},
    {"messages", exchange_messages<1 << 20>},
    {"any-message", wait_for_any},
    {"large-messages", exchange_messages<1 << 25, true>, true}, // which are always under way
    {"beside-large-messages", wait_beside_large_messages, true},
    {"puts", put_for_ever},
    {"window", [](const job& j) { return step_windows(j, j.memory(), 5000); }},
    {"large-window", [](const job& j) { return step_windows(j, j.memory(), 20'000); }},
    {"window-elsewhere", [](const job& j) { return step_windows(j, *std::pmr::new_delete_resource(), 20'000); }},
    {"pending-window", wait_for_tokens},
    {"barriers", meet_for_ever},
    {"sums", make_sums_for_ever},
    {"setup", connect_for_ever},
    {"join", add_for_ever, false, keep_rank_1_from_joining},
    {"early", add_for_ever, false, end_rank_1_before_joining},
    {"unwatched", add_for_ever, false, end_rank_2_before_it_is_watched},
    {"exit", end_with_rank_1},
    {"file", leave_a_file, true},
    {"forks", fork_and_go_on},
    {"child-uses-job", let_a_child_use_the_job},
    {"leaves", leave_rank_0},
    {"child", leave_a_child, true},
    {"closes", close_all_descriptors},
    {"stuck", end_and_get_stuck},
    {"closing", close_and_get_stuck},
    {"busy", end_after_other_work},
    {"computing", [](const job&) { return compute_for(std::chrono::seconds(60)), 0; }},
    {"computing-beside-dead", compute_beside_dead},
    {"paused", sleep_until_signalled, true, set_paused_grace},
    {"add", add_until_signalled, false, await_signal},
    {"add-twice", add_in_two_threads, false, await_signal},
    {"add-and-compute", add_while_rank_1_computes},
};

/// Removes the prefixes of `name`, which select the job that the rank joins.
job_options take_options(std::string& name) {
    const auto has = [&name](std::string_view prefix) {
        const bool it_has = name.starts_with(prefix);
        if (it_has) name.erase(0, prefix.size());
        return it_has;
    };
    job_options options;
    if (has("stalls-")) // for tests of ranks that are stopped
        setenv("HALOCLINE_STALL_MS", std::to_string(stall.count()).c_str(), 1);
    if (has("short-")) options.deadline = short_deadline;
    if (has("ofi-")) { // over libfabric, which reports nothing: liveness does not depend on the data path
        options.transports = {"ofi"};
        options.ofi_provider = has("shm-") ? "shm" : has("net-") ? "net" : "tcp;ofi_rxm";
    }
    if (has("hosts-")) options.transports = {"shm", "ofi"}; // used by hosts_test.cpp
    if (has("nodes-"))                                      // each rank is a node: TCP reveals deaths
        setenv("HALOCLINE_NODE", std::getenv("HALOCLINE_RANK"), 1);
    if (has("verbs-")) options.transports = {"verbs"};
    if (has("mpi-")) options.transports = {"mpi"}; // by mpi.cmake
    return options;
}

} // namespace

int be_rank(std::string name) {
    const job_options options = take_options(name);
    const auto found = std::ranges::find(modes, name, &mode::name);
    if (found == std::end(modes)) return 2;
    const int rank = launched_rank();
    if (found->before_joining != nullptr) found->before_joining(rank);
    try {
        const job j = job::from_environment(options);
        if (!found->announces_itself) announce(rank);
        return found->run(j);
    } catch (const rank_failure& e) {
        return report(e.culprit(), e.what());
    }
}

} // namespace halocline_test
