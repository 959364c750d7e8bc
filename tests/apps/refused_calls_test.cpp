// SPDX-License-Identifier: Apache-2.0
// Systems that refuse a call, as containers and old kernels do: a program gives its result all the same, or one error
// that names the call. It never hangs.
#include <halocline_test/contains.hpp>
#include <halocline_test/forbid_system_calls.hpp>
#include <halocline_test/run_command.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <string>
#include <sys/wait.h>

namespace {

using namespace halocline_test;

const std::string bin = HALOCLINE_BIN "/";

struct refused_call {
    const char* name;
    int number;
    bool is_done_without;
};
constexpr refused_call calls[]{{"memfd_create", SYS_memfd_create, false},
                               {"pidfd_open", SYS_pidfd_open, true},
                               {"process_vm_readv", SYS_process_vm_readv, true},
                               {"process_vm_writev", SYS_process_vm_writev, true}};

/// What a program on two ranks does where that call fails with that error, for the launcher, too.
struct run_without {
    int exit_code = -1;
    std::string err, checksum;

    run_without(int call, int error, const std::string& program = bin + "heat4d --grid 32.32.32.4 --steps 5 --json ") {
        const scratch_folder scratch;
        const std::string line = "exec timeout -k 2 60 " + bin + "halocline-run -n 2 -- " + program +
                                 (scratch / "r.json") + " 2>" + (scratch / "err") + " >/dev/null </dev/null";
        const pid_t child = fork();
        if (child == 0) {
            if (call >= 0 && !filter_system_call(call, SECCOMP_RET_ERRNO | static_cast<unsigned>(error))) _exit(77);
            execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
            _exit(127);
        }
        int how = 0;
        if (waitpid(child, &how, 0) == child && WIFEXITED(how)) exit_code = WEXITSTATUS(how);
        err = read_text(scratch / "err");
        const auto r = nlohmann::json::parse(read_text(scratch / "r.json"), nullptr, false);
        if (r.is_object()) checksum = r.value("checksum", "");
    }
};

TEST(RefusedCalls, AreDoneWithoutOrToldInOneError) {
    const run_without none(-1, 0);
    ASSERT_EQ(none.exit_code, 0) << none.err;
    ASSERT_NE(none.checksum, "");
    for (const refused_call& call : calls) {
        for (const int error : {EPERM, ENOSYS}) {
            SCOPED_TRACE(std::string(call.name) + (error == EPERM ? ": EPERM" : ": ENOSYS"));
            const run_without run(call.number, error);
            if (run.exit_code == 77) GTEST_SKIP() << "system calls can't be filtered here";

            if (call.is_done_without) {
                EXPECT_EQ(run.exit_code, 0) << run.err;
                EXPECT_EQ(run.checksum, none.checksum);
            } else {
                EXPECT_EQ(run.exit_code, 2) << run.err;
                EXPECT_TRUE(contains(run.err, call.name)) << run.err;
                EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
            }
        }
    }
}

/// Messages between arrays outside slabs, which both calls would copy; also where only one of them is refused.
TEST(RefusedCalls, LeaveMessagesOfOrdinaryMemoryWhole) {
    const std::string payloads = HALOCLINE_MESSENGER_TEST " --gtest_filter='Messenger.Payload*' --gtest_output=json:";
    const std::string random =
        "env HALOCLINE_TEST_TRANSPORT=shm " HALOCLINE_MESSENGER_STRESS_TEST " --gtest_output=json:";
    for (const int call : {SYS_process_vm_readv, SYS_process_vm_writev}) {
        for (const int error : {EPERM, ENOSYS}) {
            for (const std::string& program : {payloads, random}) {
                SCOPED_TRACE((call == SYS_process_vm_readv ? "readv: " : "writev: ") + std::to_string(error));
                const run_without run(call, error, program);
                if (run.exit_code == 77) GTEST_SKIP() << "system calls can't be filtered here";

                EXPECT_EQ(run.exit_code, 0) << program << '\n' << run.err;
            }
        }
    }
}

} // namespace
