// SPDX-License-Identifier: Apache-2.0
#include "at_fork.hpp"

#include <halocline/base/error.hpp>

#include <mutex>
#include <pthread.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace halocline::comm {

/// All at_fork objects of this process: fork() doesn't say whose child it makes.
struct at_fork::process {
    std::mutex mutex; // held across fork(), so that the child finds the list intact
    std::vector<const at_fork*> all;
    pid_t parent = 0;

    static process& here() {
        static auto* const p = new process; // never destroyed: a thread may fork while the program ends
        return *p;
    }
    static void before() {
        here().mutex.lock();
        here().parent = getpid();
    }
    static void in_parent() { here().mutex.unlock(); }
    static void in_child() {
        for (const at_fork* each : here().all)
            if (each->pid_ == here().parent) each->in_child_();
        here().mutex.unlock();
    }
};

at_fork::at_fork(std::function<void()> in_child) : in_child_(std::move(in_child)), pid_(getpid()) {
    static const int failed = pthread_atfork(process::before, process::in_parent, process::in_child);
    if (failed != 0) throw job_error("pthread_atfork: out of memory");
    const std::lock_guard lock(process::here().mutex);
    process::here().all.push_back(this);
}

at_fork::~at_fork() {
    const std::lock_guard lock(process::here().mutex);
    std::erase(process::here().all, this);
}

} // namespace halocline::comm
