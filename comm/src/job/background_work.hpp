// SPDX-License-Identifier: Apache-2.0
// What peers wait for while this rank waits for something else: copies to fields that have been freed in the meantime,
// sums and messages that could make progress. Every wait of the rank does this work between its polls.
#pragma once

#include <vector>

namespace halocline::comm {

class background_work {
  public:
    /// step: noexcept, never waits.  Pre: no wait of this rank is in progress.
    void add(void* object, void (*step)(void* object)) { all_.push_back({object, step}); }
    void remove(const void* object) noexcept {
        std::erase_if(all_, [object](const one& o) { return o.object == object; });
    }
    void run() const noexcept {
        for (const one& o : all_) o.step(o.object);
    }

  private:
    struct one {
        void* object;
        void (*step)(void* object);
    };
    std::vector<one> all_;
};

} // namespace halocline::comm
