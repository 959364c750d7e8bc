// SPDX-License-Identifier: Apache-2.0
// Readers against files made here byte by byte from the text of each format, never by our writer.
#include <halocline/base/error.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/gauge_file.hpp>
#include <halocline/lattice/random.hpp>

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

using namespace halocline::lattice;
using halocline::file_error;
using halocline::input_error;

namespace {

const coordinate extents{2, 3, 4, 5};
constexpr int sites = 2 * 3 * 4 * 5;
using matrix = std::array<std::complex<double>, 9>;

/// A random SU(3) matrix, a pure function of site and direction.
matrix random_link(std::int64_t site, int mu) {
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
std::string bytes_of(std::uint64_t value, int bytes, bool big) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * (big ? bytes - 1 - i : i)));
    return out;
}
std::string real(double v, int bytes, bool big) {
    return bytes == 8 ? bytes_of(std::bit_cast<std::uint64_t>(v), 8, big)
                      : bytes_of(std::bit_cast<std::uint32_t>(static_cast<float>(v)), 4, big);
}
std::string link_data(const std::vector<int>& order_of_mu, int rows, int real_bytes, bool big) {
    std::string out;
    for (int site = 0; site < sites; ++site)
        for (int mu : order_of_mu) {
            const matrix u = random_link(site, mu);
            for (int k = 0; k < 3 * rows; ++k)
                out += real(u[k].real(), real_bytes, big) + real(u[k].imag(), real_bytes, big);
        }
    return out;
}
double mean_trace() {
    double sum = 0;
    for (int site = 0; site < sites; ++site)
        for (int mu = 0; mu < 4; ++mu) {
            const matrix u = random_link(site, mu);
            sum += (u[0] + u[4] + u[8]).real();
        }
    return sum / (3 * 4 * sites);
}

std::string ddalphaamg() {
    std::string out;
    for (int e : {5, 4, 3, 2}) out += bytes_of(static_cast<std::uint64_t>(e), 4, false);
    return out + real(0.375, 8, false) + link_data({3, 2, 1, 0}, 3, 8, false);
}

struct nersc_options {
    int rows = 2, real_bytes = 4;
    bool big = true;
    bool recorded = true;
};
std::string nersc(const nersc_options& o) {
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
    std::snprintf(line, sizeof line, "CHECKSUM = %x\nLINK_TRACE = %.14g\n", o.recorded ? sum : 0,
                  o.recorded ? mean_trace() : 0);
    head += line;
    head +=
        "PLAQUETTE = 0.125\nFLOATING_POINT = IEEE" + std::to_string(8 * o.real_bytes) + (o.big ? "BIG\n" : "LITTLE\n");
    return head + "END_HEADER\n" + data;
}
const std::vector<nersc_options> nersc_variants{{2, 4, true}, {2, 4, false}, {2, 8, true}, {2, 8, false},
                                                {3, 4, true}, {3, 4, false}, {3, 8, true}, {3, 8, false}};

/// `length` overrides what the head of the record says.
std::string lime_record(std::string type, const std::string& data, unsigned flags,
                        std::optional<std::uint64_t> length = std::nullopt) {
    type.resize(128);
    return bytes_of(0x456789ab, 4, true) + bytes_of(1, 2, true) + bytes_of(flags, 2, true) +
           bytes_of(length.value_or(data.size()), 8, true) + type + data + std::string((8 - data.size() % 8) % 8, '\0');
}
std::string ildg_format(int precision) {
    return "<?xml version=\"1.0\"?>\n<!-- <lx>99</lx> -->\n<ildgFormat "
           "xmlns=\"http://www.lqcd.org/ildg\"><version>1.0</version>"
           "<field> su3gauge </field>\n<precision>" +
           std::to_string(precision) + "</precision><lx>2</lx><ly>3</ly><lz>4</lz><lt>5</lt></ildgFormat>";
}
std::string scidac_checksum(const std::string& data, int real_bytes) {
    std::uint32_t a = 0, b = 0;
    const std::size_t site = 72 * static_cast<std::size_t>(real_bytes);
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
std::string ildg(int real_bytes, bool with_checksum = true) {
    const std::string data = link_data({0, 1, 2, 3}, 3, real_bytes, true);
    return lime_record(std::string(128, 'q'), "a type that is not terminated", 0xc000) + // strlen would run on
           lime_record("ildg-format", ildg_format(8 * real_bytes) + '\0', 0x8000) +
           lime_record("ildg-binary-data", data, with_checksum ? 0 : 0x4000) +
           (with_checksum ? lime_record("scidac-checksum", scidac_checksum(data, real_bytes), 0x4000) : "");
}

/// A file that is gone at the end of the test.
class temporary_file {
  public:
    explicit temporary_file(const std::string& content = {}) {
        static int count = 0;
        const std::string name = "halocline_gauge_" + std::to_string(getpid()) + "_" + std::to_string(count++);
        path_ = (std::filesystem::temp_directory_path() / name).string();
        std::ofstream(path_, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
    }
    ~temporary_file() { std::filesystem::remove(path_); }
    temporary_file(const temporary_file&) = delete;
    temporary_file& operator=(const temporary_file&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

const box whole{{0, 0, 0, 0}, extents};

/// Everything a program does with a file except the plaquette; throws what it refuses.
gauge_field load(const std::string& content) {
    const temporary_file t(content);
    const gauge_file file = open_gauge_file(t.path());
    gauge_field links(site_order::lexicographic(file.extents), gauge_components);
    check_totals(file, read_links(file, {{0, 0, 0, 0}, file.extents}, links));
    return links;
}
std::vector<std::string> warnings_of(const std::string& content) {
    const temporary_file t(content);
    return open_gauge_file(t.path()).warnings;
}

void expect_links(const gauge_field& links, const box& local, double tolerance) {
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
std::vector<format_case> all_formats() {
    return {{"DDalphaAMG", ddalphaamg(), false, sites * 576},
            {"NERSC", nersc({}), true, sites * 192},
            {"ILDG", ildg(8), true, sites * 576}};
}
std::size_t data_start(const format_case& f) {
    const temporary_file t(f.content);
    return static_cast<std::size_t>(open_gauge_file(t.path()).data_offset);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
}

} // namespace

TEST(GaugeFile, ReadsDDalphaAMG) {
    const temporary_file t(ddalphaamg());
    const gauge_file file = open_gauge_file(t.path());

    EXPECT_EQ(file.format, gauge_format::ddalphaamg);
    EXPECT_EQ(file.extents, extents);
    EXPECT_DOUBLE_EQ(file.plaquette.value(), 0.125);
    EXPECT_TRUE(file.warnings.empty());
    expect_links(load(ddalphaamg()), whole, 0);
}

TEST(GaugeFile, ReadsEveryKindOfNersc) {
    for (const nersc_options& o : nersc_variants) {
        SCOPED_TRACE(std::to_string(o.rows) + " rows, " + std::to_string(o.real_bytes) + " bytes, big " +
                     std::to_string(o.big));
        const temporary_file t(nersc(o));
        const gauge_file file = open_gauge_file(t.path());

        EXPECT_EQ(file.format, gauge_format::nersc);
        EXPECT_EQ(file.extents, extents);
        EXPECT_TRUE(file.nersc_checksum && file.link_trace && file.plaquette);
        EXPECT_TRUE(file.warnings.empty());
        expect_links(load(nersc(o)), whole, o.real_bytes == 4 ? 1e-6 : 1e-14);
    }
}

TEST(GaugeFile, ReadsIldgOfBothPrecisions) {
    for (int bytes : {4, 8}) {
        const temporary_file t(ildg(bytes));
        const gauge_file file = open_gauge_file(t.path());

        EXPECT_EQ(file.format, gauge_format::ildg);
        EXPECT_EQ(file.extents, extents);
        EXPECT_TRUE(file.scidac_checksum);
        EXPECT_TRUE(file.warnings.empty());
        expect_links(load(ildg(bytes)), whole, bytes == 4 ? 1e-7 : 0);
    }
}

TEST(GaugeFile, WarnsOfWhatIsNotRecorded) {
    nersc_options zeros;
    zeros.recorded = false;
    EXPECT_EQ(warnings_of(nersc(zeros)).size(), 2U); // CHECKSUM = 0, LINK_TRACE = 0
    EXPECT_NO_THROW(load(nersc(zeros)));
    EXPECT_EQ(warnings_of(ildg(8, false)).size(), 1U);
    EXPECT_NO_THROW(load(ildg(8, false)));
}

TEST(GaugeFile, WarnsOfAFewTrailingBytesAndRefusesMany) {
    for (const format_case& f : all_formats()) {
        SCOPED_TRACE(f.name);
        EXPECT_EQ(warnings_of(f.content + std::string(4096, '\0')).size(), 1U);
        EXPECT_NO_THROW(load(f.content + std::string(1, '\n')));
        EXPECT_THROW(load(f.content + std::string(4097, '\0')), file_error);
    }
}

TEST(GaugeFile, RefusesTruncationAnywhere) {
    for (const format_case& f : all_formats()) {
        SCOPED_TRACE(f.name);
        const std::size_t start = data_start(f), size = f.content.size();
        for (std::size_t n = 0; n <= start; ++n) ASSERT_THROW(load(f.content.substr(0, n)), file_error) << n;
        for (std::size_t i = 0; i < 200; ++i) {
            const std::size_t n = start + (f.data_bytes - 1) * i / 199;
            ASSERT_THROW(load(f.content.substr(0, n)), file_error) << n;
        }
        ASSERT_THROW(load(f.content.substr(0, size - 1)), file_error);
    }
}

TEST(GaugeFile, RefusesTruncationInsideTheChecksumRecord) {
    const std::string content = ildg(8);
    const std::size_t end_of_data = ildg(8, false).size();
    for (std::size_t n = end_of_data + 1; n < content.size(); ++n)
        ASSERT_THROW(load(content.substr(0, n)), file_error) << n;
}

TEST(GaugeFile, ChecksumsFindEveryFlippedBit) {
    site_random random(1, 2, 3);
    for (const format_case& f : all_formats()) {
        if (!f.checksummed) continue;
        SCOPED_TRACE(f.name);
        const std::size_t start = data_start(f);
        for (int i = 0; i < 200; ++i) {
            std::string broken = f.content;
            const std::size_t at = start + random.bits() % f.data_bytes;
            broken[at] = static_cast<char>(broken[at] ^ (1 << random.bits() % 8));
            ASSERT_THROW(load(broken), file_error) << at;
        }
    }
}

TEST(GaugeFile, ScidacChecksumFindsSwappedSites) {
    std::string content = ildg(8);
    const std::size_t start = data_start({"", content, true, sites * 576});
    std::swap_ranges(content.begin() + static_cast<std::ptrdiff_t>(start),
                     content.begin() + static_cast<std::ptrdiff_t>(start) + 576,
                     content.begin() + static_cast<std::ptrdiff_t>(start) + 576);
    EXPECT_THROW(load(content), file_error);
}

TEST(GaugeFile, RefusesNonUnitaryAndNonFiniteLinks) {
    for (double bad : {3.0, std::nan(""), std::numeric_limits<double>::infinity(), 1e200}) {
        std::string content = ddalphaamg();
        content.replace(24 + 576 * 7, 8, real(bad, 8, false));
        EXPECT_THROW(load(content), file_error) << bad;
    }
}

TEST(GaugeFile, RefusesImpossibleSizesBeforeAllocating) {
    for (std::uint64_t huge : {0ULL, 0xffffffffULL, 0x7fffffffULL, 0x00ffffffULL, 1000000ULL}) {
        std::string content = ddalphaamg();
        for (std::size_t i = 0; i < 4; ++i) content.replace(4 * i, 4, bytes_of(huge, 4, false));
        EXPECT_THROW(load(content), file_error) << huge;
    }
    for (const char* dimension : {"0", "-2", "99999999", "4294967298", "18446744073709551618", "2.0", "", "two"})
        EXPECT_THROW(load(replaced(nersc({}), "DIMENSION_1 = 2", std::string("DIMENSION_1 = ") + dimension)),
                     file_error);
    for (const char* lx : {"0", "-2", "4294967298", "", "3"})
        EXPECT_THROW(load(replaced(ildg(8), "<lx>2<", "<lx>" + std::string(lx) + "<")), file_error);
}

TEST(GaugeFile, RefusesLimeLengthsThatWrap) {
    for (std::uint64_t length : {~0ULL, ~0ULL - 7, ~0ULL - 143, 1ULL << 63, 100000ULL}) {
        EXPECT_THROW(load(lime_record("ildg-format", ildg_format(64), 0x8000, length)), file_error) << length;
        EXPECT_THROW(
            load(lime_record("ildg-format", ildg_format(64), 0x8000) + lime_record("ildg-binary-data", "", 0, length)),
            file_error)
            << length;
    }
}

TEST(GaugeFile, RefusesWrongHeads) {
    EXPECT_THROW(load(replaced(nersc({}), "4D_SU3_GAUGE", "4D_SU4_GAUGE")), file_error);
    EXPECT_THROW(load(replaced(nersc({}), "IEEE32BIG", "IEEE16BIG")), file_error);
    EXPECT_THROW(load(replaced(nersc({}), "IEEE32BIG", "IEEE32LITTLE")), file_error);
    EXPECT_THROW(load(replaced(nersc({}), "DIMENSION_4 = 5", "DIMENSION_3 = 5")), file_error);
    EXPECT_THROW(load(replaced(nersc({}), "LINK_TRACE = ", "LINK_TRACE = 9")), file_error);
    EXPECT_THROW(load(replaced(nersc({}), "CHECKSUM = ", "CHECKSUM = q")), file_error);
    EXPECT_THROW(load(replaced(ildg(8), "su3gauge", "su2gauge")), file_error);
    EXPECT_THROW(load(replaced(ildg(8), "<precision>64", "<precision>32")), file_error);
    EXPECT_THROW(load(replaced(ildg(8), "<ly>3</ly>", "<ly>3</ly><ly>3</ly>")), file_error);
    EXPECT_THROW(load(replaced(ildg(8), "<suma>", "<suma>z")), file_error);
    EXPECT_THROW(load(bytes_of(20103, 4, false) + std::string(200, '\0')), file_error); // MILC
    EXPECT_THROW(load(std::string("BEGIN_HEADER\n") + std::string(200000, 'x')), file_error);
    std::string plaquette = ddalphaamg();
    EXPECT_THROW(load(plaquette.replace(16, 8, real(std::nan(""), 8, false))), file_error);
    EXPECT_THROW(load(plaquette.replace(16, 8, real(3.5, 8, false))), file_error);
}

TEST(GaugeFile, RefusesWhatIsNoRegularFile) {
    EXPECT_THROW(open_gauge_file("/nonexistent/file"), file_error);
    EXPECT_THROW(open_gauge_file("/"), file_error);
    EXPECT_THROW(open_gauge_file("/dev/zero"), file_error);
}

TEST(GaugeFile, PartsAddUpToTheWholeForEveryCut) {
    for (const format_case& f : all_formats()) {
        SCOPED_TRACE(f.name);
        const temporary_file t(f.content);
        const gauge_file file = open_gauge_file(t.path());
        gauge_field all(site_order::lexicographic(extents), gauge_components);
        const gauge_totals expected = read_links(file, whole, all);
        for (const coordinate& grid : {coordinate{1, 1, 1, 5}, {2, 1, 1, 1}, {1, 2, 3, 1}, {2, 3, 4, 5}}) {
            const auto cut = decomposition::even(extents, grid);
            gauge_totals sum;
            for (int rank = 0; rank < cut.ranks(); ++rank) {
                const box local = cut.local_box(rank);
                gauge_field part(site_order::lexicographic(local.extents), gauge_components);
                sum = combine(sum, read_links(file, local, part));
                expect_links(part, local, 1e-6);
            }
            EXPECT_EQ(sum.nersc_sum, expected.nersc_sum);
            EXPECT_EQ(sum.scidac_xor, expected.scidac_xor);
            EXPECT_EQ(sum.links, expected.links);
            EXPECT_NEAR(sum.link_trace_sum, expected.link_trace_sum, 1e-10);
            EXPECT_EQ(sum.max_unitarity_error, expected.max_unitarity_error);
            EXPECT_NO_THROW(check_totals(file, sum));
        }
    }
}

TEST(GaugeFile, RepeatsPeriodicallyAndCountsTheFileOnce) {
    const temporary_file t(ildg(8));
    const gauge_file file = open_gauge_file(t.path());
    const auto cut = decomposition::even({4, 6, 4, 10}, {1, 4, 1, 3});
    gauge_totals sum;
    for (int rank = 0; rank < cut.ranks(); ++rank) {
        const box local = cut.local_box(rank);
        gauge_field part(site_order::lexicographic(local.extents), gauge_components);
        sum = combine(sum, read_links(file, local, part));
        expect_links(part, local, 0);
    }
    EXPECT_NO_THROW(check_totals(file, sum));
}

TEST(GaugeFile, TotalsOfOneRankAloneAreRefused) {
    const temporary_file t(ildg(8));
    const gauge_file file = open_gauge_file(t.path());
    const box part{{0, 0, 0, 0}, {2, 3, 4, 1}};
    gauge_field links(site_order::lexicographic(part.extents), gauge_components);
    EXPECT_THROW(check_totals(file, read_links(file, part, links)), input_error);
}

TEST(GaugeWriter, WritesInPartsWhatReadersRead) {
    for (gauge_format format : {gauge_format::ildg, gauge_format::ddalphaamg}) {
        const temporary_file t;
        gauge_writer writer(t.path(), format, extents);
        const auto cut = decomposition::even(extents, {2, 1, 2, 3});
        const gauge_field all = load(ildg(8));

        writer.create();
        gauge_totals sum;
        for (int rank = 0; rank < cut.ranks(); ++rank) {
            const box local = cut.local_box(rank);
            gauge_field part(site_order::lexicographic(local.extents), gauge_components);
            for (std::int64_t s = 0; s < local.volume(); ++s) {
                coordinate x = lexicographic_coordinate(s, local.extents);
                for (int mu = 0; mu < 4; ++mu) x[mu] += local.origin[mu];
                for (int c = 0; c < gauge_components; ++c) part.at(s, c) = all.at(lexicographic_index(x, extents), c);
            }
            sum = combine(sum, writer.write(local, part));
        }
        writer.finish(sum, 0.125);

        const gauge_file file = open_gauge_file(t.path());
        EXPECT_EQ(file.format, format);
        EXPECT_TRUE(file.warnings.empty());
        if (format == gauge_format::ildg) {
            const temporary_file same(ildg(8));
            EXPECT_EQ(file.scidac_checksum, open_gauge_file(same.path()).scidac_checksum);
        } else {
            EXPECT_DOUBLE_EQ(file.plaquette.value(), 0.125);
        }
        gauge_field back(site_order::lexicographic(extents), gauge_components);
        check_totals(file, read_links(file, whole, back));
        expect_links(back, whole, 0);
        EXPECT_FALSE(std::filesystem::exists(t.path() + ".partial"));
    }
}

TEST(GaugeWriter, LeavesNothingBehindWhenItDoesNotFinish) {
    const temporary_file t("old content");
    {
        gauge_writer writer(t.path(), gauge_format::ildg, extents);
        writer.create();
        EXPECT_TRUE(std::filesystem::exists(t.path() + ".partial"));
        EXPECT_THROW(writer.finish({}, 0), input_error); // covers no links
    }
    EXPECT_FALSE(std::filesystem::exists(t.path() + ".partial"));
    EXPECT_EQ(std::filesystem::file_size(t.path()), 11U);
}

TEST(GaugeWriter, RefusesWhatItCannotWrite) {
    EXPECT_THROW(gauge_writer("x", gauge_format::nersc, extents), input_error);
    EXPECT_THROW(gauge_writer("x", gauge_format::ildg, {0, 1, 1, 1}), input_error);
    gauge_writer nowhere("/nonexistent/file", gauge_format::ildg, extents);
    EXPECT_THROW(nowhere.create(), file_error);
}
