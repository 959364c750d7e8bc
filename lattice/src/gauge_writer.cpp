// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/gauge_file.hpp>

#include "binary_file.hpp"
#include "gauge_layout.hpp"

namespace halocline::lattice {
namespace {

std::string ildg_head(const coordinate& extents, std::uint64_t bytes) {
    std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ildgFormat xmlns=\"http://www.lqcd.org/ildg\" "
                      "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
                      "xsi:schemaLocation=\"http://www.lqcd.org/ildg/filefmt.xsd\"><version>1.0</version>"
                      "<field>su3gauge</field><precision>64</precision>";
    for (int mu = 0; mu < dimensions; ++mu) {
        const std::string tag{'l', "xyzt"[mu]};
        xml += "<" + tag + ">" + std::to_string(extents[mu]) + "</" + tag + ">";
    }
    return lime_text("ildg-format", xml + "</ildgFormat>", message_begin) +
           lime_head("ildg-binary-data", bytes, message_middle);
}

/// int32 nt, nz, ny, nx and a float64 that finish() fills in.
std::string ddalphaamg_head(const coordinate& extents) {
    std::string head(24, '\0');
    for (int mu = 0; mu < dimensions; ++mu)
        store(head.data() + 4 * (3 - mu), static_cast<std::uint32_t>(extents[mu]), false);
    return head;
}

} // namespace

gauge_writer::gauge_writer(const std::string& path, gauge_format format, const coordinate& extents) : partial_(path) {
    if (format == gauge_format::nersc)
        throw input_error("'" + path + "': NERSC files aren't written; ILDG and DDalphaAMG files are");
    layout_.path = path;
    layout_.format = format;
    layout_.extents = extents;
    layout_.big_endian = format == gauge_format::ildg;
    const uint128 bytes = link_bytes(layout_);
    if (bytes > std::uint64_t{1} << 62)
        throw input_error("'" + path + "': " + to_string(extents) + " sites need " + to_string(bytes) +
                          " bytes: no file can hold them");
    layout_.data_offset = static_cast<std::int64_t>(format == gauge_format::ildg ? ildg_head(extents, 0).size()
                                                                                 : ddalphaamg_head(extents).size());
}

void gauge_writer::create() {
    partial_.create();
    const binary_file file = binary_file::open_to_write(partial_.name());
    const auto bytes = static_cast<std::uint64_t>(link_bytes(layout_));
    const bool ildg = layout_.format == gauge_format::ildg;
    const std::uint64_t tail = ildg ? scidac_checksum_text({}).size() : 0;
    file.reserve(static_cast<std::uint64_t>(layout_.data_offset) + bytes + tail);
    file.write_text(0, ildg ? ildg_head(layout_.extents, bytes) : ddalphaamg_head(layout_.extents));
}

gauge_totals gauge_writer::write(const box& local, const gauge_field& links) {
    check_field(local, links, gauge_components, "links");
    check_inside(local, layout_.extents, layout_.path);
    const binary_file file = binary_file::open_to_write(partial_.name());
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
        const binary_file file = binary_file::open_to_write(partial_.name());
        if (layout_.format == gauge_format::ildg) {
            file.write_text(static_cast<std::uint64_t>(layout_.data_offset) +
                                static_cast<std::uint64_t>(link_bytes(layout_)),
                            scidac_checksum_text(totals.scidac_xor));
        } else {
            std::byte head[sizeof(double)];
            store(head, std::bit_cast<std::uint64_t>(3 * plaquette), false);
            file.write(16, head);
        }
        file.sync();
    }
    partial_.publish();
}

} // namespace halocline::lattice
