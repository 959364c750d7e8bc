// SPDX-License-Identifier: Apache-2.0
// The padded halo: fields cover the local box grown by the ghost widths, and ghosts are sites of the field, edges and
// corners included if asked for. A plan for appended ghosts, in slots of its own, is halo::plan.
// Every periodic dimension with a width is filled, cut or not: a kernel never wraps. Beyond an open edge nothing is written.
//
// Contract: sites of the field are not written, ghosts not read, between start() and finish(); ghosts of exchange k are
// there from finish(k) to start(k+1) of the same field. Both halves are noexcept, free of allocation and lock.
#pragma once

#include <halocline/base/check.hpp>
#include <halocline/halo/ghost_widths.hpp>
#include <halocline/halo/region_plan.hpp>
#include <halocline/lattice/decomposition.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace halocline::halo {

/// What of the shell is filled.
enum class shell : std::uint8_t {
    faces, ///< behind faces only: star stencils
    box    ///< edges and corners too: up to 80 directions in four dimensions
};
/// How edges and corners come.
enum class corner_route : std::uint8_t {
    automatic,   ///< by the cost model of the job
    at_once,     ///< straight from their owners: one message to each distinct neighbour
    by_dimension ///< through the faces, one dimension after another: two messages each
};
std::string_view to_string(corner_route r);

/// The local box grown by the ghost widths, in global coordinates: what a padded field covers. Its site with global
/// coordinate x (not wrapped) has the index lexicographic_index(x - origin, extents).
lattice::box grown(const lattice::box& local, const ghost_widths& widths);

/// Ghosts that arrive together, as one region of the field.
struct ghost_region {
    lattice::coordinate direction{}; ///< -1, 0 or +1 along each dimension
    lattice::box sites;              ///< counted from the first site of the grown box
    int peer = 0;                    ///< who sends them
};

struct padded_options {
    std::string name = "halo";
    ghost_widths widths{};
    std::array<lattice::boundary, lattice::dimensions> boundaries{};
    shell shape = shell::faces;
    corner_route corners = corner_route::automatic;
    /// Exchange only sites of this parity of the global coordinate, 0 or 1.
    std::optional<int> parity{};
    /// Exchange only sites (global coordinates) for which this holds.
    std::function<bool(const lattice::coordinate& global_site)> select{};
    path way = path::automatic;
    /// Make start_reverse() possible: slots of its own, and one more exchange of set-up messages.
    bool reverse = false;
    check_level checks = default_checks(); ///< normal: require_fresh() looks whether the field was written since
};

class padded_plan {
  public:
    /// Collective. Each binding is made by bind(): the fields of one message; start() chooses among them.
    /// Shape: every field covers grown(cut.local_box(rank), widths), in any site order.
    /// Err: input_error on every rank (a halo wider than a local box, with the numbers; a field of another shape; ends
    /// that disagree); job_error.  Cost: see region_plan.
    padded_plan(const comm::job& j, const lattice::decomposition& cut, padded_options options,
                std::vector<binding> bindings);

    /// Starts the exchange of bindings[which].  Pre: the last exchange is finished.
    void start(int which = 0) noexcept;
    /// Starts the adjoint: what stands in the ghosts is added to the sites that they are copies of, in fixed order; the
    /// ghosts keep their values. start() is y = H x from box to grown box, this is x = H^T y.
    /// Pre: options().reverse; the last exchange is finished.
    void start_reverse(int which = 0) noexcept;
    /// Moves what can be moved now; true when finish() would not wait.
    [[nodiscard]] bool test() noexcept;
    [[nodiscard]] comm::status finish() noexcept;
    /// finish(), and the typed exception if it failed: for code outside hot loops.
    void finish_or_throw();
    /// Before ghosts of bindings[which] are used.  Err: error if they are of another binding, or if a site that was sent has
    /// other values now.  Cost: nothing below checks normal; then one read of the sites that are sent.
    void require_fresh(int which = 0) const;
    /// Positions in ghosts() that came into place since the last call; each once per exchange. Valid until the next call.
    [[nodiscard]] std::span<const int> completed() noexcept;

    /// All regions of ghosts that an exchange fills.
    [[nodiscard]] std::span<const ghost_region> ghosts() const { return ghosts_; }
    /// Finished exchanges, reverse ones not counted.
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    [[nodiscard]] const padded_options& options() const { return options_; }
    /// The route that edges and corners take, and why.
    [[nodiscard]] corner_route route() const { return route_; }
    [[nodiscard]] plan_statistics statistics() const;
    void reset_statistics();
    /// Bytes of slab beyond the fields: slots and control lines.
    [[nodiscard]] std::size_t slab_bytes() const;
    [[nodiscard]] std::string describe() const;

  private:
    [[nodiscard]] std::uint64_t checksum(int which) const noexcept;

    enum class running : std::uint8_t { nothing, forward, backward };
    /// Phases of which each starts when the one before has come. They go on in every wait of this rank, because a peer may
    /// wait for the next phase while this rank waits for another plan; hence at a fixed address.
    struct relay {
        std::vector<region_plan> phases; // one, or one per dimension
        std::size_t phase = 0;
        int bound = 0;
        comm::status status = comm::status::ok;
        bool test() noexcept;
    };

    comm::job job_;
    padded_options options_;
    corner_route route_ = corner_route::at_once;
    std::string why_;
    std::vector<ghost_region> ghosts_;
    std::unique_ptr<relay> forward_;
    std::vector<std::size_t> first_ghost_; // of each phase in ghosts_
    std::optional<region_plan> backward_;
    std::vector<int> reported_; // room for completed()
    running running_ = running::nothing;
    std::uint64_t epoch_ = 0;
    std::vector<binding> checked_; // checks normal: the fields, and the own sites that are sent
    std::vector<std::int32_t> sent_sites_;
    std::uint64_t sum_ = 0;
    comm::status status_ = comm::status::ok;
};

} // namespace halocline::halo
