// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

#include "control/wire.hpp"
#include "endpoint.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

namespace halocline::comm {
namespace {

/// What provider shm calls "fi_shm://name": a file.
std::string shared_file(const std::string& address) {
    const std::size_t scheme = address.find("://");
    return "/dev/shm/" + std::string(address.c_str() + (scheme == std::string::npos ? 0 : scheme + 3));
}

/// Processes for which this text is equal see the same files of provider shm.
std::string shared_memory_place() {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    struct stat directory {};
    const bool there = ::stat("/dev/shm", &directory) == 0;
    return "/dev/shm " + (there ? std::to_string(directory.st_dev) : "(none)") + " of boot " + boot;
}

} // namespace

bool ofi_is_built() { return true; }

std::string ofi_present() {
    const ofi_library& lib = ofi_library::loaded();
    if (!lib.why_not.empty()) return "built in, but " + lib.why_not;
    const std::uint32_t v = lib.version();
    return "libfabric " + std::to_string(FI_MAJOR(v)) + "." + std::to_string(FI_MINOR(v)) + " with " +
           ofi_provider_names();
}

ofi_world::ofi_world(std::string_view provider, std::string_view address, std::size_t largest_write)
    : endpoint_(std::make_unique<endpoint>(provider, address, largest_write)) {}

ofi_world::~ofi_world() {
    // Regions must go before the domain, but not before the endpoint stops writing into them.
    endpoint_->close_unless_cut();
    for (auto& end : ends_) {
        if (end) (void)close_end(*end);
    }
}

bool ofi_world::in_shared_memory() const {
    return std::string_view(endpoint_->provider.list->fabric_attr->prov_name) == "shm";
}

std::string ofi_world::kind() const {
    return endpoint_->provider.name + (in_shared_memory() ? " in " + shared_memory_place() : "");
}

std::string ofi_world::address() const {
    return wire_writer().number<std::uint64_t>(endpoint_->largest_write).text(endpoint_->address()).take();
}

void ofi_world::connect(std::span<const std::string> addresses, int own_rank) {
    std::vector<std::string> endpoints(addresses.size()); // "" for ranks that it does not reach
    for (std::size_t r = 0; r < addresses.size(); ++r) {
        if (addresses[r].empty()) continue;
        wire_reader reader(addresses[r]);
        // The receiver counts pieces as if they were its own, so all ranks must split alike.
        endpoint_->largest_write = std::min(endpoint_->largest_write, reader.number<std::uint64_t>());
        endpoints[r] = reader.text();
    }
    endpoint_->insert(endpoints, own_rank);
    if (!in_shared_memory()) return;
    for (const std::string& text : endpoints) {
        if (!text.empty()) shared_files_.push_back(shared_file(text));
    }
    own_file_ = shared_file(endpoints[own_rank]);
}

bool ofi_world::has_mapped_all() const {
    if (shared_files_.empty()) return true;
    std::ifstream in("/proc/self/maps");
    const std::string maps{std::istreambuf_iterator<char>(in), {}};
    return std::ranges::all_of(shared_files_,
                               [&](const std::string& file) { return maps.find(file + '\n') != std::string::npos; });
}

void ofi_world::remove_name() const noexcept { ::unlink(own_file_.c_str()); }

std::string ofi_world::describe(int code) const {
    return "libfabric (" + endpoint_->provider.name +
           "): " + (trouble_[0] != '\0' ? trouble_ : ofi_library::loaded().strerror(-code));
}

void ofi_world::release(ofi_end& e) noexcept { e.released = true; }

void ofi_world::finish(const std::function<bool()>& give_up) noexcept {
    const auto done = [&](const std::unique_ptr<ofi_end>& e) {
        return !e || !e->joined || e->error || (e->has_room() && e->over());
    };
    const auto all_done = [&] {
        poll();
        return std::all_of(ends_.begin(), ends_.end(), done);
    };
    await_farewells(all_done, give_up);
    // A stream provider may still hold the last bytes of a completed write.
    for (int i = 0; i < 16; ++i) poll();
}

} // namespace halocline::comm
