// SPDX-License-Identifier: Apache-2.0
// MILC v5: a header of 96 bytes, then the links x, y, z, t of every site in 32 bits; the magic number shows the byte
// order.
#include "gauge_layout.hpp"

namespace halocline::lattice {
namespace {

/// Magic number, four extents, 64 characters of a time stamp, order of sites, two checksums.
constexpr std::size_t extents_at = 4, order_at = 84, checksums_at = 88, head_bytes = 96;
constexpr std::uint32_t natural_order = 0;

} // namespace

gauge_file open_milc(const binary_file& file) {
    if (file.size() < head_bytes)
        throw file_error(file.path(), "has " + std::to_string(file.size()) + " bytes: a MILC head has " +
                                          std::to_string(head_bytes));
    const std::string head = file.read_text(0, head_bytes);
    gauge_file g;
    g.path = file.path();
    g.format = gauge_format::milc;
    g.data_offset = head_bytes;
    g.real_bytes = 4;
    g.big_endian = load<std::uint32_t>(head.data(), true) == milc_magic;
    const auto word = [&](std::size_t at) { return load<std::uint32_t>(head.data() + at, g.big_endian); };
    for (std::size_t mu = 0; mu < dimensions; ++mu) g.extents[mu] = static_cast<int>(word(extents_at + 4 * mu));
    check_size(g, file.size());
    if (word(order_at) != natural_order)
        throw file_error(g.path, "MILC head says order " + std::to_string(word(order_at)) +
                                     ": only sites in natural order (0) can be read");

    const std::array<std::uint32_t, 2> sums{word(checksums_at), word(checksums_at + 4)};
    if (sums == std::array<std::uint32_t, 2>{}) // written by converters that can't compute them
        g.warnings.emplace_back("no checksums are recorded: some corruption can't be seen");
    else
        g.milc_checksum = sums;
    return g;
}

} // namespace halocline::lattice
