// SPDX-License-Identifier: Apache-2.0
// Files that a program writes at its end, after work that would be lost: looked at before it, written whole or not at all.
#pragma once

#include <halocline/comm/job.hpp>

#include <string>

namespace halocline::app {

enum class output_kind {
    any,  ///< a pipe or a device will do: text is written from its beginning to its end
    file, ///< ranks write parts of it, or it is read back
};
/// Rank 0 checks that `path` can be written, before hours of computing; leaves nothing behind. "" is no file. Collective.
/// Err: input_error that names the flag.
void check_output(const comm::job& j, const std::string& flag, const std::string& path,
                  output_kind kind = output_kind::any);
/// Rank 0 writes text to a temporary file beside `path` and renames it; a pipe or device is written to. "" is no file.
/// Collective.  Err: file_error.
void write_output(const comm::job& j, const std::string& path, const std::string& text);

} // namespace halocline::app
