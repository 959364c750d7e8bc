// SPDX-License-Identifier: Apache-2.0
// The addresses of this host, and the one on which the ranks of several nodes meet.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace halocline::comm {

/// One address of an interface that is up, in numeric form: "10.1.0.7" of "eth0", in the network "10.1.0.0/16".
struct host_address {
    std::string interface, address, network;

    template <class Self, class Pass>
    static void fields(Self& a, Pass& pass) {
        pass(a.interface, a.address, a.network);
    }
};

/// IPv4 before IPv6; without loopback and link-local addresses.
std::vector<host_address> host_addresses();

/// Err: input_error if `wanted` can be no name of an interface, no address and no network: "10.0.0.0/99", "300.1.1.1".
void check_network(const std::string& wanted);

/// The address on which this rank waits for ranks of other nodes.
/// wanted: an interface ("eth0"), an address, or any network ("10.0.0.0/8") that contains one; "": the first network of
/// node 0 in which every node has an address, no two the same; if there is none, the address of this host's default
/// route.
/// nodes: the addresses of each node; this rank's node is number `own`.
/// Err: input_error: nothing fits; it lists the addresses of this host.
std::string meeting_address(const std::string& wanted, std::span<const std::vector<host_address>> nodes,
                            std::size_t own);

} // namespace halocline::comm
