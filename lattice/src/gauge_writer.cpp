// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/gauge_file.hpp>

#include "gauge_layout.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace halocline::lattice {
namespace {

constexpr std::uint16_t message_begin = 0x8000, message_end = 0x4000;

/// A LIME record's head.
std::string record_head(const std::string& type, std::uint64_t length, std::uint16_t flags) {
    std::string head(144, '\0');
    store(head.data(), lime_magic, true);
    store(head.data() + 4, std::uint16_t{1}, true);
    store(head.data() + 6, flags, true);
    store(head.data() + 8, length, true);
    type.copy(head.data() + 16, 128);
    return head;
}
/// A whole record, padded to 8 bytes.
std::string record(const std::string& type, const std::string& data, std::uint16_t flags) {
    return record_head(type, data.size(), flags) + data + std::string((8 - data.size() % 8) % 8, '\0');
}

std::string ildg_head(const coordinate& extents, std::uint64_t bytes) {
    std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ildgFormat xmlns=\"http://www.lqcd.org/ildg\" "
                      "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
                      "xsi:schemaLocation=\"http://www.lqcd.org/ildg/filefmt.xsd\"><version>1.0</version>"
                      "<field>su3gauge</field><precision>64</precision>";
    for (int mu = 0; mu < dimensions; ++mu) {
        const std::string tag{'l', "xyzt"[mu]};
        xml += "<" + tag + ">" + std::to_string(extents[mu]) + "</" + tag + ">";
    }
    return record("ildg-format", xml + "</ildgFormat>", message_begin) + record_head("ildg-binary-data", bytes, 0);
}
std::string ildg_tail(const gauge_totals& totals) {
    return record("scidac-checksum",
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?><scidacChecksum><version>1.0</version><suma>" +
                      to_hex(totals.scidac_xor[0]) + "</suma><sumb>" + to_hex(totals.scidac_xor[1]) +
                      "</sumb></scidacChecksum>",
                  message_end);
}

/// int32 nt, nz, ny, nx and a float64 that finish() fills in.
std::string ddalphaamg_head(const coordinate& extents) {
    std::string head(24, '\0');
    for (int mu = 0; mu < dimensions; ++mu)
        store(head.data() + 4 * (3 - mu), static_cast<std::uint32_t>(extents[mu]), false);
    return head;
}

/// Makes the rename itself durable.
void sync_folder_of(const std::string& path) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    sync_folder(folder.empty() ? "." : folder.string());
}

} // namespace

gauge_writer::gauge_writer(std::string path, gauge_format format, const coordinate& extents)
    : path_(std::move(path)), partial_(path_ + ".partial") {
    if (format == gauge_format::nersc)
        throw input_error("'" + path_ + "': NERSC files aren't written; ILDG and DDalphaAMG files are");
    layout_.path = path_;
    layout_.format = format;
    layout_.extents = extents;
    layout_.big_endian = format == gauge_format::ildg;
    const uint128 bytes = link_bytes(layout_);
    if (bytes > std::uint64_t{1} << 62)
        throw input_error("'" + path_ + "': " + to_string(extents) + " sites need " + to_string(bytes) +
                          " bytes: no file can hold them");
    layout_.data_offset = static_cast<std::int64_t>(format == gauge_format::ildg ? ildg_head(extents, 0).size()
                                                                                 : ddalphaamg_head(extents).size());
}

gauge_writer::~gauge_writer() {
    if (created_) std::remove(partial_.c_str());
}

void gauge_writer::create() {
    std::error_code none;
    if (std::filesystem::exists(path_, none) && !std::filesystem::is_regular_file(path_, none))
        throw input_error("'" + path_ + "' is no regular file: a gauge file would take its place");
    const binary_file file = binary_file::create(partial_);
    created_ = true;
    const auto bytes = static_cast<std::uint64_t>(link_bytes(layout_));
    const bool ildg = layout_.format == gauge_format::ildg;
    const std::uint64_t tail = ildg ? ildg_tail({}).size() : 0;
    file.reserve(static_cast<std::uint64_t>(layout_.data_offset) + bytes + tail);
    file.write_text(0, ildg ? ildg_head(layout_.extents, bytes) : ddalphaamg_head(layout_.extents));
}

gauge_totals gauge_writer::write(const box& local, const gauge_field& links) {
    check_links(local, links);
    for (int mu = 0; mu < dimensions; ++mu)
        if (local.origin[mu] + local.extents[mu] > layout_.extents[mu])
            throw input_error("local box " + to_string(local.extents) + " at " + to_string(local.origin) +
                              " leaves the lattice " + to_string(layout_.extents) + " of '" + path_ + "'");
    const binary_file file = binary_file::open_to_write(partial_);
    const int bytes = site_bytes(layout_);
    const std::int64_t most = std::min(run_bytes / bytes, local.volume());
    std::vector<std::byte> buffer(static_cast<std::size_t>(most * bytes));
    gauge_totals totals;
    for_each_run(local, layout_.extents, most,
                 [&](std::int64_t file_site, std::int64_t local_site, std::int64_t sites) {
                     for (std::int64_t i = 0; i < sites; ++i) {
                         std::byte* stored = buffer.data() + i * bytes;
                         encode_site(layout_, links.outer(local_site + i), stored);
                         add_site(totals, layout_, file_site + i, stored, links.outer(local_site + i), true);
                     }
                     file.write(static_cast<std::uint64_t>(layout_.data_offset + file_site * bytes),
                                std::span(buffer).first(static_cast<std::size_t>(sites * bytes)));
                 });
    file.sync();
    return totals;
}

void gauge_writer::finish(const gauge_totals& totals, double plaquette) {
    try {
        check_totals(layout_, totals); // nothing is recorded in layout_: coverage, finiteness and unitarity
    } catch (const file_error& e) {
        throw input_error(std::string(e.what()) +
                          "; links of 32-bit origin must be reunitarised before they are written");
    }
    {
        const binary_file file = binary_file::open_to_write(partial_);
        if (layout_.format == gauge_format::ildg) {
            file.write_text(static_cast<std::uint64_t>(layout_.data_offset) +
                                static_cast<std::uint64_t>(link_bytes(layout_)),
                            ildg_tail(totals));
        } else {
            std::byte head[sizeof(double)];
            store(head, std::bit_cast<std::uint64_t>(3 * plaquette), false);
            file.write(16, head);
        }
        file.sync();
    }
    if (std::rename(partial_.c_str(), path_.c_str()) != 0)
        throw file_error(path_, "'" + partial_ + "' can't be renamed to it: " + std::generic_category().message(errno));
    created_ = false;
    sync_folder_of(path_);
}

} // namespace halocline::lattice
