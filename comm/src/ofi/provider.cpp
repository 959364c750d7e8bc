// SPDX-License-Identifier: Apache-2.0
#include "provider.hpp"

#include "registration.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <array>
#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <utility>

namespace halocline::comm {
namespace {

constexpr std::uint32_t version = FI_VERSION(1, 9); // of the requested interface

/// The hints: reliable datagrams, RMA writes with 4 bytes of remote completion data or, if `tagged`, tagged messages.
/// Local buffers are registered, contexts are given, polling makes progress: providers may require any of these.
ofi_info_list wanted(std::string_view provider, bool tagged) {
    ofi_info_list hints(ofi_library::loaded().dupinfo(nullptr));
    if (!hints) throw job_error("libfabric: out of memory");
    hints->caps = tagged ? FI_TAGGED | FI_SEND | FI_RECV : FI_MSG | FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = served_mr_modes;
    hints->domain_attr->threading = FI_THREAD_DOMAIN; // a plan lets one thread at a time send or poll
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->cq_data_size = tagged ? 0 : sizeof(std::uint32_t);
    // Two messages of one tag may be under way; they meet their receives in order.
    if (tagged) hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    if (!provider.empty()) hints->fabric_attr->prov_name = strndup(provider.data(), provider.size());
    return hints;
}

/// The ofi_rxm layer keeps some 5000 buffers for messages of its own protocol, of 16 KiB unless the environment says
/// otherwise, and touches them all: 84 MB per rank. When the rank dies, freeing them takes tens of milliseconds on a
/// busy machine, and only then do its sockets close and reveal the death. Our messages are RMA writes, which need none;
/// so they are made as small as is sensible. The provider reads the variable once, in the first fi_getinfo of the
/// process.
class small_rxm_buffers {
  public:
    explicit small_rxm_buffers(bool wanted) : set_(wanted && std::getenv(variable) == nullptr) {
        if (set_) setenv(variable, "2048", 0);
    }
    ~small_rxm_buffers() {
        if (set_) unsetenv(variable);
    }
    small_rxm_buffers(const small_rxm_buffers&) = delete;
    small_rxm_buffers& operator=(const small_rxm_buffers&) = delete;

  private:
    static constexpr const char* variable = "FI_OFI_RXM_BUFFER_SIZE";
    bool set_;
};

/// `source`: IP address of this host to send from and be reached at; "" for all that each provider lists.
ofi_info_list usable(std::string_view provider, bool tagged, const std::string& source = "") {
    const ofi_info_list hints = wanted(provider, tagged);
    const small_rxm_buffers meanwhile(!tagged); // tagged messages do use the buffers
    fi_info* found = nullptr;
    const int code =
        ofi_library::loaded().getinfo(version, source.empty() ? nullptr : source.c_str(), nullptr,
                                      source.empty() ? 0 : FI_SOURCE | FI_NUMERICHOST, hints.get(), &found);
    if (code != 0 && code != -FI_ENODATA)
        throw job_error(std::string("libfabric: fi_getinfo: ") + ofi_library::loaded().strerror(-code));
    return ofi_info_list(found);
}

/// The list from the first that `fits`; empty if none does.
template <class Fits>
void begin_where(ofi_info_list& list, Fits fits) {
    while (list && !fits(*list)) list.reset(std::exchange(list->next, nullptr));
}

/// "10.1.0.7"; "" if the provider doesn't use IP.
std::string source_address(const fi_info& i) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    sockaddr_in6 any{}; // larger than sockaddr_in
    if (!goes_over_ip(i) || i.src_addr == nullptr || i.src_addrlen < sizeof(sockaddr_in)) return "";
    std::memcpy(&any, i.src_addr, std::min(sizeof any, i.src_addrlen));
    if (any.sin6_family == AF_INET) {
        sockaddr_in v4;
        std::memcpy(&v4, &any, sizeof v4);
        inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    } else if (any.sin6_family == AF_INET6) {
        inet_ntop(AF_INET6, &any.sin6_addr, text.data(), text.size());
    }
    return text.data();
}

/// What the list's first provider offers at that address of this host.  A provider lists an interface only once the
/// kernel calls it running, up to a second after its address works: hence it is requested by address, not looked up.
/// Err: input_error if it can't be reached there; for loopback, where a host talks to itself, any address will do.
ofi_info_list at_address(ofi_info_list all, bool tagged, const std::string& address) {
    const std::string provider = all->fabric_attr->prov_name;
    ofi_info_list there = usable(provider, tagged, address);
    begin_where(there, [&](const fi_info& i) {
        return source_address(i) == address && provider == i.fabric_attr->prov_name; // "tcp" also asks for tcp;ofi_rxm
    });
    if (there) return there;
    if (address.starts_with("127.")) return all;
    std::string offered;
    for (const fi_info* i = all.get(); i != nullptr; i = i->next) {
        if (const std::string a = source_address(*i); provider == i->fabric_attr->prov_name && !a.empty())
            offered += (offered.empty() ? "" : ", ") + a;
    }
    throw input_error("libfabric (" + provider + ") can't be reached at " + address +
                      ", where the ranks' hosts meet; " + "it offers " + (offered.empty() ? "no address" : offered) +
                      "; choose with --network or another ofi_provider");
}

} // namespace

bool goes_over_ip(const fi_info& i) {
    return i.addr_format == FI_SOCKADDR || i.addr_format == FI_SOCKADDR_IN || i.addr_format == FI_SOCKADDR_IN6;
}

std::string ofi_provider_names() {
    std::string names;
    for (const bool tagged : {false, true}) {
        const ofi_info_list all = usable("", tagged);
        for (const fi_info* i = all.get(); i != nullptr; i = i->next) {
            const std::string name = i->fabric_attr->prov_name;
            if ((", " + names + ",").find(", " + name + ",") == std::string::npos)
                names += (names.empty() ? "" : ", ") + name;
        }
    }
    return names.empty() ? "none" : names;
}

namespace {

/// The choice if nobody names a provider: libfabric's first, or `net` in place of tcp;ofi_rxm, its predecessor
/// (docs/decisions/0008-ofi.md).
ofi_info_list first_choice() {
    ofi_info_list first = usable("", false);
    if (!first || std::string_view(first->fabric_attr->prov_name) != "tcp;ofi_rxm") return first;
    ofi_info_list net = usable("net", false);
    return net ? std::move(net) : std::move(first);
}

/// The provider that somebody named. Where there is no `net` its name stands for tcp, which it became in libfabric 1.18,
/// and which was tcp;ofi_rxm before 1.16.
ofi_info_list named(std::string_view wish) {
    ofi_info_list found = usable(wish, false);
    if (found || wish != "net") return found;
    found = usable("tcp", false);
    begin_where(found, [](const fi_info& i) { return std::string_view(i.fabric_attr->prov_name) == "tcp"; });
    return found ? std::move(found) : usable("tcp;ofi_rxm", false);
}

} // namespace

ofi_provider choose_ofi_provider(std::string_view wish, std::string_view address) {
    if (const std::string& why_not = ofi_library::loaded().why_not; !why_not.empty()) throw input_error(why_not);
    constexpr std::string_view without_rma = ",tagged";
    const bool as_if = wish.ends_with(without_rma);
    if (as_if) wish.remove_suffix(without_rma.size());
    if (wish == "net;ofi_rxm") // which nobody needs, because net has such endpoints itself
        throw input_error("libfabric's net;ofi_rxm crashes the survivors when a rank dies; choose net");
    ofi_provider p;
    if (!as_if) p.list = wish.empty() ? first_choice() : named(wish);
    // They have RMA, and remote completion data, but not both: fi_writedata of cxi and of an older opx returns
    // -FI_ENOSYS, and no write of sockets ever arrives.
    for (const std::string_view name : {"cxi", "sockets", "opx"}) {
        if (!p.list || !std::string_view(p.list->fabric_attr->prov_name).starts_with(name)) continue;
        if (name == "opx" && ofi_library::loaded().version() >= FI_VERSION(2, 1)) continue;
        wish = name;
        p.list.reset();
    }
    if (!p.list) {
        p.list = usable(wish, true);
        p.tagged = true;
    }
    if (!p.list) {
        throw input_error("libfabric has no provider " + (wish.empty() ? "" : "'" + std::string(wish) + "' ") +
                          "that can do RMA writes with remote completion data or tagged messages in order on " +
                          "reliable datagrams; it has " + ofi_provider_names() +
                          (wish == "shm" ? "; 'shm' also needs room in /dev/shm" : ""));
    }
    if (goes_over_ip(*p.list)) p.list = at_address(std::move(p.list), p.tagged, std::string(address));
    p.name = std::string(p.list->fabric_attr->prov_name) + (p.tagged ? ",tagged" : "");
    return p;
}

} // namespace halocline::comm
