// SPDX-License-Identifier: Apache-2.0
// Completions of operations, and arrivals.
#include "bulk.hpp"
#include "endpoint.hpp"
#include "tags.hpp"

#include <cstdio>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

namespace halocline::comm {
namespace {

/// Does this completion tell of a peer's write? That of an own one may have the data, too (opx), but also says FI_WRITE.
bool is_arrival(std::uint64_t flags) { return (flags & (FI_REMOTE_CQ_DATA | FI_WRITE)) == FI_REMOTE_CQ_DATA; }

} // namespace

void ofi_world::poll() noexcept {
    if (endpoint_->is_cut) return;
    take_completions();
    push_waiting();
}

void ofi_world::take_completions() noexcept {
    fi_cq_data_entry entries[16];
    constexpr ssize_t most = 16;
    for (int round = 0; round < 4; ++round) {
        const ssize_t n = fi_cq_read(endpoint_->completions, entries, most);
        for (ssize_t i = 0; i < n; ++i) {
            if (is_arrival(entries[i].flags)) {
                arrive(entries[i].data);
            } else if (auto* done = static_cast<ofi_operation*>(entries[i].op_context)) {
                if (done->end == nullptr) {
                    ofi_bulk_link::completed(*done, 0);
                } else if (done->receives) {
                    --done->end->receives_posted;
                    arrive(*done->end, done->tag);
                } else {
                    --done->end->under_way;
                }
            }
        }
        if (n == -FI_EAVAIL) {
            if (!take_failure()) return;
        } else if (n < 0 && n != -FI_EAGAIN) {
            return fail(nullptr, static_cast<int>(n), nullptr);
        } else if (n < most) {
            return;
        }
    }
}

bool ofi_world::take_failure() noexcept {
    fi_cq_err_entry why{};
    if (fi_cq_readerr(endpoint_->completions, &why, 0) != 1) return false;
    char text[128]{};
    const char* said = fi_cq_strerror(endpoint_->completions, why.prov_errno, why.err_data, text, sizeof text);
    auto* operation = static_cast<ofi_operation*>(why.op_context);
    if (operation != nullptr && operation->end == nullptr && !is_arrival(why.flags)) {
        // A piece of a large message. If this rank cancelled it, that is not an error.
        if (why.err != FI_ECANCELED) note(-why.err, said);
        ofi_bulk_link::completed(*operation, -why.err);
    } else if (operation != nullptr && operation->receives) {
        --operation->end->receives_posted;
        if (why.err != FI_ECANCELED) fail(operation->end, -why.err, said);
    } else if (operation != nullptr && !is_arrival(why.flags)) {
        --operation->end->under_way;
        fail(operation->end, -why.err, said);
    } else { // not an operation of this rank: an arrival, or the endpoint itself
        fail(nullptr, -why.err, said);
    }
    return true;
}

void ofi_world::push_waiting() noexcept {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
        ofi_end& e = *waiting_[i];
        const int code = e.error ? 0 : push_all(e);
        e.waiting = code == -FI_EAGAIN;
        if (e.waiting) {
            waiting_[kept++] = &e;
        } else if (code != 0) {
            fail(&e, code, nullptr);
        }
    }
    waiting_.resize(kept);
}

void ofi_world::arrive(std::uint64_t data) noexcept {
    const auto bits = static_cast<std::uint32_t>(data);
    if (bits & ofi_tags::bulk) {
        const std::uint32_t link = (bits & ~ofi_tags::bulk) >> ofi_tags::record_bits;
        // A link that is gone has given up on late arrivals.
        if (link < bulks_.size() && bulks_[link]) bulks_[link]->arrived(bits & (bulk_link::records - 1));
        return;
    }
    const std::uint32_t id = bits >> ofi_tags::bits, tag = bits & ofi_tags::mask;
    if (id >= ends_.size() || !ends_[id]) {
        fail(nullptr, -FI_EOTHER, "a write for a channel that does not exist");
        return;
    }
    arrive(*ends_[id], tag);
}

void ofi_world::arrive(ofi_end& e, std::uint32_t tag) noexcept {
    if (tag == ofi_tags::greeting) {
        e.greeted = true;
    } else if (tag == ofi_tags::farewell) {
        e.farewell_came = true;
    } else if (tag >= ofi_tags::parts) {
        ++e.parts_came[tag & 1];
    } else if (tag >= ofi_tags::values) {
        ++e.values_came[tag & 1];
    } else if (++e.pieces[tag] == e.pieces_in) {
        e.pieces[tag] = 0;
        ++e.came[tag];
    }
}

void ofi_world::note(int code, const char* text) noexcept {
    if (trouble_[0] != '\0') return; // later errors are consequences of the first
    std::snprintf(trouble_, sizeof trouble_, "%s%s%s", ofi_library::loaded().strerror(-code), text && *text ? ": " : "",
                  text ? text : "");
}

void ofi_world::cut() noexcept {
    fail(nullptr, -FI_ECANCELED, "the job has ended");
    leave();
}

void ofi_world::leave() noexcept { endpoint_->cut(); }

void ofi_world::fail(ofi_end* end, int code, const char* text) noexcept {
    if (code == 0) code = -FI_EOTHER;
    note(code, text);
    if (end != nullptr) {
        end->error = code;
        return;
    }
    endpoint_->error = code;
    for (auto& e : ends_) {
        if (e) e->error = code;
    }
}

} // namespace halocline::comm
