// SPDX-License-Identifier: Apache-2.0
#include "at_good_exit.hpp"

#include <halocline/base/error.hpp>

#include <cstdlib>
#include <mutex>
#include <unistd.h>
#include <utility>
#include <vector>

namespace halocline::comm {

/// All at_good_exit objects of this process.
struct at_good_exit::process {
    std::mutex mutex;
    std::vector<const at_good_exit*> all;

    static process& here() {
        static auto* const p = new process; // never destroyed: objects may be destroyed by later exit handlers
        return *p;
    }
    static void at_exit(int code, void*) {
        if (code != 0) return;
        const std::unique_lock lock = lock_at_exit(here().mutex);
        if (!lock) return;
        for (const at_good_exit* each : here().all)
            if (each->pid_ == getpid()) each->last_();
    }
};

at_good_exit::at_good_exit(std::function<void()> last) : last_(std::move(last)), pid_(getpid()) {
    static const int failed = on_exit(process::at_exit, nullptr);
    if (failed != 0) throw job_error("on_exit: out of memory");
    const std::lock_guard lock(process::here().mutex);
    process::here().all.push_back(this);
}

at_good_exit::~at_good_exit() {
    const std::lock_guard lock(process::here().mutex);
    std::erase(process::here().all, this);
}

} // namespace halocline::comm
