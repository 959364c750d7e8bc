// SPDX-License-Identifier: Apache-2.0
#include "site_data.hpp"

#include <halocline/base/error.hpp>
#include <halocline/lattice/field_shape.hpp>

namespace halocline::lattice {
namespace {

/// Largest extent that a header may claim: the product of any four and a site's bytes fits into 128 bits.
constexpr int max_extent = (1 << 24) - 1;

} // namespace

uint128 lattice_bytes(const std::string& path, const std::string& head, const coordinate& extents, int site_bytes) {
    uint128 bytes = static_cast<uint128>(site_bytes);
    for (int e : extents) {
        if (e < 1 || e > max_extent)
            throw file_error(path, head + " gives the lattice " + to_string(extents) +
                                       ": extents must be between 1 and " + std::to_string(max_extent));
        bytes *= static_cast<unsigned>(e);
    }
    return bytes;
}

void check_field(const box& local, const field<double>& data, int components, const std::string& name) {
    require_shape(data, "the field for the " + name + " of a local box",
                  {.components = components, .extents = local.extents, .orders = site_orders::lexicographic});
    for (int o : local.origin)
        if (o < 0) throw input_error("local box at " + to_string(local.origin) + ": its origin must not be negative");
}

void check_inside(const box& local, const coordinate& extents, const std::string& path) {
    for (int mu = 0; mu < dimensions; ++mu)
        if (std::int64_t{local.origin[mu]} + local.extents[mu] > extents[mu])
            throw input_error("local box " + to_string(local.extents) + " at " + to_string(local.origin) +
                              " leaves the lattice " + to_string(extents) + " of '" + path + "'");
}

void check_size(const std::string& path, const coordinate& extents, uint128 bytes) {
    if (bytes > std::uint64_t{1} << 62)
        throw input_error("'" + path + "': " + to_string(extents) + " sites need " + to_string(bytes) +
                          " bytes: no file can hold them");
}

void complete(partial_file& partial, const std::string& head, std::uint64_t end, const std::string& tail) {
    {
        const binary_file file = binary_file::open_to_write(partial.name());
        file.write_text(0, head);
        file.write_text(end, tail);
        file.sync();
    }
    {
        const binary_file file = binary_file::open_to_read(partial.name());
        file.drop_cache();
        file.expect_text(0, head);
        file.expect_text(end, tail);
    }
    partial.publish();
}

} // namespace halocline::lattice
