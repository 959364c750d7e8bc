// SPDX-License-Identifier: Apache-2.0
// The shell of a local box: which ghosts a field has, and where among its sites they lie. Pure arithmetic on a
// decomposition. Padded: the field covers the box grown by the ghost widths. Appended: own sites first, ghosts behind
// them, region by region. Every periodic dimension with a width has ghosts, cut or not: a kernel never wraps. Beyond an
// open edge there are none.
#pragma once

#include <halocline/base/check.hpp>
#include <halocline/halo/ghost_widths.hpp>
#include <halocline/halo/region_plan.hpp>
#include <halocline/lattice/decomposition.hpp>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace halocline::halo {

/// What of the shell is filled.
enum class shell : std::uint8_t {
    faces, ///< behind faces only: star stencils
    box    ///< edges and corners too: up to 80 directions in four dimensions
};
/// Where in a field its ghosts are.
enum class ghost_layout : std::uint8_t {
    padded,  ///< around the own sites: the field covers grown(local box, widths)
    appended ///< behind the own sites: the field covers appended_sites
};
/// How edges and corners come.
enum class corner_route : std::uint8_t {
    automatic,   ///< by the cost model of the job
    at_once,     ///< straight from their owners: one message to each distinct neighbour
    by_dimension ///< through the faces, one dimension after another: two messages each
};
std::string_view to_string(ghost_layout l);
std::string_view to_string(corner_route r);

struct shell_options {
    std::string name = "halo";
    ghost_widths widths{};
    std::array<lattice::boundary, lattice::dimensions> boundaries{};
    ghost_layout layout = ghost_layout::padded;
    shell shape = shell::faces;
    corner_route corners = corner_route::automatic;
    /// Exchange only sites of this parity of the global coordinate, 0 or 1. Other ghosts keep their places.
    std::optional<int> parity{};
    /// Exchange only sites (global coordinates) for which this holds. Other ghosts keep their places.
    std::function<bool(const lattice::coordinate& global_site)> select{};
    path way = path::automatic;
    /// Make start_reverse() possible: slots of its own, and one more exchange of set-up messages.
    bool reverse = false;
    check_level checks = default_checks(); ///< normal: require_fresh() looks whether the field was written since
};

/// The local box grown by the ghost widths, in global coordinates: what a padded field covers. Its site with global
/// coordinate x (not wrapped) has the index lexicographic_index(x - origin, extents).
lattice::box grown(const lattice::box& local, const ghost_widths& widths);

/// The sites of a field with appended ghosts, by number: own sites [0, own()), lexicographic; then the ghosts, region
/// by region: those behind faces, behind edges, …, behind corners of four dimensions; among equals by direction, x
/// running fastest from -1 to +1; within a region lexicographic. So faces have the same numbers with and without
/// corners.
class appended_sites {
  public:
    /// The ghosts along one direction.
    struct region {
        lattice::coordinate direction{}; ///< -1, 0 or +1 along each dimension
        lattice::box sites;              ///< global coordinates, not wrapped
        std::int64_t first = 0;          ///< number of its first site
    };

    /// Pre: rank is one of the decomposition's.
    appended_sites(const lattice::decomposition& cut, int rank, const shell_options& options);

    [[nodiscard]] std::int64_t own() const { return local_.volume(); }
    /// Own sites and ghosts.
    [[nodiscard]] std::int64_t volume() const { return volume_; }
    [[nodiscard]] std::span<const region> ghosts() const { return regions_; }
    /// The ghosts along a direction; nullptr if there are none.
    [[nodiscard]] const region* ghosts(const lattice::coordinate& direction) const;
    /// Number of the site with this global coordinate, not wrapped; -1 if it is neither own nor ghost.
    /// For set-up: kernels make tables of it.
    [[nodiscard]] std::int64_t number(const lattice::coordinate& site) const;
    /// Numbers of the sites of a box, x fastest.  Pre: each is own or a ghost.
    [[nodiscard]] std::vector<std::int32_t> numbers(const lattice::box& part) const;
    /// The order of a field with these sites: own ones placed as `own` says, ghosts behind them in the same lanes.
    /// Err: input_error if `own` is not of the local box.
    [[nodiscard]] std::shared_ptr<const lattice::site_order> order(const lattice::site_order& own) const;

  private:
    [[nodiscard]] lattice::coordinate direction_to(const lattice::coordinate& site) const;

    lattice::box local_;
    std::int64_t volume_ = 0;
    std::vector<region> regions_;
    std::array<std::int8_t, 81> region_along_{}; // by direction; -1: none
};

} // namespace halocline::halo
