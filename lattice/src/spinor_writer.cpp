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

std::string element(const std::string& name, const std::string& content) {
    return "<" + name + ">" + content + "</" + name + ">";
}

/// A record with XML, terminated by a zero byte for readers in C.
std::string xml_record(const std::string& type, const std::string& root, const std::string& content, lime_flags flags) {
    return lime_text(type, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>" + element(root, content) + '\0', flags);
}

/// All records before the spinors, and the header of theirs. The first message describes the file, the next its one
/// field. The date that a private record may contain is omitted: equal fields make equal files.
std::string head_of(const coordinate& extents, std::uint64_t data_bytes,
                    const std::vector<std::pair<std::string, std::string>>& info) {
    std::string dims, about;
    for (int e : extents) dims += std::to_string(e) + " ";
    for (const auto& [name, value] : info) about += element(name, escaped(value));
    const std::string version = element("version", "1.0"), version_1_1 = element("version", "1.1");
    return xml_record("scidac-private-file-xml", "scidacFile",
                      version_1_1 + element("spacetime", "4") + element("dims", dims) + element("volfmt", "0"),
                      message_begin) +
           xml_record("scidac-file-xml", "haloclineFile", version + element("content", "one Dirac fermion field"),
                      message_end) +
           xml_record("scidac-private-record-xml", "scidacRecord",
                      version_1_1 + element("recordtype", "0") + element("datatype", "USQCD_D3_DiracFermion") +
                          element("precision", "D") + element("colors", std::to_string(spinor_colours)) +
                          element("spins", std::to_string(spinor_spins)) +
                          element("typesize", std::to_string(spinor_components * sizeof(double))) +
                          element("datacount", "1"),
                      message_begin) +
           xml_record("scidac-record-xml", "usqcdPropInfo", version + element("info", about), message_middle) +
           lime_head("scidac-binary-data", data_bytes, message_middle);
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
    const auto bytes = static_cast<std::size_t>(site_bytes(layout_));
    const auto encode = [&](std::int64_t local_site, std::byte* stored) {
        const double* spinor = spinors.outer(local_site);
        for (std::size_t k = 0; k < spinor_components; ++k)
            store(stored + k * sizeof(double), std::bit_cast<std::uint64_t>(spinor[k]), true);
    };
    spinor_totals totals;
    write_sites(binary_file::open_to_write(partial_.name()), layout_.data_offset, site_bytes(layout_), local,
                layout_.extents, encode, [&](std::int64_t file_site, std::int64_t local_site, const std::byte* stored) {
                    add_site(totals, file_site, std::span(stored, bytes), spinors.outer(local_site));
                });
    return totals;
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
