// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/gauge_file.hpp>

#include "gauge_layout.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace halocline::lattice {
namespace {

std::string scientific(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.12g", value);
    return text;
}

/// "antiperiodic" and "ANTI-PERIODIC" are "ANTIPERIODIC".
std::string boundary_word(std::string text) {
    std::erase(text, '-');
    std::ranges::transform(text, text.begin(),
                           [](char c) { return 'a' <= c && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    return text;
}

bool has_32_bits(const gauge_file& file) { return file.real_bytes == 4 || file.rounded_to_32_bits; }
double trace_precision(const gauge_file& file) { return has_32_bits(file) ? 1e-6 : 1e-10; }
double su3_tolerance(bool of_32_bits) { return of_32_bits ? 1e-5 : 1e-10; }

} // namespace

std::string to_string(gauge_format f) {
    switch (f) {
    case gauge_format::ddalphaamg: return "DDalphaAMG";
    case gauge_format::nersc: return "NERSC";
    case gauge_format::ildg: return "ILDG";
    case gauge_format::milc: return "MILC";
    case gauge_format::openqcd: return "openQCD";
    case gauge_format::scidac: return "SciDAC";
    }
    return "unknown";
}

gauge_totals combine(const gauge_totals& a, const gauge_totals& b) {
    gauge_totals sum;
    sum.nersc_sum = a.nersc_sum + b.nersc_sum;
    for (std::size_t i = 0; i < 2; ++i) {
        sum.scidac_xor[i] = a.scidac_xor[i] ^ b.scidac_xor[i];
        sum.milc_xor[i] = a.milc_xor[i] ^ b.milc_xor[i];
    }
    sum.link_trace_sum = a.link_trace_sum + b.link_trace_sum;
    sum.links = a.links + b.links;
    sum.open_links = a.open_links + b.open_links;
    sum.max_su3_error = std::max(a.max_su3_error, b.max_su3_error);
    sum.finite = a.finite && b.finite;
    return sum;
}

gauge_file open_gauge_file(const std::string& path) {
    const binary_file file = binary_file::open_to_read(path);
    const std::string start = file.read_text(0, std::min<std::uint64_t>(file.size(), nersc_begin.size()));
    const std::uint32_t first = start.size() >= 4 ? load<std::uint32_t>(start.data(), true) : 0;
    if (first == lime_magic) return open_ildg(file);
    if (first == milc_magic || reverse_bytes(first) == milc_magic) return open_milc(file);
    if (start == nersc_begin) return open_nersc(file);
    return open_ddalphaamg(file); // it has no magic number: it is recognised by sizes that fit
}

gauge_totals read_links(const gauge_file& file, const box& local, gauge_field& links) {
    check_field(local, links, gauge_components, "links");
    const binary_file data = binary_file::open_to_read(file.path);
    links.mark_written(); // even if it is written in part only
    if (file.format == gauge_format::openqcd) return read_openqcd(file, data, local, links);
    const box whole{{0, 0, 0, 0}, file.extents};
    gauge_totals totals;
    read_sites(data, file.data_offset, site_bytes(file), local, file.extents,
               [&](std::int64_t file_site, std::int64_t local_site, std::span<const std::byte> stored) {
                   double* u = links.outer(local_site);
                   decode_site(file, stored.data(), u);
                   const coordinate x = local.site(local_site);
                   add_links(totals, file, x, u);
                   if (whole.contains(x)) add_checksum(totals, file, file_site, stored.data());
               });
    return totals;
}

void check_totals(const gauge_file& file, const gauge_totals& totals) {
    const std::int64_t links = dimensions * volume(file.extents);
    if (totals.links != links)
        throw input_error("totals of '" + file.path + "' cover " + std::to_string(totals.links) + " of " +
                          std::to_string(links) + " links: they must be combined over all ranks");
    if (!totals.finite)
        throw file_error(file.path,
                         "holds a NaN or an infinity: it is corrupted, or its numbers have another byte order "
                         "than its head says");
    if (file.nersc_checksum && *file.nersc_checksum != totals.nersc_sum)
        throw file_error(file.path, "CHECKSUM of the data is " + to_hex(totals.nersc_sum) + ", the header says " +
                                        to_hex(*file.nersc_checksum) + ": it is corrupted");
    check_scidac_sums(file.path, file.scidac_checksum, totals.scidac_xor);
    if (file.milc_checksum && *file.milc_checksum != totals.milc_xor)
        throw file_error(file.path, "checksums of the data are " + to_hex(totals.milc_xor[0]) + " " +
                                        to_hex(totals.milc_xor[1]) + ", the head says " +
                                        to_hex((*file.milc_checksum)[0]) + " " + to_hex((*file.milc_checksum)[1]) +
                                        ": it is corrupted");
    const std::int64_t last_slice = volume(file.extents) / file.extents[3];
    if (totals.open_links != 0 && totals.open_links != last_slice)
        throw file_error(file.path, std::to_string(totals.open_links) + " of the " + std::to_string(last_slice) +
                                        " links in t of its last time slice are zero: an open boundary has all");
    if (const double most = su3_tolerance(has_32_bits(file)); !(totals.max_su3_error <= most)) {
        const std::string what = "a link misses SU(3) by " + scientific(totals.max_su3_error) + ", at most " +
                                 scientific(most) + " is right: ";
        if (totals.max_su3_error <= su3_tolerance(true)) // of 64 bits
            throw rounded_links_error(file.path, what + "its links were rounded to 32 bits before, or it is corrupted");
        throw file_error(file.path,
                         what + "it is corrupted, its head is wrong, or the sign of a boundary is in the links");
    }
    const double trace = totals.link_trace_sum / (3 * static_cast<double>(links));
    if (file.link_trace && !(std::abs(*file.link_trace - trace) <= trace_precision(file) + file.link_trace_digit))
        throw file_error(file.path, "LINK_TRACE of the data is " + scientific(trace) + ", the header says " +
                                        scientific(*file.link_trace) + ": it is corrupted");
}

std::vector<std::string> boundary_warnings(const gauge_file& file, const std::array<boundary, dimensions>& used) {
    std::vector<std::string> all;
    for (int mu = 0; mu < dimensions; ++mu) {
        const std::string made_with = boundary_word(file.fermion_boundaries[mu]);
        const bool same = made_with == "ANTIPERIODIC" && used[mu] == boundary::antiperiodic;
        if (made_with.empty() || made_with == "PERIODIC" || same) continue;
        all.push_back("'" + file.path + "' says BOUNDARY_" + std::to_string(mu + 1) + " = " +
                      shown(file.fermion_boundaries[mu]) + " of its fermions; here the boundary in " +
                      dimension_name[mu] + " is another");
    }
    return all;
}

double plaquette_tolerance(const gauge_file& file) { return trace_precision(file) + file.plaquette_digit; }

} // namespace halocline::lattice
