// SPDX-License-Identifier: Apache-2.0
#include "gauge_layout.hpp"

#include <zlib.h>

#include <charconv>
#include <cmath>
#include <complex>
#include <limits>

namespace halocline::lattice {
namespace {

using complex = std::complex<double>;

/// Largest extent that a head may claim: any product of four and a site's bytes fits 128 bits.
constexpr int max_extent = (1 << 24) - 1;

/// Direction of the i-th link that a site stores.
int direction(const gauge_file& file, int i) { return file.format == gauge_format::ddalphaamg ? 3 - i : i; }

/// Element (row, column) of the link that starts at `u`.
complex element(const double* u, int row, int column) {
    return {u[2 * (3 * row + column)], u[2 * (3 * row + column) + 1]};
}

/// Third row of an SU(3) matrix: conj(row1 x row2).
void complete_third_row(double* u) {
    for (int c = 0; c < 3; ++c) {
        const int a = (c + 1) % 3, b = (c + 2) % 3;
        const complex z = std::conj(element(u, 0, a) * element(u, 1, b) - element(u, 0, b) * element(u, 1, a));
        u[2 * (6 + c)] = z.real();
        u[2 * (6 + c) + 1] = z.imag();
    }
}

/// max |U U^dagger - 1|, infinite if it is not a number.
double unitarity_error(const double* u) {
    double largest = 0;
    for (int i = 0; i < 3; ++i)
        for (int j = i; j < 3; ++j) {
            complex product = i == j ? -1 : 0;
            for (int k = 0; k < 3; ++k) product += element(u, i, k) * std::conj(element(u, j, k));
            const double error = std::abs(product);
            if (!(error <= largest)) largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
        }
    return largest;
}

std::uint32_t rotate_left(std::uint32_t word, std::int64_t bits) { return std::rotl(word, static_cast<int>(bits)); }

template <class Number, class... Format>
std::optional<Number> parse_whole(std::string_view text, Format... format) {
    Number value{};
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, format...);
    if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

} // namespace

std::string_view trim(std::string_view text) {
    constexpr std::string_view blanks(" \t\r\n\0", 5);
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::optional<int> parse_int(std::string_view text) { return parse_whole<int>(text); }
std::optional<double> parse_double(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1); // C's printf may write it, from_chars refuses it
    const std::optional<double> value = parse_whole<double>(text);
    return value && std::isfinite(*value) ? value : std::nullopt;
}
std::optional<std::uint32_t> parse_hex(std::string_view text) {
    if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
    return text.size() <= 8 ? parse_whole<std::uint32_t>(text, 16) : std::nullopt;
}
std::string to_hex(std::uint32_t value) {
    char digits[8];
    for (int i = 0; i < 8; ++i) digits[i] = "0123456789abcdef"[(value >> (28 - 4 * i)) & 15];
    return {digits, 8};
}

int site_bytes(const gauge_file& file) { return dimensions * file.rows * 3 * 2 * file.real_bytes; }

uint128 link_bytes(const gauge_file& file) {
    uint128 bytes = static_cast<uint128>(site_bytes(file));
    for (int e : file.extents) {
        if (e < 1 || e > max_extent)
            throw file_error(file.path, to_string(file.format) + " head gives the lattice " + to_string(file.extents) +
                                            ": extents must be between 1 and " + std::to_string(max_extent));
        bytes *= static_cast<unsigned>(e);
    }
    return bytes;
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

void check_links(const box& local, const gauge_field& links) {
    const site_order& order = links.order();
    bool lexicographic = order.lane_width() == 1;
    for (std::int64_t s = 0; lexicographic && s < order.volume(); ++s) lexicographic = order.position(s) == s;
    if (!lexicographic || order.extents() != local.extents || links.components() != gauge_components)
        throw input_error("field of " + to_string(order.extents()) + " sites and " +
                          std::to_string(links.components()) + " components can't take the links of a local box " +
                          to_string(local.extents) +
                          ": it must have its extents, lexicographic order and 72 components");
    for (int o : local.origin)
        if (o < 0) throw input_error("local box at " + to_string(local.origin) + ": its origin must not be negative");
}

void decode_site(const gauge_file& file, const std::byte* stored, double* links) {
    const int reals = file.rows * 6;
    for (int i = 0; i < dimensions; ++i) {
        double* u = links + direction(file, i) * link_components;
        for (int k = 0; k < reals; ++k, stored += file.real_bytes)
            u[k] = file.real_bytes == 8 ? std::bit_cast<double>(load<std::uint64_t>(stored, file.big_endian))
                                        : double{std::bit_cast<float>(load<std::uint32_t>(stored, file.big_endian))};
        if (file.rows == 2) complete_third_row(u);
    }
}

void encode_site(const gauge_file& file, const double* links, std::byte* stored) {
    for (int i = 0; i < dimensions; ++i) {
        const double* u = links + direction(file, i) * link_components;
        for (int k = 0; k < link_components; ++k, stored += sizeof(double))
            store(stored, std::bit_cast<std::uint64_t>(u[k]), file.big_endian);
    }
}

void add_site(gauge_totals& totals, const gauge_file& file, std::int64_t file_site, const std::byte* stored,
              const double* links, bool in_file) {
    for (int i = 0; i < gauge_components; ++i)
        if (!std::isfinite(links[i])) totals.finite = false;
    for (int mu = 0; mu < dimensions; ++mu)
        totals.max_unitarity_error =
            std::max(totals.max_unitarity_error, unitarity_error(links + mu * link_components));
    if (!in_file) return;

    totals.links += dimensions;
    for (int mu = 0; mu < dimensions; ++mu)
        for (int c = 0; c < 3; ++c) totals.link_trace_sum += element(links + mu * link_components, c, c).real();
    const int bytes = site_bytes(file);
    if (file.format == gauge_format::nersc)
        for (int b = 0; b < bytes; b += 4) totals.nersc_sum += load<std::uint32_t>(stored + b, file.big_endian);
    if (file.format == gauge_format::ildg) {
        const auto crc =
            static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(stored), static_cast<uInt>(bytes)));
        totals.scidac_xor[0] ^= rotate_left(crc, file_site % 29);
        totals.scidac_xor[1] ^= rotate_left(crc, file_site % 31);
    }
}

} // namespace halocline::lattice
