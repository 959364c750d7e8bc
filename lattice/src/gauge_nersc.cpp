// SPDX-License-Identifier: Apache-2.0
// NERSC archive format: "KEY = VALUE" lines between BEGIN_HEADER and END_HEADER, then the links x, y, z, t of every
// site with two rows (4D_SU3_GAUGE) or three (4D_SU3_GAUGE_3x3).
#include "gauge_layout.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <type_traits>
#include <utility>

namespace halocline::lattice {
namespace {

constexpr std::size_t max_head_bytes = 65536;

/// The keys of a header and the offset of the byte after it.
struct nersc_head {
    std::map<std::string, std::string, std::less<>> values;
    std::size_t end = 0;

    /// The value of a key; an absent key is an error.
    const std::string& at(const std::string& path, const std::string& key) const {
        const auto it = values.find(key);
        if (it == values.end()) throw file_error(path, "NERSC header has no " + key);
        return it->second;
    }
};

nersc_head parse_head(const binary_file& file) {
    const std::size_t size = std::min<std::uint64_t>(file.size(), max_head_bytes);
    const std::string text = file.read_text(0, size);
    nersc_head head;
    bool first = true;
    for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
        const std::string_view line = trim(std::string_view(text).substr(at, end - at));
        if (std::exchange(first, false)) {
            if (line != nersc_begin) break;
            continue;
        }
        if (line == "END_HEADER") {
            head.end = end + 1;
            return head;
        }
        if (line.empty()) continue;
        const std::size_t equals = line.find('=');
        if (equals == std::string_view::npos)
            throw file_error(file.path(), "NERSC header line at byte " + std::to_string(at) + " is not KEY = VALUE");
        const auto [it, fresh] = head.values.emplace(trim(line.substr(0, equals)), trim(line.substr(equals + 1)));
        if (!fresh) throw file_error(file.path(), "NERSC header gives " + shown(it->first) + " twice");
    }
    throw file_error(file.path(), "NERSC header has no END_HEADER line in its first " + std::to_string(size) +
                                      " bytes: it is truncated or corrupted");
}

/// Parses a value that may be absent but must make sense if present.
template <class Value>
std::optional<Value> optional_value(const std::string& path, const nersc_head& head, const std::string& key,
                                    std::optional<Value> (*parse)(std::string_view)) {
    const auto it = head.values.find(key);
    if (it == head.values.end()) return std::nullopt;
    const std::optional<Value> value = parse(it->second);
    if (!value) {
        std::string why = "no number that a double holds";
        if constexpr (std::is_same_v<Value, std::uint32_t>) why = why_no_number(it->second, true);
        throw file_error(path, "NERSC header gives " + key + " = '" + shown(it->second) + "', which is " + why);
    }
    return value;
}

} // namespace

gauge_file open_nersc(const binary_file& file) {
    const nersc_head head = parse_head(file);
    gauge_file g;
    g.path = file.path();
    g.format = gauge_format::nersc;
    g.data_offset = static_cast<std::int64_t>(head.end);

    const std::string& type = head.at(g.path, "DATATYPE");
    if (type == "4D_SU3_GAUGE")
        g.rows = 2;
    else if (type == "4D_SU3_GAUGE_3x3" || type == "4D_SU3_GAUGE_3X3")
        g.rows = 3;
    else
        throw file_error(g.path,
                         "NERSC DATATYPE is '" + shown(type) + "': 4D_SU3_GAUGE and 4D_SU3_GAUGE_3x3 can be read");

    const std::string& real = head.at(g.path, "FLOATING_POINT");
    const bool plain = real == "IEEE32" || real == "IEEE64"; // the archive's first files, which are big endian
    if (plain || real == "IEEE32BIG" || real == "IEEE64BIG")
        g.big_endian = true;
    else if (real != "IEEE32LITTLE" && real != "IEEE64LITTLE")
        throw file_error(g.path, "NERSC FLOATING_POINT is '" + shown(real) +
                                     "': IEEE32 or IEEE64 with BIG or LITTLE can be read");
    g.real_bytes = real[4] == '3' ? 4 : 8;

    for (int mu = 0; mu < dimensions; ++mu) {
        const std::string key = "DIMENSION_" + std::to_string(mu + 1);
        const std::optional<int> extent = parse_int(head.at(g.path, key));
        if (!extent)
            throw file_error(g.path, "NERSC " + key + " is '" + shown(head.at(g.path, key)) + "': not an extent");
        g.extents[mu] = *extent;
    }
    check_size(g, file.size());

    for (int mu = 0; mu < dimensions; ++mu) {
        const auto said = head.values.find("BOUNDARY_" + std::to_string(mu + 1));
        if (said != head.values.end()) g.fermion_boundaries[mu] = said->second;
    }
    if (const auto label = head.values.find("ENSEMBLE_LABEL"); label != head.values.end() && label->second != "none")
        g.origin = label->second;
    g.plaquette = optional_value(g.path, head, "PLAQUETTE", parse_double);
    g.link_trace = optional_value(g.path, head, "LINK_TRACE", parse_double);
    g.nersc_checksum = optional_value(g.path, head, "CHECKSUM", parse_hex);
    // Converters that can't compute them write 0.
    if (g.link_trace == 0.0) g.link_trace.reset();
    if (g.nersc_checksum == 0u) g.nersc_checksum.reset();
    if (g.plaquette == 0.0 && !g.link_trace && !g.nersc_checksum) g.plaquette.reset(); // alone, it may be a plaquette
    // Writers of 64-bit links print 6 to 14 digits, rounded or truncated.
    if (g.plaquette) g.plaquette_digit = last_digit(head.at(g.path, "PLAQUETTE"));
    if (g.link_trace) g.link_trace_digit = last_digit(head.at(g.path, "LINK_TRACE"));
    if (!g.plaquette) g.warnings.emplace_back("no PLAQUETTE is recorded");
    // The third row, made from the others, is right whatever their sign is: such links are in SU(3).
    const bool hides_sign = g.rows == 2 && !g.plaquette;
    if (!g.link_trace)
        g.warnings.emplace_back(std::string("no LINK_TRACE is recorded") +
                                (hides_sign ? ": with no PLAQUETTE either, the sign of a boundary in links of two "
                                              "rows can't be noticed"
                                            : ""));
    if (!g.nersc_checksum) g.warnings.emplace_back("no CHECKSUM is recorded: some corruption can't be seen");
    return g;
}

} // namespace halocline::lattice
