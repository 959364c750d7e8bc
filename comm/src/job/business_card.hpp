// SPDX-License-Identifier: Apache-2.0
// What a rank tells all others at the start of the job, through the launcher's gather: what must be equal on all ranks,
// and where to find this one. Changes raise layout_number (layout_number.hpp), which comes first on each card, at the
// same place in every build. (MPI implementations call what they publish through PMI a business card.)
#pragma once

#include "bootstrap.hpp"
#include "control/host_addresses.hpp"

#include <halocline/comm/processor_quota.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace halocline::comm {

struct business_card {
    std::string version, options;
    std::string kernel;  ///< ranks with the same text run on one kernel, which numbers the processors
    std::string network; ///< same text: one network namespace, where abstract sockets and descriptors get through
    /// Same text: one node, also according to HALOCLINE_NODE, which can split a host into several.
    std::string node;
    std::string pids; ///< same text: one pid namespace, where a pid means the same process to both
    std::string host;
    std::string socket_name;           ///< the Unix socket that the ranks of this node connect to
    std::string secret;                ///< the job's, from rank 0; "" from others
    std::string trouble;               ///< bad input, or why this rank has no slab; "": none
    std::uint64_t address_room = 0;    ///< bytes that this process may still map: slabs of the other ranks of its node
    std::uint64_t descriptor_room = 0; ///< the number it may still open
    int pid = 0;
    processor_share share; ///< processors that this rank may use, and quotas on their time
    std::vector<host_address> addresses;

    /// What a card holds behind its mark and its layout_number.
    template <class Self, class Pass>
    static void fields(Self& c, Pass& pass);
};

/// This rank's card.
[[nodiscard]] business_card own_card(const bootstrap& start, const job_options& options, const std::string& socket_name,
                                     const std::string& trouble);

/// The cards of all ranks, by rank. Collective.
/// Err: input_error, the same on every rank, if they disagree on layout, version or options, or one is in trouble.
[[nodiscard]] std::vector<business_card> swap_cards(const bootstrap& start, const business_card& mine);

} // namespace halocline::comm
