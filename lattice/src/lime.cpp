// SPDX-License-Identifier: Apache-2.0
#include "lime.hpp"

#include <halocline/base/error.hpp>

#include <zlib.h>

#include <algorithm>

namespace halocline::lattice {
namespace {

constexpr std::uint64_t record_head_bytes = 144;
/// XML that we read is a few hundred bytes; anything larger is not what it claims to be.
constexpr std::uint64_t max_xml_bytes = 1 << 20;
constexpr std::size_t most_records = 65'536; // each is read, and kept in a list

/// One pass, like the search for an element: a damaged record may hold a hundred thousand comments.
std::string without_comments(std::string_view xml) {
    constexpr std::string_view begin = "<!--", end = "-->";
    std::string kept;
    for (std::size_t at = 0, close = 0; at < xml.size(); at = close + end.size()) {
        const std::size_t open = std::min(xml.find(begin, at), xml.size());
        kept += xml.substr(at, open - at);
        close = open == xml.size() ? xml.npos : xml.find(end, open + begin.size());
        if (close == xml.npos) break;
    }
    return kept;
}

} // namespace

lime_records list_records(const binary_file& file) {
    lime_records records{file.path(), {}, 0};
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
        // Compared before anything is added: a length near 2^64 would overflow when padded.
        const uint128 padded = (static_cast<uint128>(length) + 7) / 8 * 8;
        const std::uint64_t room = left - record_head_bytes;
        if (padded > room)
            throw file_error(file.path(),
                             where + " claims " +
                                 (length > room ? std::to_string(length) + " bytes of data, but "
                                                : to_string(padded) + " bytes of data with padding, but ") +
                                 std::to_string(room) + " follow: the file is truncated or corrupted");
        if (records.list.size() == most_records)
            throw file_error(file.path(), where + " is one of more than " + std::to_string(most_records) +
                                              " records: no file of fields has so many");
        const std::string_view type = std::string_view(head).substr(16); // need not be terminated
        records.list.push_back({std::string(type.substr(0, type.find('\0'))), at + record_head_bytes, length});
        at += record_head_bytes + static_cast<std::uint64_t>(padded);
    }
    records.trailing_bytes = file.size() - at;
    return records;
}

const lime_record* lime_records::find(std::string_view type) const {
    const auto of_type = [&](const lime_record& r) { return r.type == type; };
    const auto found = std::ranges::find_if(list, of_type);
    if (found == list.end()) return nullptr;
    if (const auto count = std::ranges::count_if(list, of_type); count > 1)
        throw file_error(path, "has " + std::to_string(count) + " records " + found->type +
                                   ": files with one configuration or one field can be read");
    return &*found;
}

std::string lime_head(const std::string& type, std::uint64_t length, lime_flags flags) {
    std::string head(record_head_bytes, '\0');
    store(head.data(), lime_magic, true);
    store(head.data() + 4, std::uint16_t{1}, true);
    store(head.data() + 6, static_cast<std::uint16_t>(flags), true);
    store(head.data() + 8, length, true);
    type.copy(head.data() + 16, 128);
    return head;
}

std::string xml_element(const std::string& name, const std::string& content) {
    return "<" + name + ">" + content + "</" + name + ">";
}

std::string lime_xml(const std::string& type, const std::string& root, const std::string& content, lime_flags flags) {
    return lime_text(type, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>" + xml_element(root, content) + '\0', flags);
}

std::string scidac_file_text(const coordinate& extents, const std::string& contents) {
    std::string dims;
    for (int e : extents) dims += std::to_string(e) + " ";
    return lime_xml("scidac-private-file-xml", "scidacFile",
                    xml_element("version", "1.1") + xml_element("spacetime", "4") + xml_element("dims", dims) +
                        xml_element("volfmt", "0"),
                    message_begin) +
           lime_xml("scidac-file-xml", "haloclineFile",
                    xml_element("version", "1.0") + xml_element("content", contents), message_end);
}

std::string lime_text(const std::string& type, const std::string& data, lime_flags flags) {
    return lime_head(type, data.size(), flags) + data + std::string((8 - data.size() % 8) % 8, '\0');
}

xml_values::xml_values(const binary_file& file, const lime_record& record) : path_(file.path()), type_(record.type) {
    if (record.length > max_xml_bytes)
        fail("has " + std::to_string(record.length) + " bytes of XML: more than " + std::to_string(max_xml_bytes) +
             " can't be right");
    text_ = without_comments(file.read_text(record.data_offset, record.length));
}

std::optional<std::string> xml_values::find(std::string_view name) const {
    std::optional<std::string> value;
    for (std::size_t open = text_.find('<'), close = open; open != std::string::npos; open = text_.find('<', close)) {
        close = text_.find_first_of("<>", open + 1);
        if (close == std::string::npos) break;
        if (text_[close] == '<') continue; // no tag
        std::string_view tag = std::string_view(text_).substr(open + 1, close - open - 1);
        if (tag.empty() || tag[0] == '/' || tag[0] == '?' || tag[0] == '!' || tag.back() == '/') continue;
        tag = tag.substr(0, tag.find_first_of(" \t\r\n"));
        if (const std::size_t colon = tag.find(':'); colon != std::string_view::npos) tag.remove_prefix(colon + 1);
        if (tag != name) continue;
        const std::size_t end = text_.find('<', close);
        if (end == std::string::npos || end + 1 == text_.size() || text_[end + 1] != '/') break;
        if (value) fail("gives <" + std::string(name) + "> twice");
        value = trim(std::string_view(text_).substr(close + 1, end - close - 1));
    }
    return value;
}

std::string xml_values::at(std::string_view name) const {
    const std::optional<std::string> value = find(name);
    if (!value) fail("has no readable <" + std::string(name) + ">");
    return *value;
}

void xml_values::expect(std::string_view name, int value, const std::string& right, const std::string& of) const {
    if (!find(name)) return;
    if (const int given = number(name, parse_int); given != value)
        fail("gives <" + std::string(name) + "> as " + std::to_string(given) + of + ": " + right + " can be read");
}

void xml_values::fail(const std::string& what) const { throw file_error(path_, type_ + " " + what); }

coordinate scidac_dims(const xml_values& xml) {
    const std::string text = xml.at("dims");
    coordinate extents{};
    std::string_view rest = text;
    for (int mu = 0; mu < dimensions; ++mu) {
        const std::size_t end = std::min(rest.find_first_of(" \t\r\n"), rest.size());
        const std::optional<int> extent = parse_int(rest.substr(0, end));
        if (!extent || (mu == dimensions - 1 && end != rest.size()))
            xml.fail("gives <dims> as '" + shown(text) + "': not four extents");
        extents[mu] = *extent;
        rest = trim(rest.substr(end));
    }
    return extents;
}

coordinate scidac_extents(const xml_values& xml) {
    xml.expect("spacetime", dimensions, "4");
    xml.expect("volfmt", 0, "0, all sites in one file,");
    xml.expect("multifile", 1, "1, all sites in one file,"); // version 1.0
    return scidac_dims(xml);
}

int scidac_real_bytes(const xml_values& xml) {
    xml.expect("recordtype", 0, "0, a field on the whole lattice,"); // globaldata in version 1.0
    xml.expect("globaldata", 0, "0, a field on the whole lattice,");
    const std::string precision = xml.at("precision");
    if (precision != "F" && precision != "D")
        xml.fail("gives <precision> as '" + shown(precision) + "': F (32 bit) or D (64 bit) can be read");
    return precision == "F" ? 4 : 8;
}

void add_to_scidac_sums(scidac_sums& sums, std::int64_t site, std::span<const std::byte> stored) {
    const auto crc = static_cast<std::uint32_t>(
        ::crc32(0, reinterpret_cast<const Bytef*>(stored.data()), static_cast<uInt>(stored.size())));
    sums[0] ^= std::rotl(crc, static_cast<int>(site % 29));
    sums[1] ^= std::rotl(crc, static_cast<int>(site % 31));
}

std::string to_string(const scidac_sums& sums) { return to_hex(sums[0]) + " " + to_hex(sums[1]); }

std::string scidac_checksum_text(const scidac_sums& sums) {
    return lime_text("scidac-checksum",
                     "<?xml version=\"1.0\" encoding=\"UTF-8\"?><scidacChecksum><version>1.0</version><suma>" +
                         to_hex(sums[0]) + "</suma><sumb>" + to_hex(sums[1]) + "</sumb></scidacChecksum>",
                     message_end);
}

std::optional<scidac_sums> read_scidac_sums(const binary_file& file, const lime_records& records,
                                            std::vector<std::string>& warnings) {
    const lime_record* checksum = records.find("scidac-checksum");
    if (!checksum && records.trailing_bytes > 0)
        throw file_error(file.path(), std::to_string(records.trailing_bytes) +
                                          " bytes that are no LIME record follow the last one, and no scidac-checksum "
                                          "is found: bytes were lost or added before, the file is corrupted");
    if (!checksum) warnings.emplace_back("no scidac-checksum record: some corruption can't be seen");
    if (records.trailing_bytes > 0)
        warnings.push_back(std::to_string(records.trailing_bytes) +
                           " trailing bytes after the last record are ignored");
    if (!checksum) return std::nullopt;
    const xml_values sums(file, *checksum);
    return scidac_sums{sums.number("suma", parse_hex), sums.number("sumb", parse_hex)};
}

void check_scidac_sums(const std::string& path, const std::optional<scidac_sums>& recorded, const scidac_sums& found) {
    if (recorded && *recorded != found)
        throw file_error(path, "SciDAC checksum of the data is " + to_string(found) + ", the file records " +
                                   to_string(*recorded) + ": it is corrupted");
}

} // namespace halocline::lattice
