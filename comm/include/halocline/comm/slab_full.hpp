// SPDX-License-Identifier: Apache-2.0
// Thrown when a slab can't satisfy a request. A type of its own, because a program can react to it: a larger slab
// (job_options::slab_bytes), more nodes, a smaller lattice.
#pragma once

#include <halocline/base/error.hpp>

namespace halocline::comm {

/// The slab has no room, or the system has no memory for it: the text says which, with both numbers. Where all ranks
/// decide together (job::collectively(), making a plan), every rank throws it.
class slab_full : public error {
    using error::error;
};

} // namespace halocline::comm
