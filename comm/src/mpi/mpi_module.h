/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface between comm/ and a loadable module that wraps one MPI. Compiled into both sides; a module is
 * compiled once per MPI (comm/modules) and loaded at set-up, so that no program links libmpi
 * (docs/decisions/0005-mpi-as-modules.md). Functions that can fail return HALOCLINE_MPI_OK, one of the negative codes
 * below, or an error code of that MPI. */
#ifndef HALOCLINE_COMM_MPI_MODULE_H
#define HALOCLINE_COMM_MPI_MODULE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised with every change below; a module with another number is refused. */
#define HALOCLINE_MPI_MODULE_ABI 13u
#define HALOCLINE_MPI_MODULE_ENTRY "halocline_mpi_module_table"

/* TRUNCATED: a message was longer than its receive. NO_COMMUNICATOR: not of this MPI, or MPI is not initialised.
 * WRONG_THREAD: only the thread that initialised MPI may call it, and this is another one.
 * INTERCOMMUNICATOR: between two groups, neither of which has all ranks.
 * LEFT: nothing was done, because leave() was called, or MPI may still write memory that has been given back. */
enum {
    HALOCLINE_MPI_OK = 0,
    HALOCLINE_MPI_GAVE_UP = -1,
    HALOCLINE_MPI_TRUNCATED = -2,
    HALOCLINE_MPI_NO_COMMUNICATOR = -3,
    HALOCLINE_MPI_WRONG_THREAD = -4,
    HALOCLINE_MPI_LEFT = -5,
    HALOCLINE_MPI_INTERCOMMUNICATOR = -6
};

/* A private duplicate of MPI_COMM_WORLD, or of a communicator of the program. */
typedef struct halocline_mpi_world halocline_mpi_world;
/* Persistent requests, or windows, to and from one peer. */
typedef struct halocline_mpi_channel halocline_mpi_channel;

/* Called between polls by every function that waits; non-zero: give up (the operation is abandoned, the job lost). */
typedef int (*halocline_mpi_give_up)(void* context);

/* Windows over the slots of a plan's channels, two for each. */
typedef struct halocline_mpi_windows halocline_mpi_windows;

typedef struct halocline_mpi_channel_spec {
    int peer;
    int send_tag;    /* the peer's receive_tag */
    int receive_tag; /* unique among the live channels of this world, <= max_tag */
    void* send;
    void* receive[2];
    uint64_t send_bytes; /* multiples of HALOCLINE_MPI_UNIT: counts stay small beyond 2 GiB */
    uint64_t receive_bytes;
    /* One-sided: post-start-complete-wait on these windows instead of persistent requests; else NULL. */
    halocline_mpi_windows* windows;
    int window;      /* the one over receive[] */
    int peer_window; /* the peer's `window` */
} halocline_mpi_channel_spec;

enum { HALOCLINE_MPI_UNIT = 64 };

/* An MPI_Request: a send from, or a receive into, the caller's memory. */
typedef struct halocline_mpi_transfer {
    uint64_t request;
} halocline_mpi_transfer;

typedef struct halocline_mpi_module {
    uint32_t abi;
    uint32_t bytes; /* sizeof this struct */

    /* communicator: address of an MPI_Comm of `bytes` bytes in a program that has called MPI_Init; or NULL: uses
     * MPI_COMM_WORLD, and calls MPI_Init_thread unless the program did. Collective over the communicator, which stays
     * the program's. If MPI was initialised here, exit() finalises it, unless a world is still open, or the last one
     * was left or given up. A program that finalises MPI while worlds are open leaves them. LEFT: an earlier world was
     * left with messages under way, or a wait was given up: MPI must not be called any more. */
    int (*open)(const void* communicator, size_t bytes, halocline_mpi_give_up, void* context,
                halocline_mpi_world** world);
    /* clean: no message of its communicators is under way or will arrive, so they are freed (no known MPI waits for
     * other ranks in that). Else they are kept, so that no later communicator gets their messages.
     * given_up: only this rank has failed, and its program may end while others continue. */
    void (*close)(halocline_mpi_world*, int clean, int given_up);
    /* The job failed. From now on every function returns LEFT or does nothing for this world, except that receives are
     * cancelled where that needs no other rank: the job's memory will be freed, and MPI must not fill it. Any thread
     * may call it. */
    void (*leave)(halocline_mpi_world*);

    int (*rank)(const halocline_mpi_world*);
    int (*size)(const halocline_mpi_world*);
    /* Size of MPI_COMM_WORLD. */
    int (*started_ranks)(void);
    /* May this thread call MPI while no other does? 0: another one initialised it, with MPI_THREAD_SINGLE or
     * MPI_THREAD_FUNNELED. */
    int (*may_call)(void);
    int (*max_tag)(const halocline_mpi_world*);
    /* Version of the library found at run time: "Open MPI 4.1.4". */
    const char* (*version)(void);
    /* Text of an error code. */
    void (*describe)(int code, char* text, size_t bytes);

    /* Puts bytes[r] bytes from each rank r into `all`, in rank order.  Pre: same bytes on every rank; sum < 2^31. */
    int (*allgather)(halocline_mpi_world*, const void* mine, const uint64_t* bytes, void* all, halocline_mpi_give_up,
                     void* context);
    /* Lets MPI make progress, some of which happens only inside MPI calls. Never waits. */
    void (*progress)(halocline_mpi_world*);

    /* Makes windows i = 0 ... count - 1, each over slots[2 i] and slots[2 i + 1] of bytes[i] bytes; NULL and 0: none on
     * this rank. Collective over the world with the same count; blocks until every rank has called. */
    int (*windows_open)(halocline_mpi_world*, int count, void* const* slots, const uint64_t* bytes,
                        halocline_mpi_windows** windows);
    /* Collective, blocks likewise.  Pre: channel_close() gave 1 for all channels that use them, on every rank. */
    int (*windows_free)(halocline_mpi_windows*);
    /* Sets up a channel: local. Buffers must outlive it. */
    int (*channel_open)(halocline_mpi_world*, const halocline_mpi_channel_spec*, halocline_mpi_channel**);
    /* Cancels receives that nobody will serve; never waits. 1: the buffers are no longer in use, 0: keep them. */
    int (*channel_close)(halocline_mpi_channel*);
    /* The data path. None of these waits for the peer's program, except that a one-sided send waits until MPI has moved
     * the data, which may need MPI calls by the peer. A receive is tested until done, then started again.
     * One-sided: epochs are sent in order, 1, 2, ..., and the peer has started its receive of each before. */
    int (*receive_start)(halocline_mpi_channel*, int slot);
    int (*receive_test)(halocline_mpi_channel*, int slot, int* done);
    int (*send_start)(halocline_mpi_channel*);
    /* Instead of send_start: only the first `bytes` of the send buffer, a multiple of HALOCLINE_MPI_UNIT. */
    int (*send_part_start)(halocline_mpi_channel*, uint64_t bytes);
    int (*send_test)(halocline_mpi_channel*, int* done);
    /* Sends one message of HALOCLINE_MPI_UNIT bytes instead of the next payload. `unit` is copied; once per channel. */
    int (*farewell_start)(halocline_mpi_channel*, const void* unit);
    int (*farewell_test)(halocline_mpi_channel*, int* done);

    /* Sends or receives one message of fewer than 2^31 bytes, straight from or into `data`; tag: as for channels. Never
     * waits. */
    int (*transfer_start)(halocline_mpi_world*, int receives, int peer, int tag, void* data, uint64_t bytes,
                          halocline_mpi_transfer*);
    int (*transfer_test)(halocline_mpi_world*, halocline_mpi_transfer*, int* done);
    /* Cancels a receive for which nothing will be sent any more. MPI does not touch its memory afterwards: if the
     * receive can't be cancelled, MPI is not called any more. */
    void (*transfer_cancel)(halocline_mpi_world*, halocline_mpi_transfer*);
} halocline_mpi_module;

/* The only symbol of a module. */
typedef const halocline_mpi_module* (*halocline_mpi_module_entry)(void);

#ifdef __cplusplus
}
#endif

#endif
