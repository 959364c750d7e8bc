// SPDX-License-Identifier: Apache-2.0
// The errors if MPI contradicts the launcher. Run as `env HALOCLINE_MPI=... mpirun.<other> -n 2`, and alone.
#include "mpi/world.hpp"

#include <halocline/base/error.hpp>
#include <halocline_test/contains.hpp>
#include <halocline_test/environment_variable.hpp>
#include <halocline_test/refusal.hpp>
#include <halocline_test/run_command.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

namespace halocline::comm {
namespace {

using halocline_test::contains;
using halocline_test::environment_variable;

std::string refusal(const mpi_launch& launch) {
    return halocline_test::refusal([&] { mpi_world world(launch); });
}

TEST(MpiPairing, OtherMpisLauncherIsRefusedNamingBoth) {
    const auto launch = mpi_launch_from_environment().value();
    const std::string other = launch.module == "mpich" ? "MPICH" : "Open MPI";

    const std::string text = refusal(launch);

    EXPECT_TRUE(contains(text, launch.title + "'s and started 2 ranks")) << text;
    EXPECT_TRUE(contains(text, other) && contains(text, "sees a world of 1")) << text;
}

TEST(MpiModules, MissingOneIsNamedWithTheRemedy) {
    const std::string text = refusal({"/nowhere/halocline-mpi-other.so", "Other MPI", "OTHER_SIZE=2", 2});

    EXPECT_TRUE(contains(text, "/nowhere/halocline-mpi-other.so")) << text;
    EXPECT_TRUE(contains(text, "OTHER_SIZE=2")) << text;
}

TEST(MpiModules, AMissingOneThatTheUserNamedIsBlamedOnThat) {
    const std::string text = refusal({"other", "MPICH", "PMI_SIZE=2, HALOCLINE_MPI=other", 2});

    EXPECT_TRUE(contains(text, "no module halocline-mpi-other.so (PMI_SIZE=2, HALOCLINE_MPI=other)")) << text;
    EXPECT_TRUE(contains(text, "; or unset HALOCLINE_MPI: the module of MPICH, which started this program, is there"))
        << text;
}

TEST(MpiModules, FoundBesideTheProgram) { EXPECT_FALSE(mpi_modules_present().empty()); }

TEST(MpiModules, ModulePathComesFirst) {
    const environment_variable path("HALOCLINE_MODULE_PATH", "/first:/second");

    const auto folders = mpi_module_folders();

    ASSERT_GE(folders.size(), 3u);
    EXPECT_EQ(folders[0], "/first");
    EXPECT_EQ(folders[1], "/second");
    EXPECT_EQ(folders[2].filename(), "halocline");
}

TEST(MpiModules, SomethingElseThanAModuleIsRefused) {
    const halocline_test::scratch_folder scratch;
    const std::string path = scratch / "not-a-module.so";
    std::filesystem::copy_file("/proc/self/exe", path);

    const std::string text = refusal({path, "", "HALOCLINE_MPI", 0});

    EXPECT_TRUE(contains(text, "no usable module " + path)) << text;
}

TEST(MpiLaunch, OpenMpiWinsOverPmi) {
    const environment_variable pmi("PMI_SIZE", "3"), openmpi("OMPI_COMM_WORLD_SIZE", "4");
    const auto launch_with = [](const std::optional<std::string>& choice) {
        const environment_variable set("HALOCLINE_MPI", choice);
        return mpi_launch_from_environment();
    };

    const auto launch = launch_with(std::nullopt), chosen = launch_with("mpich");

    ASSERT_TRUE(launch);
    EXPECT_EQ(launch->module, "openmpi");
    EXPECT_EQ(launch->ranks, 4);
    ASSERT_TRUE(chosen);
    EXPECT_EQ(chosen->module, "mpich");
    EXPECT_EQ(chosen->evidence, "OMPI_COMM_WORLD_SIZE=4, HALOCLINE_MPI=mpich");
}

TEST(MpiLaunch, NoLauncherIsNone) {
    const environment_variable choice("HALOCLINE_MPI", std::nullopt), pmi("PMI_SIZE", std::nullopt),
        openmpi("OMPI_COMM_WORLD_SIZE", std::nullopt);

    EXPECT_FALSE(mpi_launch_from_environment());
}

} // namespace
} // namespace halocline::comm
