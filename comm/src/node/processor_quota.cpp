// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/processor_quota.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <sys/stat.h>

namespace halocline::comm {
namespace {

/// Is `word` in this list, separated by commas?
bool lists(const std::string& words, std::string_view word) {
    std::istringstream in(words);
    for (std::string w; std::getline(in, w, ',');)
        if (w == word) return true;
    return false;
}

/// Decodes a path in mountinfo, where space, tab, line feed and backslash are written as \040 and so on.
std::string unescaped(const std::string& text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::string digits = text.substr(i + 1, 3);
        if (text[i] != '\\' || digits.size() < 3 || digits.find_first_not_of("01234567") != digits.npos) {
            plain += text[i];
            continue;
        }
        plain += static_cast<char>(std::stoi(digits, nullptr, 8));
        i += 3;
    }
    return plain;
}

/// A mount of control groups: those of one kind are visible at `point`, from the group `root` downwards.
struct mount {
    bool second_version = false;
    std::string root, point;
};

/// Lines such as "31 23 0:28 /root /point rw,relatime shared:1 - cgroup cgroup rw,cpu" that can limit processor time.
std::vector<mount> mounts_of(const std::string& process) {
    std::vector<mount> found;
    std::ifstream file(process + "/mountinfo");
    for (std::string line; std::getline(file, line);) {
        const std::size_t dash = line.find(" - ");
        if (dash == line.npos) continue;
        std::string skipped, root, point, kind, source, options;
        std::istringstream(line) >> skipped >> skipped >> skipped >> root >> point;
        std::istringstream(line.substr(dash + 3)) >> kind >> source >> options;
        if (kind == "cgroup2" || (kind == "cgroup" && lists(options, "cpu")))
            found.push_back({kind == "cgroup2", unescaped(root), unescaped(point)});
    }
    return found;
}

/// The group that the process is in: from lines "0::/path" of version 2, or "4:cpu,cpuacct:/path" of version 1.
std::string group_of(const std::string& process, bool second_version) {
    std::ifstream file(process + "/cgroup");
    for (std::string line; std::getline(file, line);) {
        const std::size_t one = line.find(':'), two = one == line.npos ? one : line.find(':', one + 1);
        if (two == line.npos) continue;
        const std::string controllers = line.substr(one + 1, two - one - 1);
        if (second_version ? controllers.empty() : lists(controllers, "cpu")) return line.substr(two + 1);
    }
    return "";
}

/// How many processors this folder's group may keep busy; 0: no limit.
double processors_of(const mount& m, const std::string& folder) {
    double quota = 0, period = 0;
    if (m.second_version) {
        std::ifstream(folder + "/cpu.max") >> quota >> period; // "max 100000": the first is not a number
    } else {
        std::ifstream(folder + "/cpu.cfs_quota_us") >> quota; // -1: none
        std::ifstream(folder + "/cpu.cfs_period_us") >> period;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

} // namespace

std::vector<processor_quota> processor_quotas(const std::string& process) {
    std::vector<processor_quota> found;
    for (const mount& m : mounts_of(process)) {
        // A root or a group outside of what this process may see begins with "/..": then only the mount itself remains.
        std::string group = group_of(process, m.second_version);
        const std::string root = m.root == "/" ? "" : m.root;
        const bool inside = group == root || group.starts_with(root + "/");
        group = inside ? group.substr(root.size()) : "";
        while (group.ends_with("/")) group.pop_back();
        while (true) {
            const std::string folder = m.point + group;
            struct stat about {};
            const double processors = processors_of(m, folder);
            if (processors > 0 && ::stat(folder.c_str(), &about) == 0) {
                const std::string name = std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
                if (std::ranges::find(found, name, &processor_quota::group) == found.end())
                    found.push_back({name, processors}); // a kind may be mounted twice
            }
            if (group.empty()) break;
            group.resize(group.rfind('/'));
        }
    }
    return found;
}

int threads_per_rank() {
    const char* const text = std::getenv("OMP_NUM_THREADS");
    return static_cast<int>(std::clamp(text == nullptr ? 1 : std::strtol(text, nullptr, 10), 1L, 4096L));
}

std::vector<std::optional<exceeded_quota>> exceeded_quotas(std::span<const processor_share> ranks) {
    struct below {
        exceeded_quota all;
        std::set<int> processors;
    };
    std::map<std::string_view, below> groups;
    for (const processor_share& r : ranks)
        for (const processor_quota& q : r.quotas) {
            below& g = groups[q.group];
            g.all.processors = q.processors;
            g.all.wanted += r.threads;
            ++g.all.ranks;
            g.processors.insert(r.processors.begin(), r.processors.end());
        }
    for (auto& [name, g] : groups)
        if (!g.processors.empty()) g.all.wanted = std::min(g.all.wanted, static_cast<int>(g.processors.size()));

    std::vector<std::optional<exceeded_quota>> of_rank(ranks.size());
    for (std::size_t r = 0; r < ranks.size(); ++r)
        for (const processor_quota& q : ranks[r].quotas) {
            const exceeded_quota& e = groups[q.group].all;
            std::optional<exceeded_quota>& tightest = of_rank[r];
            if (e.wanted > e.processors &&
                (!tightest || e.processors / e.wanted < tightest->processors / tightest->wanted))
                tightest = e;
        }
    return of_rank;
}

std::string in_processors(double number) {
    char text[48];
    std::snprintf(text, sizeof text, "%.4g processor%s", number, number == 1 ? "" : "s");
    return text;
}

} // namespace halocline::comm
