// SPDX-License-Identifier: Apache-2.0
#include "partial_file.hpp"

#include <halocline/base/error.hpp>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <unistd.h>

namespace halocline::lattice {

std::string partial_name(const std::string& path) { return path + ".partial"; }

binary_file create_partial(const std::string& path) {
    std::error_code none;
    if (std::filesystem::exists(path, none) && !std::filesystem::is_regular_file(path, none))
        throw input_error("'" + path + "' is no regular file: the new one would take its place");
    const std::string partial = partial_name(path);
    // Not emptied: it may be a link to another file, or still be open in a run that writes the same one.
    if (::unlink(partial.c_str()) != 0 && errno != ENOENT)
        throw file_error(partial, "is in the way: " + std::generic_category().message(errno));
    return binary_file::create(partial);
}

void publish_partial(const std::string& path) {
    const std::string partial = partial_name(path);
    if (std::rename(partial.c_str(), path.c_str()) != 0)
        throw file_error(path, "'" + partial + "' can't be renamed to it: " + std::generic_category().message(errno));
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    sync_folder(folder.empty() ? "." : folder.string()); // makes the rename itself durable
}

void remove_partial(const std::string& path) noexcept { std::remove((path + ".partial").c_str()); }

} // namespace halocline::lattice
