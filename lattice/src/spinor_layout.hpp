// SPDX-License-Identifier: Apache-2.0
// What the reader and the writer of spinor files share.  Private to lattice/.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/lattice/spinor_file.hpp>

#include "lime.hpp"
#include "site_data.hpp"

namespace halocline::lattice {

inline constexpr int spinor_spins = 4, spinor_colours = 3;

inline int site_bytes(const spinor_file& file) { return spinor_components * file.real_bytes; }
/// Bytes of all spinors.  Err: file_error if an extent is not in [1, 2^24).
inline uint128 spinor_bytes(const spinor_file& file) {
    return lattice_bytes(file.path, "scidac-private-file-xml", file.extents, site_bytes(file));
}

/// Adds the contribution of one site.
void add_site(spinor_totals& totals, std::int64_t file_site, std::span<const std::byte> stored, const double* spinor);
/// Err: input_error unless every site is counted once.
void check_coverage(const spinor_file& file, const spinor_totals& totals);

} // namespace halocline::lattice
