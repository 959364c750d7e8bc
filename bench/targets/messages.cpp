// SPDX-License-Identifier: Apache-2.0
// Messages: lines of bench_p2p, bench_window and bench_verbs.
#include "support/peer_names.hpp"
#include "targets/figures.hpp"

#include <initializer_list>
#include <map>
#include <tuple>
#include <utility>

namespace halocline::bench {
namespace {

using nlohmann::json;

std::string size_name(std::size_t bytes) {
    if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return std::to_string(bytes >> 20) + " MiB";
    if (bytes >= 1 << 10 && bytes % (1 << 10) == 0) return std::to_string(bytes >> 10) + " KiB";
    return std::to_string(bytes) + " B";
}
place of_size(std::size_t bytes, const std::string& speed = "") {
    return {.point = size_name(bytes), .size = static_cast<double>(bytes), .speed = speed};
}
std::vector<place> of_sizes(std::initializer_list<std::size_t> all) {
    std::vector<place> places;
    for (const std::size_t bytes : all) places.push_back(of_size(bytes));
    return places;
}

// Contenders of bench_p2p, by a measure: "bare" or "step".
term contender(const char* called, const char* who, const char* mode, const std::string& measure) {
    return {called, measure + "_us_median", [=](const json& l) { return l.at("who") == who && l.at("mode") == mode; }};
}
term ours(const char* mode, const std::string& measure) { return contender("ours", "ours", mode, measure); }
term raw(const char* mode, const std::string& measure) {
    const std::string called = std::string("raw ") + mode;
    return contender(called.c_str(), "limit", mode, measure);
}
term better_mpi(const std::string& measure) {
    return {"MPI", measure + "_us_median", [](const json& l) { return is_mpi(l.at("who").get<std::string>()); }};
}

/// The memories in which our messages lie; those of the MPIs lie in ordinary memory.
constexpr std::pair<const char*, const char*> memories[]{{"messages", "shared memory"},
                                                         {"messages-elsewhere", "ordinary memory"}};

/// Flags quicker than this make the fast mode of the targets.
constexpr double fast_flag_ns = 100;

/// Was a line measured with fast flags? Lines of old runs without flags have only the speed.
bool has_fast_flags(const json& line) {
    return line.contains("flag_ns") ? line["flag_ns"] < fast_flag_ns : line["speed"] == "fast";
}
/// The bound of ours / the better MPI, one way, is lower from 8 B on where flags are fast, else from 512 B, to 4 KiB.
double most_of_one_way(const place& p, const json* ours) {
    const bool small = p.size < 512 && ours != nullptr && !has_fast_flags(*ours);
    return p.size > 4096 || small ? 1.0 : 0.6;
}

/// If `shown`, the sizes from `least` to `most`: docs/status.md shows them.
std::function<std::string(const place&)> sizes_in_short(bool shown, const std::string& what, std::size_t least,
                                                        std::size_t most) {
    if (!shown) return {};
    const std::string row = what + ", " + size_name(least) + " to " + size_name(most) + ": the better MPI";
    return [=](const place& p) {
        const auto bytes = static_cast<std::size_t>(p.size);
        return least <= bytes && bytes <= most ? row : "";
    };
}

std::vector<target> targets_of_latency() {
    const std::vector<place> sizes = of_sizes({8, 64, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10,
                                               64 << 10, 128 << 10, 1 << 20, 8 << 20});
    std::vector<target> all{{.name = "one way: ours - raw slot, ns",
                             .of = "shared memory",
                             .side = wanted::at_most,
                             .bound = always(40),
                             .form = target::difference,
                             .scale = 1e3, // from microseconds
                             .above = ours("messages", "bare"),
                             .below = raw("slot", "bare"),
                             .points = sizes,
                             .applies = [](const place& p) { return p.size <= 4096; }}};
    for (const auto& [mode, memory] : memories)
        all.push_back({.name = "one way: ours / the better MPI",
                       .of = memory,
                       .side = wanted::at_most,
                       .bound = most_of_one_way,
                       .above = ours(mode, "bare"),
                       .below = better_mpi("bare"),
                       .points = sizes,
                       .in_short = sizes_in_short(mode == memories[0].first, "answered messages", 8, 4 << 10)});
    return all;
}

/// Consecutive blocking sends.
std::vector<target> targets_of_streams() {
    std::vector<target> all;
    for (const auto& [mode, memory] : memories)
        for (const std::string measure : {"bare", "step"})
            all.push_back({.name = "streams one way: ours / the better MPI",
                           .of = measure + ", " + memory,
                           .side = wanted::at_most,
                           .bound = always(1),
                           .above = ours(mode, measure),
                           .below = better_mpi(measure),
                           .points = of_sizes({8, 64, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10,
                                               64 << 10, 128 << 10, 1 << 20, 8 << 20}),
                           .in_short = sizes_in_short(measure == "step" && mode == memories[0].first,
                                                      "streams one way, a step", 2 << 10, 16 << 10)});
    return all;
}

std::vector<target> targets_of_both_ways() {
    const auto large = [](const place& p) { return p.size >= 128 << 10; };
    std::vector<target> all;
    for (const std::string measure : {"bare", "step"})
        for (const auto& [name, theirs, bound, beside_mpi] :
             {std::tuple{"both ways: the better MPI / ours", better_mpi(measure), 1.3, true},
              std::tuple{"both ways: raw copy / ours", raw("copy", measure), 0.85, false}})
            all.push_back(
                {.name = name,
                 .of = measure,
                 .side = wanted::at_least,
                 .bound = always(bound),
                 .above = theirs,
                 .below = ours("messages", measure),
                 .points = of_sizes({128 << 10, 1 << 20, 4 << 20, 8 << 20}),
                 .applies = large,
                 .in_short = sizes_in_short(beside_mpi && measure == "step", "both ways, a step", 128 << 10, 8 << 20)});
    return all;
}

/// The places of each pattern of bench_p2p.
std::map<std::string, std::vector<place>> places_of_patterns(const run_lines& lines) {
    std::map<std::tuple<std::string, std::size_t, std::string>, line_list> pinned;
    for (const json* l : lines_of(lines, "p2p")) {
        if (!is_within_host(*l)) continue;
        line_list& those = pinned[{l->at("pattern"), l->at("bytes"), l->at("speed")}];
        if (l->value("pinned", true)) those.push_back(l);
    }
    std::map<std::string, std::vector<place>> places;
    for (const auto& [key, those] : pinned) {
        const auto& [pattern, bytes, speed] = key;
        place p = of_size(bytes, speed);
        p.lines = those;
        if (those.empty()) p.left_out = "processors of their own";
        places[pattern].push_back(p);
    }
    return places;
}

auto begins(const char* key, std::string_view text) {
    return [=](const json& l) { return l.value(key, "").starts_with(text); };
}

/// The places of a bench whose lines have "bytes"; an empty message is none.
std::vector<place> places_by_bytes(const run_lines& lines, const char* bench) {
    std::map<std::size_t, line_list> by_bytes;
    for (const json* l : lines_of(lines, bench))
        if (l->at("bytes") > 0) by_bytes[l->at("bytes")].push_back(l);
    std::vector<place> places;
    for (const auto& [bytes, those] : by_bytes) {
        places.push_back(of_size(bytes));
        places.back().lines = those;
    }
    return places;
}

std::vector<target> targets_of_windows() {
    std::vector<target> all;
    for (const auto& [call, what] :
         {std::pair{"post, buffered", "prepared"}, std::pair{"post", "from user's arrays"}}) {
        const auto is_call = [call = call](const json& l) {
            return l.value("who", "") == "halocline over shm" && l.at("call") == call;
        };
        all.push_back({.name = "post() of a window, ns",
                       .of = what,
                       .side = wanted::at_most,
                       .bound = always(100),
                       .form = target::number,
                       .above = {ours_name, "p50_ns", is_call, true},
                       .points = of_sizes({8, 256, 4096})});
    }
    return all;
}

std::vector<target> targets_of_verbs() {
    return {{.name = "our code before ibv_post_send, ns",
             .of = "verbs",
             .side = wanted::at_most,
             .bound = always(100),
             .form = target::number,
             .above = {ours_name, "ns_median", begins("who", "halocline before"), true},
             .points = of_sizes({8, 64, 4096})},
            {.name = "one way over verbs: ours / ib_write_lat",
             .of = "emulated where there is no device",
             .side = wanted::at_most,
             .bound = always(1.25),
             .form = target::paired,
             .above = {ours_name, "us_median", begins("who", "halocline")},
             .below = {"ib_write_lat", "us_median", begins("who", "ib_write_lat")},
             .points = of_sizes({8, 64, 512, 4096})}};
}

} // namespace

void add_message_figures(const run_lines& lines, std::vector<figure>& all) {
    const auto judge_all = [&](const std::vector<target>& targets, const std::vector<place>& places) {
        for (const target& t : targets) judge(t, places, all);
    };
    std::map<std::string, std::vector<place>> patterns = places_of_patterns(lines);
    judge_all(targets_of_latency(), patterns["latency"]);
    judge_all(targets_of_streams(), patterns["one-way"]);
    judge_all(targets_of_both_ways(), patterns["both-ways"]);
    judge_all(targets_of_windows(), places_by_bytes(lines, "window"));
    judge_all(targets_of_verbs(), places_by_bytes(lines, "verbs"));
}

} // namespace halocline::bench
