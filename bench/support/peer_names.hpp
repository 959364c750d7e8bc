// SPDX-License-Identifier: Apache-2.0
// What names of --peer mean. Some are MPIs: targets judge ours beside these, and beside no other program. An MPI with
// settings other than those that it was installed with has a name that ends in "-tuned". Others are taken: those of
// what a bench itself measures.
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

/// What lines of JSON say about how a peer's messages travel: by an MPI, or by means of which the bench knows nothing.
inline const char* transport_of_peer(std::string_view who) {
    return is_mpi(who) || !tuned_mpi(who).empty() ? "mpi" : "peer's own";
}

/// Is this the name of a contender that a bench itself has?
inline bool is_taken(std::string_view who) {
    return who == "ours" || who.starts_with("ours-") || who == "limit" || who == "lines" || who == "mock";
}

} // namespace halocline::bench
