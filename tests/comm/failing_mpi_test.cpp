// SPDX-License-Identifier: Apache-2.0
// What is left of a world of MPI after MPI has failed. The argument names a module whose calls fail (failing_mpi.cpp).
#include "failing_mpi.hpp"
#include "mpi/world.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/bad_input.hpp>
#include <halocline_test/environment_variable.hpp>
#include <halocline_test/refusal.hpp>
#include <halocline_test/run_tests.hpp>

#include <gtest/gtest.h>

#include <array>
#include <dlfcn.h>
#include <string>

namespace {

using namespace halocline;
using namespace halocline::comm;

std::string module_path;

/// The same object as the module's, because it is loaded once.
failing_mpi& mpi() {
    void* const library = dlopen(module_path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const entry = library != nullptr ? dlsym(library, "the_failing_mpi") : nullptr;
    if (entry == nullptr) throw error(module_path + " is not the module that fails");
    return *reinterpret_cast<failing_mpi_entry>(entry)();
}

mpi_launch through_it() { return {module_path, "", "a test", 0}; }

TEST(FailingMpi, AWorldThatCouldNotBeOpenedIsClosed) {
    mpi() = {.open_code = 17};

    EXPECT_THROW(mpi_world{through_it()}, job_error);

    EXPECT_EQ(mpi().open_worlds, 0);
    EXPECT_EQ(mpi().given_up, 1) << "the other ranks may be fine, and in MPI_Finalize this one would wait for them";
}

TEST(FailingMpi, AWorldOfTheWrongSizeIsClosed) {
    mpi() = {};
    mpi_launch of_two = through_it();
    of_two.ranks = 2;

    EXPECT_THROW(mpi_world{of_two}, input_error);

    EXPECT_EQ(mpi().open_worlds, 0);
}

TEST(FailingMpi, WindowsThatCouldNotBeFreedAreStillThere) {
    mpi() = {};
    {
        mpi_world world(through_it());
        std::array<std::byte, 64> slot{};
        const std::array slots{mpi_slots{{slot.data(), slot.data()}, slot.size()}};
        const std::array all{world.expose(slots, {}), world.expose(slots, {}), world.expose(slots, {})};
        all[0]->channels = all[2]->channels = 0; // closed
        mpi().frees_until_failure = 1;

        EXPECT_THROW(static_cast<void>(world.expose({}, {})), job_error);
        EXPECT_EQ(mpi().windows, 2);
        EXPECT_EQ(world.expose({}, {}), nullptr);
        EXPECT_EQ(mpi().windows, 1) << "those of channels that are open";
    }
    EXPECT_EQ(mpi().open_worlds, 0);
}

TEST(FailingMpi, OfTwoErrorsTheUsersIsTold) {
    mpi() = {.gather_code = 17};
    const halocline_test::environment_variable module("HALOCLINE_MPI", module_path);
    const int communicator = 0;

    EXPECT_EQ(halocline_test::refusal<unshared_input_error>(
                  [&] { share_bad_input("--steps is negative", &communicator, sizeof communicator); }),
              "--steps is negative");
}

} // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    module_path = argc > 1 ? argv[1] : "";
    return halocline_test::run_tests();
}
