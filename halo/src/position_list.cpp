// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/detail/position_list.hpp>

#include "run_collector.hpp"

#include <algorithm>
#include <utility>

namespace halocline::halo {

position_list::position_list(std::span<const std::int64_t> positions)
    : position_list(of([&](auto&& visit) {
          for (const std::int64_t p : positions) visit(p);
      })) {}

position_list::position_list(std::vector<position_run> runs) : runs_(std::move(runs)) {
    for (const position_run& r : runs_) size_ += std::int64_t{r.sites} * r.count;
}

position_list position_list::counted(std::int64_t sites) {
    position_list list;
    list.append(0, sites);
    return list;
}

void position_list::append(std::int64_t first, std::int64_t last) {
    size_ += last - first;
    append_run(runs_, first, last);
}

std::int64_t position_list::count_runs() const {
    std::int64_t runs = 0;
    for (const position_run& r : runs_) runs += r.count;
    return runs;
}

std::vector<std::int64_t> position_list::expanded() const {
    std::vector<std::int64_t> positions;
    positions.reserve(static_cast<std::size_t>(size_));
    for (const position_run& r : runs_)
        for (std::int32_t k = 0; k < r.count; ++k)
            for (std::int32_t s = 0; s < r.sites; ++s) positions.push_back(r.first + k * r.stride + s);
    return positions;
}

std::int64_t position_list::probe_position() const {
    const position_run& longest = *std::max_element(
        runs_.begin(), runs_.end(), [](const position_run& a, const position_run& b) { return a.sites < b.sites; });
    return longest.first + longest.count / 2 * longest.stride + longest.sites / 2;
}

} // namespace halocline::halo
