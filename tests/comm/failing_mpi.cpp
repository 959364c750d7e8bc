// SPDX-License-Identifier: Apache-2.0
#include "failing_mpi.hpp"
#include "mpi/mpi_module.h"

#include <cstdio>
#include <cstring>

namespace {

failing_mpi state;

constexpr int failure = 17; // an error code of this MPI

halocline_mpi_module module_table() {
    halocline_mpi_module m{};
    m.abi = HALOCLINE_MPI_MODULE_ABI;
    m.bytes = sizeof m;
    m.open = [](const void*, size_t, halocline_mpi_give_up, void*, halocline_mpi_world** world) {
        ++state.open_worlds;
        *world = reinterpret_cast<halocline_mpi_world*>(&state);
        return state.open_code;
    };
    m.close = [](halocline_mpi_world*, int, int given_up) {
        --state.open_worlds;
        state.given_up += given_up;
    };
    m.leave = [](halocline_mpi_world*) {};
    m.rank = [](const halocline_mpi_world*) { return 0; };
    m.size = [](const halocline_mpi_world*) { return 1; };
    m.started_ranks = [] { return 1; };
    m.may_call = [] { return 1; };
    m.version = []() -> const char* { return "Failing MPI 1"; };
    m.describe = [](int, char* text, size_t bytes) { std::snprintf(text, bytes, "it fails"); };
    m.allgather = [](halocline_mpi_world*, const void* mine, const uint64_t* bytes, void* all, halocline_mpi_give_up,
                     void*) {
        std::memcpy(all, mine, bytes[0]);
        return state.gather_code;
    };
    m.windows_open = [](halocline_mpi_world*, int, void* const*, const uint64_t*, halocline_mpi_windows** windows) {
        ++state.windows;
        *windows = reinterpret_cast<halocline_mpi_windows*>(&state);
        return 0;
    };
    m.windows_free = [](halocline_mpi_windows*) {
        if (state.frees_until_failure >= 0 && state.frees_until_failure-- == 0) return failure;
        --state.windows;
        return 0;
    };
    return m;
}

} // namespace

extern "C" const halocline_mpi_module* halocline_mpi_module_table() {
    static const halocline_mpi_module table = module_table();
    return &table;
}

extern "C" failing_mpi* the_failing_mpi() { return &state; }
