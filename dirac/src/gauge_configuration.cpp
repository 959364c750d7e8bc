// SPDX-License-Identifier: Apache-2.0
#include <halocline/dirac/gauge_configuration.hpp>

#include "reduce_totals.hpp"
#include "require_ranks.hpp"
#include "write_parts.hpp"

#include <halocline/base/error.hpp>
#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/plaquette.hpp>

#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

namespace halocline::dirac {

namespace {

/// Links as read, and an error if they contradict the file's own figures.
struct reading {
    verified_links found;
    std::optional<file_error> contradiction; ///< the same on every rank
};

/// The text without the file's name.
std::string what_of(const file_error& e) { return std::string(e.what()).substr(e.path().size() + 4); }

/// Err: input_error unless the lattice is the file's, or made of whole copies of it.
void require_whole_copies(const lattice::gauge_file& file, const lattice::coordinate& global) {
    for (int mu = 0; mu < lattice::dimensions; ++mu)
        if (global[mu] % file.extents[mu] != 0)
            throw input_error("'" + file.path + "' holds links on " + lattice::to_string(file.extents) +
                              " sites, but the lattice is " + lattice::to_string(global) +
                              ": each extent must be that of the file or a multiple of it");
}

/// Collective.  Err: input_error on every rank: another lattice or number of ranks; unreadable.
reading read_as(const comm::job& j, const lattice::decomposition& cut, const lattice::gauge_file& file) {
    reading r;
    verified_links& found = r.found;
    found.format = file.format;
    lattice::gauge_totals mine;
    j.collectively([&] {
        require_ranks(j, cut, "read_configuration()");
        require_whole_copies(file, cut.global());
        const lattice::box local = cut.local_box(j.rank());
        found.links = lattice::gauge_field(local.extents, lattice::gauge_components);
        mine = lattice::read_links(file, local, found.links);
    });
    const lattice::gauge_totals totals = reduce_totals(j, mine);
    found.open_in_t = totals.open_links > 0;
    try {
        lattice::check_totals(file, totals);
    } catch (const file_error& e) {
        r.contradiction = e;
        return r;
    }

    found.plaquette = plaquette(padded_links(j, cut, found.links));
    const double tolerance = lattice::plaquette_tolerance(file);
    if (file.plaquette && !(std::abs(found.plaquette - *file.plaquette) <= tolerance)) {
        char text[160];
        std::snprintf(text, sizeof text, "plaquette %.12f, but the file says %.12f (tolerance %.0e): corrupted links",
                      found.plaquette, *file.plaquette, tolerance);
        r.contradiction = file_error(file.path, text);
    }
    return r;
}

} // namespace

verified_links read_configuration(const comm::job& j, const lattice::decomposition& cut,
                                  const lattice::gauge_file& file) {
    reading r = read_as(j, cut, file);
    if (!r.contradiction) return std::move(r.found);
    const auto other = lattice::as_openqcd(file);
    if (!other) throw *r.contradiction;
    reading as_openqcd = read_as(j, cut, *other);
    if (!as_openqcd.contradiction) return std::move(as_openqcd.found);
    const std::string first = what_of(*r.contradiction), second = what_of(*as_openqcd.contradiction);
    if (first == second) throw *r.contradiction;
    throw file_error(file.path, "read as " + lattice::to_string(file.format) + ": " + first + "; read as " +
                                    lattice::to_string(other->format) + ": " + second);
}

void write_configuration(const comm::job& j, const lattice::decomposition& cut, const lattice::gauge_field& links,
                         double plaquette, lattice::gauge_format format, const std::string& path) {
    lattice::gauge_writer writer(path, format, cut.global());
    lattice::gauge_totals mine;
    j.collectively([&] {
        require_ranks(j, cut, "write_configuration()");
        if (j.rank() == 0) writer.create();
    });
    write_parts(j, [&] { mine = writer.write(cut.local_box(j.rank()), links); });
    const lattice::gauge_totals totals = reduce_totals(j, mine);
    j.collectively([&] {
        if (j.rank() == 0) writer.finish(totals, plaquette);
    });
}

} // namespace halocline::dirac
