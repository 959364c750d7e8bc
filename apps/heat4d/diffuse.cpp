// SPDX-License-Identifier: Apache-2.0
#include "diffuse.hpp"

namespace halocline::app {

lattice::field<double> diffuse(const comm::job& job, const lattice::decomposition& cut, double alpha, int steps,
                               const std::function<double(const lattice::coordinate&)>& initial) {
    halo::stencil<double> heat(job, cut, {.name = "heat"});
    auto u = heat.make_field(), next = heat.make_field();
    for (std::int64_t i = 0; i < u.volume(); ++i) u.values()[i] = initial(heat.global_site(i));

    const auto euler = [&](const auto& site) {
        double sum = -8 * site.here();
        for (int mu = 0; mu < 4; ++mu) sum += site.at(mu, -1) + site.at(mu, +1);
        next.data()[site.index()] = site.here() + alpha * sum;
    };
    for (int n = 0; n < steps; ++n) {
        heat.start(u);            // faces on their way to the neighbours
        heat.for_interior(euler); // meanwhile: all sites that need no ghost
        heat.finish_or_throw();
        heat.for_boundary(euler);
        u.swap(next);
    }
    return u;
}

} // namespace halocline::app
