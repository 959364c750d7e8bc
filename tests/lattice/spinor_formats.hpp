// SPDX-License-Identifier: Apache-2.0
// Spinor files made here byte by byte from the format's specification, never by our writer.
#pragma once

#include "gauge_formats.hpp"

#include <halocline/base/error.hpp>
#include <halocline/lattice/spinor_file.hpp>

namespace halocline_test {

/// Component k of a site's spinor: a random number, exact in 32 bit.
inline double spinor_number(std::int64_t site, int k) {
    site_random random(7, static_cast<std::uint32_t>(k), static_cast<std::uint64_t>(site));
    return static_cast<float>(random.normal());
}
inline std::string spinor_data(int real_bytes) {
    std::string out;
    for (int site = 0; site < sites; ++site)
        for (int k = 0; k < spinor_components; ++k) out += real(spinor_number(site, k), real_bytes, true);
    return out;
}

/// An XML record as QIO pads it.
inline std::string qio_record(const std::string& type, const std::string& xml, unsigned flags) {
    return lime_record(type, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>" + xml + std::string(5, '\0'), flags);
}
inline const std::string file_xml = "<scidacFile><version>1.1</version><spacetime>4</spacetime><dims>2 3 4 5 </dims>"
                                    "<volfmt>0</volfmt></scidacFile>";
inline std::string record_xml(int real_bytes) {
    const std::string f = real_bytes == 4 ? "F" : "D";
    return "<scidacRecord><version>1.1</version><date>Wed Oct 22 14:58:08 2008 UTC</date><recordtype>0</recordtype>"
           "<datatype>USQCD_" +
           f + "3_DiracFermion</datatype><precision>" + f + "</precision><colors>3</colors><spins>4</spins><typesize>" +
           std::to_string(24 * real_bytes) + "</typesize><datacount>1</datacount></scidacRecord>";
}
inline std::string field_message(int real_bytes, const std::string& data, bool with_checksum = true) {
    return qio_record("scidac-private-record-xml", record_xml(real_bytes), 0x8000) +
           qio_record("scidac-record-xml", "<usqcdPropInfo><version>1.0</version><spin>0</spin></usqcdPropInfo>", 0) +
           lime_record("scidac-binary-data", data, with_checksum ? 0 : 0x4000) +
           (with_checksum ? lime_record("scidac-checksum", scidac_checksum(data, real_bytes, 24), 0x4000) : "");
}
inline std::string file_message() {
    return qio_record("scidac-private-file-xml", file_xml, 0x8000) +
           qio_record("scidac-file-xml", "<title>somebody's</title>", 0x4000);
}
inline std::string scidac(int real_bytes, bool with_checksum = true) {
    return file_message() + field_message(real_bytes, spinor_data(real_bytes), with_checksum);
}

/// Everything a program does with a file; throws if it is refused.
inline field<double> load_spinors(const std::string& content) {
    const temporary_file t(content);
    const spinor_file file = open_spinor_file(t.path());
    field<double> spinors(site_order::lexicographic(file.extents), spinor_components);
    check_totals(file, read_spinors(file, {{0, 0, 0, 0}, file.extents}, spinors));
    return spinors;
}
/// The error of load_spinors() for a file; "" if there is none.
inline std::string refusal(const std::string& content) {
    try {
        load_spinors(content);
    } catch (const halocline::file_error& e) {
        return e.what();
    }
    return {};
}

inline void expect_spinors(const field<double>& spinors, const box& local) {
    for (std::int64_t s = 0; s < local.volume(); ++s) {
        const coordinate x = local.site(s);
        for (int k = 0; k < spinor_components; ++k)
            ASSERT_EQ(spinors.at(s, k), spinor_number(lexicographic_index(x, extents), k)) << s << " " << k;
    }
}

} // namespace halocline_test
