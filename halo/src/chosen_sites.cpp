// SPDX-License-Identifier: Apache-2.0
#include "chosen_sites.hpp"

#include "region_transfers.hpp"
#include "set_up_row.hpp"

#include <halocline/base/error.hpp>

#include <vector>

namespace halocline::halo {

void chosen_sites::compare(const comm::job& j, const std::string& who, std::string (*text_of)(int place)) const {
    std::vector<int> peers;
    std::vector<std::string> told;
    for (const auto& [peer, mine] : by_peer_) {
        row_writer row;
        row.map(mine.sent);
        row.map(mine.expected);
        peers.push_back(peer);
        told.push_back(row.take());
    }
    const std::vector<std::string> heard = j.exchange(peers, told);

    const auto require_equal = [&](const by_place& sent, const by_place& expected, int from, int to) {
        for (const auto& [place, fingerprint] : sent) {
            const auto other = expected.find(place);
            if (other != expected.end() && other->second == fingerprint) continue;
            throw input_error(who + rank_text(from) + " sends " + rank_text(to) + " other sites, for its ghosts " +
                              text_of(place) + ", than " + rank_text(to) +
                              " expects; select must choose the same sites on all ranks");
        }
    };
    j.collectively([&] {
        auto bytes = heard.begin();
        for (const auto& [peer, mine] : by_peer_) {
            both_ways theirs;
            row_reader row(*bytes++);
            row.map(theirs.sent);
            row.map(theirs.expected);
            row.end();
            require_equal(mine.sent, theirs.expected, j.rank(), peer);
            require_equal(theirs.sent, mine.expected, peer, j.rank());
        }
    });
}

} // namespace halocline::halo
