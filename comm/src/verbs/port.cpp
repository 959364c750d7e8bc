// SPDX-License-Identifier: Apache-2.0
#include "port.hpp"

#include "locked_memory.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

namespace halocline::comm {
namespace {

struct device_list {
    const verbs_library& lib;
    int count = 0; // declared before what fills it
    ibv_device** devices;

    explicit device_list(const verbs_library& l) : lib(l), devices(l.get_device_list(&count)) {}
    ~device_list() {
        if (devices != nullptr) lib.free_device_list(devices);
    }
    device_list(const device_list&) = delete;
    device_list& operator=(const device_list&) = delete;
};

std::optional<ibv_port_attr> query(const verbs_library& lib, ibv_context* context, int port) {
    ibv_port_attr attributes{};
    // The function of that name fills the older, shorter structure, which is the beginning of this one.
    const int code =
        lib.query_port(context, static_cast<std::uint8_t>(port), reinterpret_cast<_compat_ibv_port_attr*>(&attributes));
    return code == 0 ? std::optional(attributes) : std::nullopt;
}

std::string kind_of(std::uint8_t link_layer) { return link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand"; }

/// The device's ports: "port 1 active, RoCE, port 2 down, RoCE".
std::string state_of(const verbs_library& lib, ibv_device* device) {
    ibv_context* const context = lib.open_device(device);
    if (context == nullptr) return std::string("can't be opened: ") + std::strerror(errno);
    std::string text;
    for (int port = 1;; ++port) {
        const auto attributes = query(lib, context, port);
        if (!attributes) break;
        text += (port > 1 ? ", port " : "port ") + std::to_string(port) +
                (attributes->state == IBV_PORT_ACTIVE ? " active, " : " down, ") + kind_of(attributes->link_layer);
    }
    lib.close_device(context);
    return text.empty() ? "no port" : text;
}

/// iWARP has no writes with immediate data, and connects in another way; EFA and usNIC have no such queue pairs.
bool has_reliable_connections(const ibv_device* device) { return device->transport_type == IBV_TRANSPORT_IB; }

std::string text_of(const union ibv_gid& gid) {
    char text[INET6_ADDRSTRLEN]{};
    inet_ntop(AF_INET6, gid.raw, text, sizeof text);
    return text;
}

bool is_empty(const union ibv_gid& gid) {
    return std::all_of(std::begin(gid.raw), std::end(gid.raw), [](std::uint8_t b) { return b == 0; });
}

bool is_ipv4(const union ibv_gid& gid) {
    constexpr std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::equal(mapped.begin(), mapped.end(), gid.raw);
}

std::string text_of(const verbs_address& a) {
    if (!a.global) return "LID " + std::to_string(a.lid);
    constexpr std::size_t mapped = std::string_view("::ffff:").size();
    return is_ipv4(a.gid) ? text_of(a.gid).substr(mapped) : text_of(a.gid);
}

struct mtu_size {
    int bytes;
    ibv_mtu value;
};
constexpr std::array mtu_sizes{mtu_size{256, IBV_MTU_256}, mtu_size{512, IBV_MTU_512}, mtu_size{1024, IBV_MTU_1024},
                               mtu_size{2048, IBV_MTU_2048}, mtu_size{4096, IBV_MTU_4096}};

/// Pages that a device writes must stay with the parent of a fork(). Kernels since 5.12 give the child copies. On older
/// ones ibv_fork_init withholds such pages from the child, which dies if it touches them; it must be called before
/// anybody registers memory.
void keep_memory_at_fork(const verbs_library& lib) {
    constexpr int unneeded = 2; // IBV_FORK_UNNEEDED, which older headers lack
    if (lib.is_fork_initialized != nullptr && lib.is_fork_initialized() == unneeded) return;
    const int code = lib.fork_init();
    if (code == 0) return;
    throw job_error(
        "verbs: registered memory would not outlive a fork() (ibv_fork_init): " + std::string(std::strerror(code)) +
        "; set IBV_FORK_SAFE=1 in the environment of the job, or use a kernel of 5.12 or newer");
}

} // namespace

std::string device_names(const verbs_library& lib) {
    const device_list list(lib);
    std::string names;
    for (int i = 0; i < list.count; ++i) {
        names += (i > 0 ? ", " : "") + std::string(lib.get_device_name(list.devices[i])) + " (" +
                 (has_reliable_connections(list.devices[i]) ? "" : "neither InfiniBand nor RoCE: ") +
                 state_of(lib, list.devices[i]) + ")";
    }
    return names.empty() ? "none" : names;
}

verbs_retries::verbs_retries(std::chrono::milliseconds link_timeout) {
    constexpr std::uint8_t most = 31;
    while (exponent < most && 2 * tries * each() <= link_timeout) ++exponent;
}

verbs_world::port::port(const verbs_options& choices, std::chrono::milliseconds link_timeout,
                        const verbs_library& functions)
    : lib(functions), options(choices), retries(link_timeout) {
    if (!lib.why_not.empty()) throw input_error(lib.why_not);
    keep_memory_at_fork(lib);

    const device_list list(lib);
    std::optional<ibv_port_attr> attributes;
    for (int i = 0; i < list.count && context == nullptr; ++i) {
        const std::string device_name = lib.get_device_name(list.devices[i]);
        if (!options.device.empty() && device_name != options.device) continue;
        if (!has_reliable_connections(list.devices[i])) continue;
        context = lib.open_device(list.devices[i]);
        if (context == nullptr) continue;
        attributes = query(lib, context, options.port);
        if (!attributes || attributes->state != IBV_PORT_ACTIVE) {
            lib.close_device(context);
            context = nullptr;
            continue;
        }
        name = device_name + " port " + std::to_string(options.port);
    }
    if (context == nullptr) {
        throw input_error("no RDMA device " + (options.device.empty() ? "" : "'" + options.device + "' ") +
                          "with an active port " + std::to_string(options.port) +
                          " (verbs_device, verbs_port); there is: " + device_names(lib));
    }
    try {
        if (lib.query_device(context, &device) != 0) throw job_error(name + ": ibv_query_device failed");
        address.lid = attributes->lid;
        address.link_layer = attributes->link_layer;
        largest_write = attributes->max_msg_sz;
        if (options.largest_write > 0) largest_write = std::min(largest_write, options.largest_write);
        choose_gid(*attributes);
        choose_mtu(*attributes);
        domain = lib.alloc_pd(context);
        if (domain == nullptr) throw job_error(name + ": ibv_alloc_pd: " + std::strerror(errno));
        try_to_lock_memory();
    } catch (...) {
        if (domain != nullptr) lib.dealloc_pd(domain);
        lib.close_device(context);
        throw;
    }
}

verbs_world::port::~port() {
    caches.clear_all([this](verbs_registration& r) { lib.dereg_mr(r.region); });
    lib.dealloc_pd(domain);
    lib.close_device(context);
}

/// Here a failure is a reason to take another transport; in the first plan it would end the job.
void verbs_world::port::try_to_lock_memory() {
    constexpr std::size_t entries = 128, bytes = 512 << 10; // for a small plan: less is of no use
    lib.destroy_cq(make_queue(entries, "on trial"));
    std::vector<std::byte> memory(bytes);
    lib.dereg_mr(register_for_peers(memory, "on trial"));
}

ibv_mr* verbs_world::port::register_for_peers(std::span<std::byte> memory, const std::string& what_for) {
    constexpr int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    ibv_mr* const region = with_room([&] { return lib.reg_mr(domain, memory.data(), memory.size(), access); });
    if (region != nullptr) return region;
    const int why = errno;
    throw job_error("verbs (" + name + "): registering " + std::to_string(memory.size()) + " bytes " + what_for +
                    " (ibv_reg_mr): " + std::strerror(why) + memlock_advice_if(why));
}

ibv_cq* verbs_world::port::make_queue(std::size_t entries, const std::string& what_for) {
    ibv_cq* const queue =
        with_room([&] { return lib.create_cq(context, static_cast<int>(entries), nullptr, nullptr, 0); });
    if (queue != nullptr) return queue;
    const int why = errno;
    throw job_error("verbs (" + name + "): a queue of " + std::to_string(entries) + " completions " + what_for +
                    " (ibv_create_cq): " + std::strerror(why) + memlock_advice_if(why));
}

std::string verbs_world::port::explain(int code, const char* failed_call, std::uint32_t vendor_error, int peer) const {
    const std::string where = "verbs (" + name + "): ";
    if (failed_call != nullptr) return where + failed_call + ": " + std::strerror(-code);
    const auto status = static_cast<ibv_wc_status>(code);
    std::string advice;
    if (status == IBV_WC_RETRY_EXC_ERR) {
        const auto each = std::chrono::duration_cast<std::chrono::milliseconds>(retries.each());
        advice = "; none of " + std::to_string(verbs_retries::tries) + " tries of " + std::to_string(each.count()) +
                 " ms was acknowledged (link_timeout_ms): the link is cut, or the process there is gone";
    } else if (status == IBV_WC_RNR_RETRY_EXC_ERR) {
        advice =
            "; the link is well, but no receive is ready there: the process is stopped, or computes for longer than "
            "this device waits";
    }
    return where + lib.wc_status_str(status) + " from " + text_of(address) + " to " +
           text_of(peers.at(static_cast<std::size_t>(peer))) + " (vendor error " + std::to_string(vendor_error) + ")" +
           advice;
}

void verbs_world::port::choose_gid(const ibv_port_attr& attributes) {
    const bool roce = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
    address.global = roce || options.gid_index >= 0;
    if (!address.global) return;
    // RoCE v2 over IPv4 first, because it is routed and its address is configured. Then any v2, then anything else.
    const auto rank_of = [](const ibv_gid_entry& e) {
        return (e.gid_type == IBV_GID_TYPE_ROCE_V2 ? 2 : 0) + (is_ipv4(e.gid) ? 1 : 0);
    };
    std::string filled;
    std::optional<ibv_gid_entry> best;
    for (int i = 0; i < attributes.gid_tbl_len; ++i) {
        ibv_gid_entry entry{};
        const auto index = static_cast<std::uint32_t>(i);
        const auto port_number = static_cast<std::uint32_t>(options.port);
        if (lib.query_gid_ex(context, port_number, index, &entry, 0, sizeof entry) != 0 || is_empty(entry.gid))
            continue;
        filled += (filled.empty() ? "" : ", ") + std::to_string(i) + " (" + text_of(entry.gid) + ")";
        if (options.gid_index == i) best = entry;
        if (options.gid_index < 0 && (!best || rank_of(entry) > rank_of(*best))) best = entry;
    }
    if (!best) {
        throw input_error(
            name + ": " +
            (options.gid_index < 0 ? "no GID is set" : "GID index " + std::to_string(options.gid_index) + " is empty") +
            " (verbs_gid_index); set are: " + (filled.empty() ? "none" : filled));
    }
    gid_index = static_cast<int>(best->gid_index);
    address.gid = best->gid;
}

void verbs_world::port::choose_mtu(const ibv_port_attr& attributes) {
    address.mtu = attributes.active_mtu;
    if (options.mtu == 0) return;
    const auto wanted =
        std::find_if(mtu_sizes.begin(), mtu_sizes.end(), [&](const mtu_size& m) { return m.bytes == options.mtu; });
    const auto active = std::find_if(mtu_sizes.begin(), mtu_sizes.end(),
                                     [&](const mtu_size& m) { return m.value == attributes.active_mtu; });
    if (wanted == mtu_sizes.end() || wanted > active) {
        throw input_error(name + ": an MTU of " + std::to_string(options.mtu) +
                          " (verbs_mtu) is not one of 256, 512, 1024, 2048, 4096 up to " +
                          std::to_string(active == mtu_sizes.end() ? 0 : active->bytes) + ", the port's own");
    }
    address.mtu = wanted->value;
}

} // namespace halocline::comm
