// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/processor_quota.hpp>

#include "node/control_groups.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string_view>

namespace halocline::comm {
namespace {

/// How many processors this group may keep busy; 0: no limit.
double processors_of(const control_group& g) {
    double quota = 0, period = 0;
    if (g.second_version) {
        std::ifstream(g.folder + "/cpu.max") >> quota >> period; // "max 100000": the first is not a number
    } else {
        std::ifstream(g.folder + "/cpu.cfs_quota_us") >> quota; // -1: none
        std::ifstream(g.folder + "/cpu.cfs_period_us") >> period;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

} // namespace

std::vector<processor_quota> processor_quotas(const std::string& process) {
    std::vector<processor_quota> found;
    for (const control_group& g : control_groups(process, "cpu"))
        if (const double processors = processors_of(g); processors > 0) found.push_back({g.name, processors});
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
