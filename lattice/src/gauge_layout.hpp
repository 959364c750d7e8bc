// SPDX-License-Identifier: Apache-2.0
// What the gauge formats have in common: sites stored lexicographically (x fastest), four links together. They differ
// in head, byte order, precision, order of mu and number of stored rows.  Private to lattice/.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/lattice/gauge_file.hpp>

#include "binary_file.hpp"

#include <algorithm>
#include <string_view>

namespace halocline::lattice {

/// Heads of the formats; `file` is at least as long as what made the format recognised.  Err: file_error.
gauge_file open_ddalphaamg(const binary_file& file);
gauge_file open_nersc(const binary_file& file);
gauge_file open_ildg(const binary_file& file);

inline constexpr std::uint32_t lime_magic = 0x456789ab;
inline constexpr std::string_view nersc_begin = "BEGIN_HEADER";
/// More than this after the data is not an accident of a writer but another file.
inline constexpr std::uint64_t max_trailing_bytes = 4096;
/// Buffer of one read or write.
inline constexpr std::int64_t run_bytes = 4 << 20;

/// Bytes of the four links of a site.
int site_bytes(const gauge_file& file);
/// Bytes of all links.  Err: file_error when an extent is not in [1, 2^24).
uint128 link_bytes(const gauge_file& file);
/// Compares the bytes from data_offset on with `link_bytes`.  Err: file_error when they are too few or more than
/// max_trailing_bytes too many; fewer are a warning.
void check_size(gauge_file& file, std::uint64_t file_size);

/// Values of a head, the whole text or nothing.
std::optional<int> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);
/// 1 to 8 hexadecimal digits.
std::optional<std::uint32_t> parse_hex(std::string_view text);
std::string to_hex(std::uint32_t value);
std::string_view trim(std::string_view text);

/// Stored bytes of one site -> 72 doubles, in the order of gauge_field, and back (3 rows only).
void decode_site(const gauge_file& file, const std::byte* stored, double* links);
void encode_site(const gauge_file& file, const double* links, std::byte* stored);
/// Adds what one site contributes.  `in_file`: it counts for checksums, traces and counts.
void add_site(gauge_totals& totals, const gauge_file& file, std::int64_t file_site, const std::byte* stored,
              const double* links, bool in_file);

/// Err: input_error unless `links` can hold the links of `local`: its extents, lexicographic order, 72 components.
void check_links(const box& local, const gauge_field& links);

/// Calls f(file_site, local_site, sites) for runs that are contiguous in the file and in the lexicographic order of
/// `local`, a box of the periodic repetition of a lattice of these extents.
template <class F>
void for_each_run(const box& local, const coordinate& extents, std::int64_t max_sites, F&& f) {
    const coordinate lines{1, local.extents[1], local.extents[2], local.extents[3]};
    std::int64_t file_site = 0, local_site = 0, sites = 0;
    for (std::int64_t line = 0; line < volume(lines); ++line) {
        coordinate x = lexicographic_coordinate(line, lines);
        for (int mu = 0; mu < dimensions; ++mu) x[mu] = (local.origin[mu] + x[mu]) % extents[mu];
        for (int done = 0; done < local.extents[0];) {
            const int first = (x[0] + done) % extents[0];
            std::int64_t length = std::min(local.extents[0] - done, extents[0] - first);
            length = std::min(length, max_sites);
            const std::int64_t at = lexicographic_index({first, x[1], x[2], x[3]}, extents);
            if (at == file_site + sites && sites + length <= max_sites) {
                sites += length;
            } else {
                if (sites > 0) f(file_site, local_site, sites);
                local_site += sites;
                file_site = at;
                sites = length;
            }
            done += static_cast<int>(length);
        }
    }
    if (sites > 0) f(file_site, local_site, sites);
}

} // namespace halocline::lattice
