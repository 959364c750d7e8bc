// SPDX-License-Identifier: Apache-2.0
#include <halocline/dirac/gauge_configuration.hpp>

#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/reference.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <type_traits>

namespace halocline::dirac {
namespace {

lattice::gauge_totals reduce(const comm::job& j, const lattice::gauge_totals& mine) {
    static_assert(std::is_trivially_copyable_v<lattice::gauge_totals>); // its bytes travel as they are
    lattice::gauge_totals total;
    for (const std::string& bytes : j.gather({reinterpret_cast<const char*>(&mine), sizeof mine})) {
        lattice::gauge_totals part;
        std::memcpy(&part, bytes.data(), sizeof part);
        total = lattice::combine(total, part);
    }
    return total;
}

} // namespace

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
    lattice::check_totals(file, reduce(j, mine)); // the same totals, so the same verdict on every rank

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
    const lattice::gauge_totals totals = reduce(j, mine);
    j.collectively([&] {
        if (j.rank() == 0) writer.finish(totals, plaquette);
    });
}

} // namespace halocline::dirac
