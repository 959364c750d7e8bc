// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/gauge_file.hpp>

#include "gauge_layout.hpp"

#include <cmath>
#include <cstdio>

namespace halocline::lattice {
namespace {

std::string scientific(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.12g", value);
    return text;
}

double trace_precision(const gauge_file& file) { return file.real_bytes == 4 ? 1e-6 : 1e-10; }
double su3_tolerance(const gauge_file& file) { return file.real_bytes == 4 ? 1e-5 : 1e-10; }

} // namespace

std::string to_string(gauge_format f) {
    switch (f) {
    case gauge_format::ddalphaamg: return "DDalphaAMG";
    case gauge_format::nersc: return "NERSC";
    case gauge_format::ildg: return "ILDG";
    }
    return "unknown";
}

gauge_totals combine(const gauge_totals& a, const gauge_totals& b) {
    gauge_totals sum;
    sum.nersc_sum = a.nersc_sum + b.nersc_sum;
    for (std::size_t i = 0; i < 2; ++i) sum.scidac_xor[i] = a.scidac_xor[i] ^ b.scidac_xor[i];
    sum.link_trace_sum = a.link_trace_sum + b.link_trace_sum;
    sum.links = a.links + b.links;
    sum.max_su3_error = std::max(a.max_su3_error, b.max_su3_error);
    sum.finite = a.finite && b.finite;
    return sum;
}

gauge_file open_gauge_file(const std::string& path) {
    const binary_file file = binary_file::open_to_read(path);
    const std::string start = file.read_text(0, std::min<std::uint64_t>(file.size(), nersc_begin.size()));
    if (start.size() >= 4 && load<std::uint32_t>(start.data(), true) == lime_magic) return open_ildg(file);
    if (start == nersc_begin) return open_nersc(file);
    return open_ddalphaamg(file); // it has no magic: sizes that fit are its mark
}

gauge_totals read_links(const gauge_file& file, const box& local, gauge_field& links) {
    check_field(local, links, gauge_components, "links");
    const binary_file data = binary_file::open_to_read(file.path);
    const box whole{{0, 0, 0, 0}, file.extents};
    const int bytes = site_bytes(file);
    const std::int64_t most = std::min(std::max<std::int64_t>(1, run_bytes / bytes), local.volume());
    std::vector<std::byte> buffer(static_cast<std::size_t>(most * bytes));
    gauge_totals totals;
    for_each_run(local, file.extents, most, [&](std::int64_t file_site, std::int64_t local_site, std::int64_t sites) {
        data.read(static_cast<std::uint64_t>(file.data_offset + file_site * bytes),
                  std::span(buffer).first(static_cast<std::size_t>(sites * bytes)));
        for (std::int64_t i = 0; i < sites; ++i) {
            const std::byte* stored = buffer.data() + i * bytes;
            double* u = links.outer(local_site + i);
            decode_site(file, stored, u);
            add_site(totals, file, file_site + i, stored, u, whole.contains(global_coordinate(local, local_site + i)));
        }
    });
    return totals;
}

void check_totals(const gauge_file& file, const gauge_totals& totals) {
    const std::int64_t links = dimensions * volume(file.extents);
    if (totals.links != links)
        throw input_error("totals of '" + file.path + "' cover " + std::to_string(totals.links) + " of " +
                          std::to_string(links) + " links: they must be combined over all ranks");
    if (!totals.finite) throw file_error(file.path, "holds a NaN or an infinity: it is corrupted");
    if (file.nersc_checksum && *file.nersc_checksum != totals.nersc_sum)
        throw file_error(file.path, "CHECKSUM of the data is " + to_hex(totals.nersc_sum) + ", the header says " +
                                        to_hex(*file.nersc_checksum) + ": it is corrupted");
    check_scidac_sums(file.path, file.scidac_checksum, totals.scidac_xor);
    if (!(totals.max_su3_error <= su3_tolerance(file)))
        throw file_error(file.path, "a link misses SU(3) by " + scientific(totals.max_su3_error) + ", at most " +
                                        scientific(su3_tolerance(file)) +
                                        " is right: it is corrupted, its head is wrong, or the sign of a boundary is " +
                                        "in the links");
    const double trace = totals.link_trace_sum / (3 * static_cast<double>(links));
    if (file.link_trace && !(std::abs(*file.link_trace - trace) <= trace_precision(file) + file.link_trace_digit))
        throw file_error(file.path, "LINK_TRACE of the data is " + scientific(trace) + ", the header says " +
                                        scientific(*file.link_trace) + ": it is corrupted");
}

std::vector<std::string> boundary_warnings(const gauge_file& file, const std::array<boundary, dimensions>& used) {
    std::vector<std::string> all;
    for (int mu = 0; mu < dimensions; ++mu) {
        const std::string& made_with = file.fermion_boundaries[mu];
        const bool same = made_with == "ANTIPERIODIC" && used[mu] == boundary::antiperiodic;
        if (made_with.empty() || made_with == "PERIODIC" || same) continue;
        all.push_back("'" + file.path + "' says BOUNDARY_" + std::to_string(mu + 1) + " = " + made_with +
                      " of its fermions; here the boundary in " + "xyzt"[mu] + " is another");
    }
    return all;
}

double plaquette_tolerance(const gauge_file& file) { return trace_precision(file) + file.plaquette_digit; }

} // namespace halocline::lattice
