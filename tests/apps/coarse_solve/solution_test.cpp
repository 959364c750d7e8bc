// SPDX-License-Identifier: Apache-2.0
// A source read from a file and its solution written to one: the plain operator checks the contents of the files.
#include "program.hpp"
#include "smooth_configuration.hpp"
#include "source_file.hpp"

#include "../../lattice/openqcd_format.hpp"

#include <halocline/dirac/gauge_configuration.hpp>
#include <halocline/dirac/reference_operator.hpp>
#include <halocline/dirac/spinor_field.hpp>
#include <halocline/lattice/partial_file.hpp>

#include <cmath>
#include <fstream>

namespace coarse_solve_test {
namespace {

using namespace halocline;

constexpr lattice::coordinate extents{4, 4, 4, 8};
const std::string quick = "--vectors 8 --setup 1 --blocks 2.2.2.2 --m0 -0.3 ";

double norm(const lattice::field<double>& a) {
    double squares = 0;
    for (double v : a.values()) squares += v * v;
    return std::sqrt(squares);
}

/// |b - D x| / |b| for two files, and the norms of both.
struct judgement {
    double residual = 0, norm_x = 0, norm_b = 0;
};
judgement judge(const std::string& gauge, const std::string& solution, const std::string& source) {
    judgement result;
    comm::run_threads(1, [&](const comm::job& j) {
        const auto cut = lattice::decomposition::even(extents, {1, 1, 1, 1});
        const auto verified = dirac::read_configuration(j, cut, lattice::open_gauge_file(gauge));
        dirac::reference_operator d(j, cut, dirac::padded_links(j, cut, verified.links), {.m0 = -0.3, .csw = 1});
        const auto x = dirac::read_spinors(j, cut, lattice::open_spinor_file(solution));
        const auto b = dirac::read_spinors(j, cut, lattice::open_spinor_file(source));
        lattice::field<double> r(x.shared_order(), lattice::spinor_components);
        d.apply(r, x);
        for (std::size_t k = 0; k < r.values().size(); ++k) r.values()[k] -= b.values()[k];
        result = {norm(r) / norm(b), norm(x), norm(b)};
    });
    return result;
}

TEST(Solution, OfASourceFromAFileSolvesItOnAnyNumberOfRanks) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "g.ildg", source = scratch / "b.lime";
    write_smooth(gauge, extents);
    write_source(source, extents);
    for (const int n : {1, 2, 4}) {
        const std::string solution = scratch / ("x" + std::to_string(n));

        const json r =
            solve(ranks(n), quick + "--gauge " + gauge + " --rhs file:" + source + " --solution " + solution);

        const judgement judged = judge(gauge, solution, source);
        EXPECT_LE(judged.residual, 1.001e-10) << n;
        EXPECT_NEAR(judged.residual, r["true_relative_residual"], 1e-14) << n;
        EXPECT_NEAR(judged.norm_x, r["solution_norm"], 1e-12 * judged.norm_x) << n;
        EXPECT_NEAR(judged.norm_b, r["rhs_norm"], 1e-12 * judged.norm_b) << n;
        EXPECT_EQ(r["rhs"], "file:" + source);
        EXPECT_EQ(r["solution"], solution);
    }
}

TEST(Solution, OfASourceWhoseSquaresAreOutOfRangeIsThatOfAnOrdinaryOne) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "g.ildg", source = scratch / "b.lime";
    write_smooth(gauge, extents);
    const auto of_factor = [&](double factor) {
        write_source(source, extents, factor);
        return solve(ranks(2), quick + "--gauge " + gauge + " --rhs file:" + source, 0);
    };
    const json usual = of_factor(1);

    for (const double factor : {0x1p-664, 0x1p664}) { // about 1e-200 and 1e200
        json r = of_factor(factor);

        EXPECT_LE(r["true_relative_residual"], 1.001e-10) << factor;
        EXPECT_NEAR(double(r["rhs_norm"]) / factor, usual["rhs_norm"], 1e-12 * double(usual["rhs_norm"]));
        EXPECT_NEAR(double(r["solution_norm"]) / factor, usual["solution_norm"], 1e-8 * double(usual["solution_norm"]));
    }
}

TEST(Solution, ResultsAreWrittenWhateverBytesAreInNamesOfFilesHoweverLong) {
    const scratch_folder scratch;
    const std::string folder = scratch / (std::string(240, 'd') + "/" + std::string(240, 'e') + "/");
    const std::string gauge = folder + "g\xff.ildg", solution = folder + "x\xfe.lime";
    std::filesystem::create_directories(folder);
    write_smooth(gauge, extents);

    const json r = solve(ranks(1), quick + "--gauge '" + gauge + "' --solution '" + solution + "'");

    EXPECT_EQ(r["gauge"], folder + "g\uFFFD.ildg");
    EXPECT_TRUE(std::filesystem::exists(solution));
    const auto dry = run_command(on_ranks(1, quick + "--gauge '" + gauge + "' --dry-run"));
    EXPECT_NE(dry.out.find("'" + gauge + "'"), std::string::npos) << dry.out << dry.err;
}

TEST(Solution, IsTheSourceOfASecondSolve) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "g.ildg", first = scratch / "x.lime", second = scratch / "y.lime";
    write_smooth(gauge, extents);

    const json once = solve(ranks(2), quick + "--gauge " + gauge + " --rhs unit --solution " + first);
    const json twice = solve(ranks(4), quick + "--gauge " + gauge + " --rhs file:" + first + " --solution " + second);

    EXPECT_NEAR(twice["rhs_norm"], once["solution_norm"], 1e-12 * double(once["solution_norm"]));
    EXPECT_LE(judge(gauge, second, first).residual, 1.001e-10);
}

TEST(Solution, IsTheSameFileWhereItsBitsAreTheSame) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "g.ildg", source = scratch / "b.lime", file = scratch / "x.lime";
    write_smooth(gauge, extents);
    write_source(source, extents);
    const std::string arguments =
        quick + "--mpi 1.1.1.2 --gauge " + gauge + " --rhs file:" + source + " --solution " + file;
    solve(ranks(2), arguments);
    const std::string shm = halocline_test::read_text(file);
    ASSERT_FALSE(shm.empty());

    std::filesystem::remove(file);
    solve([](const std::string& a) { return "env HALOCLINE_COMM_PATH=packed " + on_ranks(2, a); }, arguments);
    EXPECT_TRUE(halocline_test::read_text(file) == shm) << "packed";
    for (const char* mpirun : {"mpirun.openmpi", "mpirun.mpich"}) {
        if (!installed(mpirun)) continue;
        std::filesystem::remove(file);
        solve([&](const std::string& a) { return under_mpi(mpirun, 2, a); }, arguments + " --transport mpi");
        EXPECT_TRUE(halocline_test::read_text(file) == shm) << mpirun;
    }
}

TEST(Solution, ThatDidNotConvergeIsWrittenAndSaysSo) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "g.ildg", file = scratch / "x.lime";
    write_smooth(gauge, extents);

    const json r = solve(ranks(2), quick + "--max-iterations 1 --gauge " + gauge + " --solution " + file, 1);

    EXPECT_FALSE(r["converged"]);
    EXPECT_EQ(r["solution"], file);
    EXPECT_NE(halocline_test::read_text(file).find("<converged>false</converged>"), std::string::npos);
}

TEST(Solution, OfLinksWithAnOpenBoundaryInTSaysSo) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "g.openqcd", file = scratch / "x.lime";
    const auto unit_link = [](std::int64_t site, int mu) {
        const bool zero = mu == 3 && lattice::lexicographic_coordinate(site, extents)[3] == extents[3] - 1;
        return zero ? halocline_test::matrix{} : halocline_test::matrix{1, 0, 0, 0, 1, 0, 0, 0, 1};
    };
    const double plaquette = 1 - 0.5 / extents[3]; // those in t of the last time slice are zero
    std::ofstream(gauge, std::ios::binary) << halocline_test::openqcd(extents, unit_link, plaquette);
    const std::string arguments = "--vectors 8 --setup 0 --m0 0.1 --max-iterations 3 --gauge " + gauge +
                                  " --solution " + file + " --json " + (scratch / "json");

    const auto run = run_command(on_ranks(2, arguments));

    EXPECT_NE(run.out.find("its directions 1, 2, 3 are z, y, x here: lattice x.y.z.t = N3.N2.N1.N0 = 4.4.4.8\n"),
              std::string::npos)
        << run.out << run.err;
    const std::string open = "periodic,periodic,periodic,open";
    EXPECT_NE(halocline_test::read_text(file).find("<boundary>" + open + "</boundary>"), std::string::npos);
    EXPECT_EQ(json::parse(halocline_test::read_text(scratch / "json"))["settings"]["operator.boundary"], open);
}

TEST(Solution, ReplacesWhatAKilledRunLeftAndSaysSo) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "g.ildg", file = scratch / "x.lime", partial = file + ".partial";
    write_smooth(gauge, extents);
    std::ofstream(partial) << "half a field";

    const auto run = run_command(on_ranks(2, quick + "--gauge " + gauge + " --solution " + file));

    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.out.find("warning: '" + partial + "' is there"), std::string::npos) << run.out;
    EXPECT_EQ(lattice::open_spinor_file(file).extents, extents);
    EXPECT_FALSE(std::filesystem::exists(partial));
}

TEST(Solution, ThatAnotherRunIsWritingIsRefusedBeforeTheWork) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "g.ildg", file = scratch / "x.lime";
    write_smooth(gauge, extents);
    lattice::partial_file other(file);
    other.create();

    for (const std::string flag : {"--solution ", "--json "}) {
        const auto run = run_command(on_ranks(2, quick + "--gauge " + gauge + " " + flag + file));

        EXPECT_EQ(run.exit_code, 2) << run.err;
        EXPECT_NE(run.err.find("process " + std::to_string(::getpid()) + " ("), std::string::npos) << run.err;
        EXPECT_NE(run.err.find("is writing it now, as '" + other.name() + "'"), std::string::npos) << run.err;
        EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << "more than one message:\n" << run.err;
    }
    other.publish(); // is still there
}

TEST(Solution, IsWrittenInPlaceOfAnOlderFileAndNothingElseIsLeft) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "g.ildg", file = scratch / "x.lime";
    write_smooth(gauge, extents);
    write_source(file, {2, 2, 2, 2});

    const auto run = run_command(on_ranks(2, quick + "--gauge " + gauge + " --solution " + file));

    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.out.find("wrote " + file + " (read back and verified)"), std::string::npos) << run.out;
    EXPECT_EQ(lattice::open_spinor_file(file).extents, extents);
    int files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(scratch / "")) ++files;
    EXPECT_EQ(files, 2);
}

} // namespace
} // namespace coarse_solve_test
