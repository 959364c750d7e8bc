// SPDX-License-Identifier: Apache-2.0
// What the writer leaves behind: a file as specified, whichever rank wrote which part; or none.
#include "damaging_disk.hpp"
#include "spinor_formats.hpp"

#include <halocline/lattice/decomposition.hpp>
#include <halocline_test/refusal.hpp>
#include <halocline_test/run_command.hpp>

#include <filesystem>
#include <fstream>

using namespace halocline_test;
using halocline::file_error;
using halocline::input_error;

namespace {

field<double> part_of(const field<double>& all, const box& local) {
    field<double> part(site_order::lexicographic(local.extents), spinor_components);
    for (std::int64_t s = 0; s < local.volume(); ++s) {
        const coordinate x = local.site(s);
        for (int k = 0; k < spinor_components; ++k) part.at(s, k) = all.at(lexicographic_index(x, extents), k);
    }
    return part;
}

/// The file's bytes if ranks of this grid write it.
std::string written(const coordinate& grid, const field<double>& all) {
    const temporary_file t;
    spinor_writer writer(t.path(), extents, {{"gauge", "a&b<c>"}, {"m0", "-0.5"}});
    const auto cut = decomposition::even(extents, grid);
    writer.create();
    spinor_totals sum;
    for (int rank = cut.ranks() - 1; rank >= 0; --rank)
        sum = combine(sum, writer.write(cut.local_box(rank), part_of(all, cut.local_box(rank))));
    for (int rank = 0; rank < cut.ranks(); ++rank)
        writer.verify(cut.local_box(rank), part_of(all, cut.local_box(rank)));
    writer.finish(sum);
    EXPECT_FALSE(std::filesystem::exists(t.path() + ".partial"));
    return read_text(t.path());
}

TEST(SpinorWriter, WritesTheBytesOfTheFormatWhoeverWritesThem) {
    const field<double> all = load_spinors(scidac(8));

    const std::string one = written({1, 1, 1, 1}, all);

    for (const coordinate& grid : {coordinate{2, 1, 1, 1}, {2, 1, 2, 1}, {1, 3, 1, 5}, {2, 3, 4, 5}})
        EXPECT_EQ(written(grid, all), one) << to_string(grid);
    expect_spinors(load_spinors(one), whole);
    EXPECT_EQ(refusal(one), "");
    for (const std::string& part :
         {std::string("<dims>2 3 4 5 </dims>"), std::string("USQCD_D3_DiracFermion"), spinor_data(8),
          std::string("<usqcdPropInfo>"), std::string("<gauge>a&amp;b&lt;c&gt;</gauge><m0>-0.5</m0>"),
          scidac_checksum(spinor_data(8), 8, 24).substr(16, 50)})
        EXPECT_NE(one.find(part), std::string::npos) << part.substr(0, 60);
}

TEST(SpinorWriter, MarksMessagesAsTheFormatDoes) {
    const std::string file = written({1, 1, 1, 1}, load_spinors(scidac(8)));
    std::string seen;
    for (std::size_t at = 0; at < file.size();) {
        std::uint64_t length = 0;
        for (std::size_t b = 8; b < 16; ++b) length = length << 8 | static_cast<unsigned char>(file[at + b]);
        seen += std::string(file.c_str() + at + 16) + (file[at + 6] & '\x80' ? " begin" : "") +
                (file[at + 6] & '\x40' ? " end" : "") + "\n";
        at += 144 + (length + 7) / 8 * 8;
    }

    EXPECT_EQ(seen, "scidac-private-file-xml begin\nscidac-file-xml end\nscidac-private-record-xml begin\n"
                    "scidac-record-xml\nscidac-binary-data\nscidac-checksum end\n");
}

/// Of file names, for instance, which may have any bytes but 0 and '/'.
TEST(SpinorWriter, DescribesTheFieldInValidXml) {
    const std::vector<std::pair<std::string, std::string>> as_written{
        {"plain\t7", "plain\t7"},
        {"caf\u00e9 \u20ac \U0001f600", "caf\u00e9 \u20ac \U0001f600"},
        {"\xe9t\xe9", "\ufffdt\ufffd"},                                // Latin 1
        {"\x01\x1b[31m", "\ufffd\ufffd[31m"},                          // control characters
        {"\xc0\xaf", "\ufffd\ufffd"},                                  // '/' in two bytes
        {"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},                        // half a letter of UTF-16
        {"\xf9\x80\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},              // beyond Unicode
        {"\xef\xbf\xbf \xe2\x82", "\ufffd\ufffd\ufffd \ufffd\ufffd"}}; // no letter; cut short
    const field<double> all = load_spinors(scidac(8));
    for (const auto& [name, right] : as_written) {
        const temporary_file t;
        spinor_writer writer(t.path(), extents, {{"gauge", name}});
        writer.create();
        writer.finish(writer.write(whole, all));

        EXPECT_NE(read_text(t.path()).find("<gauge>" + right + "</gauge>"), std::string::npos) << right;
    }
}

TEST(SpinorWriter, LeavesNothingBehindWhenItDoesNotFinish) {
    const temporary_file t("old content");
    field<double> spinors = load_spinors(scidac(8));
    spinors.at(5, 3) = std::nan("");
    {
        spinor_writer writer(t.path(), extents, {});
        writer.create();
        EXPECT_TRUE(std::filesystem::exists(t.path() + ".partial"));
        EXPECT_THROW(writer.finish({}), input_error); // covers no sites
        EXPECT_THROW(writer.finish(writer.write(whole, spinors)), input_error);
    }
    EXPECT_FALSE(std::filesystem::exists(t.path() + ".partial"));
    EXPECT_EQ(read_text(t.path()), "old content");
}

TEST(SpinorWriter, ReplacesWhatAKilledWriterLeftAndNotWhatItLeadsTo) {
    const temporary_file t, other("other content");
    const std::string partial = t.path() + ".partial";
    const field<double> all = load_spinors(scidac(8));
    const std::string expected = written({1, 1, 1, 1}, all);
    const auto write = [&] {
        spinor_writer writer(t.path(), extents, {{"gauge", "a&b<c>"}, {"m0", "-0.5"}});
        writer.create();
        writer.finish(writer.write(whole, all));
        return read_text(t.path());
    };

    std::ofstream(partial) << std::string(2 * expected.size(), 'x');
    EXPECT_TRUE(write() == expected);
    std::filesystem::create_symlink(other.path(), partial);
    EXPECT_TRUE(write() == expected);

    EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(t.path())));
    EXPECT_TRUE(read_text(other.path()) == "other content");
    EXPECT_FALSE(std::filesystem::exists(partial));
    std::filesystem::create_directory(partial);
    EXPECT_THROW(write(), file_error);
    std::filesystem::remove(partial);
}

TEST(SpinorWriter, WhatTheDiskDamagesDoesNotTakeTheOldFilesPlace) {
    const field<double> all = load_spinors(scidac(8));
    const std::pair<int, off_t> of_spinors{0, 3000}, of_head{1, 200}, of_checksum{1, -3};
    for (const auto& [skipped, offset] : {of_spinors, of_head, of_checksum}) {
        const temporary_file t("old content");
        damaging_disk disk(skipped, offset);
        spinor_writer writer(t.path(), extents, {});
        writer.create();

        try {
            const spinor_totals totals = writer.write(whole, all);
            writer.verify(whole, all);
            writer.finish(totals);
            ADD_FAILURE() << "a damaged file";
        } catch (const file_error& e) {
            EXPECT_NE(std::string(e.what()).find("differs from what was written"), std::string::npos) << e.what();
        }

        EXPECT_TRUE(disk.done);
        EXPECT_TRUE(read_text(t.path()) == "old content");
    }
}

TEST(SpinorWriter, RefusesWhatItCannotWrite) {
    EXPECT_NE(refusal([] {
                  spinor_writer("x", {0, 1, 1, 1}, {});
              }).find("the lattice 0.1.1.1: extents must be between 1 and "),
              std::string::npos);
    spinor_writer nowhere("/nonexistent/file", extents, {}), device("/dev/null", extents, {});
    const std::string no_folder = refusal<file_error>([&] { nowhere.create(); });
    EXPECT_NE(no_folder.find("'/nonexistent/file"), std::string::npos) << no_folder;
    EXPECT_NE(no_folder.find("can't be opened: No such file or directory"), std::string::npos) << no_folder;
    EXPECT_EQ(refusal([&] { device.create(); }), "'/dev/null' is no regular file: the new one would take its place");
    EXPECT_EQ(refusal([&] {
                  spinor_writer("x", extents, {}).write({{2147483647, 0, 0, 0}, extents}, field<double>(extents, 24));
              }),
              "local box " + to_string(extents) + " at 2147483647.0.0.0 leaves the lattice " + to_string(extents) +
                  " of 'x'");
    EXPECT_EQ(refusal([&] {
                  spinor_writer("x", extents, {}).write({{0, 0, 0, 0}, extents}, {});
              }),
              "the field for the spinors of a local box has no storage; must have 24 components on a box of " +
                  to_string(extents) + " in lexicographic order");
}

} // namespace
