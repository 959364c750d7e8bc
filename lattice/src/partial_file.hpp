// SPDX-License-Identifier: Apache-2.0
// The life of a partial file.  Private to lattice/.
#pragma once

#include "binary_file.hpp"

#include <halocline/lattice/partial_file.hpp>

#include <string>

namespace halocline::lattice {

/// Creates it in place of one that is there.  Err: file_error; input_error when `path` is there and no regular file.
binary_file create_partial(const std::string& path);
/// Renames it to `path`, durably.  Err: file_error.
void publish_partial(const std::string& path);
void remove_partial(const std::string& path) noexcept;

} // namespace halocline::lattice
