// SPDX-License-Identifier: Apache-2.0
// Channels over MPI: persistent requests, two for receiving into the slots in turn and one for sending; or one-sided
// (mpi_exposed.cpp).
#include "mpi_state.hpp"

#include <climits>
#include <cstring>

namespace {

// Messages are counted in units of 64 bytes, so that an int reaches 128 GiB.
int units(uint64_t bytes, int* count) {
    const uint64_t n = bytes / HALOCLINE_MPI_UNIT;
    if (bytes % HALOCLINE_MPI_UNIT != 0 || n > INT_MAX) return MPI_ERR_COUNT;
    *count = static_cast<int>(n);
    return MPI_SUCCESS;
}

// Also true for MPI_REQUEST_NULL.
bool is_done(MPI_Request& request) {
    int done = 0;
    return MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done;
}

} // namespace

bool is_idle(halocline_mpi_channel& channel) {
    const auto free_if = [](bool done, MPI_Request& request) {
        if (done) MPI_Request_free(&request);
        return done;
    };
    bool idle = true;
    for (int slot = 0; slot < 2; ++slot) {
        MPI_Request& request = channel.receive[slot];
        if (request != MPI_REQUEST_NULL) idle = free_if(!channel.receiving[slot] || is_done(request), request) && idle;
    }
    if (channel.send != MPI_REQUEST_NULL) idle = free_if(is_done(channel.send), channel.send) && idle;
    idle = is_done(channel.part) && idle;
    return is_done(channel.farewell) && idle;
}

// Local: the peer's end may be gone already. What can't be ended now, such as a receive that a large message has begun
// to fill, is left over.
int channel_close(halocline_mpi_channel* channel) {
    if (!channel) return 1;
    if (!may_use_mpi(*channel->world)) {
        for (int slot = 0; slot < 2; ++slot)
            if (channel->receiving[slot]) take_back(channel->receive[slot]);
        if (channel->exposed && !channel->exposed->heard) take_back(channel->exposed->in_request);
        return 0;
    }
    if (channel->exposed) {
        if (!exposed_close(*channel)) return 0;
        delete channel;
        return 1;
    }
    for (int slot = 0; slot < 2; ++slot)
        if (channel->receiving[slot]) take_back(channel->receive[slot]);
    const bool idle = is_idle(*channel);
    if (idle)
        delete channel;
    else
        leave_over(channel);
    return idle ? 1 : 0;
}

int channel_open(halocline_mpi_world* world, const halocline_mpi_channel_spec* spec, halocline_mpi_channel** channel) {
    HALOCLINE_TRY(usable(*world));
    world->used = true;
    int send_count = 0, receive_count = 0;
    HALOCLINE_TRY(units(spec->send_bytes, &send_count));
    HALOCLINE_TRY(units(spec->receive_bytes, &receive_count));
    auto* c = new halocline_mpi_channel;
    *channel = c;
    c->world = world;
    c->peer = spec->peer;
    c->send_tag = spec->send_tag;
    c->buffer = spec->send;
    c->send_units = send_count;
    if (spec->windows != nullptr) return exposed_open(*world, *spec, *c);
    HALOCLINE_TRY(
        MPI_Send_init(spec->send, send_count, world->unit, spec->peer, spec->send_tag, world->data, &c->send));
    for (int slot = 0; slot < 2; ++slot) {
        HALOCLINE_TRY(MPI_Recv_init(spec->receive[slot], receive_count, world->unit, spec->peer, spec->receive_tag,
                                    world->data, &c->receive[slot]));
    }
    return HALOCLINE_MPI_OK;
}

int receive_start(halocline_mpi_channel* channel, int slot) {
    HALOCLINE_TRY(usable(*channel->world));
    if (channel->exposed) return exposed_receive_start(*channel, slot);
    channel->receiving[slot] = true;
    return MPI_Start(&channel->receive[slot]);
}

int receive_test(halocline_mpi_channel* channel, int slot, int* done) {
    *done = 0;
    HALOCLINE_TRY(usable(*channel->world));
    if (channel->exposed) return exposed_receive_test(*channel, slot, done);
    const int code = MPI_Test(&channel->receive[slot], done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || *done) channel->receiving[slot] = false;
    if (code == MPI_SUCCESS) return HALOCLINE_MPI_OK;
    int kind = MPI_SUCCESS;
    MPI_Error_class(code, &kind);
    return kind == MPI_ERR_TRUNCATE ? HALOCLINE_MPI_TRUNCATED : code;
}

int send_start(halocline_mpi_channel* channel) {
    HALOCLINE_TRY(usable(*channel->world));
    return channel->exposed ? exposed_send(*channel, channel->send_units) : MPI_Start(&channel->send);
}

int send_part_start(halocline_mpi_channel* channel, uint64_t bytes) {
    HALOCLINE_TRY(usable(*channel->world));
    int count = 0;
    HALOCLINE_TRY(units(bytes, &count));
    if (channel->exposed) return exposed_send(*channel, count);
    const halocline_mpi_world* world = channel->world;
    return MPI_Isend(channel->buffer, count, world->unit, channel->peer, channel->send_tag, world->data,
                     &channel->part);
}

int send_test(halocline_mpi_channel* channel, int* done) {
    *done = 0;
    HALOCLINE_TRY(usable(*channel->world));
    if (channel->exposed) {
        *done = 1; // because MPI_Win_complete has returned
        return HALOCLINE_MPI_OK;
    }
    MPI_Request* under_way = channel->part != MPI_REQUEST_NULL ? &channel->part : &channel->send;
    return MPI_Test(under_way, done, MPI_STATUS_IGNORE);
}

int farewell_start(halocline_mpi_channel* channel, const void* unit) {
    HALOCLINE_TRY(usable(*channel->world));
    if (channel->exposed) return exposed_farewell_start(*channel, unit);
    std::memcpy(channel->last, unit, sizeof channel->last);
    return MPI_Isend(channel->last, 1, channel->world->unit, channel->peer, channel->send_tag, channel->world->data,
                     &channel->farewell);
}

int farewell_test(halocline_mpi_channel* channel, int* done) {
    *done = 0;
    HALOCLINE_TRY(usable(*channel->world));
    if (channel->exposed) return exposed_farewell_test(*channel, done);
    return MPI_Test(&channel->farewell, done, MPI_STATUS_IGNORE);
}
