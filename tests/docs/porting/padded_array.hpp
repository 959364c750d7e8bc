// SPDX-License-Identifier: Apache-2.0
// The code that is ported: diffusion on two padded arrays that take turns. They are the program's own: x fastest, one
// layer of ghosts around the sites of the rank.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace porting {

using extents = std::array<int, 4>;

class padded_array {
  public:
    /// Starts with numbers that depend on the global coordinate only; in ghosts: 0.
    padded_array(const extents& local, const extents& origin) : local_(local) {
        for (std::vector<double>& values : arrays_) values.resize(volume());
        for_box({0, 0, 0, 0}, local_, [&](const extents& c) {
            int seed = 0;
            for (int mu = 0; mu < 4; ++mu) seed = 31 * seed + c[mu] + origin[mu];
            arrays_[0][at(c)] = seed % 23;
        });
    }
    [[nodiscard]] const extents& local() const { return local_; }
    /// The array of every second step.
    [[nodiscard]] double* array(int i) { return arrays_[i].data(); }
    /// The array of the step that comes next.
    [[nodiscard]] int turn() const { return turn_; }
    [[nodiscard]] bool operator==(const padded_array&) const = default;

    void update_interior() { update(true); }
    /// The sites beside ghosts, and the end of the step.
    void update_boundary() {
        update(false);
        turn_ = 1 - turn_;
    }

  private:
    [[nodiscard]] std::size_t volume() const {
        std::size_t sites = 1;
        for (const int n : local_) sites *= static_cast<std::size_t>(n) + 2;
        return sites;
    }
    [[nodiscard]] std::size_t at(const extents& c) const { // ghosts at -1 and local[mu]
        std::size_t index = 0;
        for (int mu = 3; mu >= 0; --mu)
            index = index * (static_cast<std::size_t>(local_[mu]) + 2) + static_cast<std::size_t>(c[mu] + 1);
        return index;
    }
    template <class Visit>
    static void for_box(const extents& first, const extents& last, const Visit& visit) {
        extents c{};
        for (c[3] = first[3]; c[3] < last[3]; ++c[3])
            for (c[2] = first[2]; c[2] < last[2]; ++c[2])
                for (c[1] = first[1]; c[1] < last[1]; ++c[1])
                    for (c[0] = first[0]; c[0] < last[0]; ++c[0]) visit(c);
    }
    void update(bool interior) {
        const std::vector<double>& from = arrays_[turn_];
        std::vector<double>& to = arrays_[1 - turn_];
        for_box({0, 0, 0, 0}, local_, [&](const extents& c) {
            bool inside = true;
            for (int mu = 0; mu < 4; ++mu) inside = inside && c[mu] > 0 && c[mu] < local_[mu] - 1;
            if (inside != interior) return;
            double sum = -8 * from[at(c)];
            for (int mu = 0; mu < 4; ++mu)
                for (const int step : {-1, 1}) {
                    extents beside = c;
                    beside[mu] += step;
                    sum += from[at(beside)];
                }
            to[at(c)] = from[at(c)] + 0.0625 * sum;
        });
    }

    extents local_;
    std::array<std::vector<double>, 2> arrays_;
    int turn_ = 0;
};

} // namespace porting
