// SPDX-License-Identifier: Apache-2.0
#include "job/job_core.hpp"
#include "job/watchdog.hpp"

#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/messenger.hpp>
#include <halocline/comm/one_sided.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/comm/window.hpp>
#include <halocline_test/killed_job.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" [[gnu::weak]] void __lsan_disable(); // of the address sanitizer, where there is one

namespace halocline_test {
namespace {

using namespace halocline;
using namespace halocline::comm;

/// Small messages to whoever comes first and large ones round a ring, for ever.
[[noreturn]] void exchange_messages(const job& j) {
    messenger m(j);
    constexpr std::size_t n = 1 << 20;
    const std::span out(static_cast<std::byte*>(j.memory().allocate(n)), n),
        in(static_cast<std::byte*>(j.memory().allocate(n)), n);
    const int next = (j.rank() + 1) % j.ranks();
    while (true) {
        message_request small, large;
        m.isend(small, out.first(8), next, 1);
        m.isend(large, out, next, 2);
        status s = m.recv(in, any_source, 1);
        if (s == status::ok) s = m.recv(in, any_source, 2);
        if (s == status::ok) s = m.wait(large);
        if (s != status::ok) j.fail(s, m.pending());
    }
}

/// Large puts round a ring, for ever.
[[noreturn]] void put_for_ever(const job& j) {
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

/// Windows with every other rank, until one is gone.
void exchange_for_ever(const job& j) {
    constexpr std::size_t size = 5000; // large enough for a copy by both ends
    std::pmr::vector<double> out(size, &j.memory()), in(size * static_cast<std::size_t>(j.ranks()), &j.memory());
    std::vector<connection> connections;
    std::vector<send_window<double>> sends;
    std::vector<recv_window<double>> recvs;
    for (int r = 0; r < j.ranks(); ++r) {
        if (r == j.rank()) continue;
        connection& c = connections.emplace_back(j, r);
        sends.emplace_back(c, out);
        recvs.emplace_back(c, std::span(in).subspan(size * static_cast<std::size_t>(r), size));
    }
    for (connection& c : connections) c.connect();
    const auto all = [&](auto& windows, auto call) {
        for (auto& w : windows) {
            if (const status s = call(w); s != status::ok) j.fail(s, w.pending());
        }
    };
    while (true) {
        all(recvs, [](auto& w) { return w.init(); });
        all(sends, [](auto& w) { return w.init(); });
        all(sends, [](auto& w) { return w.post(); });
        all(recvs, [](auto& w) { return w.post(); });
        all(recvs, [](auto& w) { return w.wait(); });
        all(sends, [](auto& w) { return w.wait(); });
    }
}

/// Nothing that the library sees.
void compute_for(std::chrono::steady_clock::duration time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
    }
}

/// Adds numbers for `ms`, as rank 0 measures them; of `computes` as many are spent by rank 1 on something else.
/// Returns 0, or 5 if a sum is wrong.
int add_for(const job& j, int ms, int computes) {
    global_sum sum(j, 2);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    for (double k = 0;; ++k) {
        if (k == 100 && j.rank() == 1) compute_for(std::chrono::milliseconds(computes));
        double v[]{k + j.rank(), j.rank() == 0 && std::chrono::steady_clock::now() > end ? 1.0 : 0.0};
        if (const status s = sum(v); s != status::ok) j.fail(s, sum.pending());
        if (v[0] != j.ranks() * k + j.ranks() * (j.ranks() - 1) / 2) return 5;
        if (v[1] != 0) return 0;
    }
}

/// Rank 1 has a child that runs all destructors and exit handlers while its parent goes on. Returns 0 if everybody can.
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
        if (__lsan_disable != nullptr) __lsan_disable(); // what is left to the parent is lost here
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

/// Notices the death, then waits for a library in a destructor, for ever.
[[noreturn]] void end_and_get_stuck(const job& j) {
    try {
        while (true) j.barrier();
    } catch (const rank_failure&) {
        const closing_scope closing(j.core().doing);
        compute_for(std::chrono::seconds(60));
        throw;
    }
}

/// Rank 1 gives up. The others have begun to close their jobs before their watchdogs see it, and wait for a library.
[[noreturn]] void close_and_get_stuck(const job& j) {
    if (j.rank() == 1) {
        j.abort("enough");
        compute_for(std::chrono::seconds(60));
    }
    try {
        while (true) j.barrier();
    } catch (const rank_failure&) {
        j.core().guard->stop_looking();
        const closing_scope closing(j.core().doing);
        std::printf("closing\n");
        std::fflush(stdout);
        compute_for(std::chrono::seconds(60));
        throw;
    }
}

/// Notices the death, then has something to save before it says so.
[[noreturn]] void end_after_other_work(const job& j) {
    try {
        while (true) j.barrier();
    } catch (const rank_failure&) {
        compute_for(std::chrono::seconds(1)); // twice the grace time
        throw;
    }
}

} // namespace

int be_rank(std::string mode) {
    try {
        const auto has = [&mode](std::string_view prefix) {
            const bool it_has = mode.starts_with(prefix);
            if (it_has) mode.erase(0, prefix.size());
            return it_has;
        };
        job_options options;
        if (has("stalls-")) // tests of ranks that are stopped
            setenv("HALOCLINE_STALL_MS", std::to_string(stall.count()).c_str(), 1);
        if (has("short-")) options.deadline = short_deadline;
        if (has("ofi-")) { // over libfabric, which never tells: liveness is apart from the data path
            options.transports = {"ofi"};
            options.ofi_provider = has("shm-") ? "shm" : "tcp;ofi_rxm";
        }
        const bool across_hosts = has("hosts-"); // by hosts_test.cpp, which waits until ranks add numbers
        if (across_hosts) {
            options.transports = {"shm", "ofi"};
            options.ofi_provider = "tcp;ofi_rxm";
        }
        if (has("nodes-")) // each rank a node of its own: deaths are told by TCP
            setenv("HALOCLINE_NODE", std::getenv("HALOCLINE_RANK"), 1);
        if (has("verbs-")) options.transports = {"verbs"};
        if (mode == "join" && std::string(std::getenv("HALOCLINE_RANK")) == "1") {
            std::printf("pid 1 %d\n", static_cast<int>(getpid()));
            std::fflush(stdout);
            std::this_thread::sleep_for(std::chrono::seconds(20)); // never joins
        }
        if (mode == "early") { // the others come one after the other
            const int rank = std::stoi(std::getenv("HALOCLINE_RANK"));
            if (rank == 1) std::printf("pid 1 %d\n", static_cast<int>(getpid()));
            if (rank == 1) std::fflush(stdout);
            std::this_thread::sleep_for(std::chrono::milliseconds(30 * rank));
            if (rank == 1) std::_Exit(7);
        }
        const job j = job::from_environment(options);
        const auto announce = [&] {
            std::printf("pid %d %d\n", j.rank(), static_cast<int>(getpid()));
            std::fflush(stdout);
        };
        if (mode == "file") // what libfabric would leave, were the rank killed before the file's name has gone
            std::ofstream("/dev/shm/halocline-ofi-" + std::to_string(getpid()) + "-left") << "something";
        if (!across_hosts) announce();
        if (mode == "exit" && j.rank() == 1) std::_Exit(7);
        if (mode == "ok") return 0;
        if (mode == "forks") return fork_and_go_on(j);
        if (mode == "messages") exchange_messages(j);
        if (mode == "puts") put_for_ever(j);
        if (mode == "window") exchange_for_ever(j);
        if (mode == "computing") compute_for(std::chrono::seconds(60));
        if (mode == "stuck") end_and_get_stuck(j);
        if (mode == "closing") close_and_get_stuck(j);
        if (mode == "add") return add_for(j, 5000, 0);
        if (mode == "add-and-compute") return add_for(j, 1000, 5 * static_cast<int>(stall.count()));
        if (mode == "busy") end_after_other_work(j);
        global_sum sum(j, 8);
        if (across_hosts) announce();
        for (double v[3]{};;) {
            if (mode == "setup") {
                j.barrier();
            } else if (mode == "plan") {
                global_sum other(j, 4);
            } else if (const status s = sum(v); s != status::ok) {
                j.fail(s, sum.pending());
            }
        }
    } catch (const rank_failure& e) {
        std::printf("failure of %d: %s\n", e.culprit(), e.what());
        std::fflush(stdout);
        return 3;
    }
}

} // namespace halocline_test
