// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/run_report.hpp>

namespace halocline::app {

std::string where_it_runs(const comm::job& j, const lattice::decomposition& cut) {
    return "on " + std::to_string(j.ranks()) + (j.ranks() == 1 ? " rank " : " ranks ") +
           lattice::to_string(cut.rank_grid()) + " over " + j.transport();
}

} // namespace halocline::app
