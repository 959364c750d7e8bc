// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

#include "bulk.hpp"
#include "control/wire.hpp"
#include "end.hpp"
#include "port.hpp"

#include <algorithm>

namespace halocline::comm {

bool verbs_is_built() { return true; }

std::string verbs_present() {
    const verbs_library& lib = verbs_library::loaded();
    if (!lib.why_not.empty()) return "built in, but " + lib.why_not;
    const std::string names = device_names(lib);
    return names == "none" ? "built in, but this machine has no RDMA device (ibv_devices)" : names;
}

verbs_world::verbs_world(const verbs_options& options, std::chrono::milliseconds link_timeout,
                         const verbs_library* library)
    : port_(std::make_unique<port>(options, link_timeout, library != nullptr ? *library : verbs_library::loaded())) {}

verbs_world::~verbs_world() {
    for (auto& e : ends_) close(*e);
    bulk_pairs_.clear();
}

std::string verbs_world::kind() const {
    const bool roce = port_->address.link_layer == IBV_LINK_LAYER_ETHERNET;
    return roce ? "RoCE" : port_->address.global ? "InfiniBand with GIDs" : "InfiniBand";
}

std::string verbs_world::address() const { return wire_writer().number(port_->address).take(); }

void verbs_world::connect(std::span<const std::string> addresses, int) {
    port_->peers.clear();
    for (const std::string& bytes : addresses)
        port_->peers.push_back(bytes.empty() ? verbs_address{} : wire_reader(bytes).number<verbs_address>());
}

verbs_world::connected_end& verbs_world::connected(verbs_end& end) noexcept { return static_cast<connected_end&>(end); }

void verbs_world::release(verbs_end& end) noexcept { end.released = true; }

void verbs_world::finish(const std::function<bool()>& give_up) noexcept {
    const auto done = [&](const std::unique_ptr<connected_end>& e) {
        if (!e->joined || e->closed) return true;
        take_completions(*e->plan);
        return e->ended();
    };
    const auto pair_done = [](const std::unique_ptr<bulk_pair>& p) {
        p->poll();
        return p->ended();
    };
    await_farewells(
        [&] {
            return std::all_of(ends_.begin(), ends_.end(), done) &&
                   std::all_of(bulk_pairs_.begin(), bulk_pairs_.end(), pair_done);
        },
        give_up);
}

} // namespace halocline::comm
