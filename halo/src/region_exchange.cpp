// SPDX-License-Identifier: Apache-2.0
// The course of a region_plan's exchange: how it is waited for, and how it ends.
#include "region_exchange.hpp"

namespace halocline::halo {

bool region_plan::state::has_arrived() noexcept {
    if (!status.is_ok() || !started()) return true;
    driver.take_over();
    if (!options.add) advance();
    return channels.has_arrived(epoch + 1);
}

bool region_plan::state::test() noexcept { return has_arrived() || channels.test(epoch + 1); }

void region_plan::state::wait() noexcept {
    const std::uint64_t k = epoch + 1;
    const auto arrives_soon = [&] {
        const bool sent = unsent == 0 || channels.spin([&] {
            send_direct();
            return unsent == 0;
        });
        if (joint) help(); // after what peers wait for
        return sent && channels.arrives_soon(k);
    };
    (void)status.end(times.wait(channels, k, arrives_soon, [&] {
        finishing = true;
        const comm::status result = channels.wait(k); // copies what is freed meanwhile, in work()
        finishing = false;
        return result;
    }));
}

comm::status region_plan::state::complete() noexcept {
    if (status.is_ok() && !started()) status.misuse("finish() without start()");
    if (status.is_ok()) {
        driver.take_over();
        wait();
    }
    if (status.is_ok()) {
        if (options.add)
            add_all();
        else
            advance();
        if (broken_from >= 0) (void)status.end(comm::status::wrong_data);
    }
    if (!status.is_ok()) {
        leave();
        return status.load();
    }
    times.note_finish();
    ++epoch;
    review_paths();
    driver.give_up();
    return status.load();
}

void region_plan::state::leave() noexcept {
    (void)status.end(comm::status::aborted); // unless it has a status of its own
    driver.take_over();
    driver.give_up();
    if (channels.may_call_mpi() && !left.exchange(true, std::memory_order_acq_rel)) channels.leave();
}

} // namespace halocline::halo
