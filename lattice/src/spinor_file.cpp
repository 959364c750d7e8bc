// SPDX-License-Identifier: Apache-2.0
#include "spinor_layout.hpp"

#include "file_text.hpp"

#include <algorithm>
#include <cmath>

namespace halocline::lattice {
namespace {

/// The record of a type that every such file must have.
const lime_record& needed(const lime_records& records, const std::string& type) {
    const lime_record* found = records.find(type);
    if (!found)
        throw file_error(records.path, "LIME file has no record " + type +
                                           ": it is truncated, or not a fermion field as SciDAC's QIO writes it");
    return *found;
}

/// Writers have names of their own for a fermion field: only those of QIO and QDP for other fields are refused.
void refuse_other_types(const xml_values& xml) {
    const std::string type = xml.find("datatype").value_or("");
    for (const char* other : {"ColorVector", "ColorMatrix", "DiracPropagator"})
        if (type.find(other) != std::string::npos)
            xml.fail("gives <datatype> as '" + shown(type) + "': a Dirac fermion can be read");
}

/// The precision, after checking that each site has one spinor.
int read_real_bytes(const xml_values& xml) {
    const std::string type = "datatype '" + shown(xml.find("datatype").value_or("")) + "'";
    xml.expect("spins", spinor_spins, "a Dirac fermion with 4", ", " + type);
    xml.expect("colors", spinor_colours, "a Dirac fermion with 3", ", " + type);
    const int real_bytes = scidac_real_bytes(xml);
    const std::int64_t size = std::int64_t{xml.number("typesize", parse_int)} * xml.number("datacount", parse_int);
    if (size != spinor_components * real_bytes)
        xml.fail("gives " + type + ": " + std::to_string(size) + " bytes per site; a Dirac fermion of precision " +
                 xml.at("precision") + " has " + std::to_string(spinor_components * real_bytes));
    refuse_other_types(xml);
    return real_bytes;
}

} // namespace

spinor_totals combine(const spinor_totals& a, const spinor_totals& b) {
    return {{a.scidac_xor[0] ^ b.scidac_xor[0], a.scidac_xor[1] ^ b.scidac_xor[1]},
            a.sites + b.sites,
            std::min(a.first_not_finite, b.first_not_finite)};
}

spinor_file open_spinor_file(const std::string& path) {
    const binary_file file = binary_file::open_to_read(path);
    if (file.size() < 4 || load<std::uint32_t>(file.read_text(0, 4).data(), true) != lime_magic)
        throw file_error(path, "is no LIME file: fermion fields in SciDAC's format can be read");
    const lime_records records = list_records(file);
    if (records.find("ildg-format")) throw file_error(path, "is a gauge configuration (ILDG), not a fermion field");

    spinor_file s;
    s.path = path;
    s.extents = scidac_extents(xml_values(file, needed(records, "scidac-private-file-xml")));
    const lime_record& data = needed(records, "scidac-binary-data");
    s.real_bytes = read_real_bytes(xml_values(file, needed(records, "scidac-private-record-xml")));
    s.data_offset = static_cast<std::int64_t>(data.data_offset);
    if (const uint128 bytes = spinor_bytes(s); bytes != data.length)
        throw file_error(path, "scidac-binary-data has " + std::to_string(data.length) + " bytes; " +
                                   to_string(s.extents) + " sites of " + std::to_string(8 * s.real_bytes) +
                                   " bit need " + to_string(bytes));

    s.scidac_checksum = read_scidac_sums(file, records, s.warnings);
    return s;
}

spinor_totals read_spinors(const spinor_file& file, const box& local, field<double>& spinors) {
    check_field(local, spinors, spinor_components, "spinors");
    check_inside(local, file.extents, file.path);
    const binary_file data = binary_file::open_to_read(file.path);
    spinor_totals totals;
    spinors.mark_written(); // even if it is written in part only
    read_sites(data, file.data_offset, site_bytes(file), local, file.extents,
               [&](std::int64_t file_site, std::int64_t local_site, std::span<const std::byte> stored) {
                   double* spinor = spinors.outer(local_site);
                   load_reals(stored.data(), spinor_components, file.real_bytes, true, spinor);
                   add_site(totals, file_site, stored, spinor);
               });
    return totals;
}

void add_site(spinor_totals& totals, std::int64_t file_site, std::span<const std::byte> stored, const double* spinor) {
    ++totals.sites;
    add_to_scidac_sums(totals.scidac_xor, file_site, stored);
    if (!std::ranges::all_of(std::span(spinor, spinor_components), [](double v) { return std::isfinite(v); }))
        totals.first_not_finite = std::min(totals.first_not_finite, file_site);
}

void check_coverage(const spinor_file& file, const spinor_totals& totals) {
    if (const std::int64_t sites = volume(file.extents); totals.sites != sites)
        throw input_error("totals of '" + file.path + "' cover " + std::to_string(totals.sites) + " of " +
                          std::to_string(sites) + " sites: they must be combined over all ranks");
}

void check_totals(const spinor_file& file, const spinor_totals& totals) {
    check_coverage(file, totals);
    check_scidac_sums(file.path, file.scidac_checksum, totals.scidac_xor);
    if (totals.first_not_finite != spinor_totals::none)
        throw file_error(file.path, "holds a NaN or an infinity at site " +
                                        to_string(lexicographic_coordinate(totals.first_not_finite, file.extents)) +
                                        ": all numbers must be finite");
}

} // namespace halocline::lattice
