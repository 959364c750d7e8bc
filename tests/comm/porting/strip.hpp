// SPDX-License-Identifier: Apache-2.0
// The code that is ported: diffusion on a periodic plane, cut in strips of rows, one per rank. Row 0 and row rows + 1
// are ghosts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

namespace porting {

class strip {
  public:
    strip(std::size_t rows, std::size_t width, int rank,
          std::pmr::memory_resource* memory = std::pmr::new_delete_resource())
        : rows_(rows), width_(width), now_((rows + 2) * width, 0.0, memory), next_(now_.size()) {
        for (std::size_t y = 1; y <= rows; ++y) {
            for (std::size_t x = 0; x < width; ++x)
                row(y)[x] = static_cast<double>((x * 31 + (y + rows * rank) * 17) % 23);
        }
    }
    [[nodiscard]] std::size_t rows() const { return rows_; }
    [[nodiscard]] std::span<double> row(std::size_t y) { return std::span(now_).subspan(y * width_, width_); }
    [[nodiscard]] const std::pmr::vector<double>& values() const { return now_; }

    void update_interior() { update(2, rows_); }
    /// The rows beside the ghosts, and the end of the step.
    void update_boundary() {
        update(1, 2);
        update(rows_, rows_ + 1);
        std::copy(next_.begin() + static_cast<std::ptrdiff_t>(width_),
                  next_.end() - static_cast<std::ptrdiff_t>(width_),
                  now_.begin() + static_cast<std::ptrdiff_t>(width_));
    }

  private:
    void update(std::size_t first, std::size_t last) {
        for (std::size_t y = first; y < last; ++y) {
            for (std::size_t x = 0; x < width_; ++x) {
                const double left = row(y)[(x + width_ - 1) % width_], right = row(y)[(x + 1) % width_];
                next_[y * width_ + x] = 0.25 * (left + right + row(y - 1)[x] + row(y + 1)[x]);
            }
        }
    }
    std::size_t rows_, width_;
    std::pmr::vector<double> now_;
    std::vector<double> next_;
};

constexpr int up = 1, down = 2; // tags

} // namespace porting
