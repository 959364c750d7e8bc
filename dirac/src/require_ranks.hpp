// SPDX-License-Identifier: Apache-2.0
// A cut and the job whose ranks it is for.  Private to dirac/.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/lattice/decomposition.hpp>

#include <cstdint>
#include <string>

namespace halocline::dirac {

/// Called inside job::collectively(): local_box() of a cut over fewer ranks throws on some of them only.
/// Err: input_error, whose text begins with `what`, unless the lattice is cut over as many ranks as the job has.
inline void require_ranks(const comm::job& j, const lattice::decomposition& cut, const std::string& what) {
    if (cut.ranks() != j.ranks())
        throw input_error(what + ": the lattice is cut over " + std::to_string(cut.ranks()) +
                          (cut.ranks() == 1 ? " rank" : " ranks") + ", the job has " + std::to_string(j.ranks()));
}

/// Equal texts for equal cuts. A rank order is told by a checksum: in words it would take as many bytes as there are
/// ranks.
inline std::string in_words(const lattice::decomposition& cut) {
    std::string text = "lattice " + lattice::to_string(cut.global()) + " cut at";
    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        text.append(" ").append(1, lattice::dimension_name[mu]);
        for (const int c : cut.cuts(mu)) text.append(c == 0 ? ":" : ",").append(std::to_string(c));
    }
    std::uint64_t order = 0;
    for (const int rank : cut.rank_order()) order = (order ^ static_cast<unsigned>(rank)) * 0x100000001b3U; // FNV-1a
    if (!cut.rank_order().empty()) text += ", rank order " + std::to_string(order);
    return text;
}

} // namespace halocline::dirac
