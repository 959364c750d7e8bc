// SPDX-License-Identifier: Apache-2.0
// One MPI behind the C interface of mpi_module.h: its world, and large messages. The same sources are compiled for each
// installed MPI; they see nothing else of halocline. Everything that waits is a non-blocking operation and a test loop,
// so that a caller who learns of a death can give up; only MPI_Init_thread, and MPI_Finalize with what prepares it,
// block.
#include "mpi_state.hpp"

#include <atomic>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>
#include <unistd.h>

namespace {

std::atomic<bool> abandoned = false; // MPI must not be called any more: it could write memory that was given back
// Not empty at exit(): the program ends in mid-job, but other ranks do not. Never destroyed: see mpi_leftovers.cpp.
auto& open_worlds = *new std::vector<halocline_mpi_world*>;
bool ended_badly = false; // the last job; then the others may never reach MPI_Finalize

// With more ranks than cores, lets the peer run.
int wait_one(MPI_Request request, halocline_mpi_give_up give_up, void* context) {
    for (;;) {
        int done = 0;
        HALOCLINE_TRY(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        if (done) return HALOCLINE_MPI_OK;
        if (give_up(context)) {
            abandoned = true; // its target will be freed, and missing ranks may never reach MPI_Finalize
            return HALOCLINE_MPI_GAVE_UP;
        }
        sched_yield();
    }
}

bool settled = false;     // settle_leftovers() has been called by all ranks together
pid_t initialized_by = 0; // a child of fork() also reaches exit(), but must not call MPI

void finalize_at_exit() {
    if (getpid() != initialized_by) return;
    int finalized = 0;
    if (abandoned || ended_badly || !open_worlds.empty() || MPI_Finalized(&finalized) != MPI_SUCCESS || finalized)
        return;
    // Ranks finalize together: MPICH over UCX can hang if one rank is in MPI_Finalize seconds before another.
    MPI_Barrier(MPI_COMM_WORLD);
    settle_leftovers(true);
    settled = true;
    MPI_Finalize();
}

bool is_initialized() {
    int yes = 0, over = 0;
    return MPI_Initialized(&yes) == MPI_SUCCESS && MPI_Finalized(&over) == MPI_SUCCESS && yes && !over;
}

} // namespace

int usable(const halocline_mpi_world& world) {
    const bool left = world.left.load(std::memory_order_relaxed) || abandoned.load(std::memory_order_relaxed);
    return left ? HALOCLINE_MPI_LEFT : HALOCLINE_MPI_OK;
}

bool may_use_mpi(const halocline_mpi_world& world) { return usable(world) == HALOCLINE_MPI_OK && is_initialized(); }

// Not followed by a test whether that succeeded, because the test would also receive what others have sent.
void take_back(MPI_Request& receive) {
    if (receive != MPI_REQUEST_NULL && is_initialized()) MPI_Cancel(&receive);
}

namespace {

#ifdef MPICH_VERSION
/// mpiexec sends SIGUSR1 to the others when a rank dies (-disable-auto-cleanup), which would end this process before it
/// can say who died. A handler, not SIG_IGN, because programs started by a rank would inherit that.
void survive_notice() {
    struct sigaction now {};
    if (sigaction(SIGUSR1, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return; // the program has its own
    now.sa_handler = [](int) {};
    now.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &now, nullptr);
}
#else
void survive_notice() {}
#endif

int initialize() {
    int done = 0;
    HALOCLINE_TRY(MPI_Initialized(&done));
    if (done) return MPI_SUCCESS; // the program's own MPI, which the program finalises
    int provided = 0;
    // Any thread of the program may make the rank's calls, but never two at a time.
    HALOCLINE_TRY(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
    initialized_by = getpid();
    std::atexit(finalize_at_exit); // after MPI's own handlers, so it runs before them
    return MPI_SUCCESS;
}

/// MPI_Finalize deletes the attributes of MPI_COMM_SELF first. Jobs that the program still has may call MPI no more,
/// which would end the process with an error of MPI's that doesn't name the reason.
int leave_at_finalize(MPI_Comm, int, void*, void*) {
    for (halocline_mpi_world* world : open_worlds) world->left = true;
    if (!open_worlds.empty())
        std::fputs("halocline: MPI_Finalize was called before the end of a job; destroy the job, and everything made "
                   "from it, before MPI_Finalize: from now on it makes no calls of MPI\n",
                   stderr);
    if (!settled && !abandoned && !ended_badly) settle_leftovers(false);
    return MPI_SUCCESS;
}

int watch_for_finalize() {
    static bool watched = false;
    if (std::exchange(watched, true)) return MPI_SUCCESS;
    int key = MPI_KEYVAL_INVALID;
    HALOCLINE_TRY(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave_at_finalize, &key, nullptr));
    return MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
}

int may_call() {
    int initialised_it = 0, level = MPI_THREAD_SINGLE;
    if (MPI_Is_thread_main(&initialised_it) != MPI_SUCCESS) return 0;
    return initialised_it || (MPI_Query_thread(&level) == MPI_SUCCESS && level >= MPI_THREAD_SERIALIZED);
}

int duplicate(MPI_Comm parent, MPI_Comm& copy, halocline_mpi_give_up give_up, void* context) {
    MPI_Request request = MPI_REQUEST_NULL;
    HALOCLINE_TRY(MPI_Comm_idup(parent, &copy, &request));
    if (const int code = wait_one(request, give_up, context); code != HALOCLINE_MPI_OK) return code;
    return MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
}

int open(const void* communicator, size_t bytes, halocline_mpi_give_up give_up, void* context,
         halocline_mpi_world** world) {
    if (abandoned) return HALOCLINE_MPI_LEFT;
    survive_notice();
    MPI_Comm parent = MPI_COMM_WORLD;
    if (communicator != nullptr) {
        if (bytes != sizeof parent || !is_initialized()) return HALOCLINE_MPI_NO_COMMUNICATOR;
        std::memcpy(&parent, communicator, bytes);
        if (parent == MPI_COMM_NULL) return HALOCLINE_MPI_NO_COMMUNICATOR;
    } else {
        HALOCLINE_TRY(initialize());
    }
    if (!may_call()) return HALOCLINE_MPI_WRONG_THREAD;
    int between_groups = 0;
    HALOCLINE_TRY(MPI_Comm_test_inter(parent, &between_groups));
    if (between_groups != 0) return HALOCLINE_MPI_INTERCOMMUNICATOR;
    HALOCLINE_TRY(watch_for_finalize());
    auto* w = new halocline_mpi_world;
    open_worlds.push_back(w);
    *world = w;
    if (const int code = duplicate(parent, w->setup, give_up, context); code != HALOCLINE_MPI_OK) return code;
    if (const int code = duplicate(parent, w->data, give_up, context); code != HALOCLINE_MPI_OK) return code;
    HALOCLINE_TRY(MPI_Comm_rank(w->data, &w->rank));
    HALOCLINE_TRY(MPI_Comm_size(w->data, &w->size));
    int* bound = nullptr;
    int found = 0;
    HALOCLINE_TRY(MPI_Comm_get_attr(w->data, MPI_TAG_UB, static_cast<void*>(&bound), &found));
    w->max_tag = found ? *bound : 32767; // guaranteed by the standard
    HALOCLINE_TRY(MPI_Type_contiguous(HALOCLINE_MPI_UNIT, MPI_BYTE, &w->unit));
    return MPI_Type_commit(&w->unit);
}

// Freeing communicators is collective, so it happens in the same order on each rank: when its job ends. Neither Open
// MPI nor MPICH waits for the others in it; both give a new communicator only a number that is free on all of its
// ranks.
void close(halocline_mpi_world* world, int clean, int given_up) {
    if (world == nullptr) return;
    std::erase(open_worlds, world);
    ended_badly = given_up != 0 || world->left;
    if (world->left && world->used) abandoned = true; // a call for a later world could move its messages
    if (!abandoned && is_initialized()) {
        if (world->unit != MPI_DATATYPE_NULL) MPI_Type_free(&world->unit);
        for (MPI_Comm* communicator : {&world->setup, &world->data})
            if (clean != 0 && !world->left && *communicator != MPI_COMM_NULL) MPI_Comm_free(communicator);
        if (clean == 0 && !ended_badly && world->data != MPI_COMM_NULL) leave_over(world->data);
    }
    delete world;
}

void leave(halocline_mpi_world* world) { world->left = true; }

int rank(const halocline_mpi_world* world) { return world->rank; }
int size(const halocline_mpi_world* world) { return world->size; }
int started_ranks() {
    int ranks = 0;
    return MPI_Comm_size(MPI_COMM_WORLD, &ranks) == MPI_SUCCESS ? ranks : 0;
}
int max_tag(const halocline_mpi_world* world) { return world->max_tag; }

const char* version() {
    static const std::string text = [] {
        char raw[MPI_MAX_LIBRARY_VERSION_STRING] = {};
        int length = 0;
        if (MPI_Get_library_version(raw, &length) != MPI_SUCCESS) return std::string("MPI of unknown version");
        const auto number_after = [&](const char* mark) {
            const char* at = std::strstr(raw, mark);
            if (!at) return std::string();
            at += std::strlen(mark);
            at += std::strspn(at, " \tv");
            return std::string(at, std::strcspn(at, " ,\t\n"));
        };
        if (const std::string number = number_after("Open MPI"); !number.empty()) return "Open MPI " + number;
        if (const std::string number = number_after("MPICH Version:"); !number.empty()) return "MPICH " + number;
        return std::string(raw, std::strcspn(raw, ",\n"));
    }();
    return text.c_str();
}

void describe(int code, char* text, size_t bytes) {
    char raw[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    if (MPI_Error_string(code, raw, &length) != MPI_SUCCESS) std::snprintf(raw, sizeof raw, "error code %d", code);
    std::snprintf(text, bytes, "%s", raw);
}

int allgather(halocline_mpi_world* world, const void* mine, const uint64_t* bytes, void* all,
              halocline_mpi_give_up give_up, void* context) {
    HALOCLINE_TRY(usable(*world));
    const auto ranks = static_cast<std::size_t>(world->size);
    std::vector<int> counts(ranks), places(ranks);
    uint64_t total = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
        if (total + bytes[r] > INT_MAX) return MPI_ERR_COUNT;
        counts[r] = static_cast<int>(bytes[r]);
        places[r] = static_cast<int>(total);
        total += bytes[r];
    }
    MPI_Request request = MPI_REQUEST_NULL;
    HALOCLINE_TRY(MPI_Iallgatherv(mine, counts[world->rank], MPI_BYTE, all, counts.data(), places.data(), MPI_BYTE,
                                  world->setup, &request));
    return wait_one(request, give_up, context);
}

void progress(halocline_mpi_world* world) {
    if (usable(*world) != HALOCLINE_MPI_OK) return;
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world->setup, &found, MPI_STATUS_IGNORE);
}

static_assert(sizeof(MPI_Request) <= sizeof(halocline_mpi_transfer));

int transfer_start(halocline_mpi_world* world, int receives, int peer, int tag, void* data, uint64_t bytes,
                   halocline_mpi_transfer* transfer) {
    HALOCLINE_TRY(usable(*world));
    world->used = true;
    const int count = static_cast<int>(bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    HALOCLINE_TRY(receives ? MPI_Irecv(data, count, MPI_BYTE, peer, tag, world->data, &request)
                           : MPI_Isend(data, count, MPI_BYTE, peer, tag, world->data, &request));
    std::memcpy(transfer, &request, sizeof request);
    return HALOCLINE_MPI_OK;
}

int transfer_test(halocline_mpi_world* world, halocline_mpi_transfer* transfer, int* done) {
    *done = 0;
    HALOCLINE_TRY(usable(*world));
    MPI_Request request;
    std::memcpy(&request, transfer, sizeof request);
    const int code = MPI_Test(&request, done, MPI_STATUS_IGNORE);
    std::memcpy(transfer, &request, sizeof request);
    return code;
}

void transfer_cancel(halocline_mpi_world* world, halocline_mpi_transfer* transfer) {
    MPI_Request request;
    std::memcpy(&request, transfer, sizeof request);
    take_back(request);
    if (!may_use_mpi(*world)) return;
    int done = 0;
    for (int tests = 0; !done && tests < 1000; ++tests)
        if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    // MPI can't cancel it, or it matched a message that stopped half-way: nothing else keeps MPI away from that memory.
    if (!done) abandoned = true;
}

constexpr halocline_mpi_module module_table{
    HALOCLINE_MPI_MODULE_ABI,
    sizeof(halocline_mpi_module),
    open,
    close,
    leave,
    rank,
    size,
    started_ranks,
    may_call,
    max_tag,
    version,
    describe,
    allgather,
    progress,
    windows_open,
    windows_free,
    channel_open,
    channel_close,
    receive_start,
    receive_test,
    send_start,
    send_part_start,
    send_test,
    farewell_start,
    farewell_test,
    transfer_start,
    transfer_test,
    transfer_cancel,
};

} // namespace

extern "C" __attribute__((visibility("default"))) const halocline_mpi_module* halocline_mpi_module_table() {
    return &module_table;
}
