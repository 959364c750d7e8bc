// SPDX-License-Identifier: Apache-2.0
// Seccomp filters, for code that must make no system calls or must do without one of them. They can't be removed, so
// tests install them in separate processes or threads.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace halocline_test {

/// From now on any system call of this thread except exit_group (and sched_yield if `may_yield`) kills the process.
inline void forbid_system_calls(bool may_yield = false) {
    const auto allowed_also = static_cast<unsigned>(may_yield ? SYS_sched_yield : SYS_exit_group);
    sock_filter program[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 2, 0, SYS_exit_group},
        {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, allowed_also},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    const sock_fprog filter{std::size(program), program};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) std::_Exit(99);
}

/// From now on this system call of this thread, and of what it starts, has that outcome: SECCOMP_RET_...  False: calls
/// can't be filtered here.
[[nodiscard]] inline bool filter_system_call(int number, unsigned outcome) {
    sock_filter program[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<unsigned>(number)},
        {BPF_RET | BPF_K, 0, 0, outcome},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    const sock_fprog filter{std::size(program), program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// From now on this system call of this thread, and of what it starts, fails with that error if the bit of its second
/// argument is as `set` says.  False: calls can't be filtered here.
[[nodiscard]] inline bool refuse_system_call_by_flag(int number, unsigned bit, bool set, int error) {
    constexpr unsigned low_half = offsetof(seccomp_data, args) + sizeof(seccomp_data::args[0]); // on x86-64
    const auto refuse = static_cast<unsigned char>(set ? 0 : 1), allow = static_cast<unsigned char>(1 - refuse);
    sock_filter program[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, static_cast<unsigned>(number)},
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, low_half},
        {BPF_JMP | BPF_JSET | BPF_K, refuse, allow, bit},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    const sock_fprog filter{std::size(program), program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// From now on it fails with that error, by default as if it were not permitted.
inline void refuse_system_call(int number, int error = EPERM) {
    if (!filter_system_call(number, SECCOMP_RET_ERRNO | static_cast<unsigned>(error))) std::_Exit(99);
}

/// The way to end a process that has forbidden system calls: not by _exit, before which a sanitizer would look for
/// leaks.
[[noreturn]] inline void exit_by_system_call(int code) {
    syscall(SYS_exit_group, code);
    __builtin_unreachable();
}

} // namespace halocline_test
