// SPDX-License-Identifier: Apache-2.0
// Did both ends of each message choose the same sites? Each rank asks its own `select`. If two differ where the numbers
// of sites agree, nothing else tells: ghosts would be copies of other sites.
#pragma once

#include <halocline/comm/job.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace halocline::halo {

class chosen_sites {
  public:
    /// This rank sends `peer` sites with this fingerprint (selected()), for its ghosts at `place`: a number that no two
    /// messages from one rank to the other share.
    void note_sent(int peer, int place, std::uint64_t fingerprint) { by_peer_[peer].sent[place] = fingerprint; }
    /// This rank expects such sites of `peer` for its own ghosts at `place`.
    void note_expected(int peer, int place, std::uint64_t fingerprint) { by_peer_[peer].expected[place] = fingerprint; }

    /// Compares them with those of all peers. Collective; peers note the same messages.
    /// text_of: "behind t-low".
    /// Err: input_error on every rank, beginning with `who`, "halo 'name': ".
    void compare(const comm::job& j, const std::string& who, std::string (*text_of)(int place)) const;

  private:
    using by_place = std::map<int, std::uint64_t>;
    struct both_ways {
        by_place sent, expected;
    };
    std::map<int, both_ways> by_peer_;
};

} // namespace halocline::halo
