// SPDX-License-Identifier: Apache-2.0
// Readers and files that are cut short, altered, or never were gauge files.
#include "gauge_formats.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <limits>
#include <string>

using namespace halocline_test;
using halocline::file_error;

namespace {

std::size_t data_start(const format_case& f) {
    const temporary_file t(f.content);
    return static_cast<std::size_t>(open_gauge_file(t.path()).data_offset);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
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

/// Unitary, with the right plaquette: links as held by a code whose last slice carries the fermions' sign.
TEST(GaugeFile, RefusesLinksWithTheSignOfABoundary) {
    std::string content = ddalphaamg();
    for (std::size_t k = 0; k < 18; ++k) {
        const std::size_t at = 24 + 576 * 7 + 8 * k + 7; // the byte with the sign
        content[at] = static_cast<char>(content[at] ^ 0x80);
    }
    EXPECT_THROW(load(content), file_error);
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

std::string refusal_of(const std::string& content) {
    try {
        load(content);
    } catch (const file_error& e) {
        return e.what();
    }
    return "";
}

TEST(GaugeFile, ReportsNumbersAsTheyAre) {
    EXPECT_NE(refusal_of(lime_record("ildg-format", ildg_format(64), 0x8000, ~0ULL))
                  .find(" claims 18446744073709551615 bytes of data, but "),
              std::string::npos);
    const auto refusal_of_lx = [](const std::string& lx) { // the record's length has to follow
        return refusal_of(lime_record("ildg-format", replaced(ildg_format(64), "<lx>2<", "<lx>" + lx + "<"), 0x8000) +
                          lime_record("ildg-binary-data", "", 0));
    };
    EXPECT_NE(refusal_of_lx("4294967300").find("gives <lx> as '4294967300': a number that is too large"),
              std::string::npos);
    EXPECT_NE(refusal_of_lx("two").find("gives <lx> as 'two': not a number"), std::string::npos);
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
    EXPECT_THROW(load(bytes_of(20103, 4, false) + std::string(200, '\0')), file_error); // MILC without extents
    EXPECT_THROW(load(milc(true, true, 1)), file_error); // sites in the order of the nodes that wrote them
    EXPECT_THROW(load(std::string("BEGIN_HEADER\n") + std::string(200000, 'x')), file_error);
    std::string plaquette = ddalphaamg();
    EXPECT_THROW(load(plaquette.replace(16, 8, real(std::nan(""), 8, false))), file_error);
    EXPECT_THROW(load(plaquette.replace(16, 8, real(3.5, 8, false))), file_error);
}

/// Terminals obey control characters.
/// Looked through again for each comment, or for each '<', a record of the largest size takes minutes.
TEST(GaugeFile, LooksThroughTheXmlOfARecordOnce) {
    constexpr int bytes = 1 << 20;
    std::string comments;
    while (comments.size() + 7 <= bytes) comments += "<!---->";
    const std::string data = lime_record("ildg-binary-data", std::string(8, 'x'), 0x4000);
    for (const std::string& xml : {comments, std::string(bytes - 1, '<') + '>'}) {
        const auto start = std::chrono::steady_clock::now();

        EXPECT_THROW(load(lime_record("ildg-format", xml, 0x8000) + data), file_error);

        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2)) << xml.substr(0, 8);
    }
}

TEST(GaugeFile, FindsElementsAroundCommentsAndStrayBrackets) {
    const std::string data = lime_record("ildg-binary-data", link_data({0, 1, 2, 3}, 3, 8, true), 0x4000);
    for (const std::string before :
         {"< ", "<", "<!---->", "<!-- <lx>3</lx> -->", "<!-- <lx> --><!--<lx>-->", "<lx/>"}) {
        const std::string xml =
            replaced(replaced(ildg_format(64), "<lx>2", before + "<lx>2"), "<!-- <lx>99</lx> -->", "");

        EXPECT_EQ(load(lime_record("ildg-format", xml, 0x8000) + data).order().extents(), extents) << before;
    }
}

TEST(GaugeFile, SaysOfAWrongHeadOnlyWhatCanBePrinted) {
    for (const char* value : {"DIMENSION_1 = ", "DATATYPE = ", "FLOATING_POINT = ", "CHECKSUM = ", "LINK_TRACE = "}) {
        const std::string damage = value + std::string("\x1b[2J\a") + std::string(2000, 'x');
        try {
            load(replaced(nersc({}), value, damage));
            ADD_FAILURE() << value;
        } catch (const file_error& e) {
            const std::string text = e.what();
            EXPECT_EQ(std::ranges::count_if(text, [](unsigned char c) { return std::iscntrl(c) != 0; }), 0) << text;
            EXPECT_LT(text.size(), 300u) << value;
        }
    }
}

TEST(GaugeFile, RefusesWhatIsNoRegularFile) {
    EXPECT_THROW(open_gauge_file("/nonexistent/file"), file_error);
    EXPECT_THROW(open_gauge_file("/"), file_error);
    EXPECT_THROW(open_gauge_file("/dev/zero"), file_error);
}

} // namespace
