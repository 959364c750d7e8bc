// SPDX-License-Identifier: Apache-2.0
// Messages: lines of bench_p2p, bench_window and bench_verbs.
#include "support/statistics.hpp"
#include "targets/figures.hpp"

#include <map>
#include <tuple>
#include <utility>

namespace halocline::bench {
namespace {

std::string size_name(std::size_t bytes) {
    if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return std::to_string(bytes >> 20) + " MiB";
    if (bytes >= 1 << 10 && bytes % (1 << 10) == 0) return std::to_string(bytes >> 10) + " KiB";
    return std::to_string(bytes) + " B";
}

/// Selects a contender of bench_p2p.
auto is(const char* who, const char* mode) {
    return [=](const nlohmann::json& l) { return l["who"] == who && l["mode"] == mode; };
}
bool is_installed_mpi(const nlohmann::json& l) { return l["who"] == "openmpi" || l["who"] == "mpich"; }

/// Where our messages lie; those of the MPIs lie in ordinary memory.
constexpr std::pair<const char*, const char*> memories[]{{"messages", "shared memory"},
                                                         {"messages-elsewhere", "ordinary memory"}};

/// Flags quicker than this make the fast mode of the targets.
constexpr double fast_flag_ns = 100;

/// Was a line measured with fast flags? Lines of old runs without flags have only the speed.
bool has_fast_flags(const nlohmann::json& line) {
    return line.contains("flag_ns") ? line["flag_ns"] < fast_flag_ns : line["speed"] == "fast";
}

void add_latency(std::size_t bytes, const std::string& speed, const line_list& those, std::vector<figure>& all) {
    const quickest slot = quickest_of(those, "bare_us_median", is("limit", "slot"));
    const quickest mpi = quickest_of(those, "bare_us_median", is_installed_mpi);
    const quickest in_slab = quickest_of(those, "bare_us_median", is("ours", "messages"));
    if (in_slab && slot && bytes <= 4096)
        all.push_back({"one way: ours - raw slot, ns", "shared memory", size_name(bytes), static_cast<double>(bytes),
                       speed, 1e3 * (in_slab.us - slot.us), 40, wanted::at_most, in_slab.noisy() || slot.noisy()});
    for (const auto& [mode, memory] : memories) {
        const quickest ours = quickest_of(those, "bare_us_median", is("ours", mode));
        if (!ours || !mpi) continue;
        // From 8 B on where flags are fast, else from 512 B on.
        const bool large = bytes > 4096, small = bytes < 512 && !has_fast_flags(*ours.line);
        all.push_back({"one way: ours / the better MPI", memory, size_name(bytes), static_cast<double>(bytes), speed,
                       ours.us / mpi.us, large || small ? 1.0 : 0.6, wanted::at_most, ours.noisy() || mpi.noisy()});
    }
}

/// Consecutive blocking sends.
void add_streams(std::size_t bytes, const std::string& speed, const line_list& those, std::vector<figure>& all) {
    for (const auto& [mode, memory] : memories)
        for (const char* measure : {"bare", "step"}) {
            const std::string key = std::string(measure) + "_us_median";
            const quickest ours = quickest_of(those, key.c_str(), is("ours", mode));
            const quickest mpi = quickest_of(those, key.c_str(), is_installed_mpi);
            if (ours && mpi)
                all.push_back({"streams one way: ours / the better MPI", std::string(measure) + ", " + memory,
                               size_name(bytes), static_cast<double>(bytes), speed, ours.us / mpi.us, 1,
                               wanted::at_most, ours.noisy() || mpi.noisy()});
        }
}

void add_both_ways(std::size_t bytes, const std::string& speed, const line_list& those, std::vector<figure>& all) {
    if (bytes < 128 << 10) return;
    for (const char* measure : {"bare", "step"}) {
        const std::string key = std::string(measure) + "_us_median";
        const quickest ours = quickest_of(those, key.c_str(), is("ours", "messages"));
        const quickest mpi = quickest_of(those, key.c_str(), is_installed_mpi);
        const quickest copy = quickest_of(those, key.c_str(), is("limit", "copy"));
        if (ours && mpi)
            all.push_back({"both ways: the better MPI / ours", measure, size_name(bytes), static_cast<double>(bytes),
                           speed, mpi.us / ours.us, 1.3, wanted::at_least, ours.noisy() || mpi.noisy()});
        if (ours && copy)
            all.push_back({"both ways: raw copy / ours", measure, size_name(bytes), static_cast<double>(bytes), speed,
                           copy.us / ours.us, 0.85, wanted::at_least, ours.noisy() || copy.noisy()});
    }
}

void add_matched(const run_lines& lines, std::vector<figure>& all) {
    std::map<std::tuple<std::string, std::size_t, std::string>, line_list> points;
    for (const nlohmann::json* l : lines_of(lines, "p2p"))
        points[{l->at("pattern"), l->at("bytes"), l->at("speed")}].push_back(l);
    for (const auto& [key, those] : points) {
        const auto& [pattern, bytes, speed] = key;
        if (pattern == "latency") add_latency(bytes, speed, those, all);
        if (pattern == "one-way") add_streams(bytes, speed, those, all);
        if (pattern == "both-ways") add_both_ways(bytes, speed, those, all);
    }
}

/// The median over the lines of a bench that satisfy `which`, by bytes.
template <class Which>
std::map<std::size_t, double> medians(const run_lines& lines, const char* bench, const char* key, Which which) {
    std::map<std::size_t, std::vector<double>> values;
    for (const nlohmann::json* l : lines_of(lines, bench))
        if (l->contains(key) && which(*l)) values[l->at("bytes")].push_back(l->at(key));
    std::map<std::size_t, double> result;
    for (const auto& [bytes, of_size] : values) result[bytes] = median(of_size);
    return result;
}

auto begins(const char* key, std::string_view text) {
    return [=](const nlohmann::json& l) { return l.value(key, "").starts_with(text); };
}

void add_windows(const run_lines& lines, std::vector<figure>& all) {
    for (const auto& [call, what] :
         {std::pair{"post, buffered", "prepared"}, std::pair{"post", "from user's arrays"}}) {
        const auto ours = [&, call = call](const nlohmann::json& l) {
            return begins("who", "halocline")(l) && l["call"] == call;
        };
        for (const auto& [bytes, ns] : medians(lines, "window", "p50_ns", ours))
            if (bytes > 0)
                all.push_back({"post() of a window, ns", what, size_name(bytes), static_cast<double>(bytes), "", ns,
                               100, wanted::at_most, false});
    }
}

void add_verbs(const run_lines& lines, std::vector<figure>& all) {
    for (const auto& [bytes, ns] : medians(lines, "verbs", "ns_median", begins("who", "halocline before")))
        all.push_back({"our code before ibv_post_send, ns", "verbs", size_name(bytes), static_cast<double>(bytes), "",
                       ns, 100, wanted::at_most, false});
    auto theirs = medians(lines, "verbs", "us_median", begins("who", "ib_write_lat"));
    for (const auto& [bytes, us] : medians(lines, "verbs", "us_median", begins("who", "halocline")))
        if (theirs.contains(bytes))
            all.push_back({"one way over verbs: ours / ib_write_lat", "emulated where there is no device",
                           size_name(bytes), static_cast<double>(bytes), "", us / theirs[bytes], 1.25, wanted::at_most,
                           false});
}

} // namespace

void add_message_figures(const run_lines& lines, std::vector<figure>& all) {
    add_matched(lines, all);
    add_windows(lines, all);
    add_verbs(lines, all);
}

} // namespace halocline::bench
