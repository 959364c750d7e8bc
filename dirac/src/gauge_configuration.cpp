// SPDX-License-Identifier: Apache-2.0
#include <halocline/dirac/gauge_configuration.hpp>

#include "file_parts.hpp"
#include "reduce_totals.hpp"
#include "require_ranks.hpp"

#include <halocline/base/error.hpp>
#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/plaquette.hpp>
#include <halocline/dirac/su3.hpp>
#include <halocline/lattice/field_shape.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

namespace halocline::dirac {

namespace {

/// Links as read, and an error if they contradict the file's own figures.
struct reading {
    verified_links found;
    std::optional<file_error> contradiction; ///< the same on every rank
    bool only_rounded = false;               ///< the contradiction is a rounded_links_error
};

/// What the ranks decide by.
std::string in_words(const lattice::gauge_file& file) {
    char numbers[160];
    std::snprintf(numbers, sizeof numbers, ", %d bytes a real from byte %lld, %d rows%s", file.real_bytes,
                  static_cast<long long>(file.data_offset), file.rows, file.big_endian ? ", big endian" : "");
    std::string text = lattice::to_string(file.format) + ", " + lattice::to_string(file.extents) + " sites" + numbers;
    const auto add = [&](const char* name, const std::optional<double>& value) {
        if (!value) return;
        std::snprintf(numbers, sizeof numbers, ", %s %.17g", name, *value);
        text += numbers;
    };
    add("plaquette", file.plaquette);
    add("link trace", file.link_trace);
    const auto add_sums = [&](const char* name, std::initializer_list<std::uint32_t> sums) {
        text += std::string(", ") + name;
        for (const std::uint32_t s : sums) text += ' ' + std::to_string(s);
    };
    if (file.nersc_checksum) add_sums("checksum", {*file.nersc_checksum});
    if (file.scidac_checksum) add_sums("SciDAC sums", {(*file.scidac_checksum)[0], (*file.scidac_checksum)[1]});
    if (file.milc_checksum) add_sums("MILC sums", {(*file.milc_checksum)[0], (*file.milc_checksum)[1]});
    if (file.rounded_to_32_bits) text += ", verified as 32 bits";
    return text;
}

/// Hosts may have copies of their own, and ranks may have opened other files. Collective.
void agree_on(const comm::job& j, const lattice::gauge_file& file) {
    j.agree("what the gauge file says of itself", in_words(file));
}

/// Err: input_error unless the lattice is the file's, or made of whole copies of it.
void require_whole_copies(const lattice::gauge_file& file, const lattice::coordinate& global) {
    for (int mu = 0; mu < lattice::dimensions; ++mu)
        if (global[mu] % file.extents[mu] != 0)
            throw input_error("'" + file.path + "' holds links on " + lattice::to_string(file.extents) +
                              " sites, but the lattice is " + lattice::to_string(global) +
                              ": each extent must be that of the file or a multiple of it");
}

std::chrono::milliseconds time_for_links(const lattice::decomposition& cut) {
    return time_for_file(cut.global(), lattice::gauge_components * sizeof(double));
}

/// Collective.  Err: input_error on every rank: another lattice or number of ranks; unreadable.
reading read_as(const comm::job& j, const lattice::decomposition& cut, const lattice::gauge_file& file) {
    reading r;
    verified_links& found = r.found;
    found.format = file.format;
    lattice::gauge_totals mine;
    read_parts(j, time_for_links(cut), [&] {
        require_ranks(j, cut, "read_configuration()");
        require_whole_copies(file, cut.global());
        const lattice::box local = cut.local_box(j.rank());
        found.links = lattice::gauge_field(local.extents, lattice::gauge_components);
        mine = lattice::read_links(file, local, found.links);
    });
    const lattice::gauge_totals totals = reduce_totals(j, mine);
    found.open_in_t = totals.open_links > 0;
    found.su3_error = totals.max_su3_error;
    try {
        lattice::check_totals(file, totals);
    } catch (const lattice::rounded_links_error& e) {
        r.contradiction = e;
        r.only_rounded = true;
        return r;
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
        // openQCD's header then counts plaquettes at time N0, whose links it does not write.
        const char* unless = file.format == lattice::gauge_format::openqcd
                                 ? ", unless its boundaries in t are SF or open-SF: such files can't be read"
                                 : "";
        r.contradiction = file_error(file.path, std::string(text) + unless);
    }
    return r;
}

/// Err: input_error on every rank.
void require_coupled_copies(const lattice::gauge_file& file, const lattice::coordinate& global, bool open_in_t) {
    const int of_file = file.extents[3], extent = global[3];
    if (open_in_t && extent != of_file)
        throw input_error("'" + file.path +
                          "' has an open boundary in t, which nothing crosses, so it is not repeated " +
                          "in t: the extent there is " + std::to_string(extent) + ", and must be the file's, " +
                          std::to_string(of_file));
}

[[noreturn]] void refuse(const std::string& path, const std::string& reason, bool only_rounded) {
    if (only_rounded) throw lattice::rounded_links_error(path, reason);
    throw file_error(path, reason);
}

} // namespace

lattice::gauge_file open_configuration(const comm::job& j, const std::string& path) {
    lattice::gauge_file file;
    read_parts(j, {}, [&] { file = lattice::open_gauge_file(path); });
    agree_on(j, file);
    return file;
}

verified_links read_configuration(const comm::job& j, const lattice::decomposition& cut,
                                  const lattice::gauge_file& file) {
    agree_on(j, file); // or the verdicts of ranks could differ
    reading r = read_as(j, cut, file);
    if (!r.contradiction) return std::move(r.found);
    const auto other = lattice::as_openqcd(file);
    const std::string& first = r.contradiction->reason();
    if (!other) refuse(file.path, first, r.only_rounded);
    r.found.links = {}; // or both readings would be in memory
    reading as_openqcd = read_as(j, cut, *other);
    if (!as_openqcd.contradiction) {
        require_coupled_copies(file, cut.global(), as_openqcd.found.open_in_t);
        return std::move(as_openqcd.found);
    }
    const std::string& second = as_openqcd.contradiction->reason();
    if (first == second) refuse(file.path, first, r.only_rounded);
    refuse(file.path,
           "read as " + lattice::to_string(file.format) + ": " + first + "; read as " +
               lattice::to_string(other->format) + ": " + second,
           r.only_rounded || as_openqcd.only_rounded);
}

void reunitarise(lattice::gauge_field& links) {
    lattice::require_shape(links, "reunitarise(): its field",
                           {.components = lattice::gauge_components, .orders = lattice::site_orders::one_lane});
    constexpr int reals = lattice::link_components;
    for (std::int64_t site = 0; site < links.volume(); ++site)
        for (int mu = 0; mu < lattice::dimensions; ++mu) {
            double* u = links.outer(site) + mu * reals;
            if (std::all_of(u, u + reals, [](double v) { return v == 0; })) continue; // an open boundary
            su3 a;
            for (std::size_t k = 0; k < a.size(); ++k) a[k] = {u[2 * k], u[2 * k + 1]};
            a = reunitarise(a);
            for (std::size_t k = 0; k < a.size(); ++k) u[2 * k] = a[k].real(), u[2 * k + 1] = a[k].imag();
        }
    links.mark_written();
}

void write_configuration(const comm::job& j, const lattice::decomposition& cut, const lattice::gauge_field& links,
                         double plaquette, lattice::gauge_format format, const std::string& path,
                         const std::string& origin) {
    j.agree("the cut of a gauge field and the format of its file", // or each puts its sites elsewhere
            in_words(cut) + "\n" + lattice::to_string(format) + (origin.empty() ? "" : "\n" + origin));
    require_ranks(j, cut, "write_configuration()");
    lattice::gauge_writer writer(path, format, cut.global(), origin);
    const lattice::box local = cut.local_box(j.rank());
    write_file(
        j, time_for_links(cut), path, writer, [&] { return writer.write(local, links); },
        [&] { writer.verify(local, links); },
        [&](const lattice::gauge_totals& totals) { writer.finish(totals, plaquette); });
}

} // namespace halocline::dirac
