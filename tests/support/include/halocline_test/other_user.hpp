// SPDX-License-Identifier: Apache-2.0
// A user without root's privileges, for what holds only for such a one.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace halocline_test {

/// Becomes such a user, or remains one.  False: root can't, in a container whose only user it is.
inline bool drop_privileges() { return ::geteuid() != 0 || ::setresuid(65534, 65534, 65534) == 0; }

/// Could a child of this process?
inline bool can_drop_privileges() {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(drop_privileges() ? 0 : 1);
    int how = -1;
    ::waitpid(child, &how, 0);
    return how == 0;
}

} // namespace halocline_test
