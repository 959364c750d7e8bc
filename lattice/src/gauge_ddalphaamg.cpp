// SPDX-License-Identifier: Apache-2.0
// DDalphaAMG: int32 nt, nz, ny, nx and float64 3 * plaquette, then the links T, Z, Y, X of every site; little endian,
// or big endian if it was compiled for that. openQCD has the little-endian header (gauge_openqcd.cpp).
#include "gauge_layout.hpp"

#include <algorithm>
#include <cstdio>

namespace halocline::lattice {
namespace {

constexpr std::size_t head_bytes = 24;

/// False: in this byte order they can't be right. An extent below 2^24 that is no multiple of 256 is above 2^24 with
/// its bytes reversed, so at most one order is right.
bool take_extents(const std::string& head, bool big_endian, gauge_file& g) {
    g.big_endian = big_endian;
    for (int mu = 0; mu < dimensions; ++mu)
        g.extents[mu] = static_cast<int>(load<std::uint32_t>(head.data() + 4 * (3 - mu), big_endian));
    return std::ranges::all_of(g.extents, [](int e) { return e >= 1 && e < 1 << 24; });
}

} // namespace

gauge_file open_ddalphaamg(const binary_file& file) {
    if (file.size() < head_bytes)
        throw file_error(file.path(), "has " + std::to_string(file.size()) + " bytes: too few for any gauge file");
    const std::string head = file.read_text(0, head_bytes);

    gauge_file g;
    g.path = file.path();
    g.format = gauge_format::ddalphaamg;
    g.data_offset = head_bytes;
    if (!take_extents(head, false, g) && !take_extents(head, true, g)) take_extents(head, false, g); // for the error
    const auto plaquette3 = std::bit_cast<double>(load<std::uint64_t>(head.data() + 16, g.big_endian));
    try {
        check_size(g, file.size());
    } catch (const file_error& e) {
        throw file_error(g.path, "is neither LIME nor NERSC nor MILC, and neither DDalphaAMG nor openQCD, whose head "
                                 "and size are the same: " +
                                     e.reason());
    }
    // Re tr of an SU(3) matrix is in [-3/2, 3]; written so that NaN is refused too.
    constexpr double rounding = 3 * plaquette_rounding;
    if (!(plaquette3 >= -1.5 - rounding && plaquette3 <= 3 + rounding)) {
        char text[120];
        std::snprintf(text, sizeof text,
                      "DDalphaAMG or openQCD head gives 3 * plaquette = %.17g: it must be between -1.5 and 3",
                      plaquette3);
        throw file_error(g.path, text);
    }
    if (plaquette3 != 0)
        g.plaquette = plaquette3 / 3;
    else // converters that can't compute it write 0; openQCD always computes it
        g.warnings.emplace_back("no plaquette is recorded: the links are taken for DDalphaAMG's, not openQCD's");
    return g;
}

} // namespace halocline::lattice
