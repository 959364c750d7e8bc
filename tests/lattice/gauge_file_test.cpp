// SPDX-License-Identifier: Apache-2.0
// Readers and the files of each format, whole and in parts.
#include "gauge_formats.hpp"

#include <halocline/base/error.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline_test/refusal.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace halocline_test;
using halocline::file_error;
using halocline::input_error;

namespace {

std::vector<std::string> warnings_of(const std::string& content) {
    const temporary_file t(content);
    return open_gauge_file(t.path()).warnings;
}

TEST(GaugeFile, ReadsDDalphaAMG) {
    const temporary_file t(ddalphaamg());
    const gauge_file file = open_gauge_file(t.path());

    EXPECT_EQ(file.format, gauge_format::ddalphaamg);
    EXPECT_EQ(file.extents, extents);
    EXPECT_DOUBLE_EQ(file.plaquette.value(), 0.125);
    EXPECT_TRUE(file.warnings.empty());
    expect_links(load(ddalphaamg()), whole, 0);
}

/// As DDalphaAMG writes if it was compiled for that.
TEST(GaugeFile, ReadsDDalphaAMGOfTheOtherByteOrder) {
    const temporary_file t(ddalphaamg(true));
    const gauge_file file = open_gauge_file(t.path());

    EXPECT_EQ(file.format, gauge_format::ddalphaamg);
    EXPECT_TRUE(file.big_endian);
    EXPECT_EQ(file.extents, extents);
    EXPECT_DOUBLE_EQ(file.plaquette.value(), 0.125);
    expect_links(load(ddalphaamg(true)), whole, 0);
}

TEST(GaugeFile, APlaquetteOfDDalphaAMGThatIsZeroIsNone) {
    const temporary_file t(ddalphaamg(false, 0));
    const gauge_file file = open_gauge_file(t.path());

    EXPECT_FALSE(file.plaquette);
    ASSERT_EQ(file.warnings.size(), 1U);
    EXPECT_EQ(file.warnings[0].find("no plaquette is recorded"), 0U);
    expect_links(load(ddalphaamg(false, 0)), whole, 0);
}

/// Of links of one, for instance: the sum over plaquettes is rounded.
TEST(GaugeFile, APlaquetteOfDDalphaAMGMayBeRoundedBeyondOne) {
    std::string content = ddalphaamg();
    for (const double plaquette3 : {3.0000000000000004, -1.5000000000000002}) {
        const temporary_file t(content.replace(16, 8, real(plaquette3, 8, false)));

        EXPECT_DOUBLE_EQ(open_gauge_file(t.path()).plaquette.value(), plaquette3 / 3);
    }
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

TEST(GaugeFile, NerscTracesAreHeldToTheDigitsThatTheHeadGives) {
    for (const char* format : {"%.10f", "%.6f", "%.5g", "%.5e", "%.14e"}) {
        EXPECT_NO_THROW(load(nersc({2, 8, true, true, format}))) << format;
    }
    const auto digit = [](const std::string& plaquette) {
        std::string file = nersc({});
        file.replace(file.find("0.125"), 5, plaquette);
        const temporary_file t(file);
        return open_gauge_file(t.path()).plaquette_digit;
    };
    EXPECT_DOUBLE_EQ(digit("0.588074"), 1e-6);
    EXPECT_DOUBLE_EQ(digit("5.880740E-01"), 1e-7);
    EXPECT_DOUBLE_EQ(digit("0.5"), 1e-4) << "zeros may be missing";
    EXPECT_DOUBLE_EQ(digit("1"), 1e-4);
    EXPECT_DOUBLE_EQ(digit("5.e-9"), 1e-9);
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

TEST(GaugeFile, ReadsLinksInScidacsFormatOfBothPrecisions) {
    for (int bytes : {4, 8}) {
        const temporary_file t(scidac_links(bytes)), unchecked(scidac_links(bytes, false));
        const gauge_file file = open_gauge_file(t.path());

        EXPECT_EQ(file.format, gauge_format::scidac);
        EXPECT_EQ(to_string(file.format), "SciDAC");
        EXPECT_EQ(file.extents, extents);
        EXPECT_EQ(file.real_bytes, bytes);
        EXPECT_TRUE(file.scidac_checksum);
        EXPECT_DOUBLE_EQ(file.plaquette.value(), 0.125);
        EXPECT_TRUE(file.warnings.empty());
        expect_links(load(scidac_links(bytes)), whole, bytes == 4 ? 1e-7 : 0);
        EXPECT_EQ(open_gauge_file(unchecked.path()).warnings.size(), 1U);
    }
}

TEST(GaugeFile, IldgMayRecordAPlaquetteAsMilcDoes) {
    const auto recorded = [](const std::string& xml) {
        const temporary_file t(lime_record("scidac-record-xml", xml, 0x8000) + ildg(8));
        return open_gauge_file(t.path());
    };
    const auto info = [](const std::string& plaq) {
        return "<usqcdInfo><version>1.0</version><plaq>" + plaq + "</plaq><linktr>0</linktr></usqcdInfo>";
    };

    const gauge_file file = recorded(info("5.880740e-01"));
    EXPECT_DOUBLE_EQ(file.plaquette.value(), 0.588074);
    EXPECT_DOUBLE_EQ(plaquette_tolerance(file), 1e-6 + 1e-10) << "single precision";
    for (const char* none : {"", "0.000000e+00", "unknown", "1.764222e+00", "0.5</plaq><plaq>0.6"})
        EXPECT_FALSE(recorded(info(none)).plaquette) << none;
    EXPECT_FALSE(recorded(std::string((1 << 20) + 8, 'x')).plaquette) << "another code's notes may be long";
}

TEST(GaugeFile, MarksTheLinksThatItReadsAsWritten) {
    const temporary_file t(ildg(8));
    gauge_field links(site_order::lexicographic(extents), gauge_components);
    const std::uint64_t before = links.version();

    (void)read_links(open_gauge_file(t.path()), whole, links);

    EXPECT_NE(links.version(), before);
}

TEST(GaugeFile, ReadsMilcOfBothByteOrders) {
    for (const bool big : {false, true}) {
        const temporary_file t(milc(big));
        const gauge_file file = open_gauge_file(t.path());

        EXPECT_EQ(file.format, gauge_format::milc);
        EXPECT_EQ(file.extents, extents);
        EXPECT_EQ(file.big_endian, big);
        EXPECT_TRUE(file.milc_checksum);
        EXPECT_TRUE(file.warnings.empty());
        expect_links(load(milc(big)), whole, 1e-7);
    }
}

TEST(GaugeFile, WarnsOfWhatIsNotRecorded) {
    nersc_options zeros;
    zeros.recorded = false;
    EXPECT_EQ(warnings_of(nersc(zeros)).size(), 2U); // CHECKSUM = 0, LINK_TRACE = 0
    EXPECT_NO_THROW(load(nersc(zeros)));
    const auto without_plaquette = [](std::string content) {
        const temporary_file t(content.replace(content.find("0.125"), 5, "0.000"));
        return open_gauge_file(t.path());
    };
    EXPECT_EQ(without_plaquette(nersc(zeros)).warnings.size(), 3U);
    EXPECT_FALSE(without_plaquette(nersc(zeros)).plaquette) << "0 beside zeros is not recorded";
    EXPECT_EQ(without_plaquette(nersc({})).plaquette, 0.0) << "0 beside a trace and a checksum is a plaquette";
    for (const int rows : {2, 3}) {
        zeros.rows = rows;
        int warned = 0;
        for (const std::string& warning : without_plaquette(nersc(zeros)).warnings)
            warned += warning.find("the sign of a boundary in links of two rows can't be noticed") != std::string::npos;
        EXPECT_EQ(warned, rows == 2 ? 1 : 0) << "three rows with a sign are not in SU(3)";
    }
    EXPECT_EQ(warnings_of(ildg(8, false)).size(), 1U);
    EXPECT_NO_THROW(load(ildg(8, false)));
    EXPECT_EQ(warnings_of(milc(true, false)).size(), 1U);
    EXPECT_NO_THROW(load(milc(true, false)));
}

TEST(GaugeFile, TellsBoundariesOfItsFermionsThatAreNotUsed) {
    const auto told = [](const std::string& head, boundary in_t) {
        std::string content = nersc({});
        content.insert(content.find("PLAQUETTE"), head);
        const temporary_file t(content);
        return boundary_warnings(open_gauge_file(t.path()),
                                 {boundary::periodic, boundary::periodic, boundary::periodic, in_t});
    };
    const std::string periodic = "BOUNDARY_1 = PERIODIC\nBOUNDARY_4 = PERIODIC\n",
                      usual = "BOUNDARY_1 = PERIODIC\nBOUNDARY_4 = ANTIPERIODIC\n";

    EXPECT_TRUE(told("", boundary::antiperiodic).empty());
    EXPECT_TRUE(told(periodic, boundary::antiperiodic).empty());
    EXPECT_TRUE(told(usual, boundary::antiperiodic).empty());
    for (const char* word : {"antiperiodic", "Anti-Periodic", "periodic"})
        EXPECT_TRUE(told(std::string("BOUNDARY_4 = ") + word + "\n", boundary::antiperiodic).empty()) << word;
    for (const boundary in_t : {boundary::periodic, boundary::open}) {
        const auto warnings = told(usual, in_t);
        ASSERT_EQ(warnings.size(), 1U);
        EXPECT_NE(warnings[0].find("BOUNDARY_4 = ANTIPERIODIC"), std::string::npos) << warnings[0];
        EXPECT_NE(warnings[0].find("in t is another"), std::string::npos) << warnings[0];
    }
    EXPECT_EQ(told("BOUNDARY_2 = ANTIPERIODIC\nBOUNDARY_4 = FIXED\n", boundary::antiperiodic).size(), 2U);
}

TEST(GaugeFile, WarnsOfAFewTrailingBytesAndRefusesMany) {
    for (const format_case& f : all_formats()) {
        SCOPED_TRACE(f.name);
        EXPECT_EQ(warnings_of(f.content + std::string(4096, '\0')).size(), 1U);
        EXPECT_NO_THROW(load(f.content + std::string(1, '\n')));
        EXPECT_THROW(load(f.content + std::string(4097, '\0')), file_error);
    }
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
            EXPECT_EQ(sum.milc_xor, expected.milc_xor);
            EXPECT_EQ(sum.links, expected.links);
            EXPECT_NEAR(sum.link_trace_sum, expected.link_trace_sum, 1e-10);
            EXPECT_EQ(sum.max_su3_error, expected.max_su3_error);
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

TEST(GaugeFile, FieldsWithoutStorageAreRefused) {
    const temporary_file t(ildg(8));
    const gauge_file file = open_gauge_file(t.path());
    gauge_field none, links(site_order::lexicographic(extents), gauge_components);
    const gauge_field taken = std::move(links);
    const std::string text = "the field for the links of a local box has no storage; must have 72 components on a box "
                             "of 2.3.4.5 in lexicographic order";

    for (gauge_field* f : {&none, &links})
        EXPECT_EQ(refusal([&] { read_links(file, {{0, 0, 0, 0}, extents}, *f); }), text);
}

} // namespace
