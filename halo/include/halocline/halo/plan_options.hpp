// SPDX-License-Identifier: Apache-2.0
// What a halo plan is made of, and the messages that it then has.
#pragma once

#include <halocline/base/check.hpp>
#include <halocline/halo/ghost_widths.hpp>
#include <halocline/halo/path.hpp>
#include <halocline/lattice/site_order.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace halocline::halo {

struct plan_options {
    std::string name = "halo";
    ghost_widths widths{};
    std::array<lattice::boundary, lattice::dimensions> boundaries{};
    std::size_t bytes_per_site = 0;
    /// Exchange undivided periodic dimensions with oneself instead of wrapping locally (tests on one rank).
    bool self_exchange = false;
    /// Only source sites (global coordinates) for which this holds are sent; e.g. one parity or one colour of blocks.
    std::function<bool(const lattice::coordinate& global_site)> select{};
    /// Send only source sites of this parity of the global coordinate, 0 or 1: a half-exchange for even/odd schemes.
    std::optional<int> parity{};
    /// Fields of bytes_per_site each that one message carries, one after another: several right-hand sides.
    int fields = 1;
    /// Site order of the fields that start(field) copies: the copies are then prepared here (site_copy). Fields of any
    /// other order work too, site by site.
    std::shared_ptr<const lattice::site_order> order{};
    /// How messages are written into memory that a peer shares: direct, streamed, or automatic: by the job's options
    /// and cost model, each message for itself, and again when the machine changes (path_watch.hpp). The same on every
    /// rank; other transports send as they do. Messages with checksums and sites of more than 8 KiB are never streamed.
    /// Err: input_error: packed.
    path way = path::automatic;
    /// Each message carries a CRC32C that finish() compares before it says ok, else wrong_data; finish_or_throw() names
    /// the face. The same on every rank. On too where the job asks for it (job_options::checksums), and with checks
    /// comm.
    bool checksums = false;
    /// normal: require_fresh() looks whether the source was written since.
    check_level checks = default_checks();
};

/// One message of the plan, as seen from this rank.
struct plan_message {
    face where; ///< the face at which sites are sent and behind which ghosts arrive
    int peer = 0;
    path way = path::packed;              ///< direct or streamed where the peer shares its memory; now
    std::string why{};                    ///< that way
    std::vector<std::int32_t> send_sites; ///< local lexicographic indices, in message order
    std::int64_t ghost_sites = 0;         ///< that arrive behind this face
};

} // namespace halocline::halo
