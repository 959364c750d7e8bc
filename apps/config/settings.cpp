// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/settings.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include <toml++/toml.h>

namespace halocline::app {
namespace {

using lattice::coordinate;

constexpr std::uintmax_t largest_file = 1 << 20;

[[noreturn]] void expected(const std::string& what) { throw std::invalid_argument("expected " + what); }

template <class Int>
Int read_integer(const std::string& text, Int lowest, Int highest) {
    Int value{};
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || end != text.data() + text.size() || value < lowest || value > highest)
        expected("a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest));
    return value;
}

double read_real(const std::string& text, double lowest, double highest, const std::string& range) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end || !std::isfinite(value) || value < lowest || value > highest) expected(range);
    return value;
}

bool read_switch(const std::string& text) {
    if (text == "true") return true;
    if (text == "false") return false;
    expected("true or false");
}

coordinate read_coordinate(const std::string& text) {
    const auto c = lattice::parse_coordinate(text);
    if (!c || std::ranges::any_of(*c, [](int e) { return e < 1; }))
        expected("four whole numbers >= 1 in the order x, y, z, t, like 8.8.8.16");
    return *c;
}

std::vector<std::string> read_list(const std::string& text) {
    std::vector<std::string> items;
    std::istringstream in(text);
    for (std::string item; std::getline(in, item, ',');)
        if (!item.empty()) items.push_back(item);
    if (items.empty()) expected("one or more names, like shm,mpi");
    return items;
}

std::string show_list(const std::vector<std::string>& items) {
    std::string text;
    for (const auto& item : items) text += (text.empty() ? "" : ",") + item;
    return text;
}

std::string show_real(double value) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    return {text.data(), end};
}

std::string show_optional(const std::optional<coordinate>& c, const std::string& otherwise) {
    return c ? lattice::to_string(*c) : otherwise;
}

const char* boundary_name(lattice::boundary b) {
    switch (b) {
    case lattice::boundary::periodic: return "periodic";
    case lattice::boundary::antiperiodic: return "antiperiodic";
    case lattice::boundary::open: return "open";
    }
    return "?";
}

lattice::boundary read_boundary(const std::string& text) {
    for (auto b : {lattice::boundary::periodic, lattice::boundary::antiperiodic, lattice::boundary::open})
        if (text == boundary_name(b)) return b;
    expected("periodic, antiperiodic or open");
}

constexpr bool of_host = true;

/// A key whose value is an integer member in [lowest, highest].
template <class Int>
setting_key integer_key(std::string section, std::string name, std::string description, Int settings::*member,
                        Int lowest, Int highest, bool ranks_may_differ = false) {
    return {std::move(section),
            std::move(name),
            std::move(description),
            [=](settings& s, const std::string& text) { s.*member = read_integer<Int>(text, lowest, highest); },
            [=](const settings& s) { return std::to_string(s.*member); },
            ranks_may_differ};
}

setting_key optional_coordinate_key(std::string section, std::string name, std::string description,
                                    std::optional<coordinate> settings::*member) {
    return {std::move(section), std::move(name), std::move(description),
            [=](settings& s, const std::string& text) { s.*member = read_coordinate(text); },
            [=](const settings& s) { return show_optional(s.*member, "chosen"); }};
}

setting_key tolerance_key(std::string section, std::string name, std::string description, double settings::*member) {
    return {std::move(section), std::move(name), std::move(description),
            [=](settings& s, const std::string& text) {
                s.*member = read_real(text, 1e-300, 1, "a relative residual > 0 and <= 1, like 1e-10");
            },
            [=](const settings& s) { return show_real(s.*member); }};
}

std::vector<setting_key> make_keys() {
    std::vector<setting_key> keys;
    const auto add = [&](setting_key key) { keys.push_back(std::move(key)); };

    add({"lattice", "gauge", "gauge file (DDalphaAMG, NERSC, ILDG); empty: the demo's own 8.8.8.8 at beta 6.0",
         [](settings& s, const std::string& text) { s.gauge = text; }, [](const settings& s) { return s.gauge; }});
    add(optional_coordinate_key("lattice", "grid",
                                "global extents; with a gauge file they must be the file's, without one the demo "
                                "configuration is repeated (multiples of 8)",
                                &settings::grid));
    add({"lattice", "tile", "how often the gauge file is repeated per dimension",
         [](settings& s, const std::string& text) { s.tile = read_coordinate(text); },
         [](const settings& s) { return lattice::to_string(s.tile); }});
    add(optional_coordinate_key("lattice", "mpi", "rank grid; its product is the number of ranks",
                                &settings::rank_grid));

    add({"operator", "m0", "bare mass",
         [](settings& s, const std::string& text) { s.op.m0 = read_real(text, -1e3, 1e3, "a real number like -0.5"); },
         [](const settings& s) { return show_real(s.op.m0); }});
    add({"operator", "csw", "clover coefficient; 0: plain Wilson",
         [](settings& s, const std::string& text) { s.op.csw = read_real(text, -1e3, 1e3, "a real number like 1.0"); },
         [](const settings& s) { return show_real(s.op.csw); }});
    add({"operator", "boundary", "boundary of x, y, z, t: periodic, antiperiodic or open",
         [](settings& s, const std::string& text) {
             const auto names = read_list(text);
             if (names.size() != lattice::dimensions) expected("four boundaries in the order x, y, z, t");
             for (std::size_t mu = 0; mu < names.size(); ++mu) s.op.boundaries[mu] = read_boundary(names[mu]);
         },
         [](const settings& s) {
             std::vector<std::string> names;
             for (auto b : s.op.boundaries) names.emplace_back(boundary_name(b));
             return show_list(names);
         }});

    add({"solver", "rhs", "right-hand side: ones, unit (spin 0, colour 0 of site 0) or random",
         [](settings& s, const std::string& text) {
             for (auto r : {right_hand_side::ones, right_hand_side::unit, right_hand_side::random})
                 if (text == to_string(r)) {
                     s.rhs = r;
                     return;
                 }
             expected("ones, unit or random");
         },
         [](const settings& s) { return to_string(s.rhs); }});
    add(integer_key<std::uint64_t>("solver", "seed", "of the test vectors and of a random right-hand side",
                                   &settings::seed, 0, std::numeric_limits<std::uint64_t>::max()));
    add(tolerance_key("solver", "tolerance", "relative residual to reach", &settings::tolerance));
    add(integer_key("solver", "restart_length", "outer FGMRES basis", &settings::restart_length, 1, 1000));
    add(integer_key("solver", "max_restarts", "outer FGMRES restarts", &settings::max_restarts, 1, 1'000'000));
    add(integer_key("solver", "max_iterations", "outer FGMRES iterations", &settings::max_iterations, 1,
                    1'000'000'000));
    add({"solver", "stagnation_stop", "stop when the residual no longer falls",
         [](settings& s, const std::string& text) { s.stagnation_stop = read_switch(text); },
         [](const settings& s) { return std::string(s.stagnation_stop ? "true" : "false"); }});

    add(optional_coordinate_key("level.0", "blocks", "Schwarz blocks = aggregates, in sites", &settings::blocks));
    add(integer_key("level.0", "vectors", "test vectors", &settings::vectors, 1, 512));
    add(integer_key("level.0", "setup", "bootstrap set-up iterations", &settings::setup_iterations, 0, 100));
    add(integer_key("level.0", "sweeps", "post-smoothing SAP sweeps", &settings::sweeps, 1, 100));
    add(integer_key("level.0", "block_steps", "minimal-residual steps per block", &settings::block_steps, 1, 100));
    add(tolerance_key("level.1", "tolerance", "relative residual of the coarse solve", &settings::coarse_tolerance));
    add(integer_key("level.1", "restart_length", "coarse GMRES basis", &settings::coarse_restart_length, 1, 1000));
    add(integer_key("level.1", "max_restarts", "coarse GMRES restarts", &settings::coarse_max_restarts, 1, 1000));

    add({"comm", "transports", "in order of preference; for each peer the first that reaches it: shm, verbs, ofi, mpi",
         [](settings& s, const std::string& text) { s.transports = read_list(text); },
         [](const settings& s) { return show_list(s.transports); }});
    add({"comm", "ofi_provider", "provider of libfabric; \"\": its own first choice",
         [](settings& s, const std::string& text) { s.ofi_provider = text; },
         [](const settings& s) { return s.ofi_provider; }});
    add({"comm", "mpi_mode", "how transport mpi moves messages: two-sided or one-sided",
         [](settings& s, const std::string& text) {
             if (text != "two-sided" && text != "one-sided") expected("two-sided or one-sided");
             s.mpi = comm::mpi_mode_of(text);
         },
         [](const settings& s) { return std::string(comm::to_string(s.mpi)); }});
    add({"comm", "bootstrap", "who starts the job: local, pmix, mpi; \"\": whatever started the program",
         [](settings& s, const std::string& text) { s.bootstrap = text; },
         [](const settings& s) { return s.bootstrap; }});
    add({"comm", "rank_order",
         "who has which place of the rank grid: nodes (fewest bytes between nodes) or lexicographic",
         [](settings& s, const std::string& text) {
             if (text != "nodes" && text != "lexicographic") expected("nodes or lexicographic");
             s.order_by_nodes = text == "nodes";
         },
         [](const settings& s) { return std::string(s.order_by_nodes ? "nodes" : "lexicographic"); }});
    add({"comm", "path",
         "how messages get into memory that ranks share: direct (through the cache), streamed (past it), or automatic",
         [](settings& s, const std::string& text) {
             if (text != "automatic" && text != "direct" && text != "streamed")
                 expected("automatic, direct or streamed");
             s.streaming = text == "direct"     ? comm::streaming::never
                           : text == "streamed" ? comm::streaming::always
                                                : comm::streaming::automatic;
         },
         [](const settings& s) {
             return std::string(s.streaming == comm::streaming::never    ? "direct"
                                : s.streaming == comm::streaming::always ? "streamed"
                                                                         : "automatic");
         }});
    add({"comm", "network",
         "where ranks of several hosts meet: interface, address, a.b.c.d/n; \"\": the first they share",
         [](settings& s, const std::string& text) { s.network = text; }, [](const settings& s) { return s.network; },
         of_host});
    add({"comm", "verbs_device", "RDMA device; \"\": the first whose port is active",
         [](settings& s, const std::string& text) { s.verbs_device = text; },
         [](const settings& s) { return s.verbs_device; }, of_host});
    add(integer_key("comm", "verbs_port", "port of the RDMA device", &settings::verbs_port, 1, 255, of_host));
    add(integer_key("comm", "verbs_gid_index", "GID of the port; -1: RoCE v2 over IPv4 first, none on InfiniBand",
                    &settings::verbs_gid_index, -1, 255, of_host));
    add(integer_key("comm", "verbs_mtu", "largest path MTU in bytes, 256 to 4096; 0: what both ports can do",
                    &settings::verbs_mtu, 0, 4096));
    add(integer_key("comm", "verbs_largest_write", "longer messages are several RDMA writes; 0: what the device can do",
                    &settings::verbs_largest_write, 0, std::numeric_limits<int>::max()));
    add(integer_key("comm", "verbs_inline_bytes", "messages up to this travel in the work request; 0: none",
                    &settings::verbs_inline_bytes, 0, 4096));
    add({"comm", "slab_gib", "virtual size of each rank's slab (sparse: only what is used takes memory)",
         [](settings& s, const std::string& text) {
             s.slab_gib = read_real(text, 1.0 / 64, 65536, "a size in GiB from 0.015625 to 65536");
         },
         [](const settings& s) { return show_real(s.slab_gib); }});
    add(integer_key("comm", "spin_polls", "polls before a waiting rank yields; 0: by ranks and cores",
                    &settings::spin_polls, 0, 1'000'000'000));
    add({"faults", "deadline_ms", "longest wait for a peer that is alive",
         [](settings& s, const std::string& text) {
             s.deadline = std::chrono::milliseconds(read_integer<int>(text, 100, 1'000'000'000));
         },
         [](const settings& s) { return std::to_string(s.deadline.count()); }});
    add({"faults", "link_timeout_ms", "longest silence of the link to another host",
         [](settings& s, const std::string& text) {
             s.link_timeout = std::chrono::milliseconds(read_integer<int>(text, 2000, 3'600'000));
         },
         [](const settings& s) { return std::to_string(s.link_timeout.count()); }});
    add({"faults", "checksum", "a CRC32C behind each message of a halo, compared before its ghosts are read",
         [](settings& s, const std::string& text) { s.checksums = read_switch(text); },
         [](const settings& s) { return std::string(s.checksums ? "true" : "false"); }});
    return keys;
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
        }
    }
    return row[b.size()];
}

std::string nearest_key(const std::string& path) {
    const auto& keys = setting_keys();
    return std::ranges::min_element(keys, {}, [&](const auto& k) { return edit_distance(k.path(), path); })->path();
}

const setting_key* find_key(const std::string& path) {
    const auto& keys = setting_keys();
    const auto found = std::ranges::find(keys, path, [](const auto& k) { return k.path(); });
    return found == keys.end() ? nullptr : &*found;
}

/// "[level.0] blocks" is how a reader of the file knows the key.
std::string file_name_of(const std::string& path) {
    const auto dot = path.rfind('.');
    if (dot == std::string::npos) return path;
    const std::string section = path.substr(0, dot), name = path.substr(dot + 1);
    if (section.starts_with("level.")) return "[[level]] number " + section.substr(6) + ", " + name;
    return "[" + section + "] " + name;
}

/// A TOML value in the same textual form as on the command line.
std::string text_of(const toml::node& node) {
    if (const auto* s = node.as_string()) return s->get();
    if (const auto* i = node.as_integer()) return std::to_string(i->get());
    if (const auto* d = node.as_floating_point()) return show_real(d->get());
    if (const auto* b = node.as_boolean()) return b->get() ? "true" : "false";
    if (const auto* array = node.as_array()) {
        const bool numbers = array->is_homogeneous(toml::node_type::integer);
        std::string text;
        for (const auto& item : *array) {
            if (item.is_array() || item.is_table()) expected("a flat array");
            text += (text.empty() ? "" : numbers ? "." : ",") + text_of(item);
        }
        return text;
    }
    expected("a string, number, boolean or array");
}

} // namespace

std::string to_string(right_hand_side r) {
    switch (r) {
    case right_hand_side::ones: return "ones";
    case right_hand_side::unit: return "unit";
    case right_hand_side::random: return "random";
    }
    return "?";
}

std::string setting_key::environment() const {
    std::string text = "HALOCLINE_" + section + "_" + name;
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return c == '.' ? '_' : static_cast<char>(std::toupper(c)); });
    return text;
}

comm::job_options job_options_of(const settings& s) {
    comm::job_options options;
    options.transports = s.transports;
    options.ofi_provider = s.ofi_provider;
    options.mpi = s.mpi;
    options.verbs = {.device = s.verbs_device,
                     .port = s.verbs_port,
                     .gid_index = s.verbs_gid_index,
                     .mtu = s.verbs_mtu,
                     .largest_write = static_cast<std::size_t>(s.verbs_largest_write),
                     .inline_bytes = s.verbs_inline_bytes};
    options.bootstrap = s.bootstrap;
    options.network = s.network;
    options.link_timeout = s.link_timeout;
    options.deadline = s.deadline;
    options.checksums = s.checksums;
    options.slab_bytes = static_cast<std::size_t>(s.slab_gib * 1073741824.0);
    options.spin_polls = s.spin_polls;
    options.streaming = s.streaming;
    return options;
}

const std::vector<setting_key>& setting_keys() {
    static const std::vector<setting_key> keys = make_keys();
    return keys;
}

void settings_reader::set(const std::string& key_path, const std::string& text, const std::string& where) {
    const setting_key* key = find_key(key_path);
    if (!key)
        throw config_error(key_path, where + ": unknown key '" + file_name_of(key_path) +
                                         "'; the nearest known one is '" + file_name_of(nearest_key(key_path)) + "'");
    try {
        key->read(values_, text);
    } catch (const std::invalid_argument& problem) {
        throw config_error(key_path, where + ": " + file_name_of(key_path) + " = '" + text + "': " + problem.what());
    }
    std::erase_if(origins_, [&](const auto& o) { return o.first == key_path; });
    origins_.emplace_back(key_path, where);
}

void settings_reader::read_file(const std::string& path) {
    std::error_code failure;
    const auto bytes = std::filesystem::file_size(path, failure);
    if (failure) throw config_error("", "config file '" + path + "': " + failure.message());
    if (bytes > largest_file)
        throw config_error("", "config file '" + path + "': " + std::to_string(bytes) + " bytes; the limit is " +
                                   std::to_string(largest_file));
    const auto at = [&](const toml::source_region& region) {
        return path + ":" + std::to_string(region.begin.line) + ":" + std::to_string(region.begin.column);
    };
    toml::table root;
    try {
        root = toml::parse_file(path);
    } catch (const toml::parse_error& problem) {
        throw config_error("", at(problem.source()) + ": " + std::string(problem.description()));
    }

    const auto read_section = [&](const std::string& section, const toml::table& table) {
        for (const auto& [name, node] : table) {
            const std::string key_path = section + "." + std::string(name.str());
            const std::string where = at(node.source());
            if (!find_key(key_path)) set(key_path, "", where); // throws, naming the nearest key
            std::string text;
            try {
                text = text_of(node);
            } catch (const std::invalid_argument& problem) {
                throw config_error(key_path, where + ": " + file_name_of(key_path) + ": " + problem.what());
            }
            set(key_path, text, where);
        }
    };
    for (const auto& [name, node] : root) {
        const std::string section(name.str());
        const std::string where = at(node.source());
        if (const auto* table = node.as_table(); table && section != "level") {
            if (std::ranges::none_of(setting_keys(), [&](const auto& k) { return k.section == section; }))
                throw config_error(section, where + ": unknown section [" + section +
                                                "]; known are [lattice], [operator], [solver], [[level]], [comm], "
                                                "[faults]");
            read_section(section, *table);
        } else if (const auto* levels = node.as_array(); levels && section == "level" && levels->is_array_of_tables()) {
            if (levels->size() > 2)
                throw config_error("level", where + ": " + std::to_string(levels->size()) +
                                                " [[level]] tables; this multigrid has 2 levels");
            for (std::size_t n = 0; n < levels->size(); ++n)
                read_section("level." + std::to_string(n), *levels->get(n)->as_table());
        } else {
            throw config_error(section, where + ": unknown key '" + section +
                                            "' at the top; keys stand in [lattice], [operator], [solver], [[level]], "
                                            "[comm], [faults]");
        }
    }
}

void settings_reader::read_environment() {
    for (const auto& key : setting_keys())
        if (const char* text = std::getenv(key.environment().c_str())) set(key.path(), text, key.environment());
}

void settings_reader::check() const {
    const bool tiled = values_.tile != coordinate{1, 1, 1, 1};
    if (tiled && values_.gauge.empty())
        throw config_error("lattice.tile", "--tile repeats a gauge file; without --gauge use --grid to repeat the demo "
                                           "configuration");
}

const std::string& settings_reader::origin(const std::string& key_path) const {
    static const std::string built_in = "default";
    const auto found = std::ranges::find(origins_, key_path, [](const auto& o) { return o.first; });
    return found == origins_.end() ? built_in : found->second;
}

std::string settings_reader::effective() const {
    std::string text;
    for (const auto& key : setting_keys())
        if (!key.of_host) text += key.path() + " = " + key.show(values_) + "\n";
    return text;
}

} // namespace halocline::app
