// SPDX-License-Identifier: Apache-2.0
#include "host_addresses.hpp"

#include "descriptor.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <bit>
#include <charconv>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <optional>
#include <set>
#include <sys/socket.h>
#include <utility>

namespace halocline::comm {
namespace {

/// The bytes of an IPv4 or IPv6 address; empty for other families.
std::span<const unsigned char> bytes_of(const sockaddr* a) {
    if (a == nullptr) return {};
    if (a->sa_family == AF_INET) {
        return {reinterpret_cast<const unsigned char*>(&reinterpret_cast<const sockaddr_in*>(a)->sin_addr), 4};
    }
    if (a->sa_family == AF_INET6) return {reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr.s6_addr, 16};
    return {};
}

std::string text_of(std::span<const unsigned char> bytes) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes.data(), text.data(), text.size());
    return text.data();
}

bool is_local(std::span<const unsigned char> a) {
    if (a.size() == 4) return a[0] == 127 || (a[0] == 169 && a[1] == 254);
    const bool loopback = std::all_of(a.begin(), a.end() - 1, [](unsigned char b) { return b == 0; }) && a[15] == 1;
    return loopback || (a[0] == 0xfe && (a[1] & 0xc0) == 0x80);
}

/// The address from which this host would send to the outside world (a documentation address: nothing is sent).
std::string way_out() {
    const descriptor s(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(9);
    inet_pton(AF_INET, "192.0.2.1", &there.sin_addr);
    sockaddr_in here{};
    socklen_t n = sizeof here;
    if (::connect(s.fd(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0 ||
        getsockname(s.fd(), reinterpret_cast<sockaddr*>(&here), &n) != 0) {
        return "";
    }
    return text_of(bytes_of(reinterpret_cast<const sockaddr*>(&here)));
}

/// A network: those addresses of its family that begin with the same bits.
struct network {
    std::vector<unsigned char> bytes; ///< of an address in it
    int prefix = 0;                   ///< bits

    [[nodiscard]] bool contains(std::span<const unsigned char> address) const {
        if (address.size() != bytes.size()) return false;
        for (std::size_t b = 0; b < bytes.size(); ++b) {
            const int bits = std::clamp(prefix - 8 * static_cast<int>(b), 0, 8);
            if ((bytes[b] ^ address[b]) >> (8 - bits) != 0) return false;
        }
        return true;
    }
};

/// "10.1.0.0/16", or an address, which is a network of one.  nullopt: neither.
std::optional<network> network_of(const std::string& text) {
    const std::size_t slash = text.find('/');
    const std::string host = text.substr(0, slash);
    network n;
    for (const auto& [family, size] : {std::pair{AF_INET, 4}, std::pair{AF_INET6, 16}}) {
        n.bytes.resize(static_cast<std::size_t>(size));
        if (inet_pton(family, host.c_str(), n.bytes.data()) != 1) continue;
        n.prefix = 8 * size;
        if (slash == std::string::npos) return n;
        const char* const end = text.data() + text.size();
        const auto [rest, bad] = std::from_chars(text.data() + slash + 1, end, n.prefix);
        if (bad == std::errc() && rest == end && n.prefix >= 0 && n.prefix <= 8 * size) return n;
        return std::nullopt;
    }
    return std::nullopt;
}

std::string listed(const std::vector<host_address>& all) {
    std::string s;
    for (const host_address& a : all) s += (s.empty() ? "" : ", ") + a.interface + " " + a.address + " in " + a.network;
    return s.empty() ? "none" : s;
}

} // namespace

std::vector<host_address> host_addresses() {
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) return {};
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
    std::vector<host_address> all;
    for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
        const auto address = bytes_of(i->ifa_addr), mask = bytes_of(i->ifa_netmask);
        if ((i->ifa_flags & IFF_UP) == 0 || address.empty() || mask.size() != address.size() || is_local(address))
            continue;
        std::vector<unsigned char> net(address.begin(), address.end());
        int prefix = 0;
        for (std::size_t b = 0; b < net.size(); ++b) {
            net[b] &= mask[b];
            prefix += std::popcount(mask[b]);
        }
        all.push_back({i->ifa_name, text_of(address), text_of(net) + "/" + std::to_string(prefix)});
    }
    std::stable_partition(all.begin(), all.end(),
                          [](const host_address& a) { return a.address.find(':') == std::string::npos; });
    return all;
}

void check_network(const std::string& wanted) {
    if (network_of(wanted)) return;
    const bool numeric = wanted.find_first_not_of("0123456789.") == std::string::npos;
    if (!numeric && wanted.size() < IFNAMSIZ && wanted.find_first_of("/ \t\n") == std::string::npos) return; // a name
    throw input_error("network '" + wanted +
                      "': expected the name of an interface, an address, or a network like 10.1.0.0/16");
}

std::string meeting_address(const std::string& wanted, std::span<const std::vector<host_address>> nodes,
                            std::size_t own) {
    const std::vector<host_address>& mine = nodes[own];
    if (!wanted.empty()) {
        for (const host_address& a : mine)
            if (wanted == a.interface || wanted == a.network) return a.address;
        if (const auto asked = network_of(wanted))
            for (const host_address& a : mine)
                if (asked->contains(network_of(a.address).value().bytes)) return a.address;
        throw input_error("network '" + wanted + "': this host has no such interface, address or network; it has " +
                          listed(mine));
    }
    // A bridge inside each host has the same network and address everywhere, but does not connect the hosts.
    for (const host_address& candidate : nodes[0]) {
        std::set<std::string> addresses;
        for (const auto& node : nodes) {
            const auto there = std::find_if(node.begin(), node.end(),
                                            [&](const host_address& a) { return a.network == candidate.network; });
            if (there != node.end()) addresses.insert(there->address);
        }
        if (addresses.size() != nodes.size()) continue;
        return std::find_if(mine.begin(), mine.end(),
                            [&](const host_address& a) { return a.network == candidate.network; })
            ->address;
    }
    if (std::string out = way_out(); !out.empty()) return out;
    if (!mine.empty()) return mine.front().address;
    throw input_error("the ranks are on several nodes, but no interface of this host is up except loopback");
}

} // namespace halocline::comm
