// SPDX-License-Identifier: Apache-2.0
// The transfers that a rank lists, by peer and tag: what such lists may contain, and whether both ends match.
#pragma once

#include <halocline/halo/detail/position_list.hpp>
#include <halocline/halo/region_plan.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace halocline::halo {

/// "rank 3".
std::string rank_text(int rank);

/// "24 doubles", "2 words of 4 bytes".
std::string text_of(const site_shape& shape);

/// Err: input_error, beginning with `who`: no field, one without storage, or bindings of unlike numbers of fields.
void require_fields(const std::vector<binding>& bindings, const std::string& who);

/// What is wrong with start(which) of a plan with fewer bindings.
std::string no_binding(const std::string& who, const std::string& call, int which, std::size_t bindings);

/// Indices of one list's transfers with one peer, by tag, which is their order in the message.
using by_tag = std::map<std::uint32_t, std::size_t>;
using by_peer = std::map<int, by_tag>;

/// verb: "sends to" or "receives from".  Err: input_error: a peer that doesn't exist, a tag that occurs twice with one.
by_peer sorted_transfers(const std::vector<transfer>& list, const char* verb, const comm::job& j,
                         const std::string& name);
/// Err: input_error: bindings that differ in shape; a site that a field does not have, that is received twice, or that
/// is both sent and received.  Cost: O(sites of the transfers), whatever the size of the fields.
void check_transfers(const std::vector<transfer>& sends, const std::vector<transfer>& receives,
                     const std::vector<binding>& bindings, const region_plan_options& options);
/// Number of sites that a transfer lists.
std::int64_t sites_in(const transfer& t);
/// Appends them, in message order.
void append_sites(const transfer& t, std::vector<std::int32_t>& sites);
/// Number of sites by tag: what the two ends of a message compare.
using sites_by_tag = std::map<std::uint32_t, std::int64_t>;
sites_by_tag count_sites(const std::vector<transfer>& list, const by_tag& tags);
/// Err: input_error unless one rank sends to the other what the latter expects.
void compare_transfers(const sites_by_tag& sent, const sites_by_tag& expected, int from, int to,
                       const std::string& name);

/// Storage positions of the transfers' sites, in order of tags.
position_list positions(const std::vector<transfer>& list, const by_tag& tags, const lattice::site_order& order);

} // namespace halocline::halo
