// SPDX-License-Identifier: Apache-2.0
// Channels over one-sided MPI: a message is MPI_Put into the peer's slot between MPI_Win_start and MPI_Win_complete;
// the receiver posts its slot an epoch ahead and polls MPI_Win_test. The two slots are two windows, so that k + 1 may
// be exposed before k is read. Nobody starts before the peer has posted (channel_set.hpp: the peer sent its message k -
// 1 after that), so MPI need not check it. Farewells are two-sided: a rank that leaves can't know that its peer has
// posted.
//
// MPICH 4.0 over UCX can return from MPI_Win_complete before it has read all of a large put: in one of 20 jobs at 1 MiB
// the peer got what the sender wrote next. With MPICH every message is therefore copied first and put from the copy.
// Two copies are used in turn: k + 2 is sent after the peer's k + 1 arrived, which the peer sent after it had k
// (docs/decisions/0026-mpi-one-sided.md).
#include "mpi_state.hpp"

#include <cstring>

namespace {

#ifdef MPICH_VERSION
constexpr bool reads_late = true;
#else
constexpr bool reads_late = false;
#endif

/// Performs the access epoch for the peer's next exposure; put() puts the message.
template <class Put>
int access(exposed_slots& e, Put put) {
    const MPI_Win window = e.theirs[++e.sent & 1];
    HALOCLINE_TRY(MPI_Win_start(e.peer, MPI_MODE_NOCHECK, window));
    HALOCLINE_TRY(put(window));
    return MPI_Win_complete(window);
}

int hear(exposed_slots& e) {
    if (e.heard) return MPI_SUCCESS;
    int heard = 0;
    const int code = MPI_Test(&e.in_request, &heard, MPI_STATUS_IGNORE);
    e.heard = heard != 0;
    return code;
}

int make_windows(halocline_mpi_windows& w, int count, void* const* slots, const std::uint64_t* bytes, MPI_Info info) {
    HALOCLINE_TRY(MPI_Info_set(info, "no_locks", "true"));
    for (int i = 0; i < 2 * count; ++i) {
        MPI_Win& window = w.all.emplace_back(MPI_WIN_NULL);
        HALOCLINE_TRY(MPI_Win_create(slots[i], static_cast<MPI_Aint>(bytes[i / 2]), 1, info, w.world->data, &window));
        HALOCLINE_TRY(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
    }
    return MPI_SUCCESS;
}

} // namespace

int windows_open(halocline_mpi_world* world, int count, void* const* slots, const std::uint64_t* bytes,
                 halocline_mpi_windows** windows) {
    HALOCLINE_TRY(usable(*world));
    world->used = true;
    auto made = std::make_unique<halocline_mpi_windows>();
    made->world = world;
    MPI_Info info = MPI_INFO_NULL;
    HALOCLINE_TRY(MPI_Info_create(&info));
    const int code = make_windows(*made, count, slots, bytes, info);
    const int freed = MPI_Info_free(&info);
    // Those made before a failure stay with MPI: freeing them would wait for ranks on which there was none.
    if (code != MPI_SUCCESS) return code;
    *windows = made.release();
    return freed;
}

int windows_free(halocline_mpi_windows* windows) {
    HALOCLINE_TRY(usable(*windows->world));
    for (MPI_Win& window : windows->all)
        if (window != MPI_WIN_NULL) HALOCLINE_TRY(MPI_Win_free(&window)); // null: freed before an earlier call failed
    delete windows;
    return MPI_SUCCESS;
}

int exposed_open(halocline_mpi_world& world, const halocline_mpi_channel_spec& spec, halocline_mpi_channel& channel) {
    channel.exposed = std::make_unique<exposed_slots>();
    exposed_slots& e = *channel.exposed;
    for (int s = 0; s < 2; ++s) {
        e.slot[s] = spec.receive[s];
        e.mine[s] = spec.windows->all[2 * spec.window + s];
        e.theirs[s] = spec.windows->all[2 * spec.peer_window + s];
        if (reads_late) {
            auto& copy = spec.windows->outgoing.emplace_back(std::make_unique<unsigned char[]>(spec.send_bytes));
            e.outgoing[s] = copy.get();
        }
    }
    MPI_Group all = MPI_GROUP_NULL;
    HALOCLINE_TRY(MPI_Comm_group(world.data, &all));
    HALOCLINE_TRY(MPI_Group_incl(all, 1, &spec.peer, &e.peer));
    HALOCLINE_TRY(MPI_Group_free(&all));
    return MPI_Irecv(&e.in, sizeof e.in, MPI_BYTE, spec.peer, spec.receive_tag, world.data, &e.in_request);
}

int exposed_receive_start(halocline_mpi_channel& channel, int slot) {
    exposed_slots& e = *channel.exposed;
    if (e.said) return HALOCLINE_MPI_OK; // the peer knows how many there are; its farewell is awaited
    ++e.exposed;
    e.open[slot] = true;
    return MPI_Win_post(e.peer, MPI_MODE_NOCHECK, e.mine[slot]);
}

int exposed_receive_test(halocline_mpi_channel& channel, int slot, int* done) {
    exposed_slots& e = *channel.exposed;
    HALOCLINE_TRY(hear(e));
    if (e.heard && e.came >= e.in.sent) {
        std::memcpy(e.slot[slot], e.in.unit, sizeof e.in.unit); // in place of a message, as if it had arrived two-sided
        *done = 1;
        return HALOCLINE_MPI_OK;
    }
    *done = 0;
    if (!e.open[slot]) return HALOCLINE_MPI_OK;
    HALOCLINE_TRY(MPI_Win_test(e.mine[slot], done));
    if (*done) {
        e.open[slot] = false;
        ++e.came;
    }
    return HALOCLINE_MPI_OK;
}

int exposed_send(halocline_mpi_channel& channel, int units) {
    exposed_slots& e = *channel.exposed;
    if (e.heard && e.sent >= e.in.exposed) return HALOCLINE_MPI_OK; // nobody would receive it
    const void* from = channel.buffer;
    if (reads_late) {
        unsigned char* const copy = e.outgoing[(e.sent + 1) & 1];
        from = std::memcpy(copy, from, static_cast<std::size_t>(units) * HALOCLINE_MPI_UNIT);
    }
    return access(e, [&](MPI_Win window) {
        const MPI_Datatype unit = channel.world->unit;
        return MPI_Put(from, units, unit, channel.peer, 0, units, unit, window);
    });
}

int exposed_farewell_start(halocline_mpi_channel& channel, const void* unit) {
    exposed_slots& e = *channel.exposed;
    std::memcpy(e.out.unit, unit, sizeof e.out.unit);
    e.out.sent = e.sent;
    e.out.exposed = e.exposed;
    e.said = true;
    return MPI_Isend(&e.out, sizeof e.out, MPI_BYTE, channel.peer, channel.send_tag, channel.world->data,
                     &e.out_request);
}

int exposed_farewell_test(halocline_mpi_channel& channel, int* done) {
    exposed_slots& e = *channel.exposed;
    *done = 0;
    HALOCLINE_TRY(hear(e));
    if (!e.said || !e.heard) return HALOCLINE_MPI_OK;
    if (!e.settled) {
        // Exposures of the peer that no message will use are accessed once, so that its windows can be freed.
        while (e.sent < e.in.exposed) HALOCLINE_TRY(access(e, [](MPI_Win) { return MPI_SUCCESS; }));
        e.settled = true;
    }
    for (int s = 0; s < 2; ++s) {
        if (!e.open[s]) continue;
        int closed = 0;
        HALOCLINE_TRY(MPI_Win_test(e.mine[s], &closed));
        if (!closed) return HALOCLINE_MPI_OK;
        e.open[s] = false;
    }
    return MPI_Test(&e.out_request, done, MPI_STATUS_IGNORE);
}

bool exposed_close(halocline_mpi_channel& channel) {
    exposed_slots& e = *channel.exposed;
    int done = 0;
    if (exposed_farewell_test(channel, &done) != MPI_SUCCESS || !done) return false;
    return MPI_Group_free(&e.peer) == MPI_SUCCESS;
}
