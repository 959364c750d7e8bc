// SPDX-License-Identifier: Apache-2.0
// Gauge files made here byte by byte from each format's specification, never by our writer; and what reading them
// gives.
#pragma once

#include <halocline/lattice/gauge_file.hpp>
#include <halocline/lattice/random.hpp>
#include <halocline_test/run_command.hpp>

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace halocline_test {

using namespace halocline::lattice;

inline const coordinate extents{2, 3, 4, 5};
inline constexpr int sites = 2 * 3 * 4 * 5;
using matrix = std::array<std::complex<double>, 9>;

/// A random SU(3) matrix, a pure function of site and direction.
inline matrix random_link(std::int64_t site, int mu) {
    site_random random(11, static_cast<std::uint32_t>(mu), static_cast<std::uint64_t>(site));
    matrix u;
    for (int i = 0; i < 6; ++i) u[i] = {random.normal(), random.normal()};
    const auto normalise = [&](int row) {
        double norm = 0;
        for (int c = 0; c < 3; ++c) norm += std::norm(u[3 * row + c]);
        for (int c = 0; c < 3; ++c) u[3 * row + c] /= std::sqrt(norm);
    };
    normalise(0);
    std::complex<double> overlap = 0;
    for (int c = 0; c < 3; ++c) overlap += std::conj(u[c]) * u[3 + c];
    for (int c = 0; c < 3; ++c) u[3 + c] -= overlap * u[c];
    normalise(1);
    for (int c = 0; c < 3; ++c) {
        const int a = (c + 1) % 3, b = (c + 2) % 3;
        u[6 + c] = std::conj(u[a] * u[3 + b] - u[b] * u[3 + a]);
    }
    return u;
}

/// Bytes of an integer, most significant first or last.
inline std::string bytes_of(std::uint64_t value, int bytes, bool big) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * (big ? bytes - 1 - i : i)));
    return out;
}
inline std::string real(double v, int bytes, bool big) {
    return bytes == 8 ? bytes_of(std::bit_cast<std::uint64_t>(v), 8, big)
                      : bytes_of(std::bit_cast<std::uint32_t>(static_cast<float>(v)), 4, big);
}
inline std::string link_data(const std::vector<int>& order_of_mu, int rows, int real_bytes, bool big) {
    std::string out;
    for (int site = 0; site < sites; ++site)
        for (int mu : order_of_mu) {
            const matrix u = random_link(site, mu);
            for (int k = 0; k < 3 * rows; ++k)
                out += real(u[k].real(), real_bytes, big) + real(u[k].imag(), real_bytes, big);
        }
    return out;
}
inline double mean_trace() {
    double sum = 0;
    for (int site = 0; site < sites; ++site)
        for (int mu = 0; mu < 4; ++mu) {
            const matrix u = random_link(site, mu);
            sum += (u[0] + u[4] + u[8]).real();
        }
    return sum / (3 * 4 * sites);
}

inline std::string ddalphaamg(bool big = false, double plaquette3 = 0.375) {
    std::string out;
    for (int e : {5, 4, 3, 2}) out += bytes_of(static_cast<std::uint64_t>(e), 4, big);
    return out + real(plaquette3, 8, big) + link_data({3, 2, 1, 0}, 3, 8, big);
}

struct nersc_options {
    int rows = 2, real_bytes = 4;
    bool big = true;
    bool recorded = true;
    const char* trace_format = "%.14g";
};
inline std::string nersc(const nersc_options& o) {
    const std::string data = link_data({0, 1, 2, 3}, o.rows, o.real_bytes, o.big);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < data.size(); i += 4) {
        std::uint32_t word = 0;
        for (std::size_t b = 0; b < 4; ++b)
            word |= std::uint32_t{static_cast<unsigned char>(data[i + b])} << (8 * (o.big ? 3 - b : b));
        sum += word;
    }
    char line[64];
    std::string head = "BEGIN_HEADER\nHDR_VERSION = 1.0\nDATATYPE = 4D_SU3_GAUGE";
    head += o.rows == 3 ? "_3x3\n" : "\n";
    head += "DIMENSION_1 = 2\nDIMENSION_2 = 3\nDIMENSION_3 = 4\nDIMENSION_4 = 5\n";
    std::snprintf(line, sizeof line, "CHECKSUM = %x\nLINK_TRACE = ", o.recorded ? sum : 0);
    head += line;
    std::snprintf(line, sizeof line, o.trace_format, o.recorded ? mean_trace() : 0);
    head += std::string(line) + "\n";
    head +=
        "PLAQUETTE = 0.125\nFLOATING_POINT = IEEE" + std::to_string(8 * o.real_bytes) + (o.big ? "BIG\n" : "LITTLE\n");
    return head + "END_HEADER\n" + data;
}
inline const std::vector<nersc_options> nersc_variants{{2, 4, true}, {2, 4, false}, {2, 8, true}, {2, 8, false},
                                                       {3, 4, true}, {3, 4, false}, {3, 8, true}, {3, 8, false}};

/// `length` overrides the length in the record's header.
inline std::string lime_record(std::string type, const std::string& data, unsigned flags,
                               std::optional<std::uint64_t> length = std::nullopt) {
    type.resize(128);
    return bytes_of(0x456789ab, 4, true) + bytes_of(1, 2, true) + bytes_of(flags, 2, true) +
           bytes_of(length.value_or(data.size()), 8, true) + type + data + std::string((8 - data.size() % 8) % 8, '\0');
}
inline std::string ildg_format(int precision) {
    return "<?xml version=\"1.0\"?>\n<!-- <lx>99</lx> -->\n<ildgFormat "
           "xmlns=\"http://www.lqcd.org/ildg\"><version>1.0</version>"
           "<field> su3gauge </field>\n<precision>" +
           std::to_string(precision) + "</precision><lx>2</lx><ly>3</ly><lz>4</lz><lt>5</lt></ildgFormat>";
}
inline std::string scidac_checksum(const std::string& data, int real_bytes, int reals_per_site = 72) {
    std::uint32_t a = 0, b = 0;
    const auto site = static_cast<std::size_t>(reals_per_site * real_bytes);
    for (std::size_t r = 0; r < sites; ++r) {
        const auto crc = static_cast<std::uint32_t>(
            crc32(0, reinterpret_cast<const Bytef*>(data.data() + r * site), static_cast<uInt>(site)));
        a ^= std::rotl(crc, static_cast<int>(r % 29));
        b ^= std::rotl(crc, static_cast<int>(r % 31));
    }
    char xml[160];
    std::snprintf(xml, sizeof xml,
                  "<scidacChecksum><version>1.0</version><suma>%x</suma><sumb>%x</sumb></scidacChecksum>", a, b);
    return std::string(xml) + '\0';
}
/// `format`: the text of record ildg-format; empty: the right one.
inline std::string ildg(int real_bytes, bool with_checksum = true, std::string format = {}) {
    if (format.empty()) format = ildg_format(8 * real_bytes);
    const std::string data = link_data({0, 1, 2, 3}, 3, real_bytes, true);
    return lime_record(std::string(128, 'q'), "a type that is not terminated", 0xc000) + // strlen would run on
           lime_record("ildg-format", format + '\0', 0x8000) +
           lime_record("ildg-binary-data", data, with_checksum ? 0 : 0x4000) +
           (with_checksum ? lime_record("scidac-checksum", scidac_checksum(data, real_bytes), 0x4000) : "");
}

/// SciDAC's description of links, as Chroma writes it by default (64 bits; the spins are the code's own, not the
/// field's), and as MILC does (32 bits).
inline std::string scidac_record(int real_bytes) {
    const bool single = real_bytes == 4;
    return std::string("<?xml version=\"1.0\" encoding=\"UTF-8\"?><scidacRecord><version>1.1</version><date>Mon Nov 30 "
                       "10:11:12 2009 UTC</date><recordtype>0</recordtype><datatype>") +
           (single ? "USQCD_F3_ColorMatrix</datatype><precision>F" : "QDP_D3_ColorMatrix</datatype><precision>D") +
           "</precision><colors>3</colors>" + (single ? "" : "<spins>4</spins>") + "<typesize>" +
           std::to_string(18 * real_bytes) + "</typesize><datacount>4</datacount></scidacRecord>";
}
/// A file of links as QIO writes it unless it is asked for ILDG.
inline std::string scidac_links(int real_bytes, bool with_checksum = true, std::string record = {}) {
    const std::string data = link_data({0, 1, 2, 3}, 3, real_bytes, true);
    if (record.empty()) record = scidac_record(real_bytes);
    return lime_record("scidac-private-file-xml",
                       "<?xml version=\"1.0\" encoding=\"UTF-8\"?><scidacFile><version>1.1</version><spacetime>4"
                       "</spacetime><dims>2 3 4 5 </dims><volfmt>0</volfmt></scidacFile>" +
                           std::string(5, '\0'),
                       0x8000) +
           lime_record("scidac-file-xml", "<?xml version=\"1.0\"?><HMC><lx>99</lx></HMC>", 0x4000) +
           lime_record("scidac-private-record-xml", record + std::string(5, '\0'), 0x8000) +
           lime_record("scidac-record-xml",
                       "<?xml version=\"1.0\"?><usqcdInfo><version>1.0</version><plaq>1.250000e-01</plaq><linktr>0"
                       "</linktr><info>beta = 6.0</info></usqcdInfo>",
                       0) +
           lime_record("scidac-binary-data", data, with_checksum ? 0 : 0x4000) +
           (with_checksum ? lime_record("scidac-checksum", scidac_checksum(data, real_bytes), 0x4000) : "");
}

inline std::string milc(bool big, bool with_checksum = true, std::uint32_t order = 0) {
    const std::string data = link_data({0, 1, 2, 3}, 3, 4, big);
    std::uint32_t sum29 = 0, sum31 = 0;
    for (std::size_t i = 0; i < data.size() / 4; ++i) {
        std::uint32_t word = 0;
        for (std::size_t b = 0; b < 4; ++b)
            word |= std::uint32_t{static_cast<unsigned char>(data[4 * i + b])} << (8 * (big ? 3 - b : b));
        sum29 ^= std::rotl(word, static_cast<int>(i % 29));
        sum31 ^= std::rotl(word, static_cast<int>(i % 31));
    }
    std::string head = bytes_of(20103, 4, big);
    for (const std::uint64_t e : {2, 3, 4, 5}) head += bytes_of(e, 4, big);
    std::string stamp = "Thu Nov 12 10:11:12 2009";
    stamp.resize(64);
    return head + stamp + bytes_of(order, 4, big) + bytes_of(with_checksum ? sum29 : 0, 4, big) +
           bytes_of(with_checksum ? sum31 : 0, 4, big) + data;
}

/// A file that is removed at the end of the test.
class temporary_file {
  public:
    explicit temporary_file(const std::string& content = {}) {
        std::ofstream(path_, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
    }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    halocline_test::scratch_folder folder_;
    std::string path_ = folder_ / "links";
};

inline const box whole{{0, 0, 0, 0}, extents};

/// Everything a program does with a file except checking the plaquette; throws if it is refused.
inline gauge_field load(const std::string& content) {
    const temporary_file t(content);
    const gauge_file file = open_gauge_file(t.path());
    gauge_field links(site_order::lexicographic(file.extents), gauge_components);
    check_totals(file, read_links(file, {{0, 0, 0, 0}, file.extents}, links));
    return links;
}
inline void expect_links(const gauge_field& links, const box& local, double tolerance) {
    for (std::int64_t s = 0; s < local.volume(); ++s) {
        coordinate x = lexicographic_coordinate(s, local.extents);
        for (int mu = 0; mu < 4; ++mu) x[mu] = (x[mu] + local.origin[mu]) % extents[mu];
        for (int mu = 0; mu < 4; ++mu) {
            const matrix u = random_link(lexicographic_index(x, extents), mu);
            for (int k = 0; k < 9; ++k) {
                ASSERT_NEAR(links.at(s, mu * 18 + 2 * k), u[k].real(), tolerance);
                ASSERT_NEAR(links.at(s, mu * 18 + 2 * k + 1), u[k].imag(), tolerance);
            }
        }
    }
}

struct format_case {
    const char* name;
    std::string content;
    bool checksummed;
    std::size_t data_bytes;
};
inline std::vector<format_case> all_formats() {
    return {{"DDalphaAMG", ddalphaamg(), false, sites * 576},
            {"NERSC", nersc({}), true, sites * 192},
            {"ILDG", ildg(8), true, sites * 576},
            {"SciDAC", scidac_links(8), true, sites * 576},
            {"MILC", milc(false), true, sites * 288}};
}

} // namespace halocline_test
