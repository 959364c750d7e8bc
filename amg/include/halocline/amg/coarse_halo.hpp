// SPDX-License-Identifier: Apache-2.0
// The coarse level's exchange between ranks: the surface sites of one parity, of several fields in one message per
// face. These messages are small and frequent: they dominate the cost of a coarse-grid solve over a network.
#pragma once

#include <halocline/base/short_list.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/halo/ghost_widths.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/halo/plan_statistics.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/site_order.hpp>
#include <halocline/solvers/concepts.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace halocline::amg {

/// Its plans. Fields are [site][component], stored by parity: the even sites of the rank first, if there are parities.
class coarse_halo {
  public:
    struct shape {
        halo::ghost_widths widths; ///< 1 behind the faces over which there are links, else 0
        int components = 0;        ///< reals per site
        int parities = 1;          ///< 1: all sites travel together
        int even_sites = 0;        ///< of this rank; all of them if there are no parities
        int systems = 1;           ///< the most fields of an exchange, 1 to solvers::most_systems
    };
    /// Where the ghosts of each field begin, by face.index().
    using ghosts = std::array<short_list<const float*, solvers::most_systems>, lattice::faces>;

    /// Collective.  Err: on every rank: slab_full, out_of_memory; job_error.
    coarse_halo(const comm::job& j, const lattice::decomposition& coarse, const lattice::site_order& order,
                const shape& s);

    /// Whether the neighbours behind a face are another rank's. They are the same for each parity.
    [[nodiscard]] bool has_ghosts(lattice::face f) const { return plans_[0].front().message_of(f) >= 0; }

    /// Starts the exchange of the sites of one parity; each x points to the first of them.
    /// Pre: 1 to shape::systems fields; the last exchange of this parity is finished.
    void start(int parity, std::span<const float* const> x) noexcept;
    /// Waits for the ghosts of so many fields.  Pre: start() of this parity and as many.
    [[nodiscard]] comm::status finish(int parity, std::size_t systems) noexcept;
    /// They are valid until the next start() of this parity.  Pre: finish() returned ok.
    [[nodiscard]] ghosts arrived(int parity, std::size_t systems) const noexcept;

    [[nodiscard]] halo::plan_statistics statistics() const; ///< since the last reset
    void reset_statistics();

  private:
    /// The smallest plan that carries so many fields.
    [[nodiscard]] std::size_t plan_for(std::size_t systems) const noexcept;

    std::size_t components_;
    /// [parity]: for 1, 2, 3, 4, 6, 8, 12, ... fields, up to all systems.
    std::array<std::vector<halo::plan>, 2> plans_;
    /// [parity][message]: which sites of the parity it sends, in its order.
    std::array<std::vector<std::vector<int>>, 2> sent_;
};

} // namespace halocline::amg
