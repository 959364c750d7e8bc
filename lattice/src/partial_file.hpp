// SPDX-License-Identifier: Apache-2.0
// A file that ranks write in parts has another name until it is whole: `path`.partial.  Private to lattice/.
#pragma once

#include "binary_file.hpp"

#include <string>

namespace halocline::lattice {

std::string partial_name(const std::string& path);
/// Creates or empties it.  Err: file_error; input_error when `path` is there and no regular file.
binary_file create_partial(const std::string& path);
/// Renames it to `path`, durably.  Err: file_error.
void publish_partial(const std::string& path);
void remove_partial(const std::string& path) noexcept;

} // namespace halocline::lattice
