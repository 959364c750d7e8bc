// SPDX-License-Identifier: Apache-2.0
// Spinor fields in files: the basis that they promise, the same bytes whichever rank writes, and what is read back.
#include "dirac_fields.hpp"
#include "page_of_two_hosts.hpp"
#include "refusals.hpp"

#include <halocline/dirac/gamma.hpp>
#include <halocline/dirac/spinor_field.hpp>
#include <halocline_test/refusal.hpp>
#include <halocline_test/run_command.hpp>
#include <halocline_test/worse.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <thread>

namespace {

using namespace halocline;
using namespace halocline_test;
using complex = std::complex<double>;
using matrix4 = std::array<std::array<complex, 4>, 4>;

/// As in the format's specification: "DeGrand-Rossi, with the unimproved sign of gamma_2".
matrix4 degrand_rossi(int mu) {
    constexpr complex i{0, 1}, o = 0, l = 1;
    const std::array<matrix4, 4> gamma{{{{{o, o, o, i}, {o, o, i, o}, {o, -i, o, o}, {-i, o, o, o}}},
                                        {{{o, o, o, -l}, {o, o, l, o}, {o, l, o, o}, {-l, o, o, o}}},
                                        {{{o, o, i, o}, {o, o, o, -i}, {-i, o, o, o}, {o, i, o, o}}},
                                        {{{o, o, l, o}, {o, o, o, l}, {l, o, o, o}, {o, l, o, o}}}}};
    return gamma[mu];
}

/// gamma_mu psi on one site.
template <class Gamma>
void multiply(const Gamma& gamma, spinor_field& psi) {
    const std::vector<double> old(psi.values().begin(), psi.values().end());
    for (int row = 0; row < 4; ++row)
        for (int c = 0; c < 3; ++c) {
            complex sum = 0;
            for (int column = 0; column < 4; ++column)
                sum += gamma(row, column) * complex(old[6 * column + 2 * c], old[6 * column + 2 * c + 1]);
            psi.at(0, 6 * row + 2 * c) = sum.real();
            psi.at(0, 6 * row + 2 * c + 1) = sum.imag();
        }
}

double largest_difference(const spinor_field& a, const spinor_field& b) {
    double largest = 0;
    for (std::size_t k = 0; k < a.values().size(); ++k)
        largest = worse(largest, std::abs(a.values()[k] - b.values()[k]));
    return largest;
}

spinor_field copy_of(const spinor_field& a) {
    spinor_field b(a.shared_order(), a.components());
    b.copy_from(a);
    return b;
}

TEST(SpinorField, TheBasisOfFilesIsDeGrandRossis) {
    const lattice::box site{{0, 0, 0, 0}, {1, 1, 1, 1}};
    for (int mu = 0; mu < 4; ++mu) {
        const auto ours = [&](int row, int column) {
            const auto& entry = dirac::gamma_matrices()[mu][row];
            return entry.column == column ? entry.value : 0.0;
        };
        const auto theirs = [&](int row, int column) { return degrand_rossi(mu)[row][column]; };
        spinor_field here = random_spinor(site, {1, 1, 1, 1}, 3), there = copy_of(here);

        multiply(ours, here); // S gamma psi = gamma' S psi
        dirac::change_spin_basis(here);
        dirac::change_spin_basis(there);
        multiply(theirs, there);

        EXPECT_LE(largest_difference(here, there), 1e-15) << mu;
    }
}

TEST(SpinorField, ChangingTheBasisTwiceChangesNothing) {
    const lattice::box local{{0, 0, 0, 0}, {2, 2, 2, 2}};
    const spinor_field psi = random_spinor(local, {2, 2, 2, 2}, 3);
    spinor_field twice = copy_of(psi);

    dirac::change_spin_basis(twice);
    EXPECT_GT(largest_difference(twice, psi), 0.1);
    dirac::change_spin_basis(twice);

    EXPECT_LE(largest_difference(twice, psi), 4e-15);
}

TEST(SpinorField, OfAnotherShapeHasNoBasisToChange) {
    const auto blocked = lattice::site_order::blocked({{}, {4, 4, 4, 4}}, {4, 4, 4, 4}, {2, 2, 2, 2}, 4);
    spinor_field none, narrow({2, 2, 2, 2}, 12), in_lanes(blocked, lattice::spinor_components);

    EXPECT_EQ(refusal([&] { dirac::change_spin_basis(none); }),
              "change_spin_basis(): its field has no storage; must have 24 components in one lane");
    EXPECT_EQ(
        refusal([&] { dirac::change_spin_basis(narrow); }),
        "change_spin_basis(): its field has 12 components on a box of 2.2.2.2; must have 24 components in one lane");
    EXPECT_EQ(
        refusal([&] { dirac::change_spin_basis(in_lanes); }),
        "change_spin_basis(): its field has 24 components on a box of 4.4.4.4 in 4 lanes; must have 24 components in "
        "one lane");
}

TEST(SpinorField, OfACutForAnotherNumberOfRanksIsNeitherReadNorWritten) {
    const scratch_folder scratch;
    const std::string path = scratch / "field", other = scratch / "other";
    comm::run_threads(1, [&](const job& j) {
        const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 1});
        dirac::write_spinors(j, cut, random_spinor(cut.local_box(0), cut.global(), 5), {}, path);
    });
    for (const coordinate& grid : {coordinate{1, 1, 1, 1}, coordinate{1, 1, 2, 2}}) {
        const auto cut = decomposition::even({2, 2, 2, 4}, grid);
        const std::string wrong =
            ": the lattice is cut over " + std::string(cut.ranks() == 1 ? "1 rank" : "4 ranks") + ", the job has 2";

        EXPECT_EQ(
            refusal_of_all(2, [&](const job& j) { dirac::read_spinors(j, cut, lattice::open_spinor_file(path)); }),
            "read_spinors()" + wrong);
        EXPECT_EQ(refusal_of_all(2,
                                 [&](const job& j) {
                                     dirac::write_spinors(j, cut, random_spinor(cut.local_box(0), cut.global(), 5), {},
                                                          other);
                                 }),
                  "write_spinors()" + wrong);
    }
    EXPECT_FALSE(std::filesystem::exists(other));
}

/// Each rank makes the head, whose length says where its sites begin.
TEST(SpinorField, ThatRanksDescribeDifferentlyIsNotWritten) {
    const scratch_folder scratch;
    const std::string said = refusal_of_all(2, [&](const job& j) {
        const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});
        const spinor_field psi = random_spinor(cut.local_box(j.rank()), cut.global(), 5);
        dirac::write_spinors(j, cut, psi, {{"seconds", j.rank() == 0 ? "9.87" : "10.02"}}, scratch / "field");
    });

    EXPECT_EQ(said.find("ranks disagree on the cut of a spinor field and what its file says of it: rank 0 has "), 0U)
        << said;
    EXPECT_NE(said.find("seconds = 10.02"), std::string::npos) << said;
    EXPECT_TRUE(std::filesystem::is_empty(scratch / ""));
}

/// Together their boxes have as many sites as the lattice, but not the same ones.
TEST(SpinorField, ThatRanksCutDifferentlyIsNotWritten) {
    const scratch_folder scratch;
    const std::string said = refusal_of_all(2, [&](const job& j) {
        const auto cut =
            decomposition::even({4, 2, 2, 4}, j.rank() == 0 ? coordinate{1, 1, 1, 2} : coordinate{2, 1, 1, 1});
        const spinor_field psi = random_spinor(cut.local_box(j.rank()), cut.global(), 5);
        dirac::write_spinors(j, cut, psi, {}, scratch / "field");
    });

    EXPECT_EQ(said.find("ranks disagree on the cut of a spinor field"), 0U) << said;
    EXPECT_TRUE(std::filesystem::is_empty(scratch / ""));
}

TEST(SpinorField, IsTheSameFileWhoeverWritesItAndComesBackOnAnyCut) {
    const coordinate global{4, 2, 6, 4};
    const scratch_folder scratch;
    const coordinate grids[] = {{1, 1, 1, 1}, {1, 1, 1, 2}, {2, 1, 1, 1}, {2, 1, 2, 1}, {1, 1, 3, 1}};
    for (const coordinate& grid : grids) {
        const std::string path = scratch / lattice::to_string(grid);
        comm::run_threads(static_cast<int>(lattice::volume(grid)), [&](const job& j) {
            const auto cut = decomposition::even(global, grid);
            const spinor_field psi = random_spinor(cut.local_box(j.rank()), global, 5);
            dirac::write_spinors(j, cut, psi, {{"field", "test"}}, path);
        });
    }
    const std::string one = read_text(scratch / "1.1.1.1");
    EXPECT_FALSE(one.empty());
    for (const coordinate& grid : grids) {
        if (grid != grids[0]) {
            EXPECT_EQ(read_text(scratch / lattice::to_string(grid)), one) << lattice::to_string(grid);
        }
        comm::run_threads(static_cast<int>(lattice::volume(grid)), [&](const job& j) {
            const auto cut = decomposition::even(global, grid);
            const auto file = lattice::open_spinor_file(scratch / "1.1.1.1");
            const spinor_field psi = random_spinor(cut.local_box(j.rank()), global, 5);

            EXPECT_LE(largest_difference(dirac::read_spinors(j, cut, file), psi), 4e-15);
        });
    }
    EXPECT_NE(one.find("<field>test</field><spinBasis>DeGrand-Rossi</spinBasis>"), std::string::npos);
}

TEST(SpinorField, OfAnotherLatticeIsRefusedOnEveryRank) {
    const scratch_folder scratch;
    const std::string path = scratch / "field";
    comm::run_threads(2, [&](const job& j) {
        const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});
        dirac::write_spinors(j, cut, random_spinor(cut.local_box(j.rank()), cut.global(), 5), {}, path);
        const auto file = lattice::open_spinor_file(path);
        const auto other = decomposition::even({2, 2, 2, 8}, {1, 1, 1, 2});
        const std::string said = halocline_test::refusal([&] { dirac::read_spinors(j, other, file); });
        EXPECT_NE(said.find("holds a field on 2.2.2.4 sites, but the lattice is 2.2.2.8"), std::string::npos) << said;
    });
}

TEST(SpinorField, ThatRanksReadFromDifferentFilesIsAnErrorThatSaysSo) {
    const scratch_folder scratch;
    const coordinate global{2, 2, 2, 4};
    const std::string said = refusal_of_all(2, [&](const job& j) {
        const auto cut = decomposition::even(global, {1, 1, 1, 2});
        for (const unsigned seed : {5U, 6U})
            dirac::write_spinors(j, cut, random_spinor(cut.local_box(j.rank()), global, seed), {},
                                 scratch / std::to_string(seed));
        dirac::read_spinors(j, cut, lattice::open_spinor_file(scratch / (j.rank() == 0 ? "5" : "6")));
    });

    EXPECT_EQ(said.find("ranks disagree on what the spinor file says of itself: rank 0 has "), 0U) << said;
}

TEST(SpinorField, ThatIsNotFiniteIsWrittenByNoRank) {
    const scratch_folder scratch;
    const std::string path = scratch / "field";
    comm::run_threads(2, [&](const job& j) {
        const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});
        spinor_field psi = random_spinor(cut.local_box(j.rank()), cut.global(), 5);
        if (j.rank() == 1) psi.at(3, 7) = std::numeric_limits<double>::infinity();
        const std::string said = halocline_test::refusal([&] { dirac::write_spinors(j, cut, psi, {}, path); });
        EXPECT_NE(said.find("a NaN or an infinity at site 1.1.0.2: it is not written"), std::string::npos) << said;
    });
    EXPECT_TRUE(std::filesystem::is_empty(scratch / ""));
}

TEST(SpinorField, OfAnotherShapeIsWrittenByNoRank) {
    const scratch_folder scratch;
    comm::run_threads(2, [&](const job& j) {
        const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});
        const lattice::coordinate local = cut.local_box(j.rank()).extents;
        for (const spinor_field& psi :
             {spinor_field(), spinor_field(local, 12), spinor_field({2, 2, 2, 4}, lattice::spinor_components)})
            EXPECT_THROW(dirac::write_spinors(j, cut, psi, {}, scratch / "field"), input_error);
    });
    EXPECT_TRUE(std::filesystem::is_empty(scratch / ""));
}

/// The ranks that wait for the one that makes the file have its patience, too.
TEST(SpinorField, WaitsBeyondTheDeadlineForARunThatIsWritingTheFile) {
    const scratch_folder scratch;
    const std::string path = scratch / "field";
    auto other_run = std::make_unique<lattice::partial_file>(path);
    other_run->create();
    std::thread end_of_it([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1200));
        other_run.reset();
    });
    comm::job_options impatient;
    impatient.deadline = std::chrono::milliseconds(500);

    std::string said = "nothing";
    try {
        comm::run_threads(
            2,
            [&](const job& j) {
                const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});
                dirac::write_spinors(j, cut, random_spinor(cut.local_box(j.rank()), cut.global(), 5), {}, path);
            },
            impatient);
    } catch (const error& e) {
        said = e.what();
    }
    end_of_it.join();

    EXPECT_EQ(said, "nothing");
    EXPECT_TRUE(std::filesystem::exists(path));
}

/// As on a file system on which hosts send whole pages: rank 1's destroys the end of what rank 0 has written before.
TEST(SpinorField, OfWhichARankDestroysAnothersPartIsNotWritten) {
    const scratch_folder scratch;
    const std::string path = scratch / "field";
    std::ofstream(path) << "old content";
    std::atomic<bool> destroyed = false;
    page_of_two_hosts::writable_is_read = false;
    const std::string said = refusal_of_all(2, [&](const job& j) {
        const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});
        const spinor_field psi = random_spinor(cut.local_box(j.rank()), cut.global(), 5);
        std::optional<page_of_two_hosts> page;
        if (j.rank() == 1) page.emplace();
        const std::string text = refusal([&] { dirac::write_spinors(j, cut, psi, {}, path); });
        if (page) destroyed = page->destroyed;
        throw input_error(text);
    });

    EXPECT_TRUE(destroyed);
    EXPECT_NE(said.find("read back, byte "), std::string::npos) << said;
    EXPECT_NE(said.find("differs from what was written (rank 0 on "), std::string::npos) << said;
    EXPECT_EQ(read_text(path), "old content");
    EXPECT_FALSE(page_of_two_hosts::writable_is_read) << "then NFS clients send whole pages";
}

/// As where each host has a folder of its own, with what a killed run left there.
TEST(SpinorField, OfWhichRanksWriteDifferentFilesIsNotWritten) {
    const scratch_folder scratch;
    const std::string own = scratch / "own", others = scratch / "others";
    std::ofstream(others + ".partial") << "left";
    const std::string said = refusal_of_all(2, [&](const job& j) {
        const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});
        const spinor_field psi = random_spinor(cut.local_box(j.rank()), cut.global(), 5);
        dirac::write_spinors(j, cut, psi, {}, j.rank() == 0 ? own : others);
    });

    EXPECT_EQ(said.find("'" + others + ".partial': is "), 0U) << said;
    EXPECT_NE(said.find("give a name in a folder that all of them see (rank 1 on "), std::string::npos) << said;
    EXPECT_FALSE(std::filesystem::exists(own));
    EXPECT_EQ(read_text(others + ".partial"), "left");
}

/// As on hosts without a common file system.
TEST(SpinorField, ThatOneRankCannotWriteIsAnErrorThatNamesTheRankAndItsHost) {
    const scratch_folder scratch;
    const std::string said = halocline_test::refusal_of_all(2, [&](const job& j) {
        const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});
        const spinor_field psi = random_spinor(cut.local_box(j.rank()), cut.global(), 5);
        dirac::write_spinors(j, cut, psi, {}, j.rank() == 0 ? scratch / "field" : "/nonexistent/field");
    });

    EXPECT_NE(said.find("'/nonexistent/field.partial': can't be opened"), std::string::npos) << said;
    EXPECT_NE(said.find(" (rank 1 on "), std::string::npos) << said;
    EXPECT_TRUE(std::filesystem::is_empty(scratch / ""));
}

TEST(SpinorField, ThatCannotBeWrittenIsOneErrorOnEveryRank) {
    std::array<std::string, 2> said;
    comm::run_threads(2, [&](const job& j) {
        const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});
        const spinor_field psi = random_spinor(cut.local_box(j.rank()), cut.global(), 5);
        said[static_cast<std::size_t>(j.rank())] =
            halocline_test::refusal([&] { dirac::write_spinors(j, cut, psi, {}, "/nonexistent/field"); });
    });
    EXPECT_NE(said[0].find("/nonexistent/field"), std::string::npos) << said[0];
    EXPECT_EQ(said[1], said[0]);
}

} // namespace
