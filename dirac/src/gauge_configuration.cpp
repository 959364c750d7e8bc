// SPDX-License-Identifier: Apache-2.0
#include <halocline/dirac/gauge_configuration.hpp>

#include "reduce_totals.hpp"

#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/reference.hpp>

#include <cmath>
#include <cstdio>

namespace halocline::dirac {

verified_links read_configuration(const comm::job& j, const lattice::decomposition& cut,
                                  const lattice::gauge_file& file) {
    const lattice::box local = cut.local_box(j.rank());
    verified_links result;
    lattice::gauge_totals mine;
    j.collectively([&] {
        result.links =
            lattice::gauge_field(lattice::site_order::lexicographic(local.extents), lattice::gauge_components);
        mine = lattice::read_links(file, local, result.links);
    });
    lattice::check_totals(file, reduce_totals(j, mine)); // the same totals, so the same verdict on every rank

    result.plaquette = plaquette(j, cut, padded_links(j, cut, result.links));
    const double tolerance = lattice::plaquette_tolerance(file);
    if (file.plaquette && !(std::abs(result.plaquette - *file.plaquette) <= tolerance)) {
        char text[160];
        std::snprintf(text, sizeof text, "plaquette %.12f, but the file says %.12f (tolerance %.0e): corrupted links",
                      result.plaquette, *file.plaquette, tolerance);
        throw file_error(file.path, text);
    }
    return result;
}

void write_configuration(const comm::job& j, const lattice::decomposition& cut, const lattice::gauge_field& links,
                         double plaquette, lattice::gauge_format format, const std::string& path) {
    lattice::gauge_writer writer(path, format, cut.global());
    lattice::gauge_totals mine;
    j.collectively([&] {
        if (j.rank() == 0) writer.create();
    });
    j.collectively([&] { mine = writer.write(cut.local_box(j.rank()), links); });
    const lattice::gauge_totals totals = reduce_totals(j, mine);
    j.collectively([&] {
        if (j.rank() == 0) writer.finish(totals, plaquette);
    });
}

} // namespace halocline::dirac
