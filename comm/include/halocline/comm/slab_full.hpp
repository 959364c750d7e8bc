// SPDX-License-Identifier: Apache-2.0
// What a slab throws that can't give what is asked for: a condition of its own, because a program can do something about
// it, with a larger slab (job_options::slab_bytes), more nodes or a smaller lattice.
#pragma once

#include <halocline/base/error.hpp>

namespace halocline::comm {

/// The slab has no room, or the system no memory for it: the text says which, with both numbers. In what all ranks decide
/// together (job::collectively(), making plans) every rank gets it.
class slab_full : public error {
    using error::error;
};

} // namespace halocline::comm
