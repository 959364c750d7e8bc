// SPDX-License-Identifier: Apache-2.0
// One open port of one RDMA device: its name, its address for peers, and its capabilities.
#pragma once

#include "library.hpp"
#include "network/registration_cache.hpp"
#include "world.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace halocline::comm {

/// How a peer reaches a port.
struct verbs_address {
    union ibv_gid gid {};
    std::uint16_t lid = 0;
    std::uint8_t link_layer = 0;
    std::uint8_t global = 0; ///< a global routing header is needed: RoCE always, InfiniBand across subnets
    std::uint32_t mtu = 0;   ///< ibv_mtu
};

/// How long a device keeps sending what nobody acknowledges: in each try it waits 4.096 us * 2^exponent for the
/// acknowledgement. The specification allows it to wait up to four times as long.
struct verbs_retries {
    std::uint8_t exponent = 1; ///< 0 would mean no limit

    /// Including the first. A queue pair allows up to 7 retries, but to soft-RoCE 7 means no limit.
    static constexpr int tries = 1 + 6;

    /// The longest waits that fit into `link_timeout`, all tries together; they use more than half of it.
    explicit verbs_retries(std::chrono::milliseconds link_timeout);
    [[nodiscard]] std::chrono::nanoseconds each() const {
        return std::chrono::nanoseconds(4096) * (std::int64_t{1} << exponent);
    }
};

struct verbs_registration {
    ibv_mr* region = nullptr;
    int error = 0; ///< errno; then nothing is registered
};

struct verbs_world::port {
    /// Err: input_error: no such device or port, listing those that exist; job_error: this process may not lock enough
    /// memory for any plan, or a fork() would take registered memory away.
    port(const verbs_options& options, std::chrono::milliseconds link_timeout, const verbs_library& functions);
    ~port();
    port(const port&) = delete;
    port& operator=(const port&) = delete;

    const verbs_library& lib;
    verbs_options options;
    std::string name; ///< "rxe0 port 1"
    ibv_context* context = nullptr;
    ibv_pd* domain = nullptr;
    ibv_device_attr device{};
    verbs_address address;
    int gid_index = 0;
    std::size_t largest_write = 0;
    std::vector<verbs_address> peers; ///< by rank
    verbs_retries retries;
    registration_caches<verbs_registration> caches; ///< for large messages

    // Takes a queue pair from new to ready for receiving and sending.  Err: job_error, which names the peer.
    void initialise(ibv_qp* queue_pair, int peer) const;
    void connect(ibv_qp* queue_pair, int peer, std::uint32_t peer_queue_pair, std::uint32_t peer_psn,
                 std::uint32_t own_psn) const;
    /// The text for an error of that call (a negative errno), or of a completion of a write to or from `peer`.
    [[nodiscard]] std::string explain(int code, const char* failed_call, std::uint32_t vendor_error, int peer) const;
    /// Registers memory that peers may write.  Err: job_error: size, `what_for`, and the memlock limit if relevant.
    [[nodiscard]] ibv_mr* register_for_peers(std::span<std::byte> memory, const std::string& what_for);
    /// Makes a completion queue.  Err: job_error, likewise.
    [[nodiscard]] ibv_cq* make_queue(std::size_t entries, const std::string& what_for);
    /// What attempt() makes, which locks memory: if it returns nullptr, again without the registrations that are kept for
    /// later messages.
    template <class Attempt>
    [[nodiscard]] auto with_room(Attempt&& attempt) noexcept {
        auto* made = attempt();
        const auto drop = [this](verbs_registration& r) { lib.dereg_mr(r.region); };
        return made != nullptr || !caches.drop_idle(drop) ? made : attempt();
    }

  private:
    void try_to_lock_memory();
    void choose_gid(const ibv_port_attr& attributes);
    void choose_mtu(const ibv_port_attr& attributes);
};

/// A first packet sequence number.
[[nodiscard]] std::uint32_t random_psn();

/// "rxe0 (port 1 active, RoCE), mlx5_1 (port 1 down, InfiniBand)"; "none" without devices.
[[nodiscard]] std::string device_names(const verbs_library& lib);

} // namespace halocline::comm
