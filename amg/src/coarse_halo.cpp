// SPDX-License-Identifier: Apache-2.0
#include <halocline/amg/coarse_halo.hpp>

#include <algorithm>
#include <cstring>
#include <string>

namespace halocline::amg {
namespace {

/// Up to `systems`, so dense that an exchange of fewer fields sends at most half as many again: 1, 2, 3, 4, 6, 8, 12,
/// and so on.
std::vector<int> fields_of_plans(int systems) {
    std::vector<int> sizes;
    for (int power = 1; power < systems; power *= 2) {
        sizes.push_back(power);
        if (const int between = power + power / 2; between > power && between < systems) sizes.push_back(between);
    }
    sizes.push_back(systems);
    return sizes;
}

} // namespace

coarse_halo::coarse_halo(const comm::job& j, const lattice::decomposition& coarse, const lattice::site_order& order,
                         const shape& s)
    : components_(static_cast<std::size_t>(s.components)) {
    for (int p = 0; p < s.parities; ++p) {
        const std::string name = s.parities == 1 ? "coarse" : p == 0 ? "coarse even" : "coarse odd";
        halo::plan_options options{.widths = s.widths, .bytes_per_site = components_ * sizeof(float)};
        if (s.parities == 2) options.select = [p](const lattice::coordinate& x) { return lattice::parity(x) == p; };
        for (const int fields : fields_of_plans(s.systems)) {
            options.fields = fields;
            options.name = fields == 1 ? name : name + " x " + std::to_string(fields);
            plans_[p].emplace_back(j, coarse, options);
        }
        j.collectively([&] {
            for (const halo::plan_message& m : plans_[p].front().messages()) {
                std::vector<int>& sites = sent_[p].emplace_back();
                for (const std::int32_t site : m.send_sites)
                    sites.push_back(static_cast<int>(order.position(site)) - (p == 1 ? s.even_sites : 0));
            }
        });
    }
}

std::size_t coarse_halo::plan_for(std::size_t systems) const noexcept {
    const std::vector<halo::plan>& plans = plans_[0]; // those of the other parity are for the same numbers
    const auto carries = [&](const halo::plan& p) { return systems <= static_cast<std::size_t>(p.options().fields); };
    return static_cast<std::size_t>(std::ranges::find_if(plans, carries) - plans.begin());
}

void coarse_halo::start(int parity, std::span<const float* const> x) noexcept {
    halo::plan& plan = plans_[parity][plan_for(x.size())];
    if (plan.messages().empty()) return;
    plan.start([&](int message, std::int64_t first, std::int64_t last, std::byte* target) {
        const std::vector<int>& sites = sent_[parity][message];
        const std::size_t site_bytes = components_ * sizeof(float);
        for (std::size_t k = 0; k < x.size(); ++k, target += sites.size() * site_bytes)
            for (std::int64_t s = first; s < last; ++s)
                std::memcpy(target + static_cast<std::size_t>(s) * site_bytes,
                            x[k] + static_cast<std::size_t>(sites[s]) * components_, site_bytes);
    });
}

comm::status coarse_halo::finish(int parity, std::size_t systems) noexcept {
    halo::plan& plan = plans_[parity][plan_for(systems)];
    return plan.messages().empty() ? comm::status::ok : plan.finish();
}

coarse_halo::ghosts coarse_halo::arrived(int parity, std::size_t systems) const noexcept {
    const halo::plan& plan = plans_[parity][plan_for(systems)];
    ghosts all;
    for (const halo::plan_message& m : plan.messages())
        for (std::size_t k = 0; k < systems; ++k)
            all[m.where.index()].push_back(plan.ghosts<float>(m.where, static_cast<int>(k)).data());
    return all;
}

halo::plan_statistics coarse_halo::statistics() const {
    halo::plan_statistics sum;
    for (const std::vector<halo::plan>& plans : plans_)
        for (const halo::plan& plan : plans) sum += plan.statistics();
    return sum;
}

void coarse_halo::reset_statistics() {
    for (std::vector<halo::plan>& plans : plans_)
        for (halo::plan& plan : plans) plan.reset_statistics();
}

} // namespace halocline::amg
