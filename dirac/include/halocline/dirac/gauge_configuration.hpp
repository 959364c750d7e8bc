// SPDX-License-Identifier: Apache-2.0
// Reading and writing a gauge configuration with all ranks of a job: each handles its own box, checksums and sums are
// reduced, and what the file records is compared with what was found. This is not in lattice/, which knows neither
// ranks nor plaquettes.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/gauge_file.hpp>

#include <string>

namespace halocline::dirac {

/// Links of this rank's box (lexicographic), verified: lengths, checksums, link trace, unitarity, plaquette.
struct verified_links {
    lattice::gauge_field links;
    double plaquette = 0;           ///< Re tr / 3; with an open boundary in t, its plaquettes count as zero
    lattice::gauge_format format{}; ///< the file's; openQCD's files open as DDalphaAMG's
    bool open_in_t = false;         ///< the links in t of the last time slice are zero (openQCD)
    double su3_error = 0;           ///< lattice::gauge_totals::max_su3_error of all ranks
};
/// lattice::open_gauge_file() on every rank. Collective.
/// Err: input_error on every rank. It names the rank and the host that can't read the file, unless it is the only host;
///      or hosts have copies that say different things of themselves.
lattice::gauge_file open_configuration(const comm::job& j, const std::string& path);

/// Reads a file that open_configuration() or lattice::open_gauge_file() opened. Collective.
/// Pre:  the lattice that was cut has the file's extents, or multiples of them: then the file is repeated periodically.
/// Err:  input_error on every rank: a lattice of other extents, a cut over another number of ranks, a file that can't
///       be read (as open_configuration()), one with an open boundary in t that is repeated in t, a `file` that differs
///       between ranks; if what was read contradicts the file, file_error (an input_error; of links that
///       rounded_to_32_bits would accept a lattice::rounded_links_error), with what is wrong in each format that it may
///       have.
/// Cost: a file of openQCD is read twice: only its plaquette, not its header, distinguishes it from DDalphaAMG's.
verified_links read_configuration(const comm::job& j, const lattice::decomposition& cut,
                                  const lattice::gauge_file& file);

/// Applies su3.hpp's reunitarise() to each link; those that are zero, at an open boundary, stay zero. Local.
/// Shape: 72 components, one lane.  Err: input_error: another shape.
void reunitarise(lattice::gauge_field& links);

/// Writes the links of all ranks; the name appears once the file is complete. Collective.
/// Err: input_error on every rank: a cut over another number of ranks, a cut or a format that differ between ranks,
///      links of another shape, a file that can't be written.
/// `plaquette` is Re tr / 3, for the formats that record it; `origin`: as in lattice::gauge_writer.
void write_configuration(const comm::job& j, const lattice::decomposition& cut, const lattice::gauge_field& links,
                         double plaquette, lattice::gauge_format format, const std::string& path,
                         const std::string& origin = {});

} // namespace halocline::dirac
