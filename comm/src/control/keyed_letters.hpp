// SPDX-License-Identifier: Apache-2.0
// What two ranks tell each other about the connections and windows that they make as a pair, without waiting for each
// other. Each letter has a key known to both ends, and is kept until somebody looks for it.
#pragma once

#include "control_plane.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace halocline::comm {

class keyed_letters {
  public:
    /// Never waits. A letter to this rank itself does not go through `post`.
    void send(mail* post, int own_rank, int peer, const std::string& key, const std::string& body);
    /// Sends a letter without a key, which is not counted: take_hint() finds it there.
    void send_hint(mail* post, int own_rank, int peer, const std::string& body);
    /// Takes in the letters that have arrived. Allocates nothing if there are none.
    void collect(mail* post);
    using name = std::pair<int, std::string>; ///< peer and key
    /// nullptr if it has not arrived yet. Allocates nothing.
    [[nodiscard]] const std::string* find(const name& n) const;
    [[nodiscard]] const std::string* find(int peer, const std::string& key) const { return find({peer, key}); }
    void forget(const name& n) noexcept { kept_.erase(n); }
    void forget(int peer, const std::string& key) { forget({peer, key}); }
    /// The oldest hint that has arrived and was not taken yet.
    [[nodiscard]] std::optional<letter> take_hint();
    /// Numbers of letters with keys, since the job began.
    [[nodiscard]] std::uint64_t sent_to(int peer) const { return number_in(sent_, peer); }
    [[nodiscard]] std::uint64_t seen_of(int peer) const { return number_in(seen_, peer); }
    /// All letters of that peer whose keys begin so.
    void forget_all(int peer, const std::string& beginning) {
        const auto first = kept_.lower_bound({peer, beginning});
        auto last = first;
        while (last != kept_.end() && last->first.first == peer && last->first.second.starts_with(beginning)) ++last;
        kept_.erase(first, last);
    }

  private:
    using numbers = std::map<int, std::uint64_t>; // by peer
    [[nodiscard]] static std::uint64_t number_in(const numbers& of, int peer) {
        const auto it = of.find(peer);
        return it == of.end() ? 0 : it->second;
    }

    std::map<name, std::string> kept_;
    std::deque<letter> hints_;
    numbers sent_, seen_;
};

} // namespace halocline::comm
