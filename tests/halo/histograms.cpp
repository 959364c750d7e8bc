// SPDX-License-Identifier: Apache-2.0
#include "histograms.hpp"

#include <halocline/halo/box_stencil.hpp>
#include <halocline/halo/stencil.hpp>

#include <algorithm>
#include <cstddef>

namespace halocline_test {
namespace {

using namespace halocline;

lattice::decomposition cut_of(const comm::job& j) {
    return lattice::decomposition::even({32, 8, 8, 8}, {1, 1, 1, j.ranks()});
}

/// Visits all sites; start() begins the exchange.
template <class Stencil, class Start>
std::vector<std::int64_t> counted(Stencil& s, Start&& start) {
    std::vector<std::int64_t> counts(4);
    const auto count = [&](const auto& n) { ++counts[static_cast<std::size_t>(n.here())]; };
    const auto kernel = halo::sequential(count);
    start();
    s.for_interior(kernel);
    s.finish_or_throw();
    s.for_boundary(halo::sequential([&](const auto& n) { ++counts[static_cast<std::size_t>(n.here())]; }));
    return counts;
}

void fill_with_ones(lattice::field<double>& u) {
    std::ranges::fill(u.values(), 1.0);
    u.mark_written();
}

} // namespace

std::vector<std::int64_t> counted_by_stencil(const comm::job& j, check_level checks) {
    halo::stencil<double> s(j, cut_of(j), {.checks = checks});
    lattice::field<double> u = s.make_field();
    fill_with_ones(u);
    return counted(s, [&] { s.start(u); });
}

std::vector<std::int64_t> counted_by_box_stencil(const comm::job& j, check_level checks) {
    halo::box_stencil<double> s(j, cut_of(j), {.fields = 1, .checks = checks});
    fill_with_ones(s.field(0));
    return counted(s, [&] { s.start(0); });
}

} // namespace halocline_test
