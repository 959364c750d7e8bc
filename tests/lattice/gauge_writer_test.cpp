// SPDX-License-Identifier: Apache-2.0
// What the writer leaves behind: files that the readers accept, or none.
#include "damaging_disk.hpp"
#include "gauge_formats.hpp"
#include "no_fallocate.hpp"

#include <halocline/base/error.hpp>
#include <halocline/lattice/decomposition.hpp>

#include <halocline_test/comma_locale.hpp>
#include <halocline_test/refusal.hpp>
#include <halocline_test/run_command.hpp>

#include <cmath>
#include <filesystem>
#include <limits>

using namespace halocline_test;
using halocline::file_error;
using halocline::input_error;

namespace {

TEST(GaugeWriter, WritesInPartsWhatReadersRead) {
    for (gauge_format format : {gauge_format::ildg, gauge_format::ddalphaamg, gauge_format::nersc}) {
        const temporary_file t;
        gauge_writer writer(t.path(), format, extents);
        const auto cut = decomposition::even(extents, {2, 1, 2, 3});
        const gauge_field all = load(ildg(8));

        const auto part_of = [&](const box& local) {
            gauge_field part(site_order::lexicographic(local.extents), gauge_components);
            for (std::int64_t s = 0; s < local.volume(); ++s) {
                const coordinate x = local.site(s);
                for (int c = 0; c < gauge_components; ++c) part.at(s, c) = all.at(lexicographic_index(x, extents), c);
            }
            return part;
        };

        writer.create();
        gauge_totals sum;
        for (int rank = 0; rank < cut.ranks(); ++rank)
            sum = combine(sum, writer.write(cut.local_box(rank), part_of(cut.local_box(rank))));
        for (int rank = 0; rank < cut.ranks(); ++rank) writer.verify(cut.local_box(rank), part_of(cut.local_box(rank)));
        writer.finish(sum, 0.125);

        const gauge_file file = open_gauge_file(t.path());
        EXPECT_EQ(file.format, format);
        EXPECT_TRUE(file.warnings.empty());
        if (format == gauge_format::ildg) {
            const temporary_file same(ildg(8));
            EXPECT_EQ(file.scidac_checksum, open_gauge_file(same.path()).scidac_checksum);
            const std::string text = read_text(t.path()); // what QIO counts as missing otherwise
            EXPECT_NE(text.find("<info>Halocline</info></usqcdInfo>"), std::string::npos);
        }
        EXPECT_DOUBLE_EQ(file.plaquette.value(), 0.125);
        if (format == gauge_format::nersc) {
            const temporary_file same(nersc({3, 8, true}));
            const gauge_file expected = open_gauge_file(same.path());
            EXPECT_EQ(file.rows, 3);
            EXPECT_EQ(file.nersc_checksum, expected.nersc_checksum);
            EXPECT_NEAR(file.link_trace.value(), expected.link_trace.value(), 1e-13);
        }
        gauge_field back(site_order::lexicographic(extents), gauge_components);
        check_totals(file, read_links(file, whole, back));
        expect_links(back, whole, 0);
        EXPECT_FALSE(std::filesystem::exists(t.path() + ".partial"));
    }
}

TEST(GaugeWriter, SaysWhereTheLinksComeFromWhereThatHasRoom) {
    const std::string origin = "beta 6, seed 7";
    for (gauge_format format : {gauge_format::ildg, gauge_format::ddalphaamg, gauge_format::nersc}) {
        const temporary_file t;
        gauge_writer writer(t.path(), format, extents, origin);
        const gauge_field all = load(ildg(8));
        writer.create();
        const gauge_totals sum = writer.write(whole, all);
        writer.verify(whole, all);
        writer.finish(sum, 0.125);

        const gauge_file file = open_gauge_file(t.path());
        EXPECT_EQ(file.origin, format == gauge_format::ddalphaamg ? "" : origin);
        gauge_field back(site_order::lexicographic(extents), gauge_components);
        check_totals(file, read_links(file, whole, back));
        for (const std::string wrong : {"a\nb", "<a>", "a & b", "\xc3\xa4"})
            EXPECT_THROW(gauge_writer(t.path(), format, extents, wrong), input_error) << wrong;
        EXPECT_THROW(gauge_writer(t.path(), format, extents, std::string(201, 'a')), input_error);
    }
}

// A NERSC header has room for figures of one digit before the point: a longer one would overwrite the first link.
TEST(GaugeWriter, RefusesAPlaquetteThatNoLinksHave) {
    for (gauge_format format : {gauge_format::ildg, gauge_format::ddalphaamg, gauge_format::nersc}) {
        const temporary_file t;
        gauge_writer writer(t.path(), format, extents);
        const gauge_field all = load(ildg(8));
        writer.create();
        const gauge_totals sum = writer.write(whole, all);

        for (const double plaquette : {100.0, 1.001, -0.501, std::nan(""), HUGE_VAL})
            EXPECT_THROW(writer.finish(sum, plaquette), input_error) << plaquette;
        writer.finish(sum, 1 + 1e-15);

        const gauge_file file = open_gauge_file(t.path());
        gauge_field back(site_order::lexicographic(extents), gauge_components);
        check_totals(file, read_links(file, whole, back));
        expect_links(back, whole, 0);
    }
}

TEST(GaugeWriter, RecordsTheLatticeTwice) {
    const temporary_file t;
    gauge_writer writer(t.path(), gauge_format::ildg, extents);
    writer.create();
    writer.finish(writer.write(whole, load(ildg(8))), 0.125);
    std::string content = halocline_test::read_text(t.path());
    const auto swap = [&](const std::string& tag, char from, char to) {
        const std::size_t at = content.find("<" + tag + ">" + from);
        ASSERT_NE(at, std::string::npos);
        content[at + tag.size() + 2] = to;
    };
    swap("lx", '2', '5'); // the extents are 2.3.4.5
    swap("lt", '5', '2');
    const temporary_file other(content);
    try {
        (void)open_gauge_file(other.path());
        FAIL() << "links in another order were accepted";
    } catch (const file_error& e) {
        EXPECT_NE(std::string(e.what()).find("gives the lattice 2.3.4.5, ildg-format 5.3.4.2"), std::string::npos)
            << e.what();
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

TEST(GaugeWriter, SaysWhatIsWrongWithTheLinks) {
    const auto refusal = [](double value, int c) {
        gauge_field links = load(ildg(8));
        links.at(7, c) = value;
        const temporary_file t("old content");
        gauge_writer writer(t.path(), gauge_format::ildg, extents);
        writer.create();
        try {
            writer.finish(writer.write(whole, links), 0);
        } catch (const input_error& e) {
            EXPECT_EQ(read_text(t.path()), "old content");
            return std::string(e.what());
        }
        return std::string();
    };

    const std::string not_a_number = refusal(std::numeric_limits<double>::quiet_NaN(), 3), not_unitary = refusal(2, 3);

    EXPECT_NE(not_a_number.find("': the links have a NaN or an infinity: they are not written"), std::string::npos);
    EXPECT_EQ(not_a_number.find("32-bit"), std::string::npos) << not_a_number;
    EXPECT_NE(not_unitary.find("; links of 32-bit origin must be reunitarised"), std::string::npos) << not_unitary;
}

TEST(GaugeWriter, WritesTheSameTextInEveryLocale) {
    const auto written = [] {
        const temporary_file t;
        gauge_writer writer(t.path(), gauge_format::nersc, extents);
        writer.create();
        writer.finish(writer.write(whole, load(ildg(8))), 0.125);
        return read_text(t.path());
    };
    const std::string expected = written();
    const comma_locale foreign;
    if (!foreign.in_force()) GTEST_SKIP() << "localedef can make no locale here; Debian's package is 'locales'";

    EXPECT_TRUE(written() == expected);

    EXPECT_NE(expected.find("\nPLAQUETTE =  0.12500000000000\n"), std::string::npos);
}

TEST(GaugeWriter, WhatTheDiskDamagesDoesNotTakeTheOldFilesPlace) {
    struct damage {
        int skipped;
        off_t offset;
    };
    constexpr damage of_links{0, 2000}, of_head{1, 0}, of_checksum{1, -3};
    const gauge_field all = load(ildg(8));
    for (const gauge_format format : {gauge_format::ildg, gauge_format::ddalphaamg, gauge_format::nersc})
        for (const auto [skipped, offset] : {of_links, of_head, of_checksum}) {
            if (offset < 0 && format != gauge_format::ildg) continue; // they end with links
            const temporary_file t("old content");
            damaging_disk disk(skipped, offset);
            gauge_writer writer(t.path(), format, extents);
            writer.create();

            try {
                const gauge_totals totals = writer.write(whole, all);
                writer.verify(whole, all);
                writer.finish(totals, 0.125);
                ADD_FAILURE() << "a damaged file";
            } catch (const file_error& e) {
                EXPECT_NE(std::string(e.what()).find("differs from what was written"), std::string::npos) << e.what();
            }

            EXPECT_TRUE(disk.done);
            EXPECT_EQ(std::filesystem::file_size(t.path()), 11U);
        }
}

/// Two hosts may each have such a file.
TEST(GaugeWriter, TellsWhichFileItWrites) {
    const temporary_file t, other;
    gauge_writer writer(t.path(), gauge_format::ildg, extents), another(other.path(), gauge_format::ildg, extents);
    const gauge_writer of_a_second_rank(t.path(), gauge_format::ildg, extents);
    EXPECT_THROW((void)writer.identity(), file_error); // there is none yet
    writer.create();
    another.create();

    EXPECT_EQ(writer.identity(), of_a_second_rank.identity());
    EXPECT_NE(writer.identity(), another.identity());
}

// posix_fallocate() would write to each block of the file instead.
TEST(GaugeWriter, GivesAFileItsSizeWhereNoSpaceCanBeReserved) {
    const temporary_file t;
    const gauge_field all = load(ildg(8));
    no_fallocate disk;
    gauge_writer writer(t.path(), gauge_format::ddalphaamg, extents);

    writer.create();

    EXPECT_EQ(disk.asked, 1);
    EXPECT_EQ(std::filesystem::file_size(t.path() + ".partial"), 24 + 576 * static_cast<std::size_t>(volume(extents)));
    writer.finish(writer.write(whole, all), 0.125);
    gauge_field back(site_order::lexicographic(extents), gauge_components);
    const gauge_file file = open_gauge_file(t.path());
    check_totals(file, read_links(file, whole, back));
    expect_links(back, whole, 0);
}

TEST(GaugeWriter, RefusesWhatItCannotWrite) {
    const auto refused = [](gauge_format format, const coordinate& sites) {
        return refusal([&] { gauge_writer("x", format, sites); });
    };
    for (const gauge_format format : {gauge_format::milc, gauge_format::openqcd, gauge_format::scidac})
        EXPECT_EQ(refused(format, extents), "'x': " + std::string(to_string(format)) +
                                                " files aren't written; ILDG, NERSC and DDalphaAMG files are");
    EXPECT_NE(refused(gauge_format::ildg, {0, 1, 1, 1}).find("the lattice 0.1.1.1: extents must be between 1 and "),
              std::string::npos);
    gauge_writer nowhere("/nonexistent/file", gauge_format::ildg, extents);
    const std::string no_folder = refusal<file_error>([&] { nowhere.create(); });
    EXPECT_NE(no_folder.find("'/nonexistent/file"), std::string::npos) << no_folder;
    EXPECT_NE(no_folder.find("can't be opened: No such file or directory"), std::string::npos) << no_folder;
    EXPECT_EQ(refusal([&] {
                  gauge_writer("x", gauge_format::ildg, extents).write({{0, 0, 0, 0}, extents}, {});
              }),
              "the field for the links of a local box has no storage; must have 72 components on a box of " +
                  to_string(extents) + " in lexicographic order");
}

} // namespace
