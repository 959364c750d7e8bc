// SPDX-License-Identifier: Apache-2.0
#include "box_layers.hpp"

#include "source_fingerprint.hpp"

#include <halocline/base/enumerators.hpp>
#include <halocline/base/error.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace halocline::halo {

using lattice::dimensions;
using lattice::side;

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();

/// The extents of the largest local box. Such a box exists: cuts of different dimensions are independent.
lattice::coordinate largest_box(const lattice::decomposition& cut) {
    lattice::coordinate largest{};
    for (int mu = 0; mu < dimensions; ++mu)
        for (int i = 0; i < cut.rank_grid()[mu]; ++i)
            largest[mu] = std::max(largest[mu], cut.cuts(mu)[i + 1] - cut.cuts(mu)[i]);
    return largest;
}

/// Plans number the sites of a box with 32 bits.  Err: input_error.
void check_box(const std::string& who, const lattice::coordinate& largest) {
    if (!lattice::volume_up_to(most, largest))
        throw input_error(who + "a local box of " + lattice::to_string(largest) + " has more than " +
                          std::to_string(most) + " sites; cut the lattice over more ranks");
}

} // namespace

std::vector<std::int32_t> selected(std::vector<std::int32_t> sites, const lattice::box& part,
                                   const lattice::coordinate& global, std::optional<int> parity,
                                   const std::function<bool(const lattice::coordinate&)>& select,
                                   std::uint64_t* fingerprint) {
    if (!parity && !select) return sites;
    std::vector<std::int32_t> chosen;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < sites.size(); ++i) {
        const lattice::coordinate x = lattice::wrapped(part.site(static_cast<std::int64_t>(i)), global);
        if ((parity && lattice::parity(x) != *parity) || (select && !select(x))) continue;
        chosen.push_back(sites[i]);
        for (const int coordinate : x) sum = checksum_word(sum, static_cast<std::uint64_t>(coordinate));
    }
    if (fingerprint != nullptr && select) *fingerprint = sum;
    return chosen;
}

void check_grown(const std::string& who, const lattice::coordinate& extents, const ghost_widths& widths) {
    for (int mu = 0; mu < dimensions; ++mu)
        if (std::int64_t{extents[mu]} + widths.low[mu] + widths.high[mu] > most)
            throw input_error(who + "ghost widths " + std::to_string(widths.low[mu]) + " and " +
                              std::to_string(widths.high[mu]) + " around " + std::to_string(extents[mu]) +
                              " sites in " + lattice::dimension_name[mu] + " make more than " + std::to_string(most));
}

void require_positions(const std::string& who, const lattice::site_order& order, std::span<const std::int32_t> sites) {
    if (order.is_whole()) return;
    for (const std::int32_t site : sites)
        if (order.position(site) < 0)
            throw input_error(who + "the site order holds sites of one parity alone, but a message has site " +
                              lattice::to_string(lattice::lexicographic_coordinate(site, order.extents())) +
                              " of the local box, of the other; plan_options::parity must be that of the order");
}

void check_parity(const std::string& who, std::optional<int> parity) {
    if (parity && *parity != 0 && *parity != 1)
        throw input_error(who + "parity " + std::to_string(*parity) + ": must be 0 or 1");
}

void check_cut(const cut_check& options, const lattice::decomposition& cut, int ranks) {
    const std::string& who = options.who;
    if (cut.ranks() != ranks)
        throw input_error(who + "the lattice is cut over " + std::to_string(cut.ranks()) + " ranks (rank grid " +
                          lattice::to_string(cut.rank_grid()) + "), the job has " + std::to_string(ranks));
    const lattice::coordinate largest = largest_box(cut);
    check_box(who, largest);
    for (int mu = 0; mu < dimensions; ++mu) {
        require_enumerator(who + "boundary in " + lattice::dimension_name[mu], options.boundaries[mu]);
        for (const face f : {face{mu, side::low}, face{mu, side::high}}) {
            const int width = options.widths.behind(f);
            if (width < 0)
                throw input_error(who + "ghost width " + std::to_string(width) + " behind " + lattice::to_string(f) +
                                  ": must be 0 or more");
            if (!has_messages_in(cut, options, mu)) continue;
            for_each_extent_along(cut, mu, [&](int source, int extent) {
                // `source` fills the ghosts behind f of the rank behind its own opposite face.
                if (is_exchanged(cut, options, source, f.opposite()) && width > extent)
                    throw input_error(who + "ghost width " + std::to_string(width) + " behind " +
                                      lattice::to_string(f) + " is wider than the local box of rank " +
                                      std::to_string(source) + ", " +
                                      lattice::to_string(cut.local_box(source).extents) + " with " +
                                      std::to_string(extent) + " in " + lattice::dimension_name[mu] + "; " +
                                      (cut.rank_grid()[mu] > 1
                                           ? std::string("cut ") + lattice::dimension_name[mu] + " over fewer ranks or "
                                           : std::string()) +
                                      "make it " + std::to_string(extent) + " or less");
            });
        }
    }
    check_grown(who, largest, options.widths); // nothing else bounds the ghosts beyond an open edge
}

void refuse_wrapping_size(const std::string& what, std::size_t sites, std::size_t site_bytes, int fields) {
    constexpr std::size_t most_bytes = std::size_t{1} << 56;
    if (site_bytes > 0 && sites <= most_bytes / static_cast<std::size_t>(fields) / site_bytes) return;
    throw input_error(what + std::to_string(sites) + " sites, " + std::to_string(fields) + " x " +
                      std::to_string(site_bytes) + " bytes each, is larger than any memory");
}

std::string shape_text(const lattice::decomposition& cut, const ghost_widths& widths,
                       const std::array<lattice::boundary, dimensions>& boundaries) {
    std::string text =
        "widths low " + lattice::to_string(widths.low) + " high " + lattice::to_string(widths.high) + ", boundaries";
    for (const lattice::boundary b : boundaries) text.append(" ").append(to_string(b));
    text += ", lattice " + lattice::to_string(cut.global()) + " cut at";
    for (int mu = 0; mu < dimensions; ++mu) {
        text.append(" ").append(1, lattice::dimension_name[mu]);
        for (int c : cut.cuts(mu)) text.append(c == 0 ? ":" : ",").append(std::to_string(c));
    }
    // By its checksum: in words it would take as many bytes as there are ranks, on the way through all of them.
    if (!cut.rank_order().empty()) text += ", rank order " + std::to_string(checksum_list(0, cut.rank_order()));
    return text;
}

} // namespace halocline::halo
