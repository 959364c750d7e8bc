// SPDX-License-Identifier: Apache-2.0
// The examples of dirac/README.md, compiled (docs.readmes compares them).
#include <halocline/dirac/gauge_configuration.hpp>
#include <halocline/dirac/plaquette.hpp>
#include <halocline/dirac/reference_operator.hpp>

#include <iostream>

using namespace halocline;

void apply_plain(const comm::job& job, lattice::field<double>& y, const lattice::field<double>& x);

void apply_plain(const comm::job& job, lattice::field<double>& y, const lattice::field<double>& x) {
    const auto cut = lattice::decomposition::even({8, 8, 8, 8}, {1, 1, 1, 2});
    const auto file = dirac::open_configuration(job, "config.ildg");                            // collective
    const dirac::padded_links links(job, cut, dirac::read_configuration(job, cut, file).links); // collective
    std::cout << dirac::plaquette(links) << '\n';
    dirac::reference_operator d(job, cut, links, {.m0 = -0.5, .csw = 1}); // antiperiodic in t
    d.apply(y, x);                                                        // y = D x
}
