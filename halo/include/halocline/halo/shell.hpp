// SPDX-License-Identifier: Apache-2.0
// The shell of a local box: which ghosts a field has, and where among its sites they lie. Pure arithmetic on a
// decomposition. Padded: the field covers the box grown by the ghost widths. Appended: owned sites first, then the
// ghosts, region by region. Every periodic dimension with a width has ghosts, whether it is cut or not, so a kernel
// never has to wrap around. There are none beyond an open edge.
#pragma once

#include <halocline/base/check.hpp>
#include <halocline/halo/boundary_phases.hpp>
#include <halocline/halo/ghost_widths.hpp>
#include <halocline/halo/message_format.hpp>
#include <halocline/halo/path.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/site_order.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace halocline::halo {

/// Which part of the shell is filled.
enum class shell : std::uint8_t {
    faces, ///< behind faces only: star stencils
    box    ///< edges and corners too: up to 80 directions in four dimensions
};
/// Where in a field its ghosts are.
enum class ghost_layout : std::uint8_t {
    padded,  ///< around the owned sites: the field covers grown(local box, widths)
    appended ///< after the owned sites: the field covers appended_sites
};
/// How edges and corners travel.
enum class corner_route : std::uint8_t {
    automatic,   ///< chosen by the cost model
    at_once,     ///< straight from their owners: one message per distinct neighbour
    by_dimension ///< with the faces, one dimension after the other: two messages each. Forwards ghosts, so each field
                 ///< must be its own destination
};
std::string_view to_string(shell s);
std::string_view to_string(ghost_layout l);
std::string_view to_string(corner_route r);

/// Equal on every rank.
struct shell_options {
    std::string name = "halo"; ///< in error messages and reports
    ghost_widths widths{};     ///< ghost layers per dimension and side
    /// Nothing is exchanged across an open edge. Beyond an antiperiodic one ghosts change their sign.
    std::array<lattice::boundary, lattice::dimensions> boundaries{};
    /// Twisted boundaries: ghosts beyond the upper edge of the lattice are the sites that they are copies of times
    /// phase, beyond the lower edge times conj(phase), beyond several edges times the product. An antiperiodic boundary
    /// also changes the sign. See transfer::phase for the fields that have one.
    boundary_phases phases{1, 1, 1, 1};
    ghost_layout layout = ghost_layout::padded;
    shell shape = shell::faces;
    corner_route corners = corner_route::automatic;
    /// Exchanges only sites of this parity of the global coordinate, 0 or 1. The other ghosts exist in the field
    /// anyway.
    std::optional<int> parity{};
    /// Exchanges only sites (global coordinates) for which this is true. The other ghosts exist in the field anyway.
    /// Both ends of each message compare what they chose when the plan is made.
    std::function<bool(const lattice::coordinate& global_site)> select{};
    halo::path path = path::automatic; ///< see region_plan_options::path
    /// How reals travel, there and in reverse: see region_plan_options. What goes by dimension, and has been multiplied
    /// by a phase on the way, is rounded again.
    message_format format = message_format::as_stored;
    double scale = 1;
    /// Makes start_reverse() possible. Costs additional slots and another exchange of set-up messages.
    bool reverse = false;
    /// normal and above: require_fresh() detects fields and ghosts written since their exchange. comm, like
    /// job_options::checksums: messages carry checksums, see region_plan_options::checksums.
    check_level checks = default_checks();
};

/// The local box grown by the ghost widths, in global coordinates: what a padded field covers. Its site with global
/// coordinate x (not wrapped around) has the index lexicographic_index(x - origin, extents).
/// Err: input_error: a negative width; an extent beyond 32 bits.
lattice::box grown(const lattice::box& local, const ghost_widths& widths);

/// The numbers of the sites of a field with appended ghosts. First the owned sites [0, own()), lexicographic. Then the
/// ghosts, region by region: first the regions along one dimension (behind faces), then along two (edges), three, and
/// four (corners); among those of one kind by direction, x fastest from -1 to +1; within a region lexicographic. So the
/// ghosts behind faces have the same numbers with and without corners.
class appended_sites {
  public:
    /// The ghosts along one direction.
    struct region {
        lattice::coordinate direction{}; ///< -1, 0 or +1 along each dimension
        lattice::box sites;              ///< global coordinates, not wrapped around
        std::int64_t first = 0;          ///< number of its first site
    };

    /// Pre: 0 <= rank < cut.ranks().
    appended_sites(const lattice::decomposition& cut, int rank, const shell_options& options);

    [[nodiscard]] std::int64_t own() const { return local_.volume(); }
    /// Owned sites and ghosts.
    [[nodiscard]] std::int64_t volume() const { return volume_; }
    [[nodiscard]] std::span<const region> ghosts() const { return regions_; }
    /// The ghosts along a direction, -1, 0 or +1 in each dimension; nullptr if there are none.
    [[nodiscard]] const region* ghosts(const lattice::coordinate& direction) const;
    /// Number of the site with this global coordinate, not wrapped around; -1 if it is neither owned nor a ghost.
    /// For set-up: kernels keep tables of it.
    [[nodiscard]] std::int64_t number(const lattice::coordinate& site) const;
    /// Numbers of the sites of a box, x fastest.  Pre: each is owned or a ghost.
    [[nodiscard]] std::vector<std::int32_t> numbers(const lattice::box& part) const;
    /// The site order of a field with these sites: owned sites placed as in `own`, followed by ghosts in as many lanes.
    /// Err: input_error if `own` is not an order of the local box.
    [[nodiscard]] std::shared_ptr<const lattice::site_order> order(const lattice::site_order& own) const;

  private:
    [[nodiscard]] lattice::coordinate direction_to(const lattice::coordinate& site) const;

    lattice::box local_;
    std::int64_t volume_ = 0;
    std::vector<region> regions_;
    std::array<std::int8_t, 81> region_along_{}; // by direction; -1: none
};

} // namespace halocline::halo
