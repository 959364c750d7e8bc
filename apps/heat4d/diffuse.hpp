// SPDX-License-Identifier: Apache-2.0
// 4-dimensional diffusion by explicit Euler; the example of a stencil code.
#pragma once

#include <halocline/halo/stencil.hpp>

#include <functional>

namespace halocline::app {

/// `steps` steps of u <- u + alpha * (sum of the 8 neighbours - 8 u) on a periodic lattice, from u(x) = initial(x), x a
/// global coordinate. Collective; returns this rank's part.  Err: input_error, job_error.
lattice::field<double> diffuse(const comm::job& job, const lattice::decomposition& cut, double alpha, int steps,
                               const std::function<double(const lattice::coordinate&)>& initial);

} // namespace halocline::app
