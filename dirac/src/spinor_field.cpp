// SPDX-License-Identifier: Apache-2.0
#include <halocline/dirac/spinor_field.hpp>

#include "file_parts.hpp"
#include "reduce_totals.hpp"
#include "require_ranks.hpp"

#include <halocline/base/error.hpp>
#include <halocline/lattice/field_shape.hpp>

#include <chrono>
#include <numbers>
#include <string>

namespace halocline::dirac {
namespace {

std::chrono::milliseconds time_for_spinors(const lattice::decomposition& cut) {
    return time_for_file(cut.global(), lattice::spinor_components * sizeof(double));
}

/// Hosts may have copies of their own, and ranks may have opened other files. Collective.
void agree_on(const comm::job& j, const lattice::spinor_file& file) {
    std::string says = lattice::to_string(file.extents) + " sites, " + std::to_string(file.real_bytes) +
                       " bytes a real from byte " + std::to_string(file.data_offset);
    if (file.scidac_checksum)
        says += ", SciDAC sums " + std::to_string((*file.scidac_checksum)[0]) + ' ' +
                std::to_string((*file.scidac_checksum)[1]);
    j.agree("what the spinor file says of itself", says);
}

} // namespace

void change_spin_basis(lattice::field<double>& psi) {
    lattice::require_shape(psi, "change_spin_basis(): its field",
                           {.components = lattice::spinor_components, .orders = lattice::site_orders::one_lane});
    constexpr double plus = 1 / std::numbers::sqrt2;
    constexpr int reals_per_spin = lattice::spinor_components / 4;
    for (std::int64_t site = 0; site < psi.volume(); ++site)
        for (int pair = 0; pair < 2; ++pair) {
            const double sign = pair == 0 ? plus : -plus;
            double* upper = psi.outer(site) + 2 * pair * reals_per_spin;
            double* lower = upper + reals_per_spin;
            for (int c = 0; c < reals_per_spin; ++c) {
                const double a = upper[c], b = lower[c];
                upper[c] = sign * (a + b);
                lower[c] = sign * (a - b);
            }
        }
    psi.mark_written();
}

lattice::spinor_file open_spinors(const comm::job& j, const std::string& path) {
    lattice::spinor_file file;
    read_parts(j, {}, [&] { file = lattice::open_spinor_file(path); });
    agree_on(j, file);
    return file;
}

lattice::field<double> read_spinors(const comm::job& j, const lattice::decomposition& cut,
                                    const lattice::spinor_file& file) {
    agree_on(j, file); // or the verdicts of ranks could differ
    lattice::field<double> psi;
    lattice::spinor_totals mine;
    read_parts(j, time_for_spinors(cut), [&] {
        require_ranks(j, cut, "read_spinors()");
        if (file.extents != cut.global())
            throw input_error("'" + file.path + "' holds a field on " + lattice::to_string(file.extents) +
                              " sites, but the lattice is " + lattice::to_string(cut.global()));
        const lattice::box local = cut.local_box(j.rank());
        psi = lattice::field<double>(local.extents, lattice::spinor_components);
        mine = lattice::read_spinors(file, local, psi);
    });
    lattice::check_totals(file, reduce_totals(j, mine)); // the same totals, hence the same verdict, on every rank
    change_spin_basis(psi);
    return psi;
}

void write_spinors(const comm::job& j, const lattice::decomposition& cut, const lattice::field<double>& psi,
                   std::vector<std::pair<std::string, std::string>> info, const std::string& path) {
    info.emplace_back("spinBasis", "DeGrand-Rossi");
    info.emplace_back("order", "x fastest, then y, z, t; on each site spin, colour, (re, im)");
    std::string words = in_words(cut);
    for (const auto& [name, value] : info) words.append("\n").append(name).append(" = ").append(value);
    j.agree("the cut of a spinor field and what its file says of it", words); // or each puts its sites elsewhere
    require_ranks(j, cut, "write_spinors()");
    lattice::spinor_writer writer(path, cut.global(), info);
    const lattice::box local = cut.local_box(j.rank());
    lattice::field<double> changed;
    const auto write = [&] {
        lattice::require_shape(psi, "write_spinors(): its field",
                               {lattice::spinor_components, local.extents, lattice::site_orders::lexicographic});
        changed = lattice::field<double>(psi.shared_order(), psi.components());
        changed.copy_from(psi);
        change_spin_basis(changed);
        return writer.write(local, changed);
    };
    write_file(
        j, time_for_spinors(cut), path, writer, write, [&] { writer.verify(local, changed); },
        [&](const lattice::spinor_totals& totals) { writer.finish(totals); });
}

} // namespace halocline::dirac
