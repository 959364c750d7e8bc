// SPDX-License-Identifier: Apache-2.0
// A shell_plan's exchange under way: one region_plan, or one per dimension, each of which starts when the previous one
// has arrived; and the one that goes back.
#pragma once

#include "bound_ghosts.hpp"
#include "copying_team.hpp"
#include "region_exchange.hpp"
#include "shell_regions.hpp"

#include <halocline/comm/detail/work_driver.hpp>
#include <halocline/halo/shell_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace halocline::halo {

struct shell_plan::state : team_calls {
    static region_plan::state& of(region_plan& p) { return *p.s_; }

    /// Every wait of the thread that drives the exchange advances the phases, because a peer may wait for the next one
    /// while this rank waits for another plan.
    struct phases_in_turn {
        std::vector<region_plan> plans;
        std::size_t now = 0; // those before it are finished, and only it may be in flight
        int bound = 0;
        comm::status status = comm::status::ok;
        comm::work_driver driver;

        ~phases_in_turn() {
            while (!plans.empty()) plans.pop_back(); // those that follow the first one before it
        }
        void begin(int which) noexcept;
        bool test() noexcept;
        comm::status complete() noexcept;
        void leave() noexcept;
        /// Called in every wait of this rank.
        void work() noexcept {
            driver.work_in_wait([this] { (void)advance(); });
        }

      private:
        /// Finishes and begins what has arrived. True if all has, or the status is bad.
        bool advance() noexcept;
    };

    // Set-up (shell_setup.cpp).
    state(const comm::job& j, const lattice::decomposition& cut, shell_options choices,
          const std::vector<binding>& bindings);
    state(const state&) = delete; // waits know where the phases are (work_in_every_wait)
    state& operator=(const state&) = delete;
    /// Tells of a misuse that no finish() has told.
    ~state();
    // `apart`: some field's destination is another field.
    /// Err: input_error.
    void check(const lattice::decomposition& cut, const std::vector<binding>& bindings, bool apart) const;
    void choose_route(const lattice::decomposition& cut, bool apart);
    // Err of the lists: whatever options.select throws.
    [[nodiscard]] std::vector<shell_transfers> list_phases(const lattice::decomposition& cut) const;
    void list_checked_sites(const lattice::decomposition& cut);
    void note_shared_destinations();
    void make_phases(std::vector<shell_transfers> lists, const std::vector<binding>& bindings);
    void make_reverse(const lattice::decomposition& cut, shell_transfers t, const std::vector<binding>& bindings);

    // An exchange (shell_exchange.cpp).
    void begin(int which) noexcept;
    void begin_reverse(int which) noexcept;
    bool test() noexcept;
    void complete() noexcept;
    /// The exchange has failed: all plans of which this one is made leave.
    void leave() noexcept;
    /// Refuses a start() before finish() of the previous exchange, or by a thread that may not send.
    [[nodiscard]] bool may_start() noexcept;
    [[nodiscard]] bool has_binding(int which) const noexcept;
    /// With checks normal or above: ensure_halo() of a binding that is fresh by its marks, but not by its values, is
    /// misused.
    void check_unmarked(int which) noexcept;
    /// Number of fields of a binding whose freshness is checked; 0 if checks are below normal.
    /// Err: input_error: no such binding.
    [[nodiscard]] std::size_t checked_fields(int which) const;
    /// Why the ghosts of a field of a binding are stale; null if they are not.  Pre: field < checked_fields(which).
    [[nodiscard]] const char* why_stale(int which, std::size_t field) const noexcept;
    /// Pre: status is misused.
    [[nodiscard]] std::string why_misused() const;

    enum class running : std::uint8_t { nothing, forward, backward };
    comm::job job;
    shell_options options;
    bool shares = false; // is a message large enough for a team?
    corner_route route = corner_route::at_once;
    std::string why; // that route
    std::vector<ghost_region> ghosts;
    phases_in_turn forward;
    std::vector<std::size_t> first_ghost; // by phase: index in ghosts of its first one
    std::optional<region_plan> backward;  // only if options.reverse
    std::vector<int> reported;            // room for completed()
    running now = running::nothing;
    std::vector<bound_ghosts> filled; // by binding
    std::uint64_t epoch = 0;
    std::vector<std::int32_t> sent_sites, ghost_sites; // with checks normal
};

} // namespace halocline::halo
