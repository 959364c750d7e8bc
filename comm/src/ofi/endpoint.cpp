// SPDX-License-Identifier: Apache-2.0
#include "endpoint.hpp"

#include "control/descriptor.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/detail/launch.hpp>

#include <algorithm>
#include <atomic>
#include <iomanip>
#include <random>
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <sstream>
#include <string>
#include <unistd.h>

namespace halocline::comm {
namespace {

/// A name for a file in /dev/shm that no other file has.
std::string unused_name() {
    std::random_device random;
    std::ostringstream name;
    name << launch::shared_file_prefix << getpid() << '-' << std::hex << std::setfill('0');
    for (int i = 0; i < 3; ++i) name << std::setw(8) << random();
    return name.str();
}

/// An endpoint that stays open until the process ends stays reachable, too, so that leak checkers don't report it.
/// These endpoints are chained through their contexts, which libfabric leaves to the caller.
void keep(fid_ep* ep) noexcept {
    static std::atomic<fid_ep*> last{nullptr};
    ep->fid.context = last.exchange(ep);
}

/// Appended to the error of a call: providers say "Input/output error" even if descriptors ran out.
std::string remedy(long code) {
    constexpr std::uint64_t of_a_call = 8; // more than any call takes at a time
    const std::uint64_t room = descriptor_room();
    if (code == -FI_EMFILE || room < of_a_call)
        return "; this process may open " + std::to_string(room) + " files more: raise 'ulimit -n'";
    if (code == -FI_EAGAIN) return "; it may lack a thread: raise 'ulimit -u', or 'ulimit -v'";
    if (code == -FI_ENOMEM) return "; raise 'ulimit -l' and 'ulimit -v', or ask for less";
    return "";
}

void close_registration(ofi_registration& r) noexcept { close_object(r.region); }

/// Bytes of the longest write requested of a provider. One that writes into a TCP socket does that in one call, and
/// from about 1 MiB on such a call takes twice as long as several (decision 0031).
std::size_t longest_write(const fi_info& i) {
    constexpr std::size_t into_socket = 512 << 10;
    const std::string_view name = i.fabric_attr->prov_name;
    const bool writes_into_socket = name.starts_with("tcp") || name == "net";
    return writes_into_socket ? std::min(into_socket, i.ep_attr->max_msg_size) : i.ep_attr->max_msg_size;
}

} // namespace

ofi_world::endpoint::endpoint(std::string_view wish, std::string_view address, std::size_t most)
    : endpoint(choose_ofi_provider(wish, address)) { // delegates, so that an exception below runs the destructor
    fi_info* const info = provider.list.get();
    largest_write = std::min(longest_write(*info), most);
    require(ofi_library::loaded().fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
    require(fi_domain(fabric, info, &domain, nullptr), "fi_domain");
    fi_av_attr av{};
    av.type = info->domain_attr->av_type;
    require(fi_av_open(domain, &av, &addresses, nullptr), "fi_av_open");
    fi_cq_attr cq{};
    cq.format = FI_CQ_FORMAT_DATA;
    cq.wait_obj = FI_WAIT_NONE;
    cq.size = std::max<std::size_t>(4096, info->tx_attr->size + info->rx_attr->size);
    require(fi_cq_open(domain, &cq, &completions, nullptr), "fi_cq_open");
    require(fi_endpoint(domain, info, &ep, nullptr), "fi_endpoint");
    if (std::string_view(info->fabric_attr->prov_name) == "shm") {
        // By default its file is named after the process id, which can recur: a file left by a killed process is then
        // "busy".
        std::string name = unused_name();
        require(fi_setname(&ep->fid, name.data(), name.size() + 1), "fi_setname");
    }
    require(fi_ep_bind(ep, &addresses->fid, 0), "fi_ep_bind of the addresses");
    require(fi_ep_bind(ep, &completions->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind of the completions");
    require(fi_enable(ep), "fi_enable");
}

ofi_world::endpoint::~endpoint() {
    close_unless_cut(); // first
    caches.clear_all(close_registration);
    if (ep != nullptr) { // the endpoint keeps the objects that it uses
        keep(ep);
        return;
    }
    close_object(completions);
    close_object(addresses);
    close_object(domain);
    close_object(fabric);
}

ofi_registration ofi_world::endpoint::register_memory(std::span<std::byte> memory, std::uint64_t key) noexcept {
    const std::uint64_t access = provider.tagged ? FI_SEND | FI_RECV : FI_WRITE | FI_REMOTE_WRITE;
    const auto attempt = [&] {
        return comm::register_memory(domain, ep, provider.list->domain_attr->mr_mode, access, memory.data(),
                                     memory.size(), key);
    };
    const ofi_registration made = attempt();
    return made.error == 0 || !caches.drop_idle(close_registration) ? made : attempt();
}

bool ofi_world::endpoint::registers_local() const noexcept {
    return (provider.list->domain_attr->mr_mode & FI_MR_LOCAL) != 0;
}

void ofi_world::endpoint::close_unless_cut() noexcept {
    if (!is_cut) close_object(ep);
}

void ofi_world::endpoint::cut() noexcept {
    is_cut = true;
    if (std::string_view(provider.list->fabric_attr->prov_name) != "tcp;ofi_rxm") close_object(ep); // tagged or not
}

std::string ofi_world::endpoint::address() const {
    std::string name(64, '\0');
    std::size_t bytes = name.size();
    int code = fi_getname(&ep->fid, name.data(), &bytes);
    if (code == -FI_ETOOSMALL) {
        name.resize(bytes);
        code = fi_getname(&ep->fid, name.data(), &bytes);
    }
    require(code, "fi_getname");
    name.resize(bytes);
    return name;
}

void ofi_world::endpoint::insert(std::span<const std::string> of, int own_rank) {
    // A connection that lacks descriptors is never made, without an error: both ends would wait for the deadline.
    const auto reached =
        static_cast<std::uint64_t>(std::ranges::count_if(of, [](const auto& a) { return !a.empty(); }));
    constexpr std::uint64_t neighbours = 8; // plans need no more
    const std::uint64_t needed = goes_over_ip(*provider.list) ? 2 * std::min(reached, neighbours) : 0;
    if (const std::uint64_t room = descriptor_room(); room < needed)
        throw input_error("libfabric (" + provider.name + "): this process may open " + std::to_string(room) +
                          " files more, but connections to peers take " + std::to_string(needed) +
                          "; raise 'ulimit -n'");
    peers.assign(of.size(), FI_ADDR_UNSPEC);
    for (std::size_t r = 0; r < of.size(); ++r) {
        if (static_cast<int>(r) == own_rank || of[r].empty()) continue;
        const int inserted = fi_av_insert(addresses, of[r].data(), 1, &peers[r], 0, nullptr);
        require(inserted, "fi_av_insert");
        if (inserted != 1)
            throw job_error("libfabric (" + provider.name + ") refuses the address of rank " + std::to_string(r));
    }
}

void ofi_world::endpoint::require(long code, const char* call) const {
    if (code < 0) {
        throw job_error("libfabric (" + provider.name + "): " + call + ": " +
                        ofi_library::loaded().strerror(static_cast<int>(-code)) + remedy(code));
    }
}

} // namespace halocline::comm
