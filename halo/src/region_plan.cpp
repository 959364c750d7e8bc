// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/region_plan.hpp>

#include "region_exchange.hpp"
#include "region_transfers.hpp"
#include "untold_misuse.hpp"
#include "why_column.hpp"

#include <halocline/base/error.hpp>

#include <cstdio>
#include <utility>

namespace halocline::halo {

region_plan::region_plan(const comm::job& j, std::vector<transfer> sends, std::vector<transfer> receives,
                         std::vector<binding> bindings, region_plan_options options)
    : s_("a region_plan", std::make_unique<state>(j, sends, receives, std::move(bindings), std::move(options))) {}
region_plan::region_plan(region_plan&&) noexcept = default;
region_plan& region_plan::operator=(region_plan&&) noexcept = default;
region_plan::~region_plan() = default;
region_plan::state::~state() {
    warn_of_untold_misuse(job, status, [this] { return why_misused(); });
}

void region_plan::start(int which, team t) noexcept {
    s_->start(t, s_->shares(), [&] { s_->begin(which); });
}
bool region_plan::test() noexcept { return s_->test(); }
comm::status region_plan::finish(team t) noexcept {
    return s_->finish(t, [&] { (void)s_->complete(); });
}

std::string region_plan::state::why_misused() const {
    const std::string who = "'" + options.name + "'";
    const comm::wrong_call& call = status.wrong_call();
    return call ? who + ": " + call.text() : no_binding(who, "start", bound, bindings.size());
}

void region_plan::finish_or_throw() {
    (void)*s_; // throws here rather than out of finish()
    const comm::status bad = finish();
    if (bad == comm::status::ok) return;
    if (bad == comm::status::misused) throw input_error(s_->why_misused());
    if (s_->broken_from < 0) s_->job.fail(bad, "regions " + s_->channels.pending(s_->epoch + 1));
    s_->job.fail(bad, "regions '" + s_->options.name + "' epoch " + std::to_string(s_->epoch + 1) +
                          ": what arrived from rank " + std::to_string(s_->broken_from) +
                          " does not have the checksum that it was sent with");
}

std::span<const int> region_plan::completed() noexcept {
    if (s_->started() && s_->status.is_ok() && !s_->options.add) {
        s_->driver.take_over();
        s_->advance();
        if (s_->unreported == s_->reported.size()) s_->channels.give_way();
    }
    const std::size_t first = std::exchange(s_->unreported, s_->reported.size());
    return std::span(s_->reported).subspan(first);
}

std::uint64_t region_plan::epoch() const { return s_->epoch; }
const region_plan_options& region_plan::options() const { return s_->options; }

plan_statistics region_plan::statistics() const { return s_->times.statistics(s_->channels); }
void region_plan::reset_statistics() { s_->times.reset(s_->channels); }

std::size_t region_plan::slab_bytes() const { return s_->channels.memory_bytes(); }

namespace {

/// The reasons for what it is now: review_paths() may have changed how it is written.
std::string why_now(const region_message& m) {
    const path_watch& watch = m.goes_by_slot() ? m.by_slot->watch : m.watch;
    const std::string& costs = m.goes_by_slot() ? m.by_slot->costs : m.costs;
    const char* const stores = costs.empty() ? "" : watch.streamed() ? "; streamed: " : "; not streamed: ";
    return m.why + stores + costs + m.why_joint;
}

} // namespace

std::string region_plan::describe() const {
    std::string table = "regions '" + s_->options.name + "'";
    if (s_->format.converts()) table.append(", reals as ").append(to_string(s_->options.format));
    if (s_->options.checksums) table += ", with checksums";
    table += "\n";
    char line[160];
    std::snprintf(line, sizeof line, "  %5s  %-9s %-8s %12s %12s  %s\n", "peer", "transport", "path", "send sites",
                  "receives", "why");
    table += line;
    const auto row = [&](const auto& channel) {
        const region_message& m = s_->messages[channel.index()];
        const std::string_view transport = std::remove_cvref_t<decltype(channel)>::transport;
        std::snprintf(line, sizeof line, "  %5d  %-9s %-8s %12lld %12lld  ", m.peer, transport.data(),
                      to_string(m.path_now()).data(), static_cast<long long>(m.send_sites),
                      static_cast<long long>(m.receive_sites));
        table += line + why_column(why_now(m), s_->job.members()[m.peer]) + "\n";
    };
    s_->channels.for_each(row);
    s_->channels.for_each_direct(row);
    s_->channels.for_each_rdma(row);
    if (s_->messages.empty()) table += "  no message\n";
    return table;
}

} // namespace halocline::halo
