// SPDX-License-Identifier: Apache-2.0
#include "gauge_layout.hpp"

#include "link_matrix.hpp"

#include <halocline/lattice/su3_error.hpp>

#include <algorithm>
#include <cmath>
#include <complex>

namespace halocline::lattice {
namespace {

/// Direction of the i-th link that a site stores.
int direction(const gauge_file& file, int i) { return file.format == gauge_format::ddalphaamg ? 3 - i : i; }

void complete_third_row(double* u) {
    for (int c = 0; c < 3; ++c) {
        const std::complex<double> z = third_row(u, c);
        u[2 * (6 + c)] = z.real();
        u[2 * (6 + c) + 1] = z.imag();
    }
}

} // namespace

int site_bytes(const gauge_file& file) { return dimensions * file.rows * 3 * 2 * file.real_bytes; }

uint128 link_bytes(const gauge_file& file) {
    return lattice_bytes(file.path, to_string(file.format) + " head", file.extents, site_bytes(file));
}

void check_size(gauge_file& file, std::uint64_t file_size) {
    const uint128 needed = static_cast<uint128>(file.data_offset) + link_bytes(file);
    const std::string size = "has " + std::to_string(file_size) + " bytes; " + to_string(file.format) + " with " +
                             to_string(file.extents) + " sites needs " + to_string(needed);
    if (file_size < needed) throw file_error(file.path, size + ": it is truncated, or its head is wrong");
    if (file_size > needed + max_trailing_bytes)
        throw file_error(file.path, size + ": its head is wrong, or other data follows");
    if (file_size > needed)
        file.warnings.push_back(to_string(file_size - needed) + " trailing bytes after the links are ignored");
}

void decode_site(const gauge_file& file, const std::byte* stored, double* links) {
    const int reals = file.rows * 6;
    for (int i = 0; i < dimensions; ++i, stored += reals * file.real_bytes) {
        double* u = links + direction(file, i) * link_components;
        load_reals(stored, reals, file.real_bytes, file.big_endian, u);
        if (file.rows == 2) complete_third_row(u);
    }
}

void encode_site(const gauge_file& file, const double* links, std::byte* stored) {
    for (int i = 0; i < dimensions; ++i, stored += link_components * sizeof(double))
        store_reals(links + direction(file, i) * link_components, link_components, file.big_endian, stored);
}

void add_links(gauge_totals& totals, const gauge_file& file, const coordinate& x, const double* links) {
    constexpr int t = 3;
    const bool in_file = box{{0, 0, 0, 0}, file.extents}.contains(x);
    for (int i = 0; i < gauge_components; ++i)
        if (!std::isfinite(links[i])) totals.finite = false;
    for (int mu = 0; mu < dimensions; ++mu) {
        const double* u = links + mu * link_components;
        const bool may_be_open = file.format == gauge_format::openqcd && mu == t && (x[t] + 1) % file.extents[t] == 0;
        if (may_be_open && std::all_of(u, u + link_components, [](double v) { return v == 0; })) {
            totals.open_links += in_file ? 1 : 0;
            continue;
        }
        totals.max_su3_error = std::max(totals.max_su3_error, su3_error(u));
        for (int c = 0; in_file && c < 3; ++c) totals.link_trace_sum += element(u, c, c).real();
    }
    totals.links += in_file ? dimensions : 0;
}

void add_checksum(gauge_totals& totals, const gauge_file& file, std::int64_t file_site, const std::byte* stored) {
    const int bytes = site_bytes(file);
    if (file.format == gauge_format::nersc)
        for (int b = 0; b < bytes; b += 4) totals.nersc_sum += load<std::uint32_t>(stored + b, file.big_endian);
    if (file.format == gauge_format::ildg || file.format == gauge_format::scidac)
        add_to_scidac_sums(totals.scidac_xor, file_site, {stored, static_cast<std::size_t>(bytes)});
    if (file.format == gauge_format::milc)
        for (int b = 0; b < bytes; b += 4) {
            const auto word = load<std::uint32_t>(stored + b, file.big_endian);
            const std::int64_t i = file_site * (bytes / 4) + b / 4; // index among all words in the file
            totals.milc_xor[0] ^= std::rotl(word, static_cast<int>(i % 29));
            totals.milc_xor[1] ^= std::rotl(word, static_cast<int>(i % 31));
        }
}

} // namespace halocline::lattice
