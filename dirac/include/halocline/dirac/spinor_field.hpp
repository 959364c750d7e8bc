// SPDX-License-Identifier: Apache-2.0
// Reading and writing a spinor field with all ranks of a job: sources and solutions as SciDAC files. Files hold them in
// the DeGrand-Rossi basis, as USQCD's propagators do; the operator acts in openQCD's (gamma_matrices()). Reading and
// writing convert, so that a file means the same here and elsewhere (docs/decisions/0036-spinor-files.md).
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/spinor_file.hpp>

#include <string>
#include <utility>
#include <vector>

namespace halocline::dirac {

/// psi <- S psi on every site: from openQCD's basis to DeGrand-Rossi's, and back (S is its own inverse).
/// S = diag(A, -A) on spins (0, 1) and (2, 3), A = (1, 1; 1, -1) / sqrt(2): gamma_mu in one basis is S gamma_mu S in
/// the other.
/// Shape: 24 components, one lane.  Err: input_error: another shape.
/// Cost:  rounding of one addition and one multiplication per number.
void change_spin_basis(lattice::field<double>& psi);

/// lattice::open_spinor_file() on every rank. Collective.
/// Err: input_error on every rank. It names the rank and the host that can't read the file, unless it is the only host;
///      or hosts have copies that say different things of themselves.
lattice::spinor_file open_spinors(const comm::job& j, const std::string& path);

/// The spinors of this rank's box from a file that was opened, verified, in the operator's basis. Collective.
/// Err: input_error on every rank: a file that changed or is damaged, or whose lattice is not the one that was cut; a
/// cut over another number of ranks; a `file` that differs between ranks.
lattice::field<double> read_spinors(const comm::job& j, const lattice::decomposition& cut,
                                    const lattice::spinor_file& file);

/// Writes a field in the operator's basis, 64 bit; the name appears once the file is complete. `info`: names and values
/// for the record's XML, the same on every rank (no times, no hosts); names are XML names, which is not checked. The
/// basis and the order of indices are added.
/// Collective.  Err: input_error on every rank, with file and reason, and the rank that could not write its part; also
/// for a NaN or an infinity, which is not written, for a field of another shape than read_spinors() returns, for a cut
/// over another number of ranks, and for a cut or `info` that differ between ranks.
/// Cost: a copy of the rank's field.
void write_spinors(const comm::job& j, const lattice::decomposition& cut, const lattice::field<double>& psi,
                   std::vector<std::pair<std::string, std::string>> info, const std::string& path);

} // namespace halocline::dirac
