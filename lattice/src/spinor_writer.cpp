// SPDX-License-Identifier: Apache-2.0
#include "spinor_layout.hpp"

#include "binary_file.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace halocline::lattice {
namespace {

/// How many bytes the UTF-8 letter at the start of `text` has; 0: there is none, or one that XML can't contain.
std::size_t letter_bytes(std::string_view text) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const std::uint32_t first = byte(0);
    if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
    const std::size_t bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    std::uint32_t code = first & (0x7fU >> bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
        code = code << 6 | (byte(i) & 0x3f);
    }
    constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000}; // anything else is coded too long
    const bool starts = first >= 0xc0 && first < 0xf8, surrogate = code >= 0xd800 && code < 0xe000;
    const bool letter = code >= least[bytes] && code <= 0x10ffff && !surrogate && code != 0xfffe && code != 0xffff;
    return starts && letter ? bytes : 0;
}

/// Text of an element. File names need not be UTF-8: U+FFFD stands for what XML can't contain.
std::string escaped(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t bytes = letter_bytes(text);
        switch (bytes == 0 ? '\0' : text[0]) {
        case '\0': out += "\xef\xbf\xbd"; break;
        case '<': out += "&lt;"; break;
        case '>': out += "&gt;"; break;
        case '&': out += "&amp;"; break;
        default: out += text.substr(0, bytes);
        }
        text.remove_prefix(std::max<std::size_t>(bytes, 1));
    }
    return out;
}

/// All records before the spinors, and the header of theirs. The first message describes the file, the next its one
/// field.
std::string head_of(const coordinate& extents, std::uint64_t data_bytes,
                    const std::vector<std::pair<std::string, std::string>>& info) {
    std::string about;
    for (const auto& [name, value] : info) about += xml_element(name, escaped(value));
    return scidac_file_text(extents, "one Dirac fermion field") +
           lime_xml("scidac-private-record-xml", "scidacRecord",
                    xml_element("version", "1.1") + xml_element("recordtype", "0") +
                        xml_element("datatype", "USQCD_D3_DiracFermion") + xml_element("precision", "D") +
                        xml_element("colors", std::to_string(spinor_colours)) +
                        xml_element("spins", std::to_string(spinor_spins)) +
                        xml_element("typesize", std::to_string(spinor_components * sizeof(double))) +
                        xml_element("datacount", "1"),
                    message_begin) +
           lime_xml("scidac-record-xml", "usqcdPropInfo", xml_element("version", "1.0") + xml_element("info", about),
                    message_middle) +
           lime_head("scidac-binary-data", data_bytes, message_middle);
}

/// encode() of write_sites().
auto encoder(const field<double>& spinors) {
    return [&](std::int64_t local_site, std::byte* stored) {
        store_reals(spinors.outer(local_site), spinor_components, true, stored);
    };
}

} // namespace

spinor_writer::spinor_writer(const std::string& path, const coordinate& extents,
                             const std::vector<std::pair<std::string, std::string>>& info)
    : partial_(path) {
    layout_.path = path;
    layout_.extents = extents;
    const uint128 bytes = spinor_bytes(layout_);
    check_size(path, extents, bytes);
    head_ = head_of(extents, static_cast<std::uint64_t>(bytes), info);
    layout_.data_offset = static_cast<std::int64_t>(head_.size());
}

void spinor_writer::create() {
    partial_.create();
    const binary_file file = binary_file::open_to_write(partial_.name());
    file.reserve(head_.size() + static_cast<std::uint64_t>(spinor_bytes(layout_)) + scidac_checksum_text({}).size());
}

spinor_totals spinor_writer::write(const box& local, const field<double>& spinors) {
    check_field(local, spinors, spinor_components, "spinors");
    check_inside(local, layout_.extents, layout_.path);
    spinor_totals totals;
    write_sites(partial_.name(), layout_.data_offset, site_bytes(layout_), local, layout_.extents, encoder(spinors),
                [&](std::int64_t file_site, std::int64_t local_site, std::span<const std::byte> stored) {
                    add_site(totals, file_site, stored, spinors.outer(local_site));
                });
    return totals;
}

void spinor_writer::verify(const box& local, const field<double>& spinors) const {
    check_field(local, spinors, spinor_components, "spinors");
    check_inside(local, layout_.extents, layout_.path);
    verify_sites(partial_.name(), layout_.data_offset, site_bytes(layout_), local, layout_.extents, encoder(spinors));
}

void spinor_writer::finish(const spinor_totals& totals) {
    check_coverage(layout_, totals);
    if (totals.first_not_finite != spinor_totals::none)
        throw input_error("'" + layout_.path + "': the field has a NaN or an infinity at site " +
                          to_string(lexicographic_coordinate(totals.first_not_finite, layout_.extents)) +
                          ": it is not written");
    complete(partial_, head_, head_.size() + static_cast<std::uint64_t>(spinor_bytes(layout_)),
             scidac_checksum_text(totals.scidac_xor));
}

} // namespace halocline::lattice
