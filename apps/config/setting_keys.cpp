// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/settings.hpp>
#include <halocline_app/value_text.hpp>

#include <algorithm>
#include <cctype>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

namespace halocline::app {
namespace {

using lattice::coordinate;

/// Where a key stands and what it means.
struct key_name {
    std::string section, name, description;
};
enum class may_differ : bool { no, between_hosts };

// The kinds of keys. `member` is where the value is: a member of settings, or a function from settings to a reference.

template <class Member, class Read, class Show>
setting_key make_key(key_name key, Member member, Read read, Show show, may_differ m = may_differ::no) {
    return {std::move(key.section),
            std::move(key.name),
            std::move(key.description),
            [=](settings& s, const std::string& text) { std::invoke(member, s) = read(text); },
            [=](const settings& s) { return show(std::invoke(member, s)); },
            m == may_differ::between_hosts};
}

setting_key text_key(key_name key, std::string settings::*member, may_differ m = may_differ::no) {
    return make_key(std::move(key), member, std::identity{}, std::identity{}, m);
}

template <class Int>
setting_key integer_key(key_name key, Int settings::*member, Int lowest, Int highest, may_differ m = may_differ::no) {
    return make_key(
        std::move(key), member, [=](const std::string& text) { return read_integer<Int>(text, lowest, highest); },
        [](Int value) { return std::to_string(value); }, m);
}

/// `range` says in words what lies in [lowest, highest].
template <class Member>
setting_key real_key(key_name key, Member member, double lowest, double highest, const std::string& range) {
    return make_key(
        std::move(key), member, [=](const std::string& text) { return read_real(text, lowest, highest, range); },
        show_real);
}

setting_key tolerance_key(key_name key, double settings::*member) {
    return real_key(std::move(key), member, 1e-300, 1, "a relative residual > 0 and <= 1, like 1e-10");
}

setting_key milliseconds_key(key_name key, std::chrono::milliseconds settings::*member, int lowest, int highest) {
    return make_key(
        std::move(key), member,
        [=](const std::string& text) { return std::chrono::milliseconds(read_integer<int>(text, lowest, highest)); },
        [](std::chrono::milliseconds value) { return std::to_string(value.count()); });
}

setting_key coordinate_key(key_name key, std::optional<coordinate> settings::*member) {
    return make_key(std::move(key), member, read_coordinate, [](const std::optional<coordinate>& c) {
        return c ? lattice::to_string(*c) : std::string("chosen");
    });
}

template <class Value>
setting_key choice_key(key_name key, Value settings::*member, std::vector<choice<Value>> choices) {
    return make_key(
        std::move(key), member, [=](const std::string& text) { return read_choice(text, choices); },
        [=](Value value) { return show_choice(value, choices); });
}

std::vector<std::string> read_transports(const std::string& text) {
    std::vector<std::string> names = read_list(text);
    if (std::ranges::find(names, "mock") != names.end()) expected("transports that move something, unlike mock");
    return names;
}

setting_key switch_key(key_name key, bool settings::*member) {
    return choice_key<bool>(std::move(key), member, {{"true", true}, {"false", false}});
}

setting_key boundaries_key(key_name key) {
    using lattice::boundary;
    const std::vector<choice<boundary>> choices{
        {"periodic", boundary::periodic}, {"antiperiodic", boundary::antiperiodic}, {"open", boundary::open}};
    using boundaries = decltype(dirac::wilson_parameters::boundaries);
    return make_key(
        std::move(key), [](auto& s) -> auto& { return s.op.boundaries; },
        [=](const std::string& text) {
            const auto names = read_list(text);
            if (names.size() != lattice::dimensions) expected("four boundaries in the order x, y, z, t");
            boundaries values{};
            std::ranges::transform(names, values.begin(), [&](const auto& name) { return read_choice(name, choices); });
            return values;
        },
        [=](const boundaries& values) {
            std::vector<std::string> names;
            for (auto b : values) names.push_back(show_choice(b, choices));
            return show_list(names);
        });
}

setting_key right_hand_side_key(key_name key) {
    const std::vector<choice<source>> made{{"ones", source::ones}, {"unit", source::unit}, {"random", source::random}};
    const std::string file = "file:";
    return make_key(
        std::move(key), &settings::rhs,
        [=](const std::string& text) -> right_hand_side {
            if (text.starts_with(file) && text.size() > file.size()) return {source::file, text.substr(file.size())};
            for (const auto& c : made)
                if (c.name == text) return {c.value, {}};
            expected("ones, unit or random, or file:PATH, like file:source.lime");
        },
        [=](const right_hand_side& rhs) {
            return rhs.kind == source::file ? file + rhs.path : show_choice(rhs.kind, made);
        });
}

std::vector<setting_key> lattice_and_operator_keys() {
    return {
        text_key(
            {"lattice", "gauge", "gauge file (DDalphaAMG, NERSC, ILDG); empty: the demo's own 8.8.8.8 at beta 6.0"},
            &settings::gauge),
        coordinate_key({"lattice", "grid",
                        "global extents; with a gauge file they must be the file's, without one the demo configuration "
                        "is repeated (multiples of 8)"},
                       &settings::grid),
        make_key(key_name{"lattice", "tile", "how often the gauge file is repeated per dimension"}, &settings::tile,
                 read_coordinate, [](const coordinate& c) { return lattice::to_string(c); }),
        coordinate_key({"lattice", "mpi", "rank grid; its product is the number of ranks"}, &settings::rank_grid),

        real_key(
            {"operator", "m0", "bare mass"}, [](auto& s) -> auto& { return s.op.m0; }, -1e3, 1e3,
            "a real number from -1000 to 1000, like -0.5"),
        real_key(
            {"operator", "csw", "clover coefficient; 0: plain Wilson"}, [](auto& s) -> auto& { return s.op.csw; }, -1e3,
            1e3, "a real number from -1000 to 1000, like 1.0"),
        boundaries_key({"operator", "boundary", "boundary of x, y, z, t: periodic, antiperiodic or open"}),
    };
}

std::vector<setting_key> solver_and_level_keys() {
    return {
        right_hand_side_key({"solver", "rhs",
                             "right-hand side: ones, unit (spin 0, colour 0 of site 0), random, or file:PATH, a "
                             "fermion field in SciDAC's format"}),
        integer_key<std::uint64_t>({"solver", "seed", "of the test vectors and of a random right-hand side"},
                                   &settings::seed, 0, std::numeric_limits<std::uint64_t>::max()),
        tolerance_key({"solver", "tolerance", "relative residual to reach"}, &settings::tolerance),
        integer_key({"solver", "restart_length", "outer FGMRES basis"}, &settings::restart_length, 1, 1000),
        integer_key({"solver", "max_restarts", "outer FGMRES restarts"}, &settings::max_restarts, 1, 1'000'000),
        integer_key({"solver", "max_iterations", "outer FGMRES iterations; 0: restart_length * max_restarts"},
                    &settings::max_iterations, 0, 1'000'000'000),
        switch_key({"solver", "stagnation_stop", "stop when the residual no longer falls"}, &settings::stagnation_stop),

        coordinate_key({"level.0", "blocks", "Schwarz blocks = aggregates, in sites"}, &settings::blocks),
        integer_key({"level.0", "vectors", "test vectors"}, &settings::vectors, 1, 512),
        integer_key({"level.0", "setup", "bootstrap set-up iterations"}, &settings::setup_iterations, 0, 100),
        integer_key({"level.0", "sweeps", "post-smoothing SAP sweeps"}, &settings::sweeps, 1, 100),
        integer_key({"level.0", "block_steps", "minimal-residual steps per block"}, &settings::block_steps, 1, 100),
        tolerance_key({"level.1", "tolerance", "relative residual of the coarse solve"}, &settings::coarse_tolerance),
        integer_key({"level.1", "restart_length", "coarse GMRES basis"}, &settings::coarse_restart_length, 1, 1000),
        integer_key({"level.1", "max_restarts", "coarse GMRES restarts"}, &settings::coarse_max_restarts, 1, 1000),
    };
}

std::vector<setting_key> comm_keys() {
    using comm::mpi_mode, comm::path;
    return {
        make_key(key_name{"comm", "transports",
                          "in order of preference; for each peer the first that reaches it: shm, verbs, ofi, mpi"},
                 &settings::transports, read_transports, show_list),
        text_key({"comm", "ofi_provider", "provider of libfabric; \"\": its own first choice"},
                 &settings::ofi_provider),
        choice_key<mpi_mode>({"comm", "mpi_mode", "how transport mpi moves messages: two-sided or one-sided"},
                             &settings::mpi, {{"two-sided", mpi_mode::two_sided}, {"one-sided", mpi_mode::one_sided}}),
        text_key({"comm", "bootstrap", "who starts the job: local, pmix, mpi; \"\": whatever started the program"},
                 &settings::bootstrap),
        choice_key<bool>({"comm", "rank_order",
                          "who has which place of the rank grid: nodes (fewest bytes between nodes) or lexicographic"},
                         &settings::order_by_nodes, {{"nodes", true}, {"lexicographic", false}}),
        choice_key<path>({"comm", "path",
                          "how messages get into memory that ranks share: direct (through the cache), streamed (past "
                          "it), packed (ghosts in a field through slots, not in place), or automatic"},
                         &settings::path,
                         {{"automatic", path::automatic},
                          {"direct", path::direct},
                          {"streamed", path::streamed},
                          {"packed", path::packed}}),
        text_key({"comm", "network",
                  "where ranks of several hosts meet: interface, address, a.b.c.d/n; \"\": the first they share"},
                 &settings::network, may_differ::between_hosts),
        text_key({"comm", "verbs_device", "RDMA device; \"\": the first whose port is active"}, &settings::verbs_device,
                 may_differ::between_hosts),
        integer_key({"comm", "verbs_port", "port of the RDMA device"}, &settings::verbs_port, 1, 255,
                    may_differ::between_hosts),
        integer_key({"comm", "verbs_gid_index", "GID of the port; -1: RoCE v2 over IPv4 first, none on InfiniBand"},
                    &settings::verbs_gid_index, -1, 255, may_differ::between_hosts),
        integer_key({"comm", "verbs_mtu", "largest path MTU in bytes, 256 to 4096; 0: what both ports can do"},
                    &settings::verbs_mtu, 0, 4096),
        integer_key(
            {"comm", "verbs_largest_write", "longer messages are several RDMA writes; 0: what the device can do"},
            &settings::verbs_largest_write, 0, std::numeric_limits<int>::max()),
        integer_key({"comm", "verbs_inline_bytes", "messages up to this travel in the work request; 0: none"},
                    &settings::verbs_inline_bytes, 0, 4096),
        real_key({"comm", "slab_gib", "virtual size of each rank's slab (sparse: only what is used takes memory)"},
                 &settings::slab_gib, 1.0 / 64, 65536, "a size in GiB from 0.015625 to 65536"),
        integer_key({"comm", "spin_polls", "polls before a waiting rank yields; 0: by ranks and cores"},
                    &settings::spin_polls, 0, 1'000'000'000),
    };
}

std::vector<setting_key> fault_keys() {
    return {
        milliseconds_key({"faults", "deadline_ms", "longest wait for a peer that is alive"}, &settings::deadline, 100,
                         1'000'000'000),
        milliseconds_key({"faults", "link_timeout_ms", "longest silence of the link to another host"},
                         &settings::link_timeout, 2000, 3'600'000),
        switch_key(
            {"faults", "checksum", "a CRC32C behind each message of a halo, compared before its ghosts are read"},
            &settings::checksums),
    };
}

} // namespace

std::string setting_key::environment() const {
    std::string text = "HALOCLINE_" + section + "_" + name;
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return c == '.' ? '_' : static_cast<char>(std::toupper(c)); });
    return text;
}

const std::vector<setting_key>& setting_keys() {
    static const std::vector<setting_key> keys = [] {
        std::vector<setting_key> all;
        for (auto part : {lattice_and_operator_keys(), solver_and_level_keys(), comm_keys(), fault_keys()})
            std::ranges::move(part, std::back_inserter(all));
        return all;
    }();
    return keys;
}

} // namespace halocline::app
