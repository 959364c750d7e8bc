// SPDX-License-Identifier: Apache-2.0
// Determines which MPI started this process, and loads the module for it. No program links libmpi: the launcher's
// environment shows which MPI it is (docs/decisions/0005-mpi-as-modules.md).
#pragma once

#include "mpi_module.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace halocline::comm {

/// What the environment says about an MPI launcher.
struct mpi_launch {
    std::string module;                 ///< "openmpi", "mpich", or the path of a module
    std::string title;                  ///< "Open MPI", "MPICH"
    std::string evidence;               ///< "OMPI_COMM_WORLD_SIZE=4"
    int ranks = 0;                      ///< 0: the launcher does not say
    const void* communicator = nullptr; ///< address of the program's MPI_Comm; nullptr: the world of the launcher
    std::size_t communicator_bytes = 0;
};

/// The MPI launcher above this process, if there is one. $HALOCLINE_MPI (openmpi, mpich, or a path) overrides the
/// choice of the module, but not the launcher's number of ranks.
std::optional<mpi_launch> mpi_launch_from_environment();

/// The MPI that this program itself uses, if that can be found out: by its symbols, else by the launcher.
std::optional<mpi_launch> mpi_of_program();

/// Where modules are searched for, in this order: $HALOCLINE_MODULE_PATH, the run path of the program (before it, that of
/// a shared library that has this code), where an installation has them beside its programs, where they were built if
/// this code lies there, where they would have been installed.
std::vector<std::filesystem::path> mpi_module_folders();

/// The modules found there, by name, for reports.
std::vector<std::string> mpi_modules_present();

/// A loaded module. It is never unloaded: an MPI library does not survive that.
struct loaded_mpi_module {
    const halocline_mpi_module* table = nullptr;
    std::filesystem::path path;
};

/// Err: input_error: no such module, or one with another ABI; says where it was searched for and what would help.
loaded_mpi_module load_mpi_module(const mpi_launch& launch);

} // namespace halocline::comm
