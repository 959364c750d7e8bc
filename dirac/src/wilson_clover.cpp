// SPDX-License-Identifier: Apache-2.0
#include <halocline/dirac/wilson_clover.hpp>

#include "wilson_clover_kernels.hpp"

#include <halocline/dirac/reference.hpp>

#include <Eigen/Dense>

#include <algorithm>
#include <complex>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace halocline::dirac {

using lattice::block_layout;
using lattice::coordinate;
using lattice::dimensions;
using lattice::face;
using lattice::side;

namespace {

/// Blocks whose sites are sources of an exchange: all, colour 0, colour 1.
constexpr int source_sets = 3;
constexpr int source_set(int colour) { return colour < 0 ? 0 : 1 + colour; }
constexpr unsigned all_faces = (1U << lattice::faces) - 1;

int direction(face f) { return f.end == side::high ? 1 : -1; }

/// Colour of the block that holds a site of the global lattice.
int colour_of(const block_layout& b, const coordinate& global_site) {
    if (!b.two_colours) return 0;
    coordinate block{};
    for (int mu = 0; mu < dimensions; ++mu) block[mu] = global_site[mu] / b.block[mu];
    return lattice::parity(block);
}

/// True if the hop from this local site over face f leaves its block.
bool leaves_block(const block_layout& b, const coordinate& x, face f) {
    return x[f.mu] % b.block[f.mu] == (f.end == side::high ? b.block[f.mu] - 1 : 0);
}

template <class T>
kernels::block_stencil<T> make_stencil(const block_layout& b) {
    kernels::block_stencil<T> stencil;
    stencil.sites = b.sites_per_group;
    stencil.even_sites = b.even_sites;
    stencil.splits_per_block = b.splits_per_block;

    // sites of the sub-box in their order: even ones first
    std::vector<coordinate> sites;
    std::vector<int> place(static_cast<std::size_t>(b.sites_per_group));
    for (int p = 0; p < 2; ++p)
        for (int i = 0; i < b.sites_per_group; ++i) {
            const coordinate c = lattice::lexicographic_coordinate(i, b.sub);
            if (lattice::parity(c) != p) continue;
            place[i] = static_cast<int>(sites.size());
            sites.push_back(c);
        }

    for (const coordinate& c : sites) {
        int split = -1;
        for (int mu = 0; mu < dimensions; ++mu) {
            if (b.split[mu]) ++split;
            for (side end : {side::low, side::high}) {
                coordinate n = c;
                n[mu] += direction({mu, end});
                kernels::hop step{-1, -1};
                const bool inside = n[mu] >= 0 && n[mu] < b.sub[mu];
                if (!inside && b.split[mu]) {
                    n[mu] = (n[mu] + b.sub[mu]) % b.sub[mu];
                    step.split = split;
                }
                if (inside || b.split[mu]) step.site = place[lattice::lexicographic_index(n, b.sub)];
                stencil.hops.push_back(step);
            }
        }
    }
    for (int j = 0; j < kernels::max_splits; ++j)
        for (int lane = 0; lane < kernels::max_lanes; ++lane) {
            // over the high face of half 0 and over the low face of half 1 lies the other half
            const int half = lane >> j & 1;
            stencil.partner[j][lane] = lane ^ 1 << j;
            stencil.inside[j][0][lane] = half == 1 ? -1 : 0;
            stencil.inside[j][1][lane] = half == 0 ? -1 : 0;
        }
    return stencil;
}

using matrix6 = Eigen::Matrix<std::complex<double>, 6, 6>;

/// One chirality of the site-local term of a site.
matrix6 chirality_of(const lattice::field<double>& clover, std::int64_t site, int chirality) {
    matrix6 m;
    for (int row = 0; row < 6; ++row)
        for (int column = 0; column < 6; ++column) {
            const int c = 2 * (36 * chirality + 6 * row + column);
            m(row, column) = {clover.at(site, c), clover.at(site, c + 1)};
        }
    return m;
}

/// Hermitian matrix in the kernels' form.
template <class T>
void pack(lattice::field<T>& to, std::int64_t site, int chirality, const matrix6& m) {
    int c = chirality * kernels::chirality_reals;
    for (int row = 0; row < 6; ++row) to.at(site, c++) = static_cast<T>(m(row, row).real());
    for (int row = 0; row < 6; ++row)
        for (int column = 0; column < row; ++column) {
            to.at(site, c++) = static_cast<T>(m(row, column).real());
            to.at(site, c++) = static_cast<T>(m(row, column).imag());
        }
}

/// -1/m.  Err: input_error when m is singular to working precision.
matrix6 negative_inverse(const matrix6& m, const coordinate& x) {
    const Eigen::PartialPivLU<matrix6> lu(m);
    if (!(lu.rcond() > 1e-14))
        throw input_error("the site-local term (4 + m0 + clover) is singular at local site " + lattice::to_string(x) +
                          ": odd-even preconditioning needs its inverse; change m0 or csw");
    return -lu.inverse();
}

struct aligned_delete {
    template <class T>
    void operator()(T* p) const {
        ::operator delete[](p, std::align_val_t{lattice::field_alignment});
    }
};
template <class T>
using aligned_array = std::unique_ptr<T[], aligned_delete>;
template <class T>
aligned_array<T> make_aligned(std::size_t size) {
    return aligned_array<T>(new (std::align_val_t{lattice::field_alignment}) T[size]());
}

} // namespace

template <class T>
struct wilson_clover<T>::impl {
    impl(const comm::job& j, const lattice::decomposition& cut, const padded_links& links, const wilson_parameters& p,
         std::shared_ptr<const lattice::site_order> site_order);

    [[nodiscard]] const block_layout& blocks() const { return *order->blocks(); }
    /// Groups of one colour, or all for colour < 0: [first, last).
    [[nodiscard]] std::array<int, 2> groups(int colour) const {
        const int zero = blocks().groups[0], one = blocks().groups[1];
        if (colour < 0) return {0, zero + one};
        return colour == 0 ? std::array{0, zero} : std::array{zero, zero + one};
    }
    /// First real of a group in a field of `components`.
    [[nodiscard]] std::int64_t group_offset(int group, int components) const {
        return std::int64_t{group} * blocks().sites_per_group * components * order->lane_width();
    }

    void fill_links(const padded_links& links, const wilson_parameters& p);
    void fill_clover(const padded_links& links, const wilson_parameters& p);
    void number_local_entries();
    void make_surfaces(int set);
    [[nodiscard]] std::optional<coordinate> local_neighbour(coordinate x, face f) const;

    lattice::decomposition cut;
    int rank;
    coordinate local_origin, extents;
    std::shared_ptr<const lattice::site_order> order;
    kernels::block_stencil<T> stencil;
    kernels::table<T> kernel;
    lattice::field<T> links_half; ///< -1/2 U with boundary signs: [outer][mu][18][W]
    lattice::field<T> clover;     ///< 4 + m0 + clover
    lattice::field<T> schur;      ///< the same on even block sites, -1/(4 + m0 + clover) on odd ones
    aligned_array<T> work;        ///< spinors of one group

    /// Everything that depends on which blocks are sources. By face of the destination.
    struct surfaces {
        std::unique_ptr<halo::plan> plan;
        std::array<kernels::surface_sources, lattice::faces> to_local, to_message;
        /// Targets of on-rank sources alone, and those that need at least one ghost.
        std::array<kernels::surface_targets, lattice::faces> from_local, from_ghosts;
    };
    enum class part { local, ghosts };
    void add(lattice::field<T>& y, part which, int first_group, int last_group, unsigned face_mask, T scale) const;
    void apply_block(lattice::field<T>& y, const lattice::field<T>& x, int group) const;

    std::array<surfaces, source_sets> sets;
    std::array<std::vector<std::int32_t>, lattice::faces> local_entry; ///< [site]: place in local_table, 0: none
    std::array<std::vector<T>, lattice::faces> local_table;            ///< entry 0 holds zeros
    int current = 0;                                                   ///< source set of the last start_surface()
};

template <class T>
wilson_clover<T>::impl::impl(const comm::job& j, const lattice::decomposition& c, const padded_links& links,
                             const wilson_parameters& p, std::shared_ptr<const lattice::site_order> site_order)
    : cut(c), rank(j.rank()), local_origin(cut.local_box(rank).origin), extents(cut.local_box(rank).extents),
      order(std::move(site_order)) {
    j.collectively([&] {
        if (order->blocks() == nullptr || order->extents() != extents)
            throw input_error("wilson_clover needs a blocked site order of the local box " +
                              lattice::to_string(extents));
        stencil = make_stencil<T>(blocks());
        kernel = kernels::for_lane_width<T>(order->lane_width());
        fill_links(links, p);
        fill_clover(links, p);
        work = make_aligned<T>(static_cast<std::size_t>(group_offset(1, kernels::spinor_reals)));
        number_local_entries();
    });
    for (int set = 0; set < source_sets; ++set) {
        halo::plan_options options;
        options.name = set == 0 ? "surfaces" : set == 1 ? "surfaces of colour 0" : "surfaces of colour 1";
        options.bytes_per_site = kernels::half_spinor_reals * sizeof(T);
        if (set > 0)
            options.select = [b = blocks(), set](const coordinate& x) { return source_set(colour_of(b, x)) == set; };
        sets[set].plan = std::make_unique<halo::plan>(j, cut, options);
        j.collectively([&] { make_surfaces(set); });
    }
}

template <class T>
void wilson_clover<T>::impl::fill_links(const padded_links& links, const wilson_parameters& p) {
    const padded_links u = with_boundaries(links, p.boundaries);
    links_half = lattice::field<T>(order, kernels::site_link_reals);
    for (std::int64_t site = 0; site < order->volume(); ++site) {
        const coordinate x = lattice::lexicographic_coordinate(site, extents);
        for (int mu = 0; mu < dimensions; ++mu) {
            const su3& link = u(x, mu);
            for (int e = 0; e < 9; ++e) {
                const int component = kernels::link_reals * mu + 2 * e;
                links_half.at(site, component) = static_cast<T>(-0.5 * link[e].real());
                links_half.at(site, component + 1) = static_cast<T>(-0.5 * link[e].imag());
            }
        }
    }
}

template <class T>
void wilson_clover<T>::impl::fill_clover(const padded_links& links, const wilson_parameters& p) {
    const lattice::field<double> full = clover_term(links, p);
    clover = lattice::field<T>(order, kernels::site_clover_reals);
    schur = lattice::field<T>(order, kernels::site_clover_reals);
    for (std::int64_t site = 0; site < order->volume(); ++site) {
        const coordinate x = lattice::lexicographic_coordinate(site, extents);
        const std::int64_t outer = order->position(site) / order->lane_width();
        const bool odd = outer % blocks().sites_per_group >= blocks().even_sites;
        for (int chirality = 0; chirality < 2; ++chirality) {
            const matrix6 m = chirality_of(full, site, chirality);
            pack(clover, site, chirality, m);
            pack(schur, site, chirality, odd ? negative_inverse(m, x) : m);
        }
    }
}

/// The site behind face f of local site x, if this rank owns it.
template <class T>
std::optional<coordinate> wilson_clover<T>::impl::local_neighbour(coordinate x, face f) const {
    x[f.mu] += direction(f);
    if (x[f.mu] >= 0 && x[f.mu] < extents[f.mu]) return x;
    if (cut.rank_grid()[f.mu] > 1) return std::nullopt;
    x[f.mu] = (x[f.mu] + extents[f.mu]) % extents[f.mu];
    return x;
}

/// Places in the local tables, in storage order of the sources.
template <class T>
void wilson_clover<T>::impl::number_local_entries() {
    for (int index = 0; index < lattice::faces; ++index) {
        const face f = lattice::face_of(index);
        local_entry[index].assign(static_cast<std::size_t>(order->volume()), 0);
        std::int32_t next = 1;
        for (std::int64_t position = 0; position < order->outer_sites() * order->lane_width(); ++position) {
            const std::int64_t site = order->site(position);
            if (site < 0) continue;
            const coordinate source = lattice::lexicographic_coordinate(site, extents);
            // the hop leaves the source's block over the opposite face
            if (leaves_block(blocks(), source, f.opposite()) && local_neighbour(source, f.opposite()))
                local_entry[index][static_cast<std::size_t>(site)] = next++;
        }
        local_table[index].assign(static_cast<std::size_t>(next) * kernels::half_spinor_reals, T{0});
    }
}

template <class T>
void wilson_clover<T>::impl::make_surfaces(int set) {
    surfaces& s = sets[set];
    const int lanes = order->lane_width();
    const auto selected = [&](const coordinate& local) {
        coordinate global = local;
        for (int mu = 0; mu < dimensions; ++mu)
            global[mu] = (local[mu] + local_origin[mu] + cut.global()[mu]) % cut.global()[mu];
        return set == 0 || source_set(colour_of(blocks(), global)) == set;
    };

    for (int index = 0; index < lattice::faces; ++index) {
        const face f = lattice::face_of(index);

        // Place of each source in the message; sources sit at the opposite end of this rank's box.
        std::vector<std::int32_t> message_entry(static_cast<std::size_t>(order->volume()), -1);
        if (const int m = s.plan->message_of(f.opposite()); m >= 0) {
            const auto& sites = s.plan->messages()[m].send_sites;
            for (std::size_t i = 0; i < sites.size(); ++i)
                message_entry[static_cast<std::size_t>(sites[i])] = static_cast<std::int32_t>(i);
        }
        // Place of each ghost behind f, by position in the face; ghosts come in the same order as in the message.
        coordinate face_extents = extents;
        face_extents[f.mu] = 1;
        std::vector<std::int32_t> ghost_entry;
        std::int32_t ghosts = 0;
        for (std::int64_t i = 0; i < lattice::volume(face_extents); ++i) {
            coordinate ghost = lattice::lexicographic_coordinate(i, face_extents);
            ghost[f.mu] = f.end == side::high ? extents[f.mu] : -1;
            ghost_entry.push_back(selected(ghost) ? ghosts++ : -1);
        }

        const auto begin_group = [&] {
            const auto begin = [](auto& list) { list.begin.push_back(static_cast<std::int32_t>(list.outer.size())); };
            begin(s.to_local[index]), begin(s.to_message[index]);
            begin(s.from_local[index]), begin(s.from_ghosts[index]);
        };
        for (std::int64_t outer = 0; outer < order->outer_sites(); ++outer) {
            if (outer % blocks().sites_per_group == 0) begin_group();
            std::vector<std::int32_t> to_local(lanes, -1), to_message(lanes, -1), from(lanes, 0);
            for (int lane = 0; lane < lanes; ++lane) {
                const std::int64_t site = order->site(outer * lanes + lane);
                if (site < 0) continue;
                const coordinate x = lattice::lexicographic_coordinate(site, extents);
                if (leaves_block(blocks(), x, f.opposite()) && selected(x)) {
                    if (const std::int32_t entry = local_entry[index][static_cast<std::size_t>(site)]; entry > 0)
                        to_local[lane] = entry;
                    else
                        to_message[lane] = message_entry[static_cast<std::size_t>(site)];
                }
                if (leaves_block(blocks(), x, f)) {
                    if (const std::optional<coordinate> source = local_neighbour(x, f)) {
                        if (selected(*source))
                            from[lane] = 2 * local_entry[index][lattice::lexicographic_index(*source, extents)];
                    } else {
                        coordinate in_face = x;
                        in_face[f.mu] = 0;
                        const std::int32_t entry = ghost_entry[lattice::lexicographic_index(in_face, face_extents)];
                        if (entry >= 0) from[lane] = 2 * entry + 1;
                    }
                }
            }
            const auto keep = [&](auto& list, const std::vector<std::int32_t>& entries, std::int32_t none) {
                if (std::ranges::all_of(entries, [&](std::int32_t e) { return e == none; })) return;
                list.outer.push_back(static_cast<std::int32_t>(outer));
                list.entry.insert(list.entry.end(), entries.begin(), entries.end());
            };
            keep(s.to_local[index], to_local, -1);
            keep(s.to_message[index], to_message, -1);
            const bool ghosts_needed = std::ranges::any_of(from, [](std::int32_t e) { return (e & 1) != 0; });
            keep(ghosts_needed ? s.from_ghosts[index] : s.from_local[index], from, 0);
        }
        begin_group(); // the end of the last one
    }
}

template <class T>
wilson_clover<T>::wilson_clover(const comm::job& j, const lattice::decomposition& cut, const padded_links& links,
                                const wilson_parameters& p, std::shared_ptr<const lattice::site_order> order)
    : impl_(std::make_unique<impl>(j, cut, links, p, std::move(order))) {}
template <class T>
wilson_clover<T>::~wilson_clover() = default;
template <class T>
wilson_clover<T>::wilson_clover(wilson_clover&&) noexcept = default;

template <class T>
const std::shared_ptr<const lattice::site_order>& wilson_clover<T>::order() const {
    return impl_->order;
}

template <class T>
void wilson_clover<T>::impl::apply_block(lattice::field<T>& y, const lattice::field<T>& x, int group) const {
    const std::int64_t spinors = group_offset(group, kernels::spinor_reals);
    kernel.apply(stencil, links_half.data() + group_offset(group, kernels::site_link_reals),
                 clover.data() + group_offset(group, kernels::site_clover_reals), y.data() + spinors,
                 x.data() + spinors);
}

template <class T>
void wilson_clover<T>::impl::add(lattice::field<T>& y, part which, int first_group, int last_group, unsigned face_mask,
                                 T scale) const {
    const surfaces& s = sets[current];
    // group by group: all faces of a group find its links and spinors in cache
    for (int g = first_group; g < last_group; ++g)
        for (int f = 0; f < lattice::faces; ++f) {
            if ((face_mask >> f & 1) == 0) continue;
            const bool remote = which == part::ghosts && s.plan->message_of(lattice::face_of(f)) >= 0;
            const T* const tables[2] = {local_table[f].data(),
                                        remote ? reinterpret_cast<const T*>(s.plan->ghost(lattice::face_of(f)))
                                               : nullptr};
            kernel.consume[f](which == part::local ? s.from_local[f] : s.from_ghosts[f], g, g + 1, links_half.data(),
                              y.data(), tables, scale);
        }
}

template <class T>
comm::status wilson_clover<T>::apply(lattice::field<T>& y, const lattice::field<T>& x) noexcept {
    const impl& d = *impl_;
    const auto [first, last] = d.groups(-1);
    start_surface(x);
    for (int g = first; g < last; ++g) { // while the messages fly
        d.apply_block(y, x, g);
        d.add(y, impl::part::local, g, g + 1, all_faces, T{1});
    }
    const comm::status arrived = finish_surface();
    if (arrived == comm::status::ok) d.add(y, impl::part::ghosts, first, last, all_faces, T{1});
    return arrived;
}

template <class T>
void wilson_clover<T>::apply_block(lattice::field<T>& y, const lattice::field<T>& x) const noexcept {
    const auto [first, last] = impl_->groups(-1);
    for (int g = first; g < last; ++g) impl_->apply_block(y, x, g);
}

template <class T>
void wilson_clover<T>::start_surface(const lattice::field<T>& x, int colour) noexcept {
    impl& d = *impl_;
    d.current = source_set(colour);
    typename impl::surfaces& s = d.sets[d.current];
    const auto [first_group, last_group] = d.groups(colour);
    // Messages first: they travel while the local tables are filled.
    s.plan->start([&](int message, std::int64_t first, std::int64_t last, std::byte* target) {
        const int f = s.plan->messages()[message].where.opposite().index();
        d.kernel.produce[f](s.to_message[f], first_group, last_group, d.links_half.data(), x.data(),
                            reinterpret_cast<T*>(target), first, last);
    });
    for (int g = first_group; g < last_group; ++g)
        for (int f = 0; f < lattice::faces; ++f)
            d.kernel.produce[f](s.to_local[f], g, g + 1, d.links_half.data(), x.data(), d.local_table[f].data(), 0,
                                std::numeric_limits<std::int32_t>::max());
}

template <class T>
comm::status wilson_clover<T>::finish_surface() noexcept {
    return impl_->sets[impl_->current].plan->finish();
}

template <class T>
void wilson_clover<T>::add_surface(lattice::field<T>& y, int target_colour, unsigned face_mask,
                                   T scale) const noexcept {
    const auto [first, last] = impl_->groups(target_colour);
    impl_->add(y, impl::part::local, first, last, face_mask, scale);
    impl_->add(y, impl::part::ghosts, first, last, face_mask, scale);
}

template <class T>
comm::status wilson_clover<T>::finish_and_add_surface(lattice::field<T>& y, int target_colour, T scale) noexcept {
    const auto [first, last] = impl_->groups(target_colour);
    impl_->add(y, impl::part::local, first, last, all_faces, scale);
    const comm::status arrived = finish_surface();
    if (arrived == comm::status::ok) impl_->add(y, impl::part::ghosts, first, last, all_faces, scale);
    return arrived;
}

template <class T>
void wilson_clover<T>::block_solve(lattice::field<T>& x, lattice::field<T>& r, lattice::field<T>& update, int colour,
                                   int steps) const noexcept {
    const impl& d = *impl_;
    const auto [first, last] = d.groups(colour);
    for (int g = first; g < last; ++g) {
        const std::int64_t spinors = d.group_offset(g, kernels::spinor_reals);
        d.kernel.solve(d.stencil, d.links_half.data() + d.group_offset(g, kernels::site_link_reals),
                       d.schur.data() + d.group_offset(g, kernels::site_clover_reals), x.data() + spinors,
                       r.data() + spinors, update.data() + spinors, d.work.get(), steps);
    }
}

template <class T>
halo::plan_statistics wilson_clover<T>::statistics() const {
    halo::plan_statistics sum;
    for (const auto& s : impl_->sets) {
        const halo::plan_statistics one = s.plan->statistics();
        sum.exchanges += one.exchanges;
        sum.pack_seconds += one.pack_seconds;
        sum.wait_seconds += one.wait_seconds;
        sum.unpack_seconds += one.unpack_seconds;
        sum.imbalance_seconds += one.imbalance_seconds;
        for (const comm::lane_counts& lane : one.lanes) {
            auto same = std::ranges::find(sum.lanes, lane.transport, &comm::lane_counts::transport);
            if (same == sum.lanes.end())
                sum.lanes.push_back(lane);
            else
                same->messages += lane.messages, same->bytes += lane.bytes;
        }
    }
    return sum;
}

template <class T>
void wilson_clover<T>::reset_statistics() {
    for (auto& s : impl_->sets) s.plan->reset_statistics();
}

template class wilson_clover<float>;
template class wilson_clover<double>;

int preferred_lane_width() { return std::clamp(kernels::vector_bytes() / static_cast<int>(sizeof(float)), 4, 8); }

} // namespace halocline::dirac
