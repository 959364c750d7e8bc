// SPDX-License-Identifier: Apache-2.0
// Which programs of --peer are MPIs: targets judge ours beside these, and beside no other program. An MPI with settings
// other than those that it was installed with has a name that ends in "-tuned".
#pragma once

#include <string_view>

namespace halocline::bench {

/// Is this the name of an MPI as installed?
inline bool is_mpi(std::string_view who) { return who == "openmpi" || who == "mpich"; }

/// The MPI of a name such as "openmpi-tuned"; "" for other names.
inline std::string_view tuned_mpi(std::string_view who) {
    constexpr std::string_view suffix = "-tuned";
    if (!who.ends_with(suffix)) return {};
    who.remove_suffix(suffix.size());
    return is_mpi(who) ? who : std::string_view();
}

} // namespace halocline::bench
