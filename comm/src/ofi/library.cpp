// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include "network/loaded_functions.hpp"

#include <array>
#include <csignal>

namespace halocline::comm {
namespace {

/// Saves the signal handlers, and restores them at the end. A library that libfabric brings along (libinfinipath) takes
/// over SIGINT, SIGTERM, SIGSEGV and others when it is loaded, even from the program's own handlers, and turns them
/// into exit code 1. Those that come meanwhile are delivered at the end.
class kept_signal_actions {
  public:
    kept_signal_actions() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &mask_before_);
        for (std::size_t s = 1; s < before_.size(); ++s) sigaction(static_cast<int>(s), nullptr, &before_[s]);
    }
    ~kept_signal_actions() {
        for (std::size_t s = 1; s < before_.size(); ++s) sigaction(static_cast<int>(s), &before_[s], nullptr);
        pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    }
    kept_signal_actions(const kept_signal_actions&) = delete;
    kept_signal_actions& operator=(const kept_signal_actions&) = delete;

  private:
    std::array<struct sigaction, NSIG> before_{};
    sigset_t mask_before_{};
};

ofi_library load() {
    const kept_signal_actions kept;
    ofi_library l;
    loaded_functions from("libfabric.so.1", l.why_not);
    from.find(l.getinfo, "fi_getinfo");
    from.find(l.freeinfo, "fi_freeinfo");
    from.find(l.dupinfo, "fi_dupinfo");
    from.find(l.fabric, "fi_fabric");
    from.find(l.strerror, "fi_strerror");
    from.find(l.version, "fi_version");
    return l;
}

} // namespace

const ofi_library& ofi_library::loaded() {
    static const ofi_library l = load();
    return l;
}

} // namespace halocline::comm
