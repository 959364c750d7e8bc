// SPDX-License-Identifier: Apache-2.0
// The exchange after: windows inside the same MPI program. First in the order of MPI's calls, then in three steps.
#include "porting.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline/comm/window.hpp>

namespace porting {

using namespace halocline;

void diffuse_windows(const comm::job& job, strip& u, int steps) {
    const int before = (job.rank() + job.ranks() - 1) % job.ranks(), after = (job.rank() + 1) % job.ranks();
    const std::size_t rows = u.rows();

    comm::connection low(job, before, {"low", down, up}), high(job, after, {"high", up, down});
    comm::recv_window<double> from_low(low, u.row(0)), from_high(high, u.row(rows + 1));
    comm::send_window<double> to_low(low, u.row(1)), to_high(high, u.row(rows));
    low.connect();
    high.connect();
    for (int n = 0; n < steps; ++n) {
        from_low.start();
        from_high.start();
        to_low.start();
        to_high.start();
        u.update_interior();
        from_low.wait_or_throw();
        from_high.wait_or_throw();
        to_low.wait_or_throw();
        to_high.wait_or_throw();
        u.update_boundary();
    }
}

void diffuse_three_steps(const comm::job& job, strip& u, int steps) {
    const int before = (job.rank() + job.ranks() - 1) % job.ranks(), after = (job.rank() + 1) % job.ranks();
    const std::size_t rows = u.rows();

    comm::connection low(job, before, {"low", down, up}), high(job, after, {"high", up, down});
    comm::recv_window<double> from_low(low, u.row(0)), from_high(high, u.row(rows + 1));
    comm::send_window<double> to_low(low, u.row(1)), to_high(high, u.row(rows));
    low.connect();
    high.connect();
    from_low.init(); // the ghosts may come from now on
    from_high.init();
    for (int n = 0; n < steps; ++n) {
        to_low.init();
        to_high.init();
        to_low.post(); // the rows are there: on their way
        to_high.post();
        from_low.post();
        from_high.post();
        u.update_interior();
        from_low.wait_or_throw();
        from_high.wait_or_throw();
        to_low.wait_or_throw();
        to_high.wait_or_throw();
        u.update_boundary();
        if (n + 1 < steps) { // the ghosts were used: the next may come
            from_low.init();
            from_high.init();
        }
    }
}

} // namespace porting
