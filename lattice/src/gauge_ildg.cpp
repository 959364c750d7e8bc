// SPDX-License-Identifier: Apache-2.0
// ILDG: a LIME file with records ildg-format (XML), ildg-binary-data (links x, y, z, t of every site, big endian) and
// scidac-checksum (XML).
#include "gauge_layout.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace halocline::lattice {
namespace {

/// Why a file without the records of ILDG has none.
std::string explain_missing(const binary_file& file, const lime_records& records) {
    const auto scidac = std::ranges::find(records.list, "scidac-private-record-xml", &lime_record::type);
    if (scidac == records.list.end()) return "it is truncated, or not a gauge configuration";
    return "it holds a SciDAC field of datatype '" + shown(xml_values(file, *scidac).find("datatype").value_or("")) +
           "'; of links, the records ildg-format and ildg-binary-data are needed";
}

/// The last record of a type before the links, to which it belongs; nullptr if there is none. Unlike find(), which
/// refuses several: writers may put any records before the links.
const lime_record* last_before(const lime_record& links, const lime_records& records, std::string_view type) {
    const lime_record* last = nullptr;
    for (const lime_record& r : records.list)
        if (r.type == type && r.data_offset < links.data_offset) last = &r;
    return last;
}

/// QIO describes the same links a second time, in records of its own.  Err: file_error if the two differ.
void check_scidac_records(const binary_file& file, const lime_records& records, const lime_record& links,
                          const gauge_file& g) {
    const std::string contradiction = ": the file contradicts itself";
    if (const lime_record* lattice = last_before(links, records, "scidac-private-file-xml")) {
        const xml_values xml(file, *lattice);
        if (xml.find("dims"))
            if (const coordinate dims = scidac_dims(xml); dims != g.extents)
                xml.fail("gives the lattice " + to_string(dims) + ", ildg-format " + to_string(g.extents) +
                         contradiction);
    }
    if (const lime_record* record = last_before(links, records, "scidac-private-record-xml")) {
        const xml_values xml(file, *record);
        const std::string precision = xml.find("precision").value_or("");
        if (precision == (g.real_bytes == 8 ? "F" : "D"))
            xml.fail("gives <precision> as " + precision + ", " + (precision == "F" ? "32" : "64") +
                     " bit, ildg-format as " + std::to_string(8 * g.real_bytes) + contradiction);
    }
}

/// MILC records (Re tr P) / 3 in the USQCD info, computed in single precision. Records of other codes are free text:
/// what can't be read, or can't be the mean of such traces, is none.
void take_recorded_plaquette(const binary_file& file, const lime_records& records, const lime_record& links,
                             gauge_file& g) {
    constexpr double single_precision = 1e-6;
    const lime_record* info = last_before(links, records, "scidac-record-xml");
    if (!info) return;
    try {
        const std::string text = xml_values(file, *info).find("plaq").value_or("");
        const std::optional<double> plaquette = parse_double(text);
        // Converters that have not computed it write 0.
        if (!plaquette || *plaquette == 0 || *plaquette < -0.5 - plaquette_rounding ||
            *plaquette > 1 + plaquette_rounding)
            return;
        g.plaquette = plaquette;
        g.plaquette_digit = std::max(single_precision, last_digit(text));
    } catch (const file_error&) {
        return;
    }
}

} // namespace

gauge_file open_ildg(const binary_file& file) {
    gauge_file g;
    g.path = file.path();
    g.format = gauge_format::ildg;
    g.big_endian = true;
    const lime_records records = list_records(file);
    const lime_record* format = records.find("ildg-format");
    const lime_record* data = records.find("ildg-binary-data");
    if (!format || !data)
        throw file_error(g.path, std::string("LIME file has no record ") +
                                     (format ? "ildg-binary-data" : "ildg-format") + ": " +
                                     explain_missing(file, records));

    const xml_values xml(file, *format);
    if (const std::string field = xml.at("field"); field != "su3gauge")
        xml.fail("gives <field> as '" + shown(field) + "': su3gauge can be read");
    const int precision = xml.number("precision", parse_int);
    if (precision != 32 && precision != 64)
        xml.fail("gives <precision> as " + std::to_string(precision) + ": 32 or 64 can be read");
    g.real_bytes = precision / 8;
    g.extents = {xml.number("lx", parse_int), xml.number("ly", parse_int), xml.number("lz", parse_int),
                 xml.number("lt", parse_int)};
    check_scidac_records(file, records, *data, g);
    g.data_offset = static_cast<std::int64_t>(data->data_offset);
    if (const uint128 needed = link_bytes(g); needed != data->length)
        throw file_error(g.path, "ildg-binary-data has " + std::to_string(data->length) + " bytes; " +
                                     to_string(g.extents) + " sites of " + std::to_string(precision) + " bit need " +
                                     to_string(needed));

    g.scidac_checksum = read_scidac_sums(file, records, g.warnings);
    take_recorded_plaquette(file, records, *data, g);
    return g;
}

} // namespace halocline::lattice
