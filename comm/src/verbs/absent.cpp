// SPDX-License-Identifier: Apache-2.0
// Replaces the rest of verbs/ where libibverbs' headers are missing. Nothing here is reached, because a job refuses the
// transport before it makes a world.
#include "network/bulk_link.hpp"
#include "world.hpp"

#include <halocline/base/error.hpp>

namespace halocline::comm {

struct verbs_plan {};
struct verbs_world::port {};
struct verbs_world::connected_end : verbs_end {};
struct verbs_world::bulk_pair {};

bool verbs_is_built() { return false; }
std::string verbs_present() { return "not built (no libibverbs headers)"; }

verbs_world::verbs_world(const verbs_options&, std::chrono::milliseconds, const verbs_library*) {
    throw input_error("transport 'verbs' is not built in");
}
verbs_world::~verbs_world() = default;
std::string verbs_world::kind() const { return {}; }
std::string verbs_world::address() const { return {}; }
void verbs_world::connect(std::span<const std::string>, int) {}
verbs_end& verbs_world::open(std::pmr::memory_resource&, int, std::uint32_t, std::size_t, std::size_t) {
    throw error("transport 'verbs' is not built in");
}
void verbs_world::complete(std::uint32_t) {}
std::string verbs_world::card(const verbs_end&) const { return {}; }
void verbs_world::connect(verbs_end&, const std::string&) {}
void verbs_world::open_values(verbs_end&, std::span<const direct_write>) {}
void verbs_world::greet(verbs_end&) noexcept {}
void verbs_world::send(verbs_end&, std::uint64_t, std::size_t) noexcept {}
void verbs_world::send_values(verbs_end&) noexcept {}
void verbs_world::say_farewell(verbs_end&) noexcept {}
void verbs_world::poll(verbs_end&) noexcept {}
void verbs_world::release(verbs_end&) noexcept {}
void verbs_world::finish(const std::function<bool()>&) noexcept {}
std::string verbs_world::describe(const verbs_end&) const { return {}; }
std::unique_ptr<bulk_link> verbs_world::open_bulk(const slab&, int, std::uint32_t) { return nullptr; }
std::shared_ptr<const exposed_memory> verbs_world::expose(std::span<std::byte>) { return nullptr; }
void verbs_world::sweep() noexcept {}

} // namespace halocline::comm
