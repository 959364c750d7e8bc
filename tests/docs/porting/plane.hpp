// SPDX-License-Identifier: Apache-2.0
// A plane of rows, cut in x. The first and the last `layers` columns of each row are ghosts.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace porting {

class plane {
  public:
    plane(std::size_t rows, std::size_t width, std::size_t layers, int rank)
        : rows_(rows), width_(width), layers_(layers), values_(rows * width) {
        for (std::size_t y = 0; y < rows; ++y)
            for (std::size_t x = layers; x < width - layers; ++x)
                row(y)[x] = static_cast<double>(10000 * rank) + static_cast<double>(100 * y + x);
    }
    [[nodiscard]] std::size_t rows() const { return rows_; }
    [[nodiscard]] std::size_t width() const { return width_; }
    [[nodiscard]] std::size_t layers() const { return layers_; }
    [[nodiscard]] std::span<double> row(std::size_t y) { return std::span(values_).subspan(y * width_, width_); }
    [[nodiscard]] const std::vector<double>& values() const { return values_; }
    /// The end of a step: what is sent next depends on the ghosts.
    void update() {
        for (std::size_t y = 0; y < rows_; ++y)
            for (std::size_t x = layers_; x < width_ - layers_; ++x)
                row(y)[x] = 0.5 * row(y)[x] + 0.25 * (row(y)[x - layers_] + row(y)[x + layers_]);
    }

  private:
    std::size_t rows_, width_, layers_;
    std::vector<double> values_;
};

constexpr int to_low = 1, to_high = 2; // tags

} // namespace porting
