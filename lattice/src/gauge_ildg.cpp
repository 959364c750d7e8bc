// SPDX-License-Identifier: Apache-2.0
// ILDG: a LIME file with records ildg-format (XML), ildg-binary-data (links x, y, z, t of every site, big endian) and
// scidac-checksum (XML).  A LIME record: u32 magic, u16 version, u16 flags, u64 length, 128 B of type; padded to 8 B.
#include "gauge_layout.hpp"

namespace halocline::lattice {
namespace {

constexpr std::uint64_t record_head_bytes = 144;
/// XML that we read is a few hundred bytes; more than this is not what it says.
constexpr std::uint64_t max_xml_bytes = 1 << 20;

struct lime_record {
    std::string type;
    std::uint64_t data_offset = 0;
    std::uint64_t length = 0;
};

/// Records of the file; what follows the last one is reported in `trailing`.
std::vector<lime_record> list_records(const binary_file& file, std::uint64_t& trailing) {
    std::vector<lime_record> records;
    std::uint64_t at = 0;
    while (at < file.size()) {
        const std::uint64_t left = file.size() - at;
        const std::string where = "LIME record at byte " + std::to_string(at);
        const std::string head = file.read_text(at, std::min(left, record_head_bytes));
        char magic[4];
        store(magic, lime_magic, true);
        if (head.compare(0, std::min<std::size_t>(4, left), magic, std::min<std::size_t>(4, left)) != 0) {
            if (left > max_trailing_bytes)
                throw file_error(file.path(), where + " has the magic " +
                                                  to_hex(load<std::uint32_t>(head.data(), true)) + ", not " +
                                                  to_hex(lime_magic) + ": the file is corrupted");
            break;
        }
        if (left < record_head_bytes)
            throw file_error(file.path(), where + " is truncated: its head has " + std::to_string(left) + " of " +
                                              std::to_string(record_head_bytes) + " bytes");
        const auto version = load<std::uint16_t>(head.data() + 4, true);
        if (version != 1) throw file_error(file.path(), where + " has version " + std::to_string(version) + ", not 1");
        const auto length = load<std::uint64_t>(head.data() + 8, true);
        // Compared before anything is added: a length near 2^64 would wrap when padded.
        const uint128 padded = (static_cast<uint128>(length) + 7) / 8 * 8;
        if (padded > left - record_head_bytes)
            throw file_error(file.path(), where + " claims " + to_string(padded) + " bytes of data, but " +
                                              std::to_string(left - record_head_bytes) +
                                              " follow: the file is truncated or corrupted");
        const std::string_view type = std::string_view(head).substr(16); // need not be terminated
        records.push_back({std::string(type.substr(0, type.find('\0'))), at + record_head_bytes, length});
        at += record_head_bytes + static_cast<std::uint64_t>(padded);
    }
    trailing = file.size() - at;
    return records;
}

/// The one record of a type; nullptr if there is none.
const lime_record* find_record(const std::string& path, const std::vector<lime_record>& records,
                               std::string_view type) {
    const lime_record* found = nullptr;
    for (const lime_record& r : records) {
        if (r.type != type) continue;
        if (found) throw file_error(path, "has two " + r.type + " records: one configuration per file can be read");
        found = &r;
    }
    return found;
}

/// The text of the elements of a small XML document: enough for flat ones, with attributes, prefixes and comments.
class xml_values {
  public:
    xml_values(const binary_file& file, const lime_record& record) : path_(file.path()), type_(record.type) {
        if (record.length > max_xml_bytes)
            throw file_error(path_, type_ + " has " + std::to_string(record.length) + " bytes of XML: more than " +
                                        std::to_string(max_xml_bytes) + " can't be right");
        text_ = file.read_text(record.data_offset, record.length);
        for (std::size_t open; (open = text_.find("<!--")) != std::string::npos;) {
            const std::size_t close = text_.find("-->", open + 4);
            text_.erase(open, close == std::string::npos ? close : close + 3 - open);
        }
    }

    /// Text of the only element of this name.
    [[nodiscard]] std::string at(std::string_view name) const {
        std::optional<std::string> value;
        for (std::size_t open = text_.find('<'); open != std::string::npos; open = text_.find('<', open + 1)) {
            const std::size_t close = text_.find('>', open);
            if (close == std::string::npos) break;
            std::string_view tag = std::string_view(text_).substr(open + 1, close - open - 1);
            if (tag.empty() || tag[0] == '/' || tag[0] == '?' || tag[0] == '!' || tag.back() == '/') continue;
            tag = tag.substr(0, tag.find_first_of(" \t\r\n"));
            if (const std::size_t colon = tag.find(':'); colon != std::string_view::npos) tag.remove_prefix(colon + 1);
            if (tag != name) continue;
            const std::size_t end = text_.find('<', close);
            if (end == std::string::npos || end + 1 == text_.size() || text_[end + 1] != '/') break;
            if (value) throw file_error(path_, type_ + " gives <" + std::string(name) + "> twice");
            value = trim(std::string_view(text_).substr(close + 1, end - close - 1));
        }
        if (!value) throw file_error(path_, type_ + " has no readable <" + std::string(name) + ">");
        return *value;
    }
    template <class Value>
    [[nodiscard]] Value number(std::string_view name, std::optional<Value> (*parse)(std::string_view)) const {
        const std::string text = at(name);
        const std::optional<Value> value = parse(text);
        if (!value)
            throw file_error(path_, type_ + " gives <" + std::string(name) + "> as '" + text + "': not a number");
        return *value;
    }

  private:
    std::string path_, type_, text_;
};

} // namespace

gauge_file open_ildg(const binary_file& file) {
    gauge_file g;
    g.path = file.path();
    g.format = gauge_format::ildg;
    g.big_endian = true;
    std::uint64_t trailing = 0;
    const std::vector<lime_record> records = list_records(file, trailing);
    const lime_record* format = find_record(g.path, records, "ildg-format");
    const lime_record* data = find_record(g.path, records, "ildg-binary-data");
    const lime_record* checksum = find_record(g.path, records, "scidac-checksum");
    if (!format || !data)
        throw file_error(g.path, std::string("LIME file has no record ") +
                                     (format ? "ildg-binary-data" : "ildg-format") +
                                     ": it is truncated, or not a gauge configuration");

    const xml_values xml(file, *format);
    if (const std::string field = xml.at("field"); field != "su3gauge")
        throw file_error(g.path, "ildg-format gives <field> as '" + field + "': su3gauge can be read");
    const int precision = xml.number("precision", parse_int);
    if (precision != 32 && precision != 64)
        throw file_error(g.path,
                         "ildg-format gives <precision> as " + std::to_string(precision) + ": 32 or 64 can be read");
    g.real_bytes = precision / 8;
    g.extents = {xml.number("lx", parse_int), xml.number("ly", parse_int), xml.number("lz", parse_int),
                 xml.number("lt", parse_int)};
    g.data_offset = static_cast<std::int64_t>(data->data_offset);
    if (const uint128 needed = link_bytes(g); needed != data->length)
        throw file_error(g.path, "ildg-binary-data has " + std::to_string(data->length) + " bytes; " +
                                     to_string(g.extents) + " sites of " + std::to_string(precision) + " bit need " +
                                     to_string(needed));

    if (checksum) {
        const xml_values sums(file, *checksum);
        g.scidac_checksum = {sums.number("suma", parse_hex), sums.number("sumb", parse_hex)};
    } else {
        g.warnings.emplace_back("no scidac-checksum record: some corruption can't be seen");
    }
    if (trailing > 0)
        g.warnings.push_back(std::to_string(trailing) + " trailing bytes after the last record are ignored");
    return g;
}

} // namespace halocline::lattice
