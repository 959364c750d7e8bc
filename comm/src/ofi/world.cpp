// SPDX-License-Identifier: Apache-2.0
#include "ofi_world.hpp"

#include "registration.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/clock.hpp>
#include <halocline/comm/job.hpp>

#include <algorithm>
#include <array>
#include <arpa/inet.h>
#include <cstring>
#include <dlfcn.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <utility>

namespace halocline::comm {
namespace {

constexpr std::uint32_t version = FI_VERSION(1, 9); // of the interface that is asked for

// The 32 bits that come with a write: which end, and what it is.
constexpr std::uint32_t tag_bits = 2, tag_mask = 3;
constexpr std::uint32_t message_tag = 0; // and 1: the slot
constexpr std::uint32_t greeting_tag = 2, farewell_tag = 3;
/// Of a tagged message, where the provider has no RMA: the same, and which piece it is.
constexpr std::uint64_t match_bits(std::uint32_t data, std::uint32_t piece) {
    return std::uint64_t{piece} << 32 | data;
}
constexpr std::uint32_t most_ends = std::uint32_t{1} << (32 - tag_bits);

/// The few functions of libfabric that are not inline calls through its objects.
struct library {
    decltype(&::fi_getinfo) getinfo = nullptr;
    decltype(&::fi_freeinfo) freeinfo = nullptr;
    decltype(&::fi_dupinfo) dupinfo = nullptr;
    decltype(&::fi_fabric) fabric = nullptr;
    decltype(&::fi_strerror) strerror = nullptr;
    decltype(&::fi_version) version = nullptr;
    std::string why_not;

    library() {
        void* handle = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr) {
            why_not = std::string("libfabric can't be loaded: ") + dlerror();
            return;
        }
        const auto find = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
            if (function == nullptr && why_not.empty()) why_not = std::string("libfabric.so.1 has no ") + name;
        };
        find(getinfo, "fi_getinfo");
        find(freeinfo, "fi_freeinfo");
        find(dupinfo, "fi_dupinfo");
        find(fabric, "fi_fabric");
        find(strerror, "fi_strerror");
        find(version, "fi_version");
    }
};

/// Loaded at the first use and never unloaded: providers leave threads and handlers behind.
const library& lib() {
    static const library l;
    return l;
}

struct info_deleter {
    void operator()(fi_info* i) const { lib().freeinfo(i); }
};
using info_list = std::unique_ptr<fi_info, info_deleter>;

/// What is asked for: reliable datagrams, RMA writes with 4 bytes of remote completion data or, `tagged`, tagged
/// messages. Local buffers are registered, contexts are given, polling makes progress, so whatever of that a provider
/// wants is there.
info_list wanted(std::string_view provider, bool tagged) {
    info_list hints(lib().dupinfo(nullptr));
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
    if (!provider.empty()) hints->fabric_attr->prov_name = strndup(provider.data(), provider.size());
    return hints;
}

/// `source`: IP address of this host to send from and be reached at; "" for all that each provider lists.
info_list usable(std::string_view provider, bool tagged, const std::string& source = "") {
    const info_list hints = wanted(provider, tagged);
    fi_info* found = nullptr;
    const int code = lib().getinfo(version, source.empty() ? nullptr : source.c_str(), nullptr,
                                   source.empty() ? 0 : FI_SOURCE | FI_NUMERICHOST, hints.get(), &found);
    if (code != 0 && code != -FI_ENODATA)
        throw job_error(std::string("libfabric: fi_getinfo: ") + lib().strerror(-code));
    return info_list(found);
}

std::string provider_names() {
    std::string names;
    for (const bool tagged : {false, true}) {
        const info_list all = usable("", tagged);
        for (const fi_info* i = all.get(); i != nullptr; i = i->next) {
            const std::string name = i->fabric_attr->prov_name;
            if ((", " + names + ",").find(", " + name + ",") == std::string::npos)
                names += (names.empty() ? "" : ", ") + name;
        }
    }
    return names.empty() ? "none" : names;
}

bool goes_over_ip(const fi_info& i) {
    return i.addr_format == FI_SOCKADDR || i.addr_format == FI_SOCKADDR_IN || i.addr_format == FI_SOCKADDR_IN6;
}

/// "10.1.0.7"; "" if the provider doesn't go over IP.
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

/// What the first provider of the list offers at that address of this host.  A provider lists an interface once the
/// kernel calls it running, up to a second after its address works: hence asked for by address, not looked up.
/// Err: input_error if it can't be reached there; at loopback, where one host talks to itself, any address will do.
info_list at_address(info_list all, bool tagged, const std::string& address) {
    const std::string provider = all->fabric_attr->prov_name;
    info_list there = usable(provider, tagged, address);
    for (; there && source_address(*there) != address; there.reset(std::exchange(there->next, nullptr))) {
    }
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

constexpr std::size_t round_up(std::size_t n) { return (n + 63) / 64 * 64; }

template <class T>
void close_object(T*& object) noexcept {
    if (object != nullptr) fi_close(&object->fid);
    object = nullptr;
}

} // namespace

bool ofi_is_built() { return true; }

std::string ofi_present() {
    if (!lib().why_not.empty()) return "built in, but " + lib().why_not;
    const std::uint32_t v = lib().version();
    return "libfabric " + std::to_string(FI_MAJOR(v)) + "." + std::to_string(FI_MINOR(v)) + " with " + provider_names();
}

struct ofi_world::endpoint {
    info_list list;
    const fi_info* info = nullptr; // the one in use
    std::string provider;
    fid_fabric* fabric = nullptr;
    fid_domain* domain = nullptr;
    fid_av* addresses = nullptr;
    fid_cq* completions = nullptr;
    fid_ep* ep = nullptr;
    std::vector<fi_addr_t> peers; // by rank
    std::size_t largest_write = 0;
    bool tagged = false; // messages, for want of RMA
    int error = 0;       // of the endpoint itself

    void require(long code, const char* call) const {
        if (code < 0) {
            throw job_error("libfabric (" + provider + "): " + call + ": " + lib().strerror(static_cast<int>(-code)));
        }
    }
    ~endpoint() {
        // The endpoint first: nothing is written to this rank's memory after that.
        close_object(ep);
        close_object(completions);
        close_object(addresses);
        close_object(domain);
        close_object(fabric);
    }
};

ofi_world::ofi_world(std::string_view provider, std::string_view address, std::size_t largest_write)
    : at_(std::make_unique<endpoint>()) {
    if (!lib().why_not.empty()) throw input_error(lib().why_not);
    endpoint& e = *at_;
    constexpr std::string_view without_rma = ",tagged";
    const bool as_if = provider.ends_with(without_rma);
    if (as_if) provider.remove_suffix(without_rma.size());
    if (!as_if) e.list = usable(provider, false);
    if (!e.list) {
        e.list = usable(provider, true);
        e.tagged = true;
    }
    if (!e.list) {
        throw input_error("libfabric has no provider '" + std::string(provider) +
                          "' that can do RMA writes with remote completion data or tagged messages on reliable " +
                          "datagrams; it has " + provider_names());
    }
    if (goes_over_ip(*e.list)) e.list = at_address(std::move(e.list), e.tagged, std::string(address));
    e.info = e.list.get();
    e.provider = std::string(e.info->fabric_attr->prov_name) + (e.tagged ? ",tagged" : "");
    e.largest_write = std::min(e.info->ep_attr->max_msg_size, largest_write);

    e.require(lib().fabric(e.info->fabric_attr, &e.fabric, nullptr), "fi_fabric");
    auto* const info = const_cast<fi_info*>(e.info); // libfabric's calls take it so and leave it alone
    e.require(fi_domain(e.fabric, info, &e.domain, nullptr), "fi_domain");
    fi_av_attr av{};
    av.type = e.info->domain_attr->av_type;
    e.require(fi_av_open(e.domain, &av, &e.addresses, nullptr), "fi_av_open");
    fi_cq_attr cq{};
    cq.format = FI_CQ_FORMAT_DATA;
    cq.wait_obj = FI_WAIT_NONE;
    cq.size = std::max<std::size_t>(4096, e.info->tx_attr->size + e.info->rx_attr->size);
    e.require(fi_cq_open(e.domain, &cq, &e.completions, nullptr), "fi_cq_open");
    e.require(fi_endpoint(e.domain, info, &e.ep, nullptr), "fi_endpoint");
    e.require(fi_ep_bind(e.ep, &e.addresses->fid, 0), "fi_ep_bind of the addresses");
    e.require(fi_ep_bind(e.ep, &e.completions->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind of the completions");
    e.require(fi_enable(e.ep), "fi_enable");
}

ofi_world::~ofi_world() {
    // Regions must go before the domain, but not before the endpoint stops writing into them.
    close_object(at_->ep);
    for (auto& end : ends_) {
        if (end) close_end(*end);
    }
}

const std::string& ofi_world::kind() const { return at_->provider; }

std::string ofi_world::address() const {
    std::string name(64, '\0');
    std::size_t bytes = name.size();
    int code = fi_getname(&at_->ep->fid, name.data(), &bytes);
    if (code == -FI_ETOOSMALL) {
        name.resize(bytes);
        code = fi_getname(&at_->ep->fid, name.data(), &bytes);
    }
    at_->require(code, "fi_getname");
    name.resize(bytes);
    return name;
}

void ofi_world::connect(std::span<const std::string> addresses, int own_rank) {
    at_->peers.assign(addresses.size(), FI_ADDR_UNSPEC);
    for (std::size_t r = 0; r < addresses.size(); ++r) {
        if (static_cast<int>(r) == own_rank) continue;
        const int inserted = fi_av_insert(at_->addresses, addresses[r].data(), 1, &at_->peers[r], 0, nullptr);
        at_->require(inserted, "fi_av_insert");
        if (inserted != 1)
            throw job_error("libfabric (" + at_->provider + ") refuses the address of rank " + std::to_string(r));
    }
}

ofi_end& ofi_world::open(std::pmr::memory_resource& memory, int peer, std::size_t send_bytes,
                         std::size_t receive_bytes) {
    sweep();
    auto end = std::make_unique<ofi_end>();
    ofi_end& e = *end;
    e.memory = &memory;
    e.peer = peer;
    e.message_bytes = sizeof(message_header) + send_bytes;
    const auto pieces = [&](std::size_t payload) {
        return static_cast<std::uint32_t>((sizeof(message_header) + payload - 1) / at_->largest_write + 1);
    };
    e.pieces_in = pieces(receive_bytes);
    e.pieces_out = e.next_piece = pieces(send_bytes);
    e.receive_stride = round_up(sizeof(message_header) + receive_bytes);
    e.send_stride = round_up(e.message_bytes);
    e.block_bytes = 2 * sizeof(ofi_letters) + 2 * e.receive_stride + e.send_stride;
    e.operations.resize(e.pieces_out + 2);
    for (ofi_operation& o : e.operations) o.end = &e;
    e.tagged = at_->tagged;
    if (e.tagged) {
        e.receives.resize(2 * std::size_t{e.pieces_in} + 2);
        for (std::size_t i = 0; i < e.receives.size(); ++i) {
            const std::size_t letter = i - std::min<std::size_t>(i, 2 * std::size_t{e.pieces_in} - 1);
            e.receives[i].end = &e;
            e.receives[i].receives = true;
            e.receives[i].tag = letter == 1   ? greeting_tag
                                : letter == 2 ? farewell_tag
                                              : message_tag + static_cast<std::uint32_t>(i / e.pieces_in);
        }
    }
    e.next_receive[0] = e.pieces_in;
    e.next_receive[1] = e.tagged ? 0 : e.pieces_in; // of epoch 1

    if (free_ids_.empty()) {
        if (ends_.size() >= most_ends)
            throw job_error("libfabric: " + std::to_string(ends_.size()) +
                            " channels are open, no more can be told apart");
        e.id = static_cast<std::uint32_t>(ends_.size());
        ends_.emplace_back();
        // So that the data path never allocates.
        free_ids_.reserve(ends_.capacity());
        waiting_.reserve(ends_.capacity());
    } else {
        e.id = free_ids_.back();
        free_ids_.pop_back();
    }
    try {
        e.block = static_cast<std::byte*>(memory.allocate(e.block_bytes, alignof(message_header)));
        new (e.block) ofi_letters;
        new (&e.letters_out()) ofi_letters;
        for (std::byte* message : {e.slots(), e.slots() + e.receive_stride, e.send_buffer()})
            new (message) message_header;
        const ofi_registration r = register_memory(at_->domain, at_->ep, at_->info->domain_attr->mr_mode,
                                                   at_->tagged ? FI_SEND | FI_RECV : FI_WRITE | FI_REMOTE_WRITE,
                                                   e.block, e.block_bytes, e.id + 1);
        at_->require(r.error, r.call);
        e.region = r.region;
        e.descriptor = r.descriptor;
        e.key = r.key;
        e.base = r.base;
    } catch (...) {
        if (e.block != nullptr) memory.deallocate(e.block, e.block_bytes, alignof(message_header));
        free_ids_.push_back(e.id);
        throw;
    }
    e.error = at_->error;
    ends_[e.id] = std::move(end);
    return e;
}

int ofi_world::write(ofi_end& e, const std::byte* from, std::size_t bytes, std::uint64_t remote_offset,
                     std::uint32_t tag, std::uint32_t piece, ofi_operation& operation) noexcept {
    const std::uint32_t data = e.peer_id << tag_bits | tag;
    const ssize_t code =
        e.tagged ? fi_tsend(at_->ep, from, bytes, e.descriptor, at_->peers[e.peer], match_bits(data, piece), &operation)
                 : fi_writedata(at_->ep, from, bytes, e.descriptor, data, at_->peers[e.peer],
                                e.peer_base + remote_offset, e.peer_key, &operation);
    if (code == 0) {
        ++e.under_way;
        ++e.writes;
    }
    return static_cast<int>(code);
}

/// One message at a time for a slot, and the letters: in place of what a peer's writes would fill.
int ofi_world::post_receives(ofi_end& e) noexcept {
    const auto post = [&](std::size_t offset, std::size_t bytes, std::uint32_t piece, ofi_operation& operation) {
        const std::uint64_t bits = match_bits(e.id << tag_bits | operation.tag, piece);
        const ssize_t code =
            fi_trecv(at_->ep, e.block + offset, bytes, e.descriptor, at_->peers[e.peer], bits, 0, &operation);
        if (code == 0) ++e.receives_posted;
        return static_cast<int>(code);
    };
    ofi_operation* const letters = e.receives.data() + 2 * std::size_t{e.pieces_in};
    for (; e.letters_posted < 2; ++e.letters_posted) {
        const std::size_t offset =
            e.letters_posted == 0 ? offsetof(ofi_letters, greeting) : offsetof(ofi_letters, messages_sent);
        if (const int code = post(offset, 8, 0, letters[e.letters_posted]); code != 0) return code;
    }
    for (std::uint32_t slot = 0; slot < 2; ++slot) {
        for (std::uint32_t& n = e.next_receive[slot]; n < e.pieces_in; ++n) {
            const std::size_t start = n * at_->largest_write;
            const int code = post(sizeof(ofi_letters) + slot * e.receive_stride + start,
                                  std::min(at_->largest_write, e.receive_stride - start), n,
                                  e.receives[slot * std::size_t{e.pieces_in} + n]);
            if (code != 0) return code;
        }
    }
    return 0;
}

int ofi_world::push_all(ofi_end& e) noexcept {
    if (e.tagged) {
        if (const int code = post_receives(e); code != 0) return code;
    }
    const std::byte* const letters = reinterpret_cast<const std::byte*>(&e.letters_out());
    if (e.greeting_due) {
        const int code = write(e, letters + offsetof(ofi_letters, greeting), 8, offsetof(ofi_letters, greeting),
                               greeting_tag, 0, e.operations[e.pieces_out]);
        if (code != 0) return code;
        e.greeting_due = false;
    }
    for (; e.next_piece < e.pieces_out; ++e.next_piece) {
        const std::size_t start = e.next_piece * at_->largest_write;
        // A message of fewer bytes has all its pieces, which the peer counts; some hold a byte of nothing.
        const std::size_t bytes = start < e.now_bytes ? std::min(at_->largest_write, e.now_bytes - start) : 1;
        const auto slot = static_cast<std::uint32_t>(e.epoch & 1);
        // The peer's slots are as large as what this end sends.
        const int code = write(e, e.send_buffer() + start, bytes, sizeof(ofi_letters) + slot * e.send_stride + start,
                               message_tag + slot, e.next_piece, e.operations[e.next_piece]);
        if (code != 0) return code;
    }
    if (e.farewell_due) {
        const int code = write(e, letters + offsetof(ofi_letters, messages_sent), 8,
                               offsetof(ofi_letters, messages_sent), farewell_tag, 0, e.operations[e.pieces_out + 1]);
        if (code != 0) return code;
        e.farewell_due = false;
    }
    return 0;
}

void ofi_world::push(ofi_end& e) noexcept {
    if (e.waiting || e.error) return;
    const int code = push_all(e);
    if (code == -FI_EAGAIN) {
        e.waiting = true;
        waiting_.push_back(&e);
    } else if (code != 0) {
        fail(&e, code, nullptr);
    }
}

void ofi_world::poll() noexcept {
    fi_cq_data_entry entries[16];
    constexpr ssize_t most = 16;
    for (int round = 0; round < 4; ++round) {
        const ssize_t n = fi_cq_read(at_->completions, entries, most);
        for (ssize_t i = 0; i < n; ++i) {
            if (entries[i].flags & FI_REMOTE_CQ_DATA) {
                arrive(entries[i].data);
            } else if (const auto* done = static_cast<const ofi_operation*>(entries[i].op_context)) {
                if (done->receives) {
                    --done->end->receives_posted;
                    arrive(*done->end, done->tag);
                } else {
                    --done->end->under_way;
                }
            }
        }
        if (n == -FI_EAVAIL) {
            fi_cq_err_entry why{};
            if (fi_cq_readerr(at_->completions, &why, 0) != 1) break;
            char text[128]{};
            const char* said = fi_cq_strerror(at_->completions, why.prov_errno, why.err_data, text, sizeof text);
            auto* operation = static_cast<ofi_operation*>(why.op_context);
            if (operation != nullptr && operation->receives) {
                --operation->end->receives_posted;
                if (why.err != FI_ECANCELED) fail(operation->end, -why.err, said);
            } else if (operation != nullptr && (why.flags & FI_REMOTE_CQ_DATA) == 0) {
                --operation->end->under_way;
                fail(operation->end, -why.err, said);
            } else {
                fail(nullptr, -why.err, said);
            }
        } else if (n < 0 && n != -FI_EAGAIN) {
            fail(nullptr, static_cast<int>(n), nullptr);
            break;
        } else if (n < most) {
            break;
        }
    }
    // Those that wait for room, the first first; what finds none now keeps its turn.
    std::size_t kept = 0;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
        ofi_end& e = *waiting_[i];
        const int code = e.error ? 0 : push_all(e);
        e.waiting = code == -FI_EAGAIN;
        if (e.waiting) {
            waiting_[kept++] = &e;
        } else if (code != 0) {
            fail(&e, code, nullptr);
        }
    }
    waiting_.resize(kept);
}

void ofi_world::arrive(std::uint64_t data) noexcept {
    const auto bits = static_cast<std::uint32_t>(data);
    const std::uint32_t id = bits >> tag_bits, tag = bits & tag_mask;
    if (id >= ends_.size() || !ends_[id]) {
        fail(nullptr, -FI_EOTHER, "a write for a channel that does not exist");
        return;
    }
    arrive(*ends_[id], tag);
}

void ofi_world::arrive(ofi_end& e, std::uint32_t tag) noexcept {
    if (tag == greeting_tag) {
        e.greeted = true;
    } else if (tag == farewell_tag) {
        e.farewell_came = true;
    } else if (++e.pieces[tag] == e.pieces_in) {
        e.pieces[tag] = 0;
        ++e.came[tag];
    }
}

void ofi_world::fail(ofi_end* end, int code, const char* text) noexcept {
    if (code == 0) code = -FI_EOTHER;
    if (trouble_[0] == '\0') {
        std::snprintf(trouble_, sizeof trouble_, "%s%s%s", lib().strerror(-code), text && *text ? ": " : "",
                      text ? text : "");
    }
    if (end != nullptr) {
        end->error = code;
        return;
    }
    at_->error = code;
    for (auto& e : ends_) {
        if (e) e->error = code;
    }
}

std::string ofi_world::describe(int code) const {
    return "libfabric (" + at_->provider + "): " + (trouble_[0] != '\0' ? trouble_ : lib().strerror(-code));
}

void ofi_world::release(ofi_end& e) noexcept { e.released = true; }

void ofi_world::close_end(ofi_end& e) noexcept {
    close_object(e.region);
    e.memory->deallocate(e.block, e.block_bytes, alignof(message_header));
}

void ofi_world::sweep() noexcept {
    for (auto& e : ends_) {
        if (!e || !e->released || e->error || !e->idle() || !e->ended()) continue;
        if (e->receives_posted >
            0) { // for a message that will not come: the memory goes when they have been taken back
            if (!std::exchange(e->cancelled, true)) {
                for (ofi_operation& o : e->receives) fi_cancel(&at_->ep->fid, &o);
            }
            continue;
        }
        close_end(*e);
        free_ids_.push_back(e->id);
        e = nullptr;
    }
}

void ofi_world::finish(const std::function<bool()>& give_up) noexcept {
    constexpr double most = 2; // seconds
    const auto done = [&](const std::unique_ptr<ofi_end>& e) {
        return !e || !e->joined || e->error || (e->idle() && e->ended());
    };
    const std::uint64_t since = ticks();
    while (!std::all_of(ends_.begin(), ends_.end(), done) && seconds(ticks() - since) < most && !give_up()) {
        poll();
        sched_yield();
    }
    // A stream provider may still hold the last bytes of a completed write.
    for (int i = 0; i < 16; ++i) poll();
}

} // namespace halocline::comm
