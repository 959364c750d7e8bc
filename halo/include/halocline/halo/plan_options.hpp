// SPDX-License-Identifier: Apache-2.0
// The input of a halo plan, and the messages that result.
#pragma once

#include <halocline/base/check.hpp>
#include <halocline/comm/element_type.hpp>
#include <halocline/halo/ghost_widths.hpp>
#include <halocline/halo/path.hpp>
#include <halocline/lattice/component.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>
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

/// Equal on every rank, except for `order`. Only bytes_per_site has no usable default: options_for() takes it, `element`
/// and `order` from a field.
struct plan_options {
    std::string name = "halo"; ///< in error messages and reports
    ghost_widths widths{};     ///< ghost layers per dimension and side; 0 for a dimension without exchange
    /// What lies beyond the edges of the global lattice. Nothing is exchanged across an open edge; antiperiodic counts
    /// as periodic here, because the sign belongs to the operator.
    std::array<lattice::boundary, lattice::dimensions> boundaries{};
    std::size_t bytes_per_site = 0; ///< in a message, per field; required
    /// What a site consists of, as options_for() tells: then start() takes only fields of such components, or of complex
    /// ones of two such reals. Not told: of any, if their sites have bytes_per_site.
    comm::element_type element{};
    /// Also exchange periodic dimensions that are not cut, with this rank itself. Otherwise they have no ghosts, and
    /// the caller wraps around locally.
    bool self_exchange = false;
    /// The same for single dimensions.
    std::array<bool, lattice::dimensions> self_exchange_along{};
    /// Sends only the sites (global coordinates) for which this is true, for example one colour of blocks. Both ends of
    /// each message compare what they chose when the plan is made.
    std::function<bool(const lattice::coordinate& global_site)> select{};
    /// Sends only the sites of this parity of the global coordinate, 0 or 1: half an exchange, for even/odd schemes.
    std::optional<int> parity{};
    /// Number of fields, bytes_per_site each, that one message carries one after the other: several right-hand sides.
    int fields = 1;
    /// Site order of the fields that start(field) will get; null: lexicographic. Their copies are prepared with the
    /// plan. Fields of all sites in any other order work too, but are copied site by site, many times slower; describe()
    /// reports this. Fields of one parity (site_order::half()) must have this order, the same object.
    std::shared_ptr<const lattice::site_order> order{};
    /// How messages are written into memory that the peer shares: direct, streamed, joint or automatic. Automatic
    /// follows the job's options and measured costs, for each message separately, and again when the machine changes
    /// (path_watch.hpp). No effect on other transports. Sites of more than 8 KiB are never streamed. A joint message
    /// gets its receiver's help only if its fields lie in the slab, in the plan's order, and one thread calls start().
    /// Messages with checksums or more than 13 fields are never joint.
    /// Err: input_error: packed.
    halo::path path = path::automatic;
    /// Each message carries a checksum, which finish() verifies; wrong_data if it differs, and finish_or_throw() names
    /// the face. Also on if the job asks for it (job_options::checksums) and with checks == comm.
    bool checksums = false;
    /// normal and above: require_fresh() and ensure_halo() detect a field that was written since its exchange.
    check_level checks = default_checks();
};

/// Options for plans that send fields like x: with its site order, its components and bytes per site; the rest as given.
template <class T>
[[nodiscard]] plan_options options_for(const lattice::field<T>& x, plan_options options = {}) {
    options.bytes_per_site = static_cast<std::size_t>(x.components()) * sizeof(T);
    options.element = comm::element_type_of<lattice::real_of<T>>();
    options.order = x.shared_order();
    return options;
}

/// One message of the plan, as seen from this rank.
struct plan_message {
    face where;                     ///< sites at this face are sent; the ghosts that arrive lie behind it
    int peer = 0;                   ///< the rank behind the face
    halo::path path = path::packed; ///< how it travels now; direct, streamed or joint if the peer shares its memory
    std::string why{};              ///< the reason for that path
    std::vector<std::int32_t> send_sites; ///< local lexicographic indices, in message order
    std::int64_t ghost_sites = 0;         ///< number of sites that arrive
    std::uint64_t fingerprint = 0;        ///< a checksum over both lists of sites: those sent, those that arrive
};

} // namespace halocline::halo
