// SPDX-License-Identifier: Apache-2.0
#include <halocline/dirac/padded_links.hpp>

#include "require_ranks.hpp"

#include <halocline/base/enumerators.hpp>
#include <halocline/lattice/field_shape.hpp>

#include <cstring>
#include <string>

namespace halocline::dirac {

using lattice::coordinate;
using lattice::dimensions;

namespace {

/// Calls visit(x) for all x in [low, high), x fastest.
template <class Visit>
void for_each_site(const coordinate& low, const coordinate& high, Visit&& visit) {
    coordinate x;
    for (x[3] = low[3]; x[3] < high[3]; ++x[3])
        for (x[2] = low[2]; x[2] < high[2]; ++x[2])
            for (x[1] = low[1]; x[1] < high[1]; ++x[1])
                for (x[0] = low[0]; x[0] < high[0]; ++x[0]) visit(x);
}

/// Global coordinates of a site of the local box, or of the shell: there they may lie beyond the lattice's edge.
coordinate global_site(const lattice::box& local, coordinate x) {
    for (int mu = 0; mu < dimensions; ++mu) x[mu] += local.origin[mu];
    return x;
}

} // namespace

padded_links::padded_links(const comm::job& j, const lattice::decomposition& cut, const lattice::gauge_field& links)
    : job_(j), cut_(cut) {
    j.collectively([&] {
        require_ranks(j, cut, "padded_links");
        local_ = cut.local_box(j.rank());
        lattice::require_shape(links, "padded_links: the gauge field", {lattice::gauge_components, local_.extents});
        stride_[0] = 1;
        for (int nu = 0; nu < dimensions; ++nu)
            stride_[nu + 1] = stride_[nu] * static_cast<std::size_t>(local_.extents[nu] + 2);
        links_.resize(dimensions * stride_[4]);

        std::int64_t site = 0;
        for_each_site({}, local_.extents, [&](const coordinate& x) {
            for (int mu = 0; mu < dimensions; ++mu)
                for (int e = 0; e < 9; ++e) {
                    const int c = mu * lattice::link_components + 2 * e;
                    (*this)(x, mu)[e] = {links.at(site, c), links.at(site, c + 1)};
                }
            ++site;
        });
    });
    exchange();
}

/// select(x, mu) says whether U_mu(x) takes part. It depends only on the global coordinate, so both ends of a message
/// visit the same links.
template <class Select>
void padded_links::exchange_selected(const Select& select) {
    for (int nu = 0; nu < dimensions; ++nu) {
        const int extent = local_.extents[nu];
        // The slice with coordinate c in dimension nu, with the shell of the dimensions that are already done.
        const auto for_each_link = [&](int c, auto&& visit) {
            coordinate low{}, high = local_.extents;
            for (int done = 0; done < nu; ++done) low[done] = -1, high[done] = local_.extents[done] + 1;
            low[nu] = c, high[nu] = c + 1;
            for_each_site(low, high, [&](const coordinate& x) {
                for (int mu = 0; mu < dimensions; ++mu)
                    if (select(x, mu)) visit(at(x, mu));
            });
        };
        if (cut_.rank_grid()[nu] == 1) {
            const std::size_t period = static_cast<std::size_t>(extent) * stride_[nu];
            for_each_link(-1, [&](std::size_t ghost) { links_[ghost] = links_[ghost + period]; });
            for_each_link(extent, [&](std::size_t ghost) { links_[ghost] = links_[ghost - period]; });
            continue;
        }
        const auto pack = [&](int c) {
            std::string message;
            for_each_link(c, [&](std::size_t link) {
                message.append(reinterpret_cast<const char*>(&links_[link]), sizeof(su3));
            });
            return message;
        };
        const auto unpack = [&](int c, const std::string& message) {
            const char* from = message.data();
            for_each_link(c, [&](std::size_t ghost) {
                std::memcpy(&links_[ghost], from, sizeof(su3));
                from += sizeof(su3);
            });
        };
        const std::array<int, 2> peers{cut_.neighbour(job_.rank(), {nu, lattice::side::low}),
                                       cut_.neighbour(job_.rank(), {nu, lattice::side::high})};
        const std::array<std::string, 2> out{pack(0), pack(extent - 1)};
        const std::vector<std::string> in = job_.exchange(peers, out);
        // A peer that is the neighbour on both sides sends its low slice first, which is the one behind our high end.
        const bool same_peer = peers[0] == peers[1];
        unpack(-1, in[same_peer ? 1 : 0]);
        unpack(extent, in[same_peer ? 0 : 1]);
    }
}

void padded_links::exchange() {
    exchange_selected([](const coordinate&, int) { return true; });
}

void padded_links::exchange(int mu, int parity) {
    exchange_selected([&](const coordinate& x, int direction) {
        // The owner's coordinates count: beyond the lattice's edge an odd extent changes the parity.
        return direction == mu && lattice::parity(lattice::wrapped(global_site(local_, x), global())) == parity;
    });
}

void padded_links::store(lattice::gauge_field& links) const {
    lattice::require_shape(links, "padded_links::store(): its field", {lattice::gauge_components, local_.extents});
    std::int64_t site = 0;
    for_each_site({}, local_.extents, [&](const coordinate& x) {
        for (int mu = 0; mu < dimensions; ++mu)
            for (int e = 0; e < 9; ++e) {
                const int c = mu * lattice::link_components + 2 * e;
                links.at(site, c) = (*this)(x, mu)[e].real();
                links.at(site, c + 1) = (*this)(x, mu)[e].imag();
            }
        ++site;
    });
    links.mark_written();
}

padded_links with_boundaries(padded_links links, const std::array<lattice::boundary, lattice::dimensions>& boundaries) {
    const coordinate extents = links.extents();
    for (int mu = 0; mu < dimensions; ++mu) {
        require_enumerator(std::string("boundary in ") + lattice::dimension_name[mu], boundaries[mu]);
        if (boundaries[mu] == lattice::boundary::periodic) continue;
        const double factor = boundaries[mu] == lattice::boundary::antiperiodic ? -1 : 0;
        const int last = links.global()[mu] - 1;
        coordinate high = extents;
        for (int& h : high) ++h;
        for_each_site({-1, -1, -1, -1}, high, [&](const coordinate& x) {
            if (lattice::wrapped(global_site(links.local(), x), links.global())[mu] != last) return;
            for (auto& element : links(x, mu)) element *= factor;
        });
    }
    return links;
}

} // namespace halocline::dirac
