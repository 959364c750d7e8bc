// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/host_memory.hpp>

#include <halocline/base/error.hpp>
#include <halocline/comm/memory_limit.hpp>

#include <sys/sysinfo.h>

#include <array>
#include <cstdio>
#include <vector>

namespace halocline::app {

void check_host_memory(const comm::job& j, const lattice::decomposition& cut,
                       const std::function<double(int rank)>& bytes_of_rank, const std::string& remedy) {
    struct sysinfo host {};
    if (::sysinfo(&host) != 0) host = {};
    const double memory = static_cast<double>(host.totalram) * host.mem_unit,
                 swap = static_cast<double>(host.totalswap) * host.mem_unit;
    const std::vector<comm::memory_limit> limits = comm::memory_limits(memory, swap);
    std::string mine = "\n"; // the names of its groups, each between line feeds
    for (const comm::memory_limit& limit : limits) mine += limit.group + "\n";
    const std::vector<std::string> groups = j.gather(mine);
    const std::vector<int> nodes = j.nodes();
    const auto need_of = [&](const std::string& group) { // of the ranks of this host; "": all of them
        double need = 0;
        for (int r = 0; r < j.ranks(); ++r)
            if (nodes[r] == nodes[j.rank()] && groups[r].find(group + "\n") != std::string::npos)
                need += bytes_of_rank(r);
        return need;
    };
    const auto check = [&](const std::string& group, double have, const char* where) {
        const double need = need_of(group);
        if (need <= have) return;
        std::array<char, 160> text{};
        std::snprintf(text.data(), text.size(), " needs at least %.1f GiB %s %.1f GiB; ", need / 0x1p30, where,
                      have / 0x1p30);
        throw input_error("lattice " + lattice::to_string(cut.global()) + text.data() + remedy);
    };
    j.collectively([&] {
        if (memory == 0) return;
        check("", memory + swap, "on this host, which has");
        for (const comm::memory_limit& limit : limits)
            check("\n" + limit.group, limit.bytes, "in a control group (of a container or batch job) that allows");
    });
}

} // namespace halocline::app
