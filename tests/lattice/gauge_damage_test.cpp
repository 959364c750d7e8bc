// SPDX-License-Identifier: Apache-2.0
// Readers and files that are cut short, altered, or never were gauge files.
#include "gauge_formats.hpp"

#include <halocline/base/error.hpp>
#include <halocline_test/refusal.hpp>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <functional>
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

/// Expects a file of this content to be refused, for this reason.
void expect_refusal(const std::string& content, const std::string& reason) {
    const std::string said = refusal<file_error>([&] { load(content); });
    EXPECT_NE(said.find(reason), std::string::npos) << said << "\ninstead of: " << reason;
}
/// ILDG, with a change in the text of its format record, whose length follows.
std::string ildg_with(const std::string& from, const std::string& to) {
    return ildg(8, true, replaced(ildg_format(64), from, to));
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

TEST(GaugeFile, RefusesAFloodOfEmptyRecords) {
    const std::string record = ildg(8).substr(0, 16) + std::string(128, '\0');
    std::string content;
    for (int i = 0; i <= 65536; ++i) content += record;
    for (std::size_t at = 8; at < content.size(); at += record.size()) content.replace(at, 8, 8, '\0'); // no data
    expect_refusal(content, "LIME record at byte 9437184 is one of more than 65536 records");
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
    expect_refusal(content, "SciDAC checksum of the data is ");
}

TEST(GaugeFile, RefusesNonUnitaryAndNonFiniteLinks) {
    for (double bad : {3.0, std::nan(""), std::numeric_limits<double>::infinity(), 1e200}) {
        std::string content = ddalphaamg();
        content.replace(24 + 576 * 7, 8, real(bad, 8, false));
        expect_refusal(content, std::isfinite(bad) ? "a link misses SU(3) by " : "holds a NaN or an infinity");
    }
}

/// Of a chain in single precision, say, written with 64 bits.
TEST(GaugeFile, TellsLinksThatCountAs32BitsFromDamagedOnes) {
    const auto read = [](const std::string& content, const std::function<void(gauge_file&)>& change) {
        const temporary_file t(content);
        gauge_file file = open_gauge_file(t.path());
        change(file);
        gauge_field links(site_order::lexicographic(file.extents), gauge_components);
        check_totals(file, read_links(file, {{0, 0, 0, 0}, file.extents}, links));
    };
    const auto off_by = [](double error) {
        const std::size_t at = 24 + 576 * 7 + 8 * 18 * 3; // of a link in x
        std::string content = ddalphaamg();
        return content.replace(at, 8, real(random_link(7, 0)[0].real() + error, 8, false));
    };
    const std::function<void(gauge_file&)> as_it_is = [](gauge_file&) {},
                                           as_32_bits = [](gauge_file&file) { file.rounded_to_32_bits = true; };

    EXPECT_THROW(read(off_by(3e-6), as_it_is), rounded_links_error);
    EXPECT_NO_THROW(read(off_by(3e-6), as_32_bits));
    for (const auto& change : {as_it_is, as_32_bits}) try {
            read(off_by(1e-3), change);
            ADD_FAILURE();
        } catch (const rounded_links_error&) {
            ADD_FAILURE() << "is beyond what 32 bits do";
        } catch (const file_error& e) {
            EXPECT_NE(std::string(e.what()).find("it is corrupted, its head is wrong, or the sign"), std::string::npos);
        }
}

/// Unitary, with the right plaquette: links as held by a code whose last slice carries the fermions' sign.
TEST(GaugeFile, RefusesLinksWithTheSignOfABoundary) {
    std::string content = ddalphaamg();
    for (std::size_t k = 0; k < 18; ++k) {
        const std::size_t at = 24 + 576 * 7 + 8 * k + 7; // the byte with the sign
        content[at] = static_cast<char>(content[at] ^ 0x80);
    }
    expect_refusal(content, "the sign of a boundary is in the links");
}

TEST(GaugeFile, RefusesImpossibleSizesBeforeAllocating) {
    for (std::uint64_t huge : {0ULL, 0xffffffffULL, 0x7fffffffULL, 0x00ffffffULL, 1000000ULL}) {
        std::string content = ddalphaamg();
        for (std::size_t i = 0; i < 4; ++i) content.replace(4 * i, 4, bytes_of(huge, 4, false));
        const bool possible_extent = huge == 0x00ffffff || huge == 1000000;
        expect_refusal(content, possible_extent ? "has 69144 bytes; DDalphaAMG with "
                                                : "extents must be between 1 and 16777215");
    }
    for (const char* dimension : {"0", "-2", "99999999"})
        expect_refusal(replaced(nersc({}), "DIMENSION_1 = 2", std::string("DIMENSION_1 = ") + dimension),
                       std::string("gives the lattice ") + dimension + ".3.4.5: extents must be between 1 and");
    for (const std::string dimension : {"4294967298", "18446744073709551618", "2.0", "", "two"})
        expect_refusal(replaced(nersc({}), "DIMENSION_1 = 2", "DIMENSION_1 = " + dimension),
                       "DIMENSION_1 is '" + dimension + "': not an extent");
    for (const std::string lx : {"0", "-2"})
        expect_refusal(ildg_with("<lx>2<", "<lx>" + lx + "<"),
                       "gives the lattice " + lx + ".3.4.5: extents must be between 1 and");
    expect_refusal(ildg_with("<lx>2<", "<lx>4294967298<"), "<lx> as '4294967298': a number that is too large");
    expect_refusal(ildg_with("<lx>2<", "<lx>two<"), "<lx> as 'two': not a number");
    expect_refusal(ildg_with("<lx>2<", "<lx><"), "<lx> as '': not a number");
    expect_refusal(ildg_with("<lx>2<", "<lx>3<"), "has 69120 bytes; 3.3.4.5 sites of 64 bit need 103680");
}

TEST(GaugeFile, RefusesLimeLengthsThatWrap) {
    for (std::uint64_t length : {~0ULL, ~0ULL - 7, ~0ULL - 143, 1ULL << 63, 100000ULL}) {
        const std::string claim = " claims " + std::to_string(length) + " bytes of data, but ";
        expect_refusal(lime_record("ildg-format", ildg_format(64), 0x8000, length), claim);
        expect_refusal(lime_record("ildg-format", ildg_format(64), 0x8000) +
                           lime_record("ildg-binary-data", "", 0, length),
                       claim + "0 follow");
    }
}

TEST(GaugeFile, RefusesWrongHeads) {
    expect_refusal(replaced(nersc({}), "4D_SU3_GAUGE", "4D_SU4_GAUGE"), "DATATYPE is '4D_SU4_GAUGE'");
    expect_refusal(replaced(nersc({}), "IEEE32BIG", "IEEE16BIG"), "FLOATING_POINT is 'IEEE16BIG'");
    expect_refusal(replaced(nersc({}), "IEEE32BIG", "IEEE32LITTLE"), "holds a NaN or an infinity");
    expect_refusal(replaced(nersc({}), "DIMENSION_4 = 5", "DIMENSION_3 = 5"), "gives DIMENSION_3 twice");
    expect_refusal(replaced(nersc({}), "LINK_TRACE = ", "LINK_TRACE = 9"), "LINK_TRACE of the data is ");
    expect_refusal(replaced(nersc({}), "CHECKSUM = ", "CHECKSUM = q"), "which is not a number");
    expect_refusal(replaced(nersc({}), "PLAQUETTE = 0.125", "PLAQUETTE = 1e999"), "no number that a double holds");
    expect_refusal(ildg_with("su3gauge", "su2gauge"), "<field> as 'su2gauge'");
    expect_refusal(ildg_with("<precision>64", "<precision>32"), "2.3.4.5 sites of 32 bit need 34560");
    expect_refusal(ildg_with("<ly>3</ly>", "<ly>3</ly><ly>3</ly>"), "gives <ly> twice");
    expect_refusal(replaced(ildg(8), "<suma>", "<suma>z"), "<suma> as 'z6b527dbe': not a number");
    for (const std::string nine : {"123456789", "a23456789", "0xA23456789"}) {
        const std::string sums = "<scidacChecksum><suma>" + nine + "</suma><sumb>0</sumb></scidacChecksum>";
        expect_refusal(ildg(8, false) + lime_record("scidac-checksum", sums, 0x4000),
                       "<suma> as '" + nine + "': a number that is too large");
        expect_refusal(replaced(nersc({}), "CHECKSUM = ", "CHECKSUM = " + nine),
                       ", which is a number that is too large");
    }
    expect_refusal(bytes_of(20103, 4, false) + std::string(200, '\0'), "MILC head gives the lattice 0.0.0.0");
    expect_refusal(milc(true, true, 1), "MILC head says order 1"); // sites in the order of the nodes that wrote them
    expect_refusal(std::string("BEGIN_HEADER\n") + std::string(200000, 'x'), "has no END_HEADER line");
    std::string plaquette = ddalphaamg();
    expect_refusal(plaquette.replace(16, 8, real(std::nan(""), 8, false)), "3 * plaquette = nan");
    expect_refusal(plaquette.replace(16, 8, real(3.5, 8, false)), "3 * plaquette = 3.5: it must be between");
    expect_refusal(plaquette.replace(16, 8, real(3.00000001, 8, false)), "3 * plaquette = 3.00000000999999");
}

/// ILDG as QIO writes it, with the same things said twice.
std::string ildg_of_qio(int real_bytes, const std::string& dims, const std::string& precision) {
    return lime_record("scidac-private-file-xml",
                       "<scidacFile><version>1.1</version><spacetime>4</spacetime><dims>" + dims +
                           "</dims><volfmt>0</volfmt></scidacFile>",
                       0x8000) +
           lime_record("scidac-private-record-xml",
                       "<scidacRecord><datatype>QDP_D3_ColorMatrix</datatype><precision>" + precision +
                           "</precision></scidacRecord>",
                       0x8000) +
           ildg(real_bytes);
}

TEST(GaugeFile, RefusesIldgThatContradictsItself) {
    EXPECT_NO_THROW(load(ildg_of_qio(8, "2 3 4 5 ", "D")));
    EXPECT_NO_THROW(load(ildg_of_qio(4, "2 3 4 5", "F")));

    expect_refusal(ildg_of_qio(8, "3 2 4 5 ", "D"), "scidac-private-file-xml gives the lattice 3.2.4.5, ildg-format "
                                                    "2.3.4.5: the file contradicts itself");
    expect_refusal(ildg_of_qio(8, "2 3 4 ", "D"), "scidac-private-file-xml gives <dims> as '2 3 4': not four extents");
    expect_refusal(ildg_of_qio(8, "2 3 4 5 ", "F"), "scidac-private-record-xml gives <precision> as F, 32 bit, "
                                                    "ildg-format as 64: the file contradicts itself");
    expect_refusal(ildg_of_qio(4, "2 3 4 5 ", "D"), "gives <precision> as D, 64 bit, ildg-format as 32: ");
}

TEST(GaugeFile, SaysWhichRecordsLinksInScidacsFormatLack) {
    const std::string data = lime_record("scidac-binary-data", link_data({0, 1, 2, 3}, 3, 8, true), 0x4000);

    expect_refusal(lime_record("scidac-private-record-xml", scidac_record(8), 0x8000) + data,
                   "no record ildg-format, nor all of SciDAC's: it is truncated, or not a gauge configuration");
    expect_refusal(data, "no record ildg-format, nor all of SciDAC's: it is truncated, or not a gauge configuration");
    expect_refusal(lime_record("ildg-format", ildg_format(64), 0x8000) + data, "no record ildg-binary-data: it is");
}

TEST(GaugeFile, RefusesOtherFieldsInScidacsFormat) {
    const auto refused = [](const std::string& from, const std::string& to, const std::string& reason) {
        expect_refusal(scidac_links(8, true, replaced(scidac_record(8), from, to)), reason);
    };
    refused("<typesize>144</typesize><datacount>4", "<typesize>192</typesize><datacount>1",
            "gives datatype 'QDP_D3_ColorMatrix', on each site 1 of 192 bytes; links of precision D are 4 of 144");
    refused("<datacount>4", "<datacount>1", "on each site 1 of 144 bytes");
    refused("<precision>D", "<precision>F", "on each site 4 of 144 bytes; links of precision F are 4 of 72");
    refused("<precision>D", "<precision>Q", "F (32 bit) or D (64 bit) can be read");
    refused("<colors>3", "<colors>2", "<colors> as 2: matrices of 3x3 can be read");
    refused("<recordtype>0", "<recordtype>2", "<recordtype> as 2: 0, a field on the whole lattice, can be read");
    expect_refusal(replaced(scidac_links(8), "<volfmt>0", "<volfmt>1"), "<volfmt> as 1: 0, all sites in one file");
    expect_refusal(replaced(scidac_links(8), "<dims>2 3", "<dims>3 3"),
                   "scidac-binary-data has 69120 bytes; 3.3.4.5 sites of 64 bit need 103680");
    expect_refusal(scidac_links(8) + scidac_links(8), "has 2 records scidac-private-file-xml");
}

/// Whole sites: all links are in SU(3) still, but from there on at the wrong places.
TEST(GaugeFile, RefusesSitesThatWereInsertedBeforeTheChecksum) {
    for (std::string content : {ildg(8), scidac_links(8)}) {
        const std::size_t middle = data_start({"", content, true, sites * 576}) + sites / 2 * 576;
        content.insert(middle, content, middle, 2 * 576);

        expect_refusal(content, "bytes that are no LIME record follow the last one, and no scidac-checksum is found");
    }
}

/// Those of the two are the same, and nobody else knows which of them it was.
TEST(GaugeFile, NamesBothFormatsThatATruncatedFileMayHave) {
    expect_refusal(ddalphaamg().substr(0, 1000),
                   "and neither DDalphaAMG nor openQCD, whose head and size are the same: has 1000 bytes; DDalphaAMG "
                   "with 2.3.4.5 sites needs 69144: it is truncated, or its head is wrong");
}

/// Looked through again for each comment, or for each '<', a record of the largest size takes minutes.
TEST(GaugeFile, LooksThroughTheXmlOfARecordOnce) {
    constexpr int bytes = 1 << 20;
    std::string comments;
    while (comments.size() + 7 <= bytes) comments += "<!---->";
    const std::string data = lime_record("ildg-binary-data", std::string(8, 'x'), 0x4000);
    for (const std::string& xml : {comments, std::string(bytes - 1, '<') + '>'}) {
        const auto start = std::chrono::steady_clock::now();

        EXPECT_THROW(load(lime_record("ildg-format", xml, 0x8000) + data), file_error);

        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << xml.substr(0, 8);
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

/// Terminals obey control characters.
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
