// SPDX-License-Identifier: Apache-2.0
// ILDG: a LIME file with records ildg-format (XML), ildg-binary-data (links x, y, z, t of every site, big endian) and
// scidac-checksum (XML).
// SciDAC: the same links and checksum, as QIO describes any field: scidac-private-file-xml has the lattice,
// scidac-private-record-xml the precision, scidac-binary-data the links.
#include "gauge_layout.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace halocline::lattice {
namespace {

/// Err: file_error unless each site has four matrices of 3x3.
void check_matrices(const xml_values& record, int real_bytes) {
    record.expect("colors", 3, "matrices of 3x3");
    const int size = record.number("typesize", parse_int), count = record.number("datacount", parse_int);
    const int matrix_bytes = link_components * real_bytes;
    if (size != matrix_bytes || count != dimensions)
        record.fail("gives datatype '" + shown(record.find("datatype").value_or("")) + "', on each site " +
                    std::to_string(count) + " of " + std::to_string(size) + " bytes; links of precision " +
                    record.at("precision") + " are 4 of " + std::to_string(matrix_bytes));
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
/// what can't be read, or can't be the mean of such traces, is none. Takes <info>, too.
void take_recorded_plaquette(const binary_file& file, const lime_records& records, const lime_record& links,
                             gauge_file& g) {
    constexpr double single_precision = 1e-6;
    const lime_record* info = last_before(links, records, "scidac-record-xml");
    if (!info) return;
    try {
        const auto values = xml_values(file, *info);
        g.origin = values.find("info").value_or("");
        const std::string text = values.find("plaq").value_or("");
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

/// Takes lattice and precision from the records of ILDG.  Err: file_error.
void describe_ildg(const binary_file& file, const lime_records& records, const lime_record& format,
                   const lime_record& links, gauge_file& g) {
    const xml_values xml(file, format);
    if (const std::string field = xml.at("field"); field != "su3gauge")
        xml.fail("gives <field> as '" + shown(field) + "': su3gauge can be read");
    const int precision = xml.number("precision", parse_int);
    if (precision != 32 && precision != 64)
        xml.fail("gives <precision> as " + std::to_string(precision) + ": 32 or 64 can be read");
    g.real_bytes = precision / 8;
    g.extents = {xml.number("lx", parse_int), xml.number("ly", parse_int), xml.number("lz", parse_int),
                 xml.number("lt", parse_int)};
    check_scidac_records(file, records, links, g);
}

/// Takes lattice and precision from the records of QIO; returns that of the links.  Err: file_error.
const lime_record* describe_scidac(const binary_file& file, const lime_records& records, gauge_file& g) {
    const lime_record* lattice = records.find("scidac-private-file-xml");
    const lime_record* record = records.find("scidac-private-record-xml");
    const lime_record* data = records.find("scidac-binary-data");
    if (!lattice || !record || !data)
        throw file_error(g.path, "LIME file has no record ildg-format, nor all of SciDAC's: it is truncated, or not a "
                                 "gauge configuration");
    const xml_values of_links(file, *record);
    g.format = gauge_format::scidac;
    g.extents = scidac_extents(xml_values(file, *lattice));
    g.real_bytes = scidac_real_bytes(of_links);
    check_matrices(of_links, g.real_bytes);
    return data;
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
    if (!format && !data)
        data = describe_scidac(file, records, g);
    else if (!format || !data)
        throw file_error(g.path, std::string("LIME file has no record ") +
                                     (format ? "ildg-binary-data" : "ildg-format") +
                                     ": it is truncated, or not a gauge configuration");
    else
        describe_ildg(file, records, *format, *data, g);

    g.data_offset = static_cast<std::int64_t>(data->data_offset);
    if (const uint128 needed = link_bytes(g); needed != data->length)
        throw file_error(g.path, data->type + " has " + std::to_string(data->length) + " bytes; " +
                                     to_string(g.extents) + " sites of " + std::to_string(8 * g.real_bytes) +
                                     " bit need " + to_string(needed));
    g.scidac_checksum = read_scidac_sums(file, records, g.warnings);
    take_recorded_plaquette(file, records, *data, g);
    return g;
}

} // namespace halocline::lattice
