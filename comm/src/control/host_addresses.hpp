// SPDX-License-Identifier: Apache-2.0
// The addresses of this host, and on which of them the ranks of several nodes meet.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace halocline::comm {

/// One address of an interface that is up, in numbers: "10.1.0.7" of "eth0", in the network "10.1.0.0/16".
struct host_address {
    std::string interface, address, network;
};

/// IPv4 before IPv6; without loopback and link-local ones.
std::vector<host_address> host_addresses();

/// The address on which this rank waits for ranks of other nodes.
/// wanted: an interface ("eth0"), an address, or a network ("10.1.0.0/16"); "": the first network of node 0 in which
/// every node has an address, no two the same; if there is none, this host's way out.
/// nodes: the addresses of each node, `own` of them this rank's.
/// Err: input_error: nothing fits, naming what this host has.
std::string meeting_address(const std::string& wanted, std::span<const std::vector<host_address>> nodes,
                            std::size_t own);

} // namespace halocline::comm
