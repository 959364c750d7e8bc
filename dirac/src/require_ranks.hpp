// SPDX-License-Identifier: Apache-2.0
// A cut and the job whose ranks it is for.  Private to dirac/.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/lattice/decomposition.hpp>

#include <string>

namespace halocline::dirac {

/// Called inside job::collectively(): local_box() of a cut over fewer ranks throws on some of them only.
/// Err: input_error, whose text begins with `what`, unless the lattice is cut over as many ranks as the job has.
inline void require_ranks(const comm::job& j, const lattice::decomposition& cut, const std::string& what) {
    if (cut.ranks() != j.ranks())
        throw input_error(what + ": the lattice is cut over " + std::to_string(cut.ranks()) +
                          (cut.ranks() == 1 ? " rank" : " ranks") + ", the job has " + std::to_string(j.ranks()));
}

} // namespace halocline::dirac
