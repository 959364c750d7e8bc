// SPDX-License-Identifier: Apache-2.0
// What every operator is made of, checked before it is made.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/wilson_parameters.hpp>
#include <halocline/lattice/decomposition.hpp>

namespace halocline::dirac {

/// Collective.
/// Err: on every rank: input_error: a job of another size than the cut; links of another cut or lattice; parameters that
///      are not finite, or differ between ranks.
void require_operator_input(const comm::job& j, const lattice::decomposition& cut, const padded_links& links,
                            const wilson_parameters& p);

} // namespace halocline::dirac
