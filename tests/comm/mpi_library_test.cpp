// SPDX-License-Identifier: Apache-2.0
// Where modules for MPI are looked for, by a program that is not in its build's folder, or is: the library's source,
// compiled with folders as a distribution has them.
#include "mpi/library.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace halocline::comm {
namespace {

TEST(MpiLibrary, ModulesAreLookedForFromTheProgramAsAnInstallationHasThem) {
    const auto program = std::filesystem::read_symlink("/proc/self/exe");
    const auto beside = program.parent_path().parent_path() / "lib/of-this-machine/halocline";

    const auto folders = mpi_module_folders();

    std::vector<std::filesystem::path> expected{beside};
    if (HALOCLINE_IS_IN_BUILD)
        expected.emplace_back("/build/lib/halocline"); // another version's, for what is installed
    expected.emplace_back("/configured/lib/of-this-machine/halocline");
    EXPECT_EQ(folders, expected);
}

} // namespace
} // namespace halocline::comm
