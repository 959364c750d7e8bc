// SPDX-License-Identifier: Apache-2.0
// LIME: records of a type and any bytes, one after the other.  A record: u32 magic, u16 version, u16 flags, u64 length,
// 128 B of type, big endian; its data, padded to 8 B.  Also the contents of SciDAC's records: small XML, checksums of
// sites.  Private to lattice/.
#pragma once

#include <halocline/lattice/geometry.hpp>

#include "binary_file.hpp"
#include "file_text.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace halocline::lattice {

inline constexpr std::uint32_t lime_magic = 0x456789ab;
/// More than this after the data is not a writer's accident but another file.
inline constexpr std::uint64_t max_trailing_bytes = 4096;

/// The first and the last record of a message are marked.
enum lime_flags : std::uint16_t { message_middle = 0, message_begin = 0x8000, message_end = 0x4000 };

/// Where a record of a file is.
struct lime_record {
    std::string type;
    std::uint64_t data_offset = 0;
    std::uint64_t length = 0;
};

/// Records of a file; their lengths have been compared with the file's.
struct lime_records {
    std::string path;
    std::vector<lime_record> list;
    std::uint64_t trailing_bytes = 0; ///< after the last record

    /// The one record of a type; nullptr if there is none.  Err: file_error if there are several.
    [[nodiscard]] const lime_record* find(std::string_view type) const;
};
/// Err: file_error for records that are damaged or cut short.
lime_records list_records(const binary_file& file);

/// A record's header.
std::string lime_head(const std::string& type, std::uint64_t length, lime_flags flags);
/// A whole record.
std::string lime_text(const std::string& type, const std::string& data, lime_flags flags);

std::string xml_element(const std::string& name, const std::string& content);
/// A whole record with an XML document, terminated by a zero byte for readers in C.
std::string lime_xml(const std::string& type, const std::string& root, const std::string& content, lime_flags flags);
/// The first message of a file of QIO: the lattice, and what the file contains. The date that private records may have
/// is omitted: equal fields make equal files.
std::string scidac_file_text(const coordinate& extents, const std::string& contents);

/// The text of the elements of a small XML document: enough for flat ones, with attributes, prefixes and comments.
class xml_values {
  public:
    /// Err: file_error.
    xml_values(const binary_file& file, const lime_record& record);

    /// Text of the only element of this name; none if there is no such element, or one that can't be read.
    /// Err: file_error if there are several.
    [[nodiscard]] std::optional<std::string> find(std::string_view name) const;
    /// Text of the only element of this name.  Err: file_error if there is none that can be read, or several.
    [[nodiscard]] std::string at(std::string_view name) const;
    /// A value that must be present and valid.  Err: file_error.
    template <class Value>
    [[nodiscard]] Value number(std::string_view name, std::optional<Value> (*parse)(std::string_view)) const {
        const std::string text = at(name);
        const std::optional<Value> value = parse(text);
        constexpr bool hexadecimal = std::is_same_v<Value, std::uint32_t>;
        if (!value)
            fail("gives <" + std::string(name) + "> as '" + shown(text) + "': " + why_no_number(text, hexadecimal));
        return *value;
    }
    /// A number that must have a certain value, if the file gives it; `right` says which, and why. `of`: what has it.
    /// Err: file_error.
    void expect(std::string_view name, int value, const std::string& right, const std::string& of = {}) const;
    /// Err: always file_error, which opens with the record's type.
    [[noreturn]] void fail(const std::string& what) const;

  private:
    std::string path_, type_, text_;
};

/// The <dims> of record scidac-private-file-xml: x, y, z, t.  Err: file_error unless there are four numbers.
coordinate scidac_dims(const xml_values& xml);
/// The same, after checking that the file holds fields on all sites of a lattice in space and time.  Err: file_error.
coordinate scidac_extents(const xml_values& xml);
/// Bytes of a real, by the <precision> of record scidac-private-record-xml, after checking that the field is on all
/// sites.  Err: file_error.
int scidac_real_bytes(const xml_values& xml);

/// suma and sumb of a SciDAC file: the CRC-32 of each site's bytes, rotated by the site's index mod 29 and 31, xored.
using scidac_sums = std::array<std::uint32_t, 2>;
void add_to_scidac_sums(scidac_sums& sums, std::int64_t site, std::span<const std::byte> stored);
/// "0123abcd 4567cdef"
std::string to_string(const scidac_sums& sums);
/// The record with the sums, which ends its message; its length does not depend on their values.
std::string scidac_checksum_text(const scidac_sums& sums);
/// The sums that a file records; none: no such record. Adds to `warnings` what the sums can't guarantee: their absence,
/// or bytes after the last record.  Err: file_error; also for both, because a record is then not where the one before
/// it ends, and nothing else would reveal that the field is shifted.
std::optional<scidac_sums> read_scidac_sums(const binary_file& file, const lime_records& records,
                                            std::vector<std::string>& warnings);
/// Err: file_error if the file records other sums than its data has.
void check_scidac_sums(const std::string& path, const std::optional<scidac_sums>& recorded, const scidac_sums& found);

} // namespace halocline::lattice
