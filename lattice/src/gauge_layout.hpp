// SPDX-License-Identifier: Apache-2.0
// What the gauge formats have in common: the four links of a site are stored together. They differ in header, byte
// order, precision, order of mu and number of stored rows.  Private to lattice/.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/lattice/gauge_file.hpp>

#include "binary_file.hpp"
#include "file_text.hpp"
#include "lime.hpp"
#include "site_data.hpp"

#include <string_view>

namespace halocline::lattice {

/// Headers of the formats; `file` is at least as long as it took to recognise the format.  Err: file_error.
gauge_file open_ddalphaamg(const binary_file& file);
gauge_file open_nersc(const binary_file& file);
gauge_file open_ildg(const binary_file& file);
gauge_file open_milc(const binary_file& file);

inline constexpr std::string_view nersc_begin = "BEGIN_HEADER";
/// How far rounding may take a plaquette out of what SU(3) has, of links as unitary as check_totals() requires.
inline constexpr double plaquette_rounding = 1e-9;
/// First word of a MILC v5 file, in its own byte order.
inline constexpr std::uint32_t milc_magic = 20103;

/// Bytes of the four links of a site.
int site_bytes(const gauge_file& file);
/// Bytes of all links.  Err: file_error if an extent is not in [1, 2^24).
uint128 link_bytes(const gauge_file& file);
/// Compares the number of bytes from data_offset on with `link_bytes`.  Err: file_error if there are too few, or more
/// than max_trailing_bytes too many; a smaller excess is a warning.
void check_size(gauge_file& file, std::uint64_t file_size);

/// Stored bytes of one site -> 72 doubles, in the order of gauge_field, and back (3 rows only).
void decode_site(const gauge_file& file, const std::byte* stored, double* links);
void encode_site(const gauge_file& file, const double* links, std::byte* stored);
/// Adds the contribution of the links of the site at `x`; to traces and counts only inside the file, not its
/// repetitions.
void add_links(gauge_totals& totals, const gauge_file& file, const coordinate& x, const double* links);
/// Adds the contribution of a site's stored bytes to the format's checksum.
void add_checksum(gauge_totals& totals, const gauge_file& file, std::int64_t file_site, const std::byte* stored);

/// read_links() for openQCD, which does not store site by site.
gauge_totals read_openqcd(const gauge_file& file, const binary_file& data, const box& local, gauge_field& links);

} // namespace halocline::lattice
