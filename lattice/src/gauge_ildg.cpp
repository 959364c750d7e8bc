// SPDX-License-Identifier: Apache-2.0
// ILDG: a LIME file with records ildg-format (XML), ildg-binary-data (links x, y, z, t of every site, big endian) and
// scidac-checksum (XML).
#include "gauge_layout.hpp"

#include <algorithm>

namespace halocline::lattice {
namespace {

/// Why a file without the records of ILDG has none.
std::string explain_missing(const binary_file& file, const lime_records& records) {
    const auto scidac = std::ranges::find(records.list, "scidac-private-record-xml", &lime_record::type);
    if (scidac == records.list.end()) return "it is truncated, or not a gauge configuration";
    return "it holds a SciDAC field of datatype '" + shown(xml_values(file, *scidac).find("datatype").value_or("")) +
           "'; of links, the records ildg-format and ildg-binary-data are needed";
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
    g.data_offset = static_cast<std::int64_t>(data->data_offset);
    if (const uint128 needed = link_bytes(g); needed != data->length)
        throw file_error(g.path, "ildg-binary-data has " + std::to_string(data->length) + " bytes; " +
                                     to_string(g.extents) + " sites of " + std::to_string(precision) + " bit need " +
                                     to_string(needed));

    g.scidac_checksum = read_scidac_sums(file, records, g.warnings);
    return g;
}

} // namespace halocline::lattice
