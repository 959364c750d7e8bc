// SPDX-License-Identifier: Apache-2.0
// From settings to a problem: the lattice, its cut, and the right-hand sides.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/gauge_file.hpp>
#include <halocline/lattice/spinor_file.hpp>
#include <halocline_app/settings.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace halocline::app {

/// The lattice and its cut; no links yet.
struct problem {
    lattice::gauge_file file;     ///< header of the configuration; empty in a dry run on the demo's
    lattice::coordinate blocks{}; ///< Schwarz blocks
    lattice::decomposition cut;
    std::string why_cut; ///< for human readers
    /// By right-hand side: its file, if it comes from one.
    std::vector<std::optional<lattice::spinor_file>> sources;
};

/// Chooses blocks and cut; unless this is a dry run, makes the demo configuration if it is needed and does not exist
/// yet; opens the file. Collective.
/// Err: input_error (grid that disagrees, blocks that don't divide the lattice or have no room for the test vectors,
/// rank grid that does not fit, with the admissible ones, bad file, a source for another lattice or outside it, a
/// lattice that this host's memory can't hold, or whose solutions have no room on the disk; a dry run only tells the
/// last two, because it may be for another machine). `solutions`: the files for them; "": none. `tell` gets
/// lines of progress and such notes (of which rank 0's count).
problem define_problem(const comm::job& j, const settings_reader& given, bool dry_run,
                       const std::vector<std::string>& solutions, const std::function<void(std::string_view)>& tell);

/// Calls read(), which reads the file of links.  Err: as read(); of the demo configuration, which nobody has named, it
/// says what to do.
void with_remedy_of_demo(const settings& s, const std::function<void()>& read);

/// One right-hand side as the user wrote it, for the start of an error message: "--rhs file:b.lime".
std::string as_given(const settings_reader& given, const right_hand_side& one);

/// The i-th right-hand side on this rank's box, lexicographic, 24 components, in the operator's basis; verified if read
/// from a file. Collective.
/// Err: input_error.
lattice::field<double> make_right_hand_side(const comm::job& j, const problem& p, const settings& s, std::size_t i);

/// A field of zeros on this rank's box, lexicographic, 24 components.
lattice::field<double> make_spinors(const comm::job& j, const problem& p);
/// 1 in all (complex) components of all sites.
lattice::field<double> make_ones(const comm::job& j, const problem& p);

} // namespace halocline::app
