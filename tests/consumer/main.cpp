// SPDX-License-Identifier: Apache-2.0
// The smallest user of the library: one exchange of a field with oneself, checked.
#include <halocline/halo/plan.hpp>

#include <cstdio>
#include <cstring>

int main() {
    using namespace halocline;
    const comm::job job = comm::job::single();
    const auto cut = lattice::decomposition::even({4, 4, 4, 6}, {1, 1, 1, 1});
    lattice::field<double> phi(lattice::site_order::lexicographic({4, 4, 4, 6}), 1);
    for (std::int64_t site = 0; site < phi.volume(); ++site) phi.at(site, 0) = static_cast<double>(site);

    halo::plan ghosts(job, cut, {.name = "phi", .bytes_per_site = sizeof(double), .self_exchange = true});
    ghosts.start(phi);
    ghosts.finish_or_throw();

    double first = 0; // behind t-high is t = 0: its first site is site 0; the second is site 1
    std::memcpy(&first, ghosts.ghost({3, lattice::side::high}) + sizeof(double), sizeof first);
    std::printf("second ghost behind t-high: %g\n", first);
    return first == 1 ? 0 : 1;
}
