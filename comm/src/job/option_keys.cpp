// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/option_keys.hpp>

#include "job_core.hpp"
#include "node/node_slab.hpp"

#include <halocline/base/enumerators.hpp>
#include <halocline/comm/transport_names.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

namespace halocline::comm {
namespace {

using config::expected, config::may_differ;
using option_key = config::key<job_options>;

constexpr double gib = 1073741824.0;

struct range {
    int lowest, highest;
};
constexpr range link_timeouts_ms{2000, 3'600'000}, ports{1, 255}, gid_indices{-1, 255}, inline_sizes{0, 4096};

/// Err: input_error.
[[noreturn]] void refuse(const char* member, std::int64_t value, const char* unit, const std::string& right) {
    throw input_error("job_options::" + std::string(member) + " is " + std::to_string(value) + unit + ": " + right +
                      " is expected");
}

void require(range r, const char* member, std::int64_t value, const char* unit = "") {
    if (value < r.lowest || value > r.highest)
        refuse(member, value, unit, std::to_string(r.lowest) + " to " + std::to_string(r.highest));
}

option_key transports_key() {
    return config::allow_array(config::make_key<job_options>(
        {"comm", "transports", "in order of preference; for each peer the first that reaches it: shm, verbs, ofi, mpi"},
        &job_options::transports,
        [](const std::string& text) {
            std::vector<std::string> names = config::read_list(text);
            if (std::ranges::find(names, "mock") != names.end())
                expected("transports that move something, unlike mock");
            return names;
        },
        config::show_list));
}

std::size_t bytes_of(double size) { return static_cast<std::size_t>(size * gib); }

/// The shortest text that denotes this number of bytes, in any locale.
std::string in_gib(std::size_t bytes) {
    std::array<char, 32> text{};
    char* end = text.data();
    for (int digits = 1; digits <= std::numeric_limits<double>::max_digits10; ++digits) {
        end = std::to_chars(text.data(), text.data() + text.size(), static_cast<double>(bytes) / gib,
                            std::chars_format::general, digits)
                  .ptr;
        double shown = 0;
        std::from_chars(text.data(), end, shown);
        if (bytes_of(shown) == bytes) break;
    }
    return {text.data(), end};
}

option_key slab_key() {
    return config::make_key<job_options>(
        {"comm", "slab_gib", "virtual size of each rank's slab (sparse: only what is used takes memory)"},
        &job_options::slab_bytes,
        [](const std::string& text) {
            return bytes_of(config::read_real(text, 1.0 / 64, 65536, "a size in GiB from 0.015625 to 65536"));
        },
        [](std::size_t bytes) { return in_gib(bytes == 0 ? node_slab::default_bytes : bytes); });
}

std::vector<option_key> transport_keys() {
    using config::choice_key, config::integer_key, config::switch_key, config::text_key;
    return {
        transports_key(),
        text_key<job_options>({"comm", "ofi_provider",
                               "provider of libfabric, which must be there; \"\": the first of its list that can do "
                               "RMA writes, but net before tcp;ofi_rxm"},
                              &job_options::ofi_provider),
        choice_key<job_options, mpi_mode>(
            {"comm", "mpi_mode", "how transport mpi moves messages: two-sided or one-sided"}, &job_options::mpi,
            {{"two-sided", mpi_mode::two_sided}, {"one-sided", mpi_mode::one_sided}}),
        config::make_key<job_options>(
            {"comm", "bootstrap", "who starts the job: local, pmix, mpi; \"\": whatever started the program",
             "HALOCLINE_BOOTSTRAP"},
            &job_options::bootstrap,
            [](const std::string& text) {
                if (text != "" && text != "local" && text != "pmix" && text != "mpi") expected("local, pmix or mpi");
                return text;
            },
            std::identity{}, may_differ::between_hosts),
        choice_key<job_options, path>(
            {"comm", "path",
             "how messages get into memory that ranks share: direct (through the cache), streamed (past it), joint "
             "(direct, and receivers that wait copy pieces of faces), packed (ghosts in a field through slots, not in "
             "place), or automatic"},
            &job_options::path,
            {{"automatic", path::automatic},
             {"direct", path::direct},
             {"streamed", path::streamed},
             {"joint", path::joint},
             {"packed", path::packed}}),
        text_key<job_options>(
            {"comm", "network",
             "where ranks of several hosts meet: interface, address, a.b.c.d/n; \"\": the first they share",
             "HALOCLINE_NETWORK"},
            &job_options::network, may_differ::between_hosts),
        slab_key(),
        integer_key<job_options>({"comm", "spin_polls", "polls before a waiting rank yields; 0: by ranks and cores"},
                                 &job_options::spin_polls, 0, 1'000'000'000, may_differ::between_hosts),
        switch_key<job_options>(
            {"comm", "may_sleep", "waits of more than 1 ms sleep between polls: kinder to other jobs, slower to wake"},
            &job_options::may_sleep, may_differ::between_hosts),
    };
}

std::vector<option_key> verbs_keys() {
    using config::integer_key, config::text_key;
    return {
        text_key<job_options>(
            {"comm", "verbs_device", "RDMA device, which must be there; \"\": the first whose port is active"},
            [](auto& o) -> auto& { return o.verbs.device; }, may_differ::between_hosts),
        integer_key<job_options>(
            {"comm", "verbs_port", "port of the RDMA device"}, [](auto& o) -> auto& { return o.verbs.port; },
            ports.lowest, ports.highest, may_differ::between_hosts),
        integer_key<job_options>(
            {"comm", "verbs_gid_index", "GID of the port; -1: RoCE v2 over IPv4 first, none on InfiniBand"},
            [](auto& o) -> auto& { return o.verbs.gid_index; }, gid_indices.lowest, gid_indices.highest,
            may_differ::between_hosts),
        config::make_key<job_options>(
            {"comm", "verbs_mtu", "largest path MTU in bytes, 256 to 4096; 0: what both ports can do"},
            [](auto& o) -> auto& { return o.verbs.mtu; },
            [](const std::string& text) {
                const int mtu = config::read_integer<int>(text, 0, 4096);
                if (mtu != 0 && (mtu < 256 || !std::has_single_bit(static_cast<unsigned>(mtu))))
                    expected("256, 512, 1024, 2048 or 4096, or 0");
                return mtu;
            },
            [](int mtu) { return std::to_string(mtu); }, may_differ::between_hosts),
        integer_key<job_options>(
            {"comm", "verbs_largest_write", "longer messages are several RDMA writes; 0: what the device can do"},
            [](auto& o) -> auto& { return o.verbs.largest_write; }, std::size_t{0},
            std::size_t{std::numeric_limits<int>::max()}, may_differ::between_hosts),
        integer_key<job_options>(
            {"comm", "verbs_inline_bytes", "messages up to this travel in the work request; 0: none"},
            [](auto& o) -> auto& { return o.verbs.inline_bytes; }, inline_sizes.lowest, inline_sizes.highest,
            may_differ::between_hosts),
    };
}

std::vector<option_key> fault_keys() {
    using config::milliseconds_key, config::switch_key;
    return {
        milliseconds_key<job_options>({"faults", "deadline_ms", "longest wait for a peer that is alive"},
                                      &job_options::deadline, 100, longest_deadline.count()),
        milliseconds_key<job_options>({"faults", "link_timeout_ms", "longest silence of the link to another host"},
                                      &job_options::link_timeout, link_timeouts_ms.lowest, link_timeouts_ms.highest),
        switch_key<job_options>(
            {"faults", "checksum", "a checksum behind each message of a halo, compared before its ghosts are read"},
            &job_options::checksums),
    };
}

} // namespace

const std::vector<option_key>& option_keys() {
    static const std::vector<option_key> keys = [] {
        std::vector<option_key> all;
        for (auto part : {transport_keys(), verbs_keys(), fault_keys()})
            std::ranges::move(part, std::back_inserter(all));
        return all;
    }();
    return keys;
}

void require_known_transports(const std::vector<std::string>& names, const std::string& as_given) {
    const std::vector<std::string> known = transport_names();
    for (const std::string& name : names)
        if (std::ranges::find(known, name) == known.end())
            throw config_error("comm.transports",
                               as_given + ": unknown transport '" + name + "'; known are shm, verbs, ofi, mpi");
}

job_options within_ranges(job_options options) {
    if (options.deadline.count() <= 0) refuse("deadline", options.deadline.count(), " ms", "more than 0");
    options.deadline = std::min(options.deadline, longest_deadline);
    if (options.spin_polls < 0) refuse("spin_polls", options.spin_polls, "", "0 (as the machine suggests) or more");
    require(link_timeouts_ms, "link_timeout", options.link_timeout.count(), " ms");
    require(ports, "verbs.port", options.verbs.port);
    require(gid_indices, "verbs.gid_index", options.verbs.gid_index);
    require(inline_sizes, "verbs.inline_bytes", options.verbs.inline_bytes);
    require_enumerator("job_options::path", options.path);
    require_enumerator("job_options::mpi", options.mpi);
    return options;
}

job_options configured(job_options options) {
    options = within_ranges(std::move(options));
    if (options.fixed) return options;
    config::reader<job_options> reader(option_keys(), std::move(options));
    reader.read_file_of_environment();
    reader.read_environment();
    if (reader.origin("comm.transports") != "default")
        require_known_transports(reader.values().transports, reader.as_given("comm.transports"));
    options = reader.values();
    options.fixed = true;
    return options;
}

} // namespace halocline::comm
