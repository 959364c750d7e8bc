// SPDX-License-Identifier: Apache-2.0
#include "business_card.hpp"

#include "control/descriptor.hpp"
#include "control/random_value.hpp"
#include "control/wire_format.hpp"
#include "environment.hpp"
#include "layout_number.hpp"
#include "node/node_slab.hpp"

#include <halocline/base/error.hpp>
#include <halocline/base/version.h>
#include <halocline/comm/processors.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <limits>
#include <sys/resource.h>
#include <unistd.h>

namespace halocline::comm {

template <class Self, class Pass>
void business_card::fields(Self& c, Pass& pass) {
    pass(c.version); // first, because the rest may be laid out differently in another version
    pass(c.options, c.kernel, c.network, c.node, c.pids, c.host, c.socket_name, c.secret, c.trouble);
    pass(c.address_room, c.descriptor_room, c.pid);
    pass(counted<std::uint32_t>(c.share.processors, [](auto& p, auto& one) { p(sent_as<std::uint16_t>(one)); }));
    pass(c.share.threads);
    pass(counted<std::uint32_t>(c.share.quotas, [](auto& p, auto& quota) { p(quota.group, quota.processors); }));
    pass(up_to_end(c.addresses));
}

namespace {

std::string first_line(const char* path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

/// Without /proc at least hosts of other names differ.
std::string kernel_id() {
    const std::string boot = first_line("/proc/sys/kernel/random/boot_id");
    return boot.empty() ? "of host " + host_name() : boot;
}

/// `link`: e.g. "/proc/self/ns/net".
std::string namespace_id(const char* link) {
    char ns[128]{};
    if (readlink(link, ns, sizeof ns - 1) < 0) ns[0] = '?';
    return kernel_id() + " " + ns;
}

std::uint64_t address_room() {
    rlimit space{};
    if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY)
        return std::numeric_limits<std::uint64_t>::max();
    std::uint64_t pages = 0; // mapped
    std::ifstream("/proc/self/statm") >> pages;
    const std::uint64_t mapped = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return space.rlim_cur > mapped ? space.rlim_cur - mapped : 0;
}

std::string random_secret() {
    const auto bytes = random_value<std::array<char, 32>>();
    return {bytes.begin(), bytes.end()};
}

std::string options_text(const job_options& o) {
    std::string s = "transports";
    for (const std::string& t : o.transports) s += " " + t;
    return s + ", deadline " + std::to_string(o.deadline.count()) + " ms, slab " +
           std::to_string(o.slab_bytes == 0 ? node_slab::default_bytes : o.slab_bytes) + " bytes" + ", link timeout " +
           std::to_string(o.link_timeout.count()) + " ms" + ", path " + std::string(to_string(o.path)) +
           (o.ofi_provider.empty() ? "" : ", ofi provider " + o.ofi_provider) + ", mpi " +
           std::string(to_string(o.mpi)) + (o.checksums ? ", checksums" : "");
}

[[noreturn]] void disagree(const char* what, const std::string& of_0, int rank, const std::string& theirs,
                           const char* remedy) {
    throw input_error("ranks disagree on " + std::string(what) + ": rank 0 has '" + of_0 + "', rank " +
                      std::to_string(rank) + " has '" + theirs + "'; " + remedy);
}

/// Every build's cards begin with this mark and layout_number, whatever follows.
constexpr std::array<char, 4> card_mark{'h', 'l', 'c', 'd'};

std::string layout_of(std::string_view card) {
    constexpr std::size_t number_at = sizeof card_mark;
    std::uint32_t number = 0;
    if (card.size() < number_at + sizeof number || std::memcmp(card.data(), card_mark.data(), sizeof card_mark) != 0)
        return "none, as builds before these numbers";
    std::memcpy(&number, card.data() + number_at, sizeof number);
    return std::to_string(number);
}

std::string written(const business_card& c) {
    wire_writer w;
    w.number(card_mark).number(layout_number);
    write_fields(w, c);
    return w.take();
}

/// A reader of what follows mark and number.  Err: input_error unless they equal rank 0's.
wire_reader open_card(std::string_view bytes, int rank, std::string_view card_of_0) {
    if (layout_of(bytes) != layout_of(card_of_0))
        disagree("the number of their layouts", layout_of(card_of_0), rank, layout_of(bytes),
                 "link the programs of all ranks with halocline of the same sources");
    return wire_reader(bytes.substr(std::min(bytes.size(), sizeof card_mark + sizeof layout_number)));
}

/// Err: input_error if rank 0 has another layout or version: the rest might be laid out differently.
business_card read_card(std::string_view bytes, int rank, std::string_view card_of_0) {
    const std::string version = open_card(bytes, rank, card_of_0).text();
    const std::string version_of_0 = open_card(card_of_0, 0, card_of_0).text();
    if (version != version_of_0)
        disagree("the version of halocline", version_of_0, rank, version,
                 "link the programs of all ranks with one of them");
    wire_reader r = open_card(bytes, rank, card_of_0);
    return read_fields<business_card>(r);
}

/// Err: input_error, the same on every rank, if one is in trouble.
void refuse_trouble(const std::vector<business_card>& cards) {
    const auto troubled = std::ranges::find_if(cards, [](const business_card& c) { return !c.trouble.empty(); });
    if (troubled == cards.end()) return;
    const bool all = std::ranges::all_of(cards, [&](const business_card& c) { return c.trouble == troubled->trouble; });
    throw input_error((all ? "" : "rank " + std::to_string(troubled - cards.begin()) + " on " + troubled->host + ": ") +
                      troubled->trouble);
}

} // namespace

business_card own_card(const bootstrap& start, const job_options& options, const std::string& socket_name,
                       const std::string& trouble) {
    const std::string network = namespace_id("/proc/self/ns/net");
    const std::string part = environment_text("HALOCLINE_NODE");
    return {.version = HALOCLINE_VERSION,
            .options = options_text(options),
            .kernel = kernel_id(),
            .network = network,
            .node = network + " " + part,
            .pids = namespace_id("/proc/self/ns/pid"),
            .host = host_name() + (part.empty() ? "" : "/" + part),
            .socket_name = socket_name,
            .secret = start.rank == 0 ? random_secret() : "",
            .trouble = trouble,
            .address_room = address_room(),
            .descriptor_room = descriptor_room(),
            .pid = static_cast<int>(getpid()),
            .share = {usable_processors(), processor_quotas(), threads_per_rank()},
            .addresses = host_addresses()};
}

std::vector<business_card> swap_cards(const bootstrap& start, const business_card& mine) {
    std::vector<business_card> cards;
    const std::vector<std::string> parts = start.gather(written(mine));
    for (int r = 0; r < start.ranks; ++r) cards.push_back(read_card(parts[r], r, parts[0]));
    refuse_trouble(cards); // first, because a rank with bad input has no options
    for (int r = 0; r < start.ranks; ++r) {
        if (cards[r].options != cards[0].options)
            disagree(
                "the options of the job", cards[0].options, r, cards[r].options,
                "give every rank the same, in the program, in the file of $HALOCLINE_CONFIG (has every host the same "
                "one?) and in HALOCLINE_COMM_... and HALOCLINE_FAULTS_...");
    }
    return cards;
}

} // namespace halocline::comm
