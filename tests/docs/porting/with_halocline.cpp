// SPDX-License-Identifier: Apache-2.0
// The exchanges after: docs/porting-from-mpi.md shows these functions.
#include "porting.hpp"

#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/window.hpp>
#include <halocline/halo/shell_plan.hpp>
#include <halocline/lattice/rank_order.hpp>

#include <algorithm>
#include <initializer_list>

namespace porting {

using namespace halocline;

void diffuse_with_halocline(MPI_Comm cart, const lattice::coordinate& global, padded_array& u, int steps) {
    const auto job = comm::job::from_mpi(cart); // once, by all ranks; ended before MPI_Finalize
    lattice::coordinate grid, periods, here;    // dimensions x, y, z, t; in memory x is the fastest
    MPI_Cart_get(cart, 4, grid.data(), periods.data(), here.data());
    const auto cut = lattice::decomposition::even(global, grid).with_rank_order(lattice::row_major_rank_order(grid));

    halo::shell_options options{.name = "u", .widths = {.low = {1, 1, 1, 1}, .high = {1, 1, 1, 1}}};
    for (int mu = 0; mu < 4; ++mu)
        if (!periods[mu]) options.boundaries[mu] = lattice::boundary::open;

    const auto padded = halo::grown(cut.local_box(job.rank()), options.widths).extents;
    const auto order = lattice::site_order::lexicographic(padded);
    const auto bound = [&](double* array) { // the program's own memory: one double on each site, ghosts included
        return halo::bind(halo::view(array, order));
    };
    halo::shell_plan ghosts(job, cut, options, {bound(u.array(0)), bound(u.array(1))});

    for (int n = 0; n < steps; ++n) {
        ghosts.start(n % 2); // was MPI_Startall: the faces of that array go to the neighbours
        u.update_interior();
        ghosts.finish_or_throw(); // was MPI_Waitall: its ghosts are here
        u.update_boundary();      // the other array is the next
    }
}

lattice::decomposition cut_of_reversed(MPI_Comm cart, const lattice::coordinate& global) {
    lattice::coordinate grid, periods, here; // dimensions t, z, y, x
    MPI_Cart_get(cart, 4, grid.data(), periods.data(), here.data());
    std::ranges::reverse(grid);
    return lattice::decomposition::even(global, grid); // x, y, z, t; the ranks count as in `cart`
}

void exchange_columns_with_windows(const comm::job& job, plane& u, int steps) {
    const int before = (job.rank() + job.ranks() - 1) % job.ranks(), after = (job.rank() + 1) % job.ranks();
    const std::size_t rows = u.rows(), width = u.width(), layers = u.layers();

    comm::connection low(job, before, {"low", to_low, to_high}), high(job, after, {"high", to_high, to_low});
    comm::buffered_send_window<double> out_low(low, rows * layers), out_high(high, rows * layers);
    comm::buffered_recv_window<double> in_low(low, rows * layers), in_high(high, rows * layers);
    low.connect();
    high.connect();
    for (int n = 0; n < steps; ++n) {
        in_low.init();
        in_high.init();
        (void)out_low.init(); // waits until it may be written; a bad status stays, for wait_or_throw()
        (void)out_high.init();
        for (std::size_t y = 0; y < rows; ++y) { // as MPI_Type_vector(rows, layers, width, …)
            out_low.insert(u.row(y).subspan(layers, layers), y * layers);
            out_high.insert(u.row(y).subspan(width - 2 * layers, layers), y * layers);
        }
        out_low.post();
        out_high.post();
        in_low.post();
        in_high.post();
        for (comm::window* w : std::initializer_list<comm::window*>{&in_low, &in_high, &out_low, &out_high})
            w->wait_or_throw();
        for (std::size_t y = 0; y < rows; ++y) {
            in_low.extract(u.row(y).first(layers), y * layers);
            in_high.extract(u.row(y).last(layers), y * layers);
        }
        u.update();
    }
}

int send_and_hear(MPI_Comm comm, const comm::job& job, int peer, std::span<const double> values) {
    comm::connection to_peer(job, peer, {"work", work_tag, work_tag});
    comm::send_window<double> work(to_peer, values);
    to_peer.connect();

    work.start();
    MPI_Request request;
    int answer = 0, here = 0;
    MPI_Irecv(&answer, 1, MPI_INT, peer, work_tag, comm, &request); // sent by a peer that has received `work`
    while (!here) {
        job.progress(); // inside MPI_Recv or MPI_Wait `work` might never leave
        MPI_Test(&request, &here, MPI_STATUS_IGNORE);
    }
    work.wait_or_throw();
    return answer;
}

double sum_of(const comm::job& job, double mine, const std::function<void()>& meanwhile) {
    comm::global_sum sum(job); // once, by all ranks
    double total = mine;
    sum.start({&total, 1}); // was MPI_Iallreduce; sum.sum_or_throw({&total, 1}) is MPI_Allreduce
    meanwhile();
    sum.finish_or_throw({&total, 1}); // was MPI_Wait
    return total;
}

} // namespace porting
