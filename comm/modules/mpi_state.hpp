// SPDX-License-Identifier: Apache-2.0
// What the files of a module share: a world, and a channel of either kind.
#pragma once

#include "mpi/mpi_module.h"

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#define HALOCLINE_TRY(call)                                                                                            \
    do {                                                                                                               \
        if (const int code = (call); code != MPI_SUCCESS) return code;                                                 \
    } while (false)

struct halocline_mpi_windows {
    const halocline_mpi_world* world = nullptr;
    std::vector<MPI_Win> all;                               // 2 i and 2 i + 1: slots 0 and 1 of channel i
    std::vector<std::unique_ptr<unsigned char[]>> outgoing; // for exposed_slots: MPI may read them until all are freed
};

struct halocline_mpi_world {
    MPI_Comm setup = MPI_COMM_NULL; // for collectives of the set-up
    MPI_Comm data = MPI_COMM_NULL;  // for channels: all tags of this communicator are theirs
    MPI_Datatype unit = MPI_DATATYPE_NULL;
    int rank = 0, size = 1, max_tag = 0;
    std::atomic<bool> left = false; // leave() was called
    bool used = false;              // it has had channels, windows or transfers: messages may be under way
};

/// The end of a channel: the message that arrived last, and the epochs for which memory was exposed.
struct exposed_farewell {
    unsigned char unit[HALOCLINE_MPI_UNIT]{};
    std::uint64_t sent = 0, exposed = 0; // epochs
};

/// One-sided: epoch k exposes slot k mod 2 and accesses the peer's.
struct exposed_slots {
    MPI_Group peer = MPI_GROUP_NULL;
    MPI_Win mine[2]{MPI_WIN_NULL, MPI_WIN_NULL}, theirs[2]{MPI_WIN_NULL, MPI_WIN_NULL};
    void* slot[2]{};
    // Messages are put from these in turn, if MPI may read them after MPI_Win_complete (mpi_exposed.cpp).
    unsigned char* outgoing[2]{};
    bool open[2]{false, false};                    // exposed, not yet waited for
    std::uint64_t exposed = 0, came = 0, sent = 0; // epochs
    exposed_farewell out, in;
    MPI_Request out_request = MPI_REQUEST_NULL, in_request = MPI_REQUEST_NULL;
    bool said = false, heard = false, settled = false; // settled: no access epoch will follow
};

struct halocline_mpi_channel {
    MPI_Request send = MPI_REQUEST_NULL;
    MPI_Request part = MPI_REQUEST_NULL; // a partial send under way
    const void* buffer = nullptr;        // source of both kinds of send
    int send_units = 0;
    MPI_Request receive[2]{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    bool receiving[2]{false, false};
    MPI_Request farewell = MPI_REQUEST_NULL;
    const halocline_mpi_world* world = nullptr;
    int peer = 0, send_tag = 0;
    alignas(HALOCLINE_MPI_UNIT) unsigned char last[HALOCLINE_MPI_UNIT]{}; // sent as the farewell
    std::unique_ptr<exposed_slots> exposed;                               // if one-sided: replaces all requests
};

/// HALOCLINE_MPI_OK, or HALOCLINE_MPI_LEFT.
int usable(const halocline_mpi_world& world);
/// False: the job has failed, MPI holds memory, or MPI is not running.
bool may_use_mpi(const halocline_mpi_world& world);
/// Cancels a receive that no message has matched. Needs no other rank and moves no data.
void take_back(MPI_Request& receive);

/// Is nothing of the channel under way? Frees the requests that are not.
bool is_idle(halocline_mpi_channel& channel);

// What ends of jobs leave over (mpi_leftovers.cpp).
void leave_over(halocline_mpi_channel* channel);
void leave_over(MPI_Comm communicator);
/// Receives what nobody has received, until nothing is under way in any of these communicators, for about 2 s at most.
/// `together`: all ranks of MPI_COMM_WORLD do so; alone, a rank ends when nothing has come for 10 ms.
void settle_leftovers(bool together);

// These implement the functions of the same names in mpi_module.h (mpi_channel.cpp).
int channel_open(halocline_mpi_world* world, const halocline_mpi_channel_spec* spec, halocline_mpi_channel** channel);
int channel_close(halocline_mpi_channel* channel);
int receive_start(halocline_mpi_channel* channel, int slot);
int receive_test(halocline_mpi_channel* channel, int slot, int* done);
int send_start(halocline_mpi_channel* channel);
int send_part_start(halocline_mpi_channel* channel, std::uint64_t bytes);
int send_test(halocline_mpi_channel* channel, int* done);
int farewell_start(halocline_mpi_channel* channel, const void* unit);
int farewell_test(halocline_mpi_channel* channel, int* done);

// One-sided implementations of the same (mpi_exposed.cpp).
int windows_open(halocline_mpi_world* world, int count, void* const* slots, const std::uint64_t* bytes,
                 halocline_mpi_windows** windows);
int windows_free(halocline_mpi_windows* windows);
int exposed_open(halocline_mpi_world& world, const halocline_mpi_channel_spec& spec, halocline_mpi_channel& channel);
int exposed_receive_start(halocline_mpi_channel& channel, int slot);
int exposed_receive_test(halocline_mpi_channel& channel, int slot, int* done);
int exposed_send(halocline_mpi_channel& channel, int units);
int exposed_farewell_start(halocline_mpi_channel& channel, const void* unit);
int exposed_farewell_test(halocline_mpi_channel& channel, int* done);
/// True if nothing accesses the slots any more.
bool exposed_close(halocline_mpi_channel& channel);
