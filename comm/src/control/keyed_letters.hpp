// SPDX-License-Identifier: Apache-2.0
// What two ranks tell each other about the connections and windows that they make as a pair, without waiting for each
// other. Each letter has a key known to both ends, and is kept until somebody looks for it.
#pragma once

#include "control_plane.hpp"

#include <map>
#include <string>
#include <utility>

namespace halocline::comm {

class keyed_letters {
  public:
    /// Never waits. A letter to this rank itself does not go through `post`.
    void send(mail* post, int own_rank, int peer, const std::string& key, const std::string& body);
    /// Takes in the letters that have arrived. Allocates nothing if there are none.
    void collect(mail* post);
    using name = std::pair<int, std::string>; ///< peer and key
    /// nullptr if it has not arrived yet. Allocates nothing.
    [[nodiscard]] const std::string* find(const name& n) const;
    [[nodiscard]] const std::string* find(int peer, const std::string& key) const { return find({peer, key}); }
    void forget(const name& n) noexcept { kept_.erase(n); }
    void forget(int peer, const std::string& key) { forget({peer, key}); }
    /// All letters of that peer whose keys begin so.
    void forget_all(int peer, const std::string& beginning) {
        const auto first = kept_.lower_bound({peer, beginning});
        auto last = first;
        while (last != kept_.end() && last->first.first == peer && last->first.second.starts_with(beginning)) ++last;
        kept_.erase(first, last);
    }

  private:
    std::map<name, std::string> kept_;
};

} // namespace halocline::comm
