// SPDX-License-Identifier: Apache-2.0
// Cards of connections and windows: what two ranks tell each other about what they make as a pair, without waiting for
// each other. Each card has a key, which both ends know, and is kept until somebody looks for it.
#pragma once

#include "control_plane.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace halocline::comm {

class card_box {
  public:
    /// Never waits. A card for the own rank does not go through `post`.
    void send(mail* post, int own_rank, int peer, const std::string& key, const std::string& body);
    /// Takes in the cards that have come.
    void collect(mail* post);
    /// nullptr: it has not come yet.
    [[nodiscard]] const std::string* find(int peer, const std::string& key) const;
    void forget(int peer, const std::string& key) { cards_.erase({peer, key}); }
    /// 0, 1, … for the connections of one peer and pair of tags, in the order in which they are made.
    [[nodiscard]] std::uint32_t next_of(int peer, int send_tag, int receive_tag) {
        return made_[{peer, send_tag, receive_tag}]++;
    }

  private:
    std::map<std::pair<int, std::string>, std::string> cards_;
    std::map<std::tuple<int, int, int>, std::uint32_t> made_;
};

} // namespace halocline::comm
