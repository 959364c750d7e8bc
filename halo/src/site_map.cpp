// SPDX-License-Identifier: Apache-2.0
#include "map_kernels.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace halocline::halo {
namespace {

/// For one real of the result: the reals it takes, and their coefficients.
template <class T>
using sources = std::vector<std::pair<std::int32_t, T>>;

template <class T>
std::vector<sources<T>> sources_of(const block_map& map) {
    std::vector<sources<T>> all;
    for (const auto& row : map.rows)
        for (int i = 0; i < map.block_reals; ++i) {
            sources<T>& real = all.emplace_back();
            for (const block_map::term& t : row) {
                const auto re = static_cast<T>(t.coefficient.real()), im = static_cast<T>(t.coefficient.imag());
                const int at = t.block * map.block_reals + i;
                if (re != 0) real.emplace_back(at, re);
                if (im != 0) real.emplace_back(at ^ 1, i % 2 == 0 ? -im : im); // (re, im) times i is (-im, re)
            }
        }
    return all;
}

/// Takes from `open` as much as one step can: the first real wanted and its neighbours.
template <class T>
map_step<T> next_step(std::vector<sources<T>>& open, std::int32_t in_reals) {
    map_step<T> step;
    const std::size_t lanes = open.size();
    step.from = in_reals - static_cast<std::int32_t>(lanes);
    for (const sources<T>& real : open)
        for (const auto& source : real) step.from = std::min(step.from, source.first);
    std::array<std::size_t, 64 / sizeof(T)> taken{};
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        const auto within = [&](const auto& s) { return s.first < step.from + static_cast<std::int32_t>(lanes); };
        const auto source = std::find_if(open[lane].begin(), open[lane].end(), within);
        if (source == open[lane].end()) continue; // coefficient 0
        taken[lane] = static_cast<std::size_t>(source->first - step.from);
        step.coefficient[lane] = source->second;
        open[lane].erase(source);
    }
    if (lanes * sizeof(T) > 16) {
        constexpr std::size_t words = sizeof(T) / 4;
        for (std::size_t w = 0; w < lanes * words; ++w)
            step.permutation[w] = static_cast<std::uint32_t>(taken[w / words] * words + w % words);
    } else {
        std::array<std::uint8_t, 16> bytes{};
        for (std::size_t b = 0; b < lanes * sizeof(T); ++b)
            bytes[b] = static_cast<std::uint8_t>(taken[b / sizeof(T)] * sizeof(T) + b % sizeof(T));
        std::memcpy(step.permutation.data(), bytes.data(), bytes.size());
    }
    return step;
}

} // namespace

template <class T>
site_map<T>::site_map(const block_map& map, int in_reals) : in_reals_(in_reals), out_reals_(map.reals()) {
    const kernels::map_table<T> table = kernels::table_of_maps<T>();
    assign_ = table.assign;
    add_ = table.add;
    const std::vector<sources<T>> all = sources_of<T>(map);
    std::size_t to = 0, width = 64; // vectors in order of decreasing length, so that each length is one loop
    for (std::size_t i = 0; i < end_.size(); ++i, width /= 2) {
        const std::size_t lanes = width / sizeof(T);
        const bool there = lanes == 1 || (lanes > 1 && width <= table.widest_bytes);
        for (; there && lanes <= all.size() - to && lanes <= static_cast<std::size_t>(in_reals); to += lanes) {
            const auto begin = all.begin() + static_cast<std::ptrdiff_t>(to);
            std::vector<sources<T>> open(begin, begin + static_cast<std::ptrdiff_t>(lanes));
            const std::size_t first = steps_.size();
            do {
                steps_.push_back(next_step(open, in_reals));
                steps_.back().to = static_cast<std::int32_t>(to);
            } while (std::any_of(open.begin(), open.end(), [](const auto& real) { return !real.empty(); }));
            steps_[first].first = steps_.back().last = true;
        }
        end_[i] = static_cast<std::int32_t>(steps_.size());
    }
}

template class site_map<float>;
template class site_map<double>;

} // namespace halocline::halo
