// SPDX-License-Identifier: Apache-2.0
#include "spinor_formats.hpp"

#include <halocline/lattice/decomposition.hpp>
#include <halocline_test/refusal.hpp>

using namespace halocline_test;

namespace {

TEST(SpinorFile, ReadsBothPrecisions) {
    for (int real_bytes : {4, 8}) {
        const temporary_file t(scidac(real_bytes));

        const spinor_file file = open_spinor_file(t.path());

        EXPECT_EQ(file.extents, extents);
        EXPECT_EQ(file.real_bytes, real_bytes);
        EXPECT_TRUE(file.scidac_checksum);
        EXPECT_TRUE(file.warnings.empty());
        expect_spinors(load_spinors(scidac(real_bytes)), whole);
    }
}

TEST(SpinorFile, EachRankReadsItsPartAndTheTotalsAreTheFiles) {
    const temporary_file t(scidac(8));
    const spinor_file file = open_spinor_file(t.path());
    for (const coordinate& grid : {coordinate{1, 1, 1, 5}, {2, 1, 2, 1}, {2, 3, 4, 5}}) {
        const auto cut = decomposition::even(extents, grid);
        spinor_totals sum;
        for (int rank = 0; rank < cut.ranks(); ++rank) {
            const box local = cut.local_box(rank);
            field<double> part(site_order::lexicographic(local.extents), spinor_components);
            sum = combine(sum, read_spinors(file, local, part));
            expect_spinors(part, local);
        }
        EXPECT_NO_THROW(check_totals(file, sum));
    }
}

TEST(SpinorFile, MarksTheSpinorsThatItReadsAsWritten) {
    const temporary_file t(scidac(8));
    field<double> spinors(site_order::lexicographic(extents), spinor_components);
    const std::uint64_t before = spinors.version();

    (void)read_spinors(open_spinor_file(t.path()), whole, spinors);

    EXPECT_NE(spinors.version(), before);
}

TEST(SpinorFile, ReadsTagsOfTheFormatsFirstVersion) {
    const std::string data = spinor_data(4);
    const std::string old =
        qio_record("scidac-private-file-xml",
                   "<scidacFile><version>1.0</version><spacetime>4</spacetime><dims>2 3 4 5</dims>"
                   "<multifile>1</multifile></scidacFile>",
                   0x8000) +
        qio_record("scidac-private-record-xml",
                   "<scidacRecord><version>1.0</version><globaldata>0</globaldata><datatype>QDP_F3_DiracFermion"
                   "</datatype><precision>F</precision><typesize>4</typesize><datacount>24</datacount></scidacRecord>",
                   0x8000) +
        lime_record("scidac-binary-data", data, 0) +
        lime_record("scidac-checksum", scidac_checksum(data, 4, 24), 0x4000);

    expect_spinors(load_spinors(old), whole);
}

TEST(SpinorFile, WarnsOfWhatCannotBeChecked) {
    const temporary_file none(scidac(8, false)), trailing(scidac(8) + "tail");

    const spinor_file unchecked = open_spinor_file(none.path());
    ASSERT_EQ(unchecked.warnings.size(), 1U);
    EXPECT_NE(unchecked.warnings[0].find("no scidac-checksum"), std::string::npos);
    const spinor_file tailed = open_spinor_file(trailing.path());
    ASSERT_EQ(tailed.warnings.size(), 1U);
    EXPECT_NE(tailed.warnings[0].find("4 trailing bytes"), std::string::npos);
    expect_spinors(load_spinors(scidac(8, false)), whole);
}

TEST(SpinorFile, RefusesAFieldThatCannotTakeIt) {
    const temporary_file t(scidac(8));
    const spinor_file file = open_spinor_file(t.path());
    field<double> links(site_order::lexicographic(extents), gauge_components);
    field<double> spinors(site_order::lexicographic({2, 3, 4, 6}), spinor_components);

    const auto refused = [&](const box& local, field<double>& to) {
        return refusal([&] { read_spinors(file, local, to); });
    };
    const std::string size = to_string(extents), sites = std::to_string(volume(extents));
    const std::string has = "the field for the spinors of a local box has ",
                      needed = "; must have 24 components on a box of " + size + " in lexicographic order";
    EXPECT_EQ(refused(whole, links), has + "72 components on a box of " + size + needed);
    EXPECT_EQ(refused(whole, spinors), has + "24 components on a box of 2.3.4.6" + needed);
    EXPECT_EQ(refused({{0, 0, 0, 0}, {2, 3, 4, 6}}, spinors),
              "local box 2.3.4.6 at 0.0.0.0 leaves the lattice " + size + " of '" + t.path() + "'");
    EXPECT_EQ(refusal([&] { check_totals(file, {}); }),
              "totals of '" + t.path() + "' cover 0 of " + sites + " sites: they must be combined over all ranks");
    field<double> none;
    EXPECT_EQ(refused(whole, none), has + "no storage" + needed);
}

} // namespace
