// SPDX-License-Identifier: Apache-2.0
// MPI_Allreduce, for bench_sum --peer.  echo "8 0.5 allreduce" | mpirun -n 2 bench_sum_openmpi
// Each line of standard input is an order: doubles, seconds, call. The answer is one line: microseconds per sum for
// each batch. Calls:
//   allreduce        MPI_Allreduce, in place
//   allreduce-init   the same, persistent (MPI 4): MPI_Start and MPI_Wait
#include "sum_steps.hpp"
#include "support/mpi_peer.hpp"

#include <cstdio>
#include <optional>
#include <string>

namespace {

using namespace halocline::bench;

sum_order order_of(const std::string& line) {
    const std::optional<sum_order> o = sum_order::parse(line);
    if (!o || (o->call != "allreduce" && (o->call != "allreduce-init" || MPI_VERSION < 4)))
        give_up("'" + line + "' is no order 'doubles seconds allreduce|allreduce-init (from MPI 4 on)'");
    return *o;
}

void sum_at_once(std::vector<double>& values) {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

#if MPI_VERSION >= 4
/// Sums of one vector.
class persistent_sum {
  public:
    persistent_sum() = default;
    ~persistent_sum() { MPI_Request_free(&request_); }
    persistent_sum(const persistent_sum&) = delete;
    persistent_sum& operator=(const persistent_sum&) = delete;
    void operator()(std::vector<double>& values) {
        if (request_ == MPI_REQUEST_NULL)
            MPI_Allreduce_init(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_SUM,
                               MPI_COMM_WORLD, MPI_INFO_NULL, &request_);
        MPI_Start(&request_);
        MPI_Wait(&request_, MPI_STATUS_IGNORE);
    }

  private:
    MPI_Request request_ = MPI_REQUEST_NULL;
};
#endif

void serve(orders& from) {
    for (std::string line; !(line = from.next(order_of)).empty();) {
        const sum_order o = order_of(line);
        const auto timed = [&](auto&& sum) {
            return time_sums(from.rank(), from.ranks(), o.values, o.seconds, sum, slowest);
        };
        std::vector<double> us;
#if MPI_VERSION >= 4
        if (o.call == "allreduce-init") us = timed(persistent_sum());
#endif
        if (o.call == "allreduce") us = timed(sum_at_once);
        if (from.rank() != 0) continue;
        for (const double batch : us) std::printf("%.4f ", batch);
        std::printf("\n");
        std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv) { return run_peer(argc, argv, serve); }
