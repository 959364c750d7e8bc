// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/gauge_file.hpp>

#include "binary_file.hpp"
#include "gauge_layout.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace halocline::lattice {
namespace {

std::string ddalphaamg_head(const coordinate& extents, double plaquette) {
    std::string head(24, '\0');
    for (int mu = 0; mu < dimensions; ++mu)
        store(head.data() + 4 * (3 - mu), static_cast<std::uint32_t>(extents[mu]), false);
    store(head.data() + 16, std::bit_cast<std::uint64_t>(3 * plaquette), false);
    return head;
}

/// "%17.14f", in any locale.
std::string fixed(double value) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed, 14);
    const std::string text(digits.data(), end.ptr);
    return std::string(text.size() < 17 ? 17 - text.size() : 0, ' ') + text;
}

double mean_link_trace(const gauge_totals& totals) {
    return totals.links > 0 ? totals.link_trace_sum / (3 * static_cast<double>(totals.links)) : 0;
}

/// All records before the links, and the header of theirs, whose length does not depend on the figures. The first
/// message describes the file, as QIO does, the next its links.
std::string ildg_head(const gauge_file& layout, const gauge_totals& totals, double plaquette) {
    const coordinate& extents = layout.extents;
    const auto figure = [](const std::string& name, double value) { // blanks behind the element, not in it
        const std::string padded = fixed(value), digits = padded.substr(padded.find_first_not_of(' '));
        return xml_element(name, digits) + std::string(padded.size() - digits.size(), ' ');
    };
    std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ildgFormat xmlns=\"http://www.lqcd.org/ildg\" "
                      "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
                      "xsi:schemaLocation=\"http://www.lqcd.org/ildg/filefmt.xsd\"><version>1.0</version>"
                      "<field>su3gauge</field><precision>64</precision>";
    for (int mu = 0; mu < dimensions; ++mu)
        xml += xml_element(std::string{'l', dimension_name[mu]}, std::to_string(extents[mu]));
    return scidac_file_text(extents, "one gauge configuration") +
           lime_xml("scidac-private-record-xml", "scidacRecord",
                    xml_element("version", "1.1") + xml_element("recordtype", "0") +
                        xml_element("datatype", "QDP_D3_ColorMatrix") + xml_element("precision", "D") +
                        xml_element("colors", "3") +
                        xml_element("typesize", std::to_string(link_components * sizeof(double))) +
                        xml_element("datacount", std::to_string(dimensions)),
                    message_begin) +
           lime_xml("scidac-record-xml", "usqcdInfo",
                    xml_element("version", "1.0") + figure("plaq", plaquette) +
                        figure("linktr", mean_link_trace(totals)) +
                        xml_element("info", layout.origin.empty() ? "Halocline" : layout.origin), // QIO needs all
                    message_middle) +
           lime_text("ildg-format", xml + "</ildgFormat>", message_middle) +
           lime_head("ildg-binary-data", static_cast<std::uint64_t>(link_bytes(layout)), message_middle);
}

/// The header of a NERSC file, whose length does not depend on the figures. It includes keys without meaning here,
/// because other readers require them.
std::string nersc_head(const gauge_file& layout, const gauge_totals& totals, double plaquette) {
    const coordinate& extents = layout.extents;
    const std::string figures = "LINK_TRACE = " + fixed(mean_link_trace(totals)) + "\nPLAQUETTE = " + fixed(plaquette) +
                                "\nCHECKSUM = " + to_hex(totals.nersc_sum) + "\n";
    std::string head =
        std::string(nersc_begin) + "\nHDR_VERSION = 1.0\nDATATYPE = 4D_SU3_GAUGE_3x3\nSTORAGE_FORMAT = 1.0\n";
    for (int mu = 0; mu < dimensions; ++mu)
        head += "DIMENSION_" + std::to_string(mu + 1) + " = " + std::to_string(extents[mu]) + "\n";
    for (int mu = 0; mu < dimensions; ++mu) head += "BOUNDARY_" + std::to_string(mu + 1) + " = PERIODIC\n";
    return head + figures + "ENSEMBLE_ID = none\nENSEMBLE_LABEL = " + (layout.origin.empty() ? "none" : layout.origin) +
           "\nSEQUENCE_NUMBER = 0\nCREATOR = Halocline\n"
           "FLOATING_POINT = IEEE64BIG\nEND_HEADER\n";
}

/// Everything before the links. The figures may be filled in later: the length stays the same.
std::string head_text(const gauge_file& layout, const gauge_totals& totals, double plaquette) {
    switch (layout.format) {
    case gauge_format::ildg: return ildg_head(layout, totals, plaquette);
    case gauge_format::nersc: return nersc_head(layout, totals, plaquette);
    default: return ddalphaamg_head(layout.extents, plaquette);
    }
}

/// encode() of write_sites().
auto encoder(const gauge_file& layout, const gauge_field& links) {
    return [&](std::int64_t local_site, std::byte* stored) { encode_site(layout, links.outer(local_site), stored); };
}

} // namespace

gauge_writer::gauge_writer(const std::string& path, gauge_format format, const coordinate& extents, std::string origin)
    : partial_(path) {
    constexpr std::size_t most = 200;
    const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '<' && c != '>' && c != '&'; };
    if (origin.size() > most || !std::ranges::all_of(origin, is_plain))
        throw input_error("'" + path + "': the origin of its links, '" + shown(origin) + "', must be up to " +
                          std::to_string(most) + " printable ASCII characters without <, > and &");
    layout_.origin = std::move(origin);
    if (format == gauge_format::milc || format == gauge_format::openqcd || format == gauge_format::scidac)
        throw input_error("'" + path + "': " + to_string(format) +
                          " files aren't written; ILDG, NERSC and DDalphaAMG files are");
    layout_.path = path;
    layout_.format = format;
    layout_.extents = extents;
    layout_.big_endian = format != gauge_format::ddalphaamg;
    check_size(path, extents, link_bytes(layout_));
    layout_.data_offset = static_cast<std::int64_t>(head_text(layout_, {}, 0).size());
}

void gauge_writer::create() {
    partial_.create();
    const binary_file file = binary_file::open_to_write(partial_.name());
    const auto bytes = static_cast<std::uint64_t>(link_bytes(layout_));
    const std::uint64_t tail = layout_.format == gauge_format::ildg ? scidac_checksum_text({}).size() : 0;
    file.reserve(static_cast<std::uint64_t>(layout_.data_offset) + bytes + tail);
}

gauge_totals gauge_writer::write(const box& local, const gauge_field& links) {
    check_field(local, links, gauge_components, "links");
    check_inside(local, layout_.extents, layout_.path);
    gauge_totals totals;
    write_sites(partial_.name(), layout_.data_offset, site_bytes(layout_), local, layout_.extents,
                encoder(layout_, links),
                [&](std::int64_t file_site, std::int64_t local_site, std::span<const std::byte> stored) {
                    add_links(totals, layout_, local.site(local_site), links.outer(local_site));
                    add_checksum(totals, layout_, file_site, stored.data());
                });
    return totals;
}

void gauge_writer::verify(const box& local, const gauge_field& links) const {
    check_field(local, links, gauge_components, "links");
    check_inside(local, layout_.extents, layout_.path);
    verify_sites(partial_.name(), layout_.data_offset, site_bytes(layout_), local, layout_.extents,
                 encoder(layout_, links));
}

void gauge_writer::finish(const gauge_totals& totals, double plaquette) {
    if (!totals.finite)
        throw input_error("'" + layout_.path + "': the links have a NaN or an infinity: they are not written");
    if (!(plaquette >= -0.5 - plaquette_rounding && plaquette <= 1 + plaquette_rounding)) {
        char text[100];
        std::snprintf(text, sizeof text, "': plaquette %.17g: Re tr / 3 of SU(3) is between -0.5 and 1", plaquette);
        throw input_error("'" + layout_.path + text);
    }
    plaquette = std::clamp(plaquette, -0.5, 1.0); // a reader may be as strict as the group
    gauge_totals unitary = totals;
    unitary.max_su3_error = 0;
    check_totals(layout_, unitary); // layout_ records nothing: this checks coverage and the boundary in t
    try {
        check_totals(layout_, totals);
    } catch (const file_error& e) {
        throw input_error(std::string(e.what()) +
                          "; links of 32-bit origin must be reunitarised before they are written");
    }
    const std::string head = head_text(layout_, totals, plaquette);
    if (static_cast<std::int64_t>(head.size()) != layout_.data_offset)
        throw error("'" + layout_.path + "': a header of " + std::to_string(head.size()) +
                    " bytes, where the links begin at byte " + std::to_string(layout_.data_offset));
    complete(partial_, head, head.size() + static_cast<std::uint64_t>(link_bytes(layout_)),
             layout_.format == gauge_format::ildg ? scidac_checksum_text(totals.scidac_xor) : std::string());
}

} // namespace halocline::lattice
