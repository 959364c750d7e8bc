// SPDX-License-Identifier: Apache-2.0
// Bytes that wait until a descriptor takes them, the first ones first.
#pragma once

#include <cstddef>
#include <string>

namespace halocline::comm {

class byte_queue {
  public:
    /// To append to.
    [[nodiscard]] std::string& bytes() { return bytes_; }
    [[nodiscard]] const char* data() const { return bytes_.data() + taken_; }
    [[nodiscard]] std::size_t size() const { return bytes_.size() - taken_; }
    [[nodiscard]] bool empty() const { return size() == 0; }
    /// Removes the first `count`. What is left moves only if it is less than what was taken: a byte moves once, on
    /// average.
    void remove(std::size_t count) {
        taken_ += count;
        if (taken_ < size()) return;
        bytes_.erase(0, taken_);
        taken_ = 0;
    }

  private:
    std::string bytes_;
    std::size_t taken_ = 0;
};

} // namespace halocline::comm
