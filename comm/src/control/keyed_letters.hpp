// SPDX-License-Identifier: Apache-2.0
// What two ranks tell each other about what they make as a pair, connections and windows, without waiting for each
// other. Each letter has a key, which both ends know, and is kept until somebody looks for it.
#pragma once

#include "control_plane.hpp"

#include <map>
#include <string>
#include <utility>

namespace halocline::comm {

class keyed_letters {
  public:
    /// Never waits. One for the own rank does not go through `post`.
    void send(mail* post, int own_rank, int peer, const std::string& key, const std::string& body);
    /// Takes in the letters that have come.
    void collect(mail* post);
    /// nullptr: it has not come yet.
    [[nodiscard]] const std::string* find(int peer, const std::string& key) const;
    void forget(int peer, const std::string& key) { kept_.erase({peer, key}); }

  private:
    std::map<std::pair<int, std::string>, std::string> kept_;
};

} // namespace halocline::comm
