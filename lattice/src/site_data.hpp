// SPDX-License-Identifier: Apache-2.0
// What files with data on every site have in common: sites stored lexicographically (x fastest), read and written by
// each rank in contiguous runs.  Private to lattice/.
#pragma once

#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>

#include "binary_file.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace halocline::lattice {

/// Buffer size of one read or write.
inline constexpr std::int64_t run_bytes = 4 << 20;

/// Bytes of a lattice's data.  Err: file_error if an extent given by `head` is not in [1, 2^24).
uint128 lattice_bytes(const std::string& path, const std::string& head, const coordinate& extents, int site_bytes);

/// Err: input_error unless `data` has storage for `components` reals on the sites of `local`: its extents,
/// lexicographic order.
void check_field(const box& local, const field<double>& data, int components, const std::string& name);
/// Err: input_error if `local` is not inside the lattice that is written to `path`.
void check_inside(const box& local, const coordinate& extents, const std::string& path);

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
