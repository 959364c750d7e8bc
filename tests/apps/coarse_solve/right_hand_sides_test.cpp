// SPDX-License-Identifier: Apache-2.0
// Several right-hand sides in one run: their names, and each solution compared with that of a run of its own.
#include "program.hpp"
#include "smooth_configuration.hpp"
#include "source_file.hpp"

#include <halocline/dirac/gauge_configuration.hpp>
#include <halocline/dirac/reference_operator.hpp>
#include <halocline/dirac/spinor_field.hpp>
#include <halocline_app/right_hand_side.hpp>

#include <cmath>
#include <filesystem>
#include <stdexcept>

namespace coarse_solve_test {
namespace {

using namespace halocline;

constexpr lattice::coordinate extents{4, 4, 4, 8};
const std::string quick = "--vectors 8 --setup 1 --blocks 2.2.2.2 --m0 -0.3 ";

TEST(RightHandSides, NamesAreSeparatedByCommasButThoseOfAPathStay) {
    for (const std::string text :
         {"ones", "ones,unit,random,random:3", "file:a.lime,file:b.lime", "file:a,b.lime", "file:a,,b,", "file:a, b",
          "file:unit,ones", "point:0.1.2.3:2.1,file:x,point:7.0.0.0:0.0"})
        EXPECT_EQ(app::show(app::read_right_hand_sides(text)), text);

    EXPECT_EQ(app::read_right_hand_sides("file:a,b.lime").size(), 1);
    EXPECT_EQ(app::read_right_hand_sides("file:a,file:b.lime").size(), 2);
    EXPECT_EQ(app::show(app::read_right_hand_sides("ones, unit, file:x")), "ones,unit,file:x");
    for (const std::string text :
         {"", ",", "ones,", ",ones", "ones,,unit", "ones unit", "file:", "point:", "unit.lime"})
        EXPECT_THROW((void)app::read_right_hand_sides(text), std::invalid_argument) << text;
}

TEST(RightHandSides, APointWithoutSpinAndColourStandsForAllTwelve) {
    const auto all = app::read_right_hand_sides("ones,point:1.2.3.4");

    ASSERT_EQ(all.size(), 13);
    for (int i = 0; i < 12; ++i) {
        const auto& one = all[static_cast<std::size_t>(i) + 1];
        EXPECT_EQ(app::show(one), "point:1.2.3.4:" + std::to_string(i / 3) + "." + std::to_string(i % 3));
    }
}

TEST(RightHandSides, OfOneRunHaveTheSolutionsOfRunsOfTheirOwn) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "g.ildg", source = scratch / "b.lime";
    write_smooth(gauge, extents);
    write_source(source, extents);
    const std::string with_gauge = quick + "--gauge " + gauge, one = scratch / "one.lime";
    const std::vector<std::string> names{"random", "file:" + source, "unit", "point:1.2.3.4:1.2"};
    std::string given;
    for (const std::string& name : names) given += " --rhs " + name;

    const auto together = solve_all(ranks(2), with_gauge + given + " --solution " + (scratch / "x.lime"));

    const auto in_pairs = solve_all(ranks(2), with_gauge + given + " --at-once 3"); // 4 are 2 + 2

    ASSERT_EQ(together.size(), names.size());
    ASSERT_EQ(in_pairs.size(), names.size());
    EXPECT_FALSE(std::filesystem::exists(scratch / "x.lime"));
    for (std::size_t i = 0; i < names.size(); ++i) {
        EXPECT_EQ(together[i]["at_once"], 4);
        EXPECT_EQ(in_pairs[i]["at_once"], 2);
        expect_same_bits(together[i], in_pairs[i], names[i]);
        const std::string file = scratch / ("x.0" + std::to_string(i) + ".lime");
        const json alone = solve(ranks(2), with_gauge + " --rhs " + names[i] + " --solution " + one);
        EXPECT_EQ(together[i]["rhs"], names[i]);
        EXPECT_EQ(together[i]["solution"], file);
        EXPECT_EQ(together[i]["rhs_norm"], alone["rhs_norm"]);
        expect_same_bits(together[i], alone, names[i]);
        EXPECT_TRUE(halocline_test::read_text(file) == halocline_test::read_text(one)) << names[i];
    }
}

TEST(RightHandSides, RandomOnesAreToldApartByTheirNumbers) {
    const scratch_folder scratch;
    write_smooth(scratch / "g.ildg", extents);

    const auto all = solve_all(ranks(2), quick + "--rhs random,random:1,random:0 --gauge " + (scratch / "g.ildg"));

    ASSERT_EQ(all.size(), 3);
    EXPECT_EQ(all[1]["rhs"], "random:1");
    EXPECT_NE(all[0]["rhs_norm"], all[1]["rhs_norm"]);
    expect_same_bits(all[0], all[2], "random is random:0");
}

/// D x of a solution, in the basis of files, is 1 in the component of the point and 0 elsewhere.
TEST(RightHandSides, APointIsOneInTheBasisOfFiles) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "g.ildg";
    write_smooth(gauge, extents);
    constexpr lattice::coordinate site{3, 0, 2, 5};

    solve_all(ranks(2), quick + "--rhs point:3.0.2.5 --gauge " + gauge + " --solution " + (scratch / "x"));

    comm::run_threads(1, [&](const comm::job& j) {
        const auto cut = lattice::decomposition::even(extents, {1, 1, 1, 1});
        const auto verified = dirac::read_configuration(j, cut, lattice::open_gauge_file(gauge));
        dirac::reference_operator d(j, cut, dirac::padded_links(j, cut, verified.links), {.m0 = -0.3, .csw = 1});
        for (int component = 0; component < 12; ++component) {
            const std::string number = std::to_string(component);
            const std::string file = scratch / ("x." + std::string(2 - number.size(), '0') + number);
            const auto x = dirac::read_spinors(j, cut, lattice::open_spinor_file(file));
            lattice::field<double> b(x.shared_order(), lattice::spinor_components);
            d.apply(b, x);
            dirac::change_spin_basis(b);
            b.at(lattice::lexicographic_index(site, extents), 2 * component) -= 1;
            double most = 0;
            for (const double value : b.values()) most = std::max(most, std::abs(value));
            EXPECT_LE(most, 1.001e-10) << component;
        }
    });
}

TEST(RightHandSides, OfWhichOneDoesNotConvergeFailTheRunAfterAllWereTried) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "g.ildg", zero = scratch / "zero.lime";
    write_smooth(gauge, extents);
    write_source(zero, extents, 0);

    const std::string once = quick + "--max-iterations 1 --gauge " + gauge + " ";

    const auto all = solve_all(ranks(2), once + "--rhs unit --rhs file:" + zero + " --rhs ones", 1);

    ASSERT_EQ(all.size(), 3);
    EXPECT_FALSE(all[0]["converged"]);
    EXPECT_TRUE(all[1]["converged"]);
    const json alone = solve(ranks(2), once + "--rhs ones", 1);
    expect_same_bits(all[2], alone, "after one that did not converge");
}

/// The second one is announced once the line of the first was written; the run is then killed.
TEST(RightHandSides, LinesOfThoseThatAreDoneStayIfTheRunIsEnded) {
    const scratch_folder scratch;
    const std::string file = scratch / "r.json", out = scratch / "out";
    write_smooth(scratch / "g.ildg", extents);
    const std::string long_solves = quick + "--tol 1e-300 --max-iterations 500 --rhs ones,unit,random --at-once 1 ";

    run_command("sh -c 'mkfifo " + out + "; " + bin + "/coarse_solve " + long_solves + "--gauge " +
                (scratch / "g.ildg") + " --json " + file + " >" + out + " & grep -q -m 1 \"right-hand side 2 of 3\" " +
                out + "; kill -KILL $!; wait'");

    std::ifstream lines(file);
    std::vector<std::string> done;
    for (std::string line; std::getline(lines, line);) done.push_back(json::parse(line)["rhs"]);
    ASSERT_GE(done.size(), 1);
    EXPECT_EQ(done.front(), "ones");
}

TEST(RightHandSides, LinesGoToAStreamAsTheyAreDone) {
    const scratch_folder scratch;
    write_smooth(scratch / "g.ildg", extents);

    const auto run = run_command(
        on_ranks(2, quick + "--rhs ones,unit --at-once 1 --json /dev/stdout --gauge " + (scratch / "g.ildg")));

    EXPECT_EQ(run.exit_code, 0) << run.err;
    const std::size_t first = run.out.find("\"rhs\":\"ones\""), second = run.out.find("right-hand side 2 of 2"),
                      last = run.out.find("\"rhs\":\"unit\"");
    ASSERT_NE(last, std::string::npos) << run.out;
    EXPECT_LT(first, second) << run.out;
    EXPECT_LT(second, last) << run.out;
    EXPECT_EQ(run.out.find("\"rhs\":\"ones\"", first + 1), std::string::npos) << "once:\n" << run.out;
}

TEST(RightHandSides, AreAnArrayInAConfigFile) {
    const scratch_folder scratch;
    const std::string config = scratch / "c.toml";
    write_smooth(scratch / "g.ildg", extents);
    std::ofstream(config) << "[solver]\nrhs = ['unit', 'ones']\n";

    const auto two = solve_all(ranks(2), quick + config + " --gauge " + (scratch / "g.ildg"));

    ASSERT_EQ(two.size(), 2);
    EXPECT_EQ(two[0]["rhs"], "unit");
    EXPECT_EQ(two[1]["rhs"], "ones");
    EXPECT_EQ(two[0]["settings"]["solver.rhs"], "unit");
}

} // namespace
} // namespace coarse_solve_test
