// SPDX-License-Identifier: Apache-2.0
// The examples of lattice/README.md, compiled (docs.readmes compares them).
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/gauge_file.hpp>

void read_part(int rank, int ranks);

using namespace halocline;

void read_part(int rank, int ranks) {
    const auto file = lattice::open_gauge_file("config.ildg");
    const auto cut = lattice::decomposition::chosen(file.extents, ranks);
    const lattice::box local = cut.local_box(rank);
    lattice::gauge_field links(local.extents, lattice::gauge_components);
    lattice::gauge_totals totals = lattice::read_links(file, local, links); // this rank's part
    // ... reduce totals over ranks as combine() does: dirac::read_configuration() does all of this ...
    lattice::check_totals(file, totals);
}
