// SPDX-License-Identifier: Apache-2.0
// No system calls between send and wait: after set-up the ranks install a seccomp filter that kills the process at any
// system call except exit_group. This program is both the test and, with "rank", the ranks.
#include "job/job_core.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/messenger.hpp>
#include <halocline/comm/one_sided.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/comm/window.hpp>

#include <halocline_test/forbid_system_calls.hpp>
#include <halocline_test/run_tests.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace halocline::comm;

std::string self, runner;

/// Exit code 10: success. "call": makes one system call on purpose.
int be_rank(const std::string& mode) {
    job_options options;
    options.spin_polls = std::numeric_limits<int>::max(); // other load must not push a wait beyond its budget
    const job j = job::from_environment(options);
    j.core().spin.look_after_all_polls(); // nor a millisecond
    const int other = 1 - j.rank();
    const channel_request request{other, 0, 0, 4096, 4096, "face"};
    channel_set set(j, {&request, 1}, {"pair", ""});
    global_sum sum(j, 8);
    messenger messages(j);
    constexpr std::size_t n = 300'000;
    const std::span out(static_cast<std::byte*>(j.memory().allocate(n)), n),
        in(static_cast<std::byte*>(j.memory().allocate(n)), n);
    const auto send_and_receive = [&](std::size_t bytes) {
        message_request sent;
        messages.isend(sent, out.first(bytes), other, 1);
        return messages.recv(in, any_source, any_tag) == status::ok && messages.wait(sent) == status::ok;
    };
    std::pmr::vector<double> filled(5000, 1.0, &j.memory()), got(5000, 0.0, &j.memory());
    connection joined(j, other);
    send_window<double> to(joined, filled);
    recv_window<double> from(joined, got);
    buffered_send_window<double> to_slot(joined, 500);
    buffered_recv_window<double> from_slot(joined, 500);
    joined.connect();
    const auto window_step = [&] {
        if (from.init() != status::ok || from_slot.init() != status::ok || to.init() != status::ok ||
            to_slot.init() != status::ok) {
            return false;
        }
        to_slot.insert(std::span(filled).first(500));
        if (to.post() != status::ok || to_slot.post() != status::ok || from.post() != status::ok ||
            from_slot.post() != status::ok) {
            return false;
        }
        const bool came = from.wait() == status::ok && from_slot.wait() == status::ok;
        from_slot.extract(got);
        return came && to.wait() == status::ok && to_slot.wait() == status::ok;
    };
    exposure exposed(j, {&other, 1}, 8192, {"exposed", 1});
    const auto exposure_step = [&](std::uint64_t step) {
        exposed.post();
        exposed.start();
        return exposed.await(0) == status::ok && exposed.put(0, out.first(4096), 0) == status::ok &&
               exposed.complete() == status::ok && exposed.wait() == status::ok &&
               exposed.put_signal(0, out.first(64), 4096, 0) == status::ok &&
               exposed.wait_signals(0, step) == status::ok;
    };
    double v[3]{1, 2, 3};
    const auto sum_in_halves = [&] {
        sum.start(v);
        (void)sum.test();
        return sum.finish(v) == status::ok && sum.maximum(v) == status::ok;
    };
    message_info info;
    std::uint64_t k = 0;
    const auto steps = [&] {
        for (int i = 0; i < 50; ++i) {
            ++k;
            set.for_each([&](auto& c) {
                c.target(k)[0] = std::byte{1};
                c.send(k, ticks());
            });
            for (const std::size_t bytes : {std::size_t{8}, std::size_t{4096}, n})
                if (!send_and_receive(bytes)) std::_Exit(1);
            (void)messages.probe(other, any_tag, info);
            if (!exposure_step(k) || !sum_in_halves()) std::_Exit(1);
            if (set.wait(k) != status::ok || sum(v) != status::ok || sum({v, 1}) != status::ok || !window_step())
                std::_Exit(1);
        }
    };
    steps();
    j.barrier();
    halocline_test::forbid_system_calls();
    steps();
    if (mode == "call") (void)getppid();
    halocline_test::exit_by_system_call(10);
}

int run(const char* mode) {
    const pid_t pid = fork();
    if (pid == 0) {
        execl(runner.c_str(), runner.c_str(), "-n", "2", "--timeout", "30", "--", self.c_str(), "rank", mode, nullptr);
        _exit(127);
    }
    int how = 0;
    waitpid(pid, &how, 0);
    return WEXITSTATUS(how);
}

TEST(HotPath, MakesNoSystemCalls) { EXPECT_EQ(run("none"), 10); }

TEST(HotPath, TheFilterCatchesASystemCall) { EXPECT_EQ(run("call"), 128 + SIGSYS); }

} // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string(argv[1]) == "rank") return be_rank(argv[2]);
    testing::InitGoogleTest(&argc, argv);
    self = std::filesystem::read_symlink("/proc/self/exe");
    runner = argc > 1 ? argv[1] : "halocline-run";
    return halocline_test::run_tests();
}
