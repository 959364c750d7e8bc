// SPDX-License-Identifier: Apache-2.0
// Which path this rank's end of each message would take: what prevents the direct one, and would it pay?
#pragma once

#include "path_model.hpp"
#include "position_set.hpp"
#include "region_outline.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline/comm/detail/direct_memory.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace halocline::halo {

/// This rank's end of its message with one peer.
struct region_end {
    int peer = 0;
    std::string transport; ///< the one that serves the peer
    bool over_network = false;
    bool joint = false;                 ///< may both ends copy, if the message goes directly? The same at both
    sites_by_tag sends, receives;       ///< in this order
    std::vector<int> received;          ///< the receives, as indices in the plan's list
    std::vector<position_list> out, in; ///< by field: storage positions of the sites
};

/// The verdict of one end.
struct path_choice {
    obstacle in_the_way = obstacle::none; ///< to the direct path
    verdict<path> found{path::packed, {}};
    bool alternates = false; ///< would the cores, if moved, make it packed instead of direct, or the reverse?
};

/// Lifetime: refers to its constructor's arguments.
class region_paths {
  public:
    /// Pre: all bindings have the shapes and orders of the first; `ends` are all ends of this rank.
    region_paths(const comm::job& j, const std::vector<binding>& bindings, const region_plan_options& options,
                 const comm::costs& costs, const std::vector<region_end>& ends);

    /// If direct pays over a network, this also registers the fields with it.
    path_choice choose(const region_end& end);
    /// Would it pay for this message, either way, that both ends copy? The same at both ends.
    [[nodiscard]] bool may_be_joint(const region_end& end) const;
    /// Does this rank offer what it sends, and can the peer read it?
    [[nodiscard]] bool is_offered(const region_end& end) const;
    /// What is asked of the plan, or else of the job.
    [[nodiscard]] path wished() const { return options_.path == path::automatic ? j_.options().path : options_.path; }
    /// The obstacle at that rank's end, which is this end or its peer's, in words.
    [[nodiscard]] std::string reason(obstacle o, const region_end& end, int rank) const;
    /// The fields as registered with the network of a direct end.
    [[nodiscard]] std::shared_ptr<const comm::direct_memory> registered(const region_end& end) const;

  private:
    /// Bytes of sites.
    [[nodiscard]] std::size_t bytes_of(const std::vector<position_list>& sites) const;
    [[nodiscard]] obstacle obstacle_of(const region_end& end) const;
    [[nodiscard]] message_outline seen_from_here(const region_end& end) const;
    /// `message`: used if the model decides.
    [[nodiscard]] verdict<path> verdict_on(const region_end& end, obstacle in_the_way,
                                           const message_outline& message) const;
    /// Registers the fields with the network of that end's peer, once.  False: registration failed.
    bool register_fields(const region_end& end);
    /// False if ghosts of that message in cache lines of owned sites cost nothing.
    [[nodiscard]] bool may_share_lines(const region_end& end) const;
    /// Cache lines in which ghosts of that message lie next to owned sites of this rank.  Pre: may_share_lines().
    [[nodiscard]] double lines_shared_by(const region_end& end) const;
    /// Cache lines of this rank that the message fills, if no field has lanes.
    [[nodiscard]] comm::written_lines lines_filled_by(const region_end& end) const;
    [[nodiscard]] const binding& fields() const { return bindings_.front(); }

    const comm::job& j_;
    const std::vector<binding>& bindings_;
    const region_plan_options& options_;
    const comm::costs& costs_;
    std::vector<position_set> sent_; // by field: what is sent, if a message may share lines
    std::map<std::string, std::shared_ptr<const comm::direct_memory>> registered_; // by transport; null: it failed
    std::string why_not_registered_;
};

} // namespace halocline::halo
