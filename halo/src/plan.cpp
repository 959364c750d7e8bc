// SPDX-License-Identifier: Apache-2.0
// An exchange of a halo plan, from the filled messages to the ghosts. The part of start() that packs is in
// detail/plan_start.hpp.
#include <halocline/halo/detail/plan_core.hpp>

#include "untold_misuse.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/clock.hpp>

namespace halocline::halo {

plan_core::~plan_core() {
    warn_of_untold_misuse(job_, status_, [this] { return why_misused(); });
}

std::string plan_core::why_misused() const {
    const comm::wrong_call& call = status_.wrong_call();
    return "halo '" + options_.name + "': " + (call ? call.text() : accepted_.describe_refused());
}

std::byte* plan_core::target(face f) noexcept {
    if (state() != comm::status::ok) return nullptr; // the peer may have been told, and use that memory otherwise
    const auto wanted = static_cast<std::size_t>(message_of_[f.index()]);
    std::byte* target = nullptr;
    channels_.for_each([&](auto& channel) {
        for_each_message(channel, [&](std::size_t message) {
            if (message == wanted) target = channel.target(epoch_ + 1) + sent_at_[message];
        });
    });
    return target;
}

void plan_core::start_bytes(std::span<const std::byte* const> fields, team t) noexcept {
    const bool there = std::ranges::none_of(fields, [](const std::byte* values) { return values == nullptr; });
    if (!there || !accepted_.fits_bytes(fields.size())) {
        if (status_.misuse()) accepted_.refuse_bytes(fields.size(), there);
        return;
    }
    start_copying(fields, t, [this](const std::byte* values) -> source_field {
        return {values, options_.order.get(), {.components = 1, .component_bytes = options_.bytes_per_site}};
    });
}

void plan_core::start_filled(team t) noexcept {
    start_with([](std::size_t, std::byte*, std::int64_t, std::int64_t) noexcept { return std::uint64_t{0}; }, t,
               packing::by_caller);
}

void plan_core::offer(const comm::joint_source& source, std::uint64_t epoch) noexcept {
    channels_.for_each([&]<class Channel>(Channel& channel) {
        if constexpr (comm::joint_channel<Channel>) {
            // A receiver would pull in the lines of a streamed message, which are far away.
            const std::size_t message = first_in(channel);
            if (joint_.is_offered(message) && !writers_[message].watch().streamed()) channel.offer(epoch, source);
        }
    });
}

void plan_core::help(std::uint64_t epoch) noexcept {
    channels_.for_each([&]<class Channel>(Channel& channel) {
        if constexpr (comm::joint_channel<Channel>) joint_.help(channel, first_in(channel), epoch);
    });
}

void plan_core::refuse_fields(std::size_t fields, const source_field* unfit) noexcept {
    if (status_.misuse()) accepted_.refuse(fields, unfit);
}

bool plan_core::test() noexcept {
    if (state() != comm::status::ok) return true;
    if (team_->is_starting(epoch_)) {
        if (const comm::team_fault late = team_->late_starter(epoch_)) refuse_thread(late);
        return state() != comm::status::ok;
    }
    if (!team_->in_flight(epoch_)) return true;
    const std::uint64_t before = comm::ticks();
    if (joint_.any()) help(epoch_ + 1);
    const bool arrived = channels_.test(epoch_ + 1);
    times_.note_wait(comm::ticks() - before);
    return arrived;
}

comm::status plan_core::finish(team t) noexcept {
    if (!t.is_member()) {
        refuse_thread(t);
        return status_.tell();
    }
    if (t.size == 1) {
        if (wait() != comm::status::ok) leave_if_failed();
        return status_.tell();
    }
    const comm::team_fault fault = team_->finish(t, [&] {
        const auto refused = [&] { return state() != comm::status::ok; };
        const comm::team_fault missing = refused() ? comm::team_fault{} : team_->await_start(t, epoch_, refused);
        if (missing) refuse_thread(missing);
        (void)wait();
    });
    if (fault) refuse_thread(fault);
    if (t.index == 0) leave_if_failed();
    return status_.tell();
}

void plan_core::leave_if_failed() noexcept {
    // Otherwise the destructor does it: a peer that has been told may use the memory that a member still packs into.
    if (state() != comm::status::ok && team_->is_quiet(epoch_) && channels_.may_call_mpi()) channels_.leave();
}

comm::status plan_core::wait() noexcept {
    if (state() == comm::status::ok && !team_->in_flight(epoch_)) status_.misuse("finish() without start()");
    if (const comm::status before = state(); before != comm::status::ok) return before;
    const std::uint64_t epoch = epoch_ + 1;
    const bool helps = joint_.any();
    const auto poll = [&] {
        if (helps) help(epoch);
        return channels_.arrives_soon(epoch);
    };
    const auto await = [&] { return helps ? channels_.wait(epoch, [&] { help(epoch); }) : channels_.wait(epoch); };
    const comm::status arrived = times_.wait(channels_, epoch, poll, await);
    if (arrived != comm::status::ok) {
        if (helps) channels_.leave(); // a peer that is copying pieces of this rank's field is told to discard them
        return status_.end(arrived);
    }
    channels_.for_each([&](const auto& channel) {
        for_each_message(
            channel, [&](std::size_t message) { ghosts_[message] = channel.received(epoch) + arrives_at_[message]; });
    });
    if (seal_.seals()) {
        channels_.for_each([&](const auto& channel) {
            for_each_message(channel, [&](std::size_t message) {
                if (!is_intact(channel, message, epoch)) broken_seal_ = static_cast<int>(message);
            });
        });
        if (broken_seal_ >= 0) return status_.end(comm::status::wrong_data);
    }
    times_.note_finish();
    epoch_ = epoch;
    if (looks_.due(times_.last_stamp())) review_paths();
    return state();
}

template <class Channel>
bool plan_core::is_intact(const Channel& channel, std::size_t message, std::uint64_t epoch) const noexcept {
    if (!seal_.seals()) return true;
    const std::byte* const values = channel.received(epoch) + arrives_at_[message];
    const std::size_t sites = static_cast<std::size_t>(messages_[message].ghost_sites),
                      bytes = sites * options_.bytes_per_site * static_cast<std::size_t>(options_.fields);
    return message_seal::is_at(values + bytes, message_seal::sum_of(values, bytes), epoch);
}

std::span<const face> plan_core::completed() noexcept {
    if (team_->is_starting(epoch_)) return {};
    const bool in_flight = team_->in_flight(epoch_);
    const std::uint64_t epoch = in_flight ? epoch_ + 1 : epoch_;
    std::size_t n = 0;
    if (state() == comm::status::ok && epoch > 0)
        channels_.for_each([&](auto& channel) {
            for_each_message(channel, [&](std::size_t message) {
                const face f = messages_[message].where;
                if (reported_[f.index()] == epoch) return;
                if (in_flight) {
                    if (!channel.arrived(epoch) || channel.check(epoch) != comm::status::ok) return;
                    if (!is_intact(channel, message, epoch)) return; // finish() will report it
                    ghosts_[message] = channel.received(epoch) + arrives_at_[message];
                }
                reported_[f.index()] = epoch;
                completed_[n++] = f;
            });
        });
    if (in_flight && n == 0) channels_.give_way();
    return {completed_.data(), n};
}

void plan_core::finish_or_throw() {
    const comm::status s = finish({});
    if (s == comm::status::ok) return;
    if (s == comm::status::misused) throw input_error(why_misused());
    if (broken_seal_ < 0) job_.fail(s, "halo " + channels_.pending(epoch_ + 1));
    const plan_message& m = messages_[broken_seal_];
    job_.fail(s, "halo '" + options_.name + "' epoch " + std::to_string(epoch_ + 1) + ": what arrived behind " +
                     lattice::to_string(m.where) + " from rank " + std::to_string(m.peer) +
                     " does not have the checksum that it was sent with");
}

} // namespace halocline::halo
