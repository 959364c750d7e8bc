// SPDX-License-Identifier: Apache-2.0
// DDalphaAMG: int32 nt, nz, ny, nx and float64 3 * plaquette, then the links T, Z, Y, X of every site; little endian.
// openQCD has the same header (gauge_openqcd.cpp).
#include "gauge_layout.hpp"

#include <cstdio>

namespace halocline::lattice {
namespace {

constexpr std::size_t head_bytes = 24;

} // namespace

gauge_file open_ddalphaamg(const binary_file& file) {
    if (file.size() < head_bytes)
        throw file_error(file.path(), "has " + std::to_string(file.size()) + " bytes: too few for any gauge file");
    const std::string head = file.read_text(0, head_bytes);

    gauge_file g;
    g.path = file.path();
    g.format = gauge_format::ddalphaamg;
    g.data_offset = head_bytes;
    for (int mu = 0; mu < dimensions; ++mu)
        g.extents[mu] = static_cast<int>(load<std::uint32_t>(head.data() + 4 * (3 - mu), false));
    const auto plaquette3 = std::bit_cast<double>(load<std::uint64_t>(head.data() + 16, false));
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
    g.plaquette = plaquette3 / 3;
    return g;
}

} // namespace halocline::lattice
