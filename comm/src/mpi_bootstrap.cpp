// SPDX-License-Identifier: Apache-2.0
// A job under an MPI launcher: rank, size and the first gather come from MPI's world.
#include "bootstrap.hpp"
#include "mpi_library.hpp"

#include <halocline/comm/clock.hpp>

#include <chrono>

namespace halocline::comm {

namespace {

/// What a wait over MPI does between polls: nothing, but every millisecond `look`.
template <class Look>
mpi_world::progress every_millisecond(Look look) {
    const auto interval = static_cast<std::uint64_t>(1e-3 / seconds_per_tick());
    return [look = std::move(look), interval, last = ticks()]() mutable {
        if (ticks() - last < interval) return;
        last = ticks();
        look();
    };
}

/// Before ranks know each other: only the clock; of the dead, the launcher takes care.
mpi_world::progress until(std::chrono::milliseconds deadline, std::string operation) {
    return every_millisecond([deadline, operation = std::move(operation), since = ticks()] {
        if (seconds(ticks() - since) < std::chrono::duration<double>(deadline).count()) return;
        throw rank_failure("nothing came within " + std::to_string(deadline.count()) + " ms while this rank waited for "
                               + operation,
                           status::timed_out, -1, 0, {}, operation);
    });
}

class mail_over_mpi final : public mail {
  public:
    explicit mail_over_mpi(job_core& core) : core_(core) {}
    std::vector<std::string> gather(std::string_view mine, std::string_view operation) override {
        return core_.mpi->allgather(mine, watching(operation));
    }
    std::vector<std::string> exchange(std::span<const int> peers, std::span<const std::string> out,
                                      std::string_view operation) override {
        return core_.mpi->exchange(peers, out, watching(operation));
    }
    void send_letter(int peer, std::string_view text) override { core_.mpi->send_letter(peer, text); }
    std::optional<letter> take_letter() override { return core_.mpi->take_letter(watching("a letter that has come")); }

  private:
    mpi_world::progress watching(std::string_view operation) {
        return every_millisecond([this, operation, since = ticks()] { core_.check_or_raise(-1, since, operation); });
    }
    job_core& core_;
};

} // namespace

namespace {

bootstrap bootstrap_over(const mpi_launch& launch, const job_options& options) {
    const std::string joined = launch.communicator ? "all ranks of the communicator" : "all ranks to join MPI's world";
    auto world = std::make_shared<mpi_world>(launch, until(options.deadline, joined));
    bootstrap start;
    start.rank = world->rank();
    start.ranks = world->ranks();
    start.launcher = world->version();
    start.gather = [world, deadline = options.deadline](std::string_view mine) {
        return world->allgather(mine, until(deadline, "every rank's address"));
    };
    start.mpi = std::move(world);
    return start;
}

} // namespace

std::optional<bootstrap> mpi_bootstrap(const job_options& options) {
    const auto launch = mpi_launch_from_environment();
    if (!launch) return std::nullopt;
    return bootstrap_over(*launch, options);
}

bootstrap mpi_bootstrap(const void* communicator, std::size_t bytes, const job_options& options) {
    auto launch = mpi_of_program();
    if (!launch) {
        throw input_error("a job of an MPI communicator: no MPI is seen in this program; name the one it uses in "
                          "HALOCLINE_MPI (openmpi, mpich, or a module's path)");
    }
    launch->communicator = communicator;
    launch->communicator_bytes = bytes;
    return bootstrap_over(*launch, options);
}

std::unique_ptr<mail> mpi_mail(job_core& core) { return std::make_unique<mail_over_mpi>(core); }

} // namespace halocline::comm
