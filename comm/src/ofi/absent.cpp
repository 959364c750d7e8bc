// SPDX-License-Identifier: Apache-2.0
// Replaces the rest of ofi/ where libfabric's headers are missing. Nothing here is reached, because a job refuses the
// transport before it makes a world.
#include "network/bulk_link.hpp"
#include "world.hpp"

#include <halocline/base/error.hpp>

namespace halocline::comm {

struct ofi_world::endpoint {};

bool ofi_is_built() { return false; }
std::string ofi_present() { return "not built (no libfabric headers)"; }

ofi_world::ofi_world(std::string_view, std::string_view, std::size_t) {
    throw input_error("transport 'ofi' is not built in");
}
ofi_world::~ofi_world() = default;
std::string ofi_world::kind() const { throw error("transport 'ofi' is not built in"); }
std::string ofi_world::address() const { return {}; }
void ofi_world::connect(std::span<const std::string>, int) {}
bool ofi_world::has_mapped_all() const { return true; }
void ofi_world::remove_name() const noexcept {}
ofi_end& ofi_world::open(std::pmr::memory_resource&, int, std::uint32_t, std::size_t, std::size_t) {
    throw error("transport 'ofi' is not built in");
}
std::string ofi_world::card(const ofi_end&) const { return {}; }
void ofi_world::connect(ofi_end&, const std::string&) {}
void ofi_world::open_values(ofi_end&, std::span<const direct_write>) {}
void ofi_world::greet(ofi_end&) noexcept {}
void ofi_world::send(ofi_end&, std::uint64_t, std::size_t) noexcept {}
void ofi_world::send_values(ofi_end&) noexcept {}
void ofi_world::say_farewell(ofi_end&) noexcept {}
void ofi_world::poll() noexcept {}
void ofi_world::release(ofi_end&) noexcept {}
void ofi_world::finish(const std::function<bool()>&) noexcept {}
std::string ofi_world::describe(int) const { return {}; }
std::unique_ptr<bulk_link> ofi_world::open_bulk(const slab&, int, std::uint32_t) { return nullptr; }
bool ofi_world::writes_memory() const { return false; }
std::shared_ptr<const exposed_memory> ofi_world::expose(std::span<std::byte>) { return nullptr; }
void ofi_world::sweep() noexcept {}
void ofi_world::leave() noexcept {}
void ofi_world::cut() noexcept {}

} // namespace halocline::comm
