// SPDX-License-Identifier: Apache-2.0
// Registrations of memory for large messages. The slab's memory stays mapped where it is for the whole job, so its
// registrations are kept for later messages; the least recently used one goes when its place is needed. Other memory
// may go back to the system between two messages, unnoticed: it is registered for one message only, and so is memory of
// the slab while messages to and from silent peers use all places.
#pragma once

#include <halocline/comm/slab.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace halocline::comm {

/// Region: defined by the network's library; its member `error` is not 0 if nothing was registered.
template <class Region>
class registration_cache {
  public:
    static constexpr std::size_t places = 64;
    struct place {
        std::byte *start = nullptr, *end = nullptr; ///< nullptr: free
        Region region{};
        bool kept = false;
        std::uint32_t users = 0;
        std::uint64_t used = 0; ///< time of last use
    };

    explicit registration_cache(const slab& memory) : memory_(memory) {}

    /// make(start, bytes) -> Region registers, and may call drop_idle(); drop(Region&) undoes that. `single`: for a
    /// registration that is not kept; free. nullptr: the memory can't be registered.
    template <class Make, class Drop>
    place* take(std::byte* start, std::size_t bytes, place& single, Make&& make, Drop&& drop) noexcept {
        std::byte* end = start + bytes;
        place* best = nullptr;
        if (memory_.contains(start)) {
            for (place& p : all_) {
                if (p.start != nullptr && p.start <= start && end <= p.end) {
                    ++p.users;
                    p.used = ++clock_;
                    return &p;
                }
                if (p.users > 0 || (best != nullptr && best->start == nullptr)) continue;
                if (best == nullptr || p.start == nullptr || p.used < best->used) best = &p;
            }
        }
        const bool keep = best != nullptr;
        if (!keep) best = &single;
        if (keep) { // its neighbours in the slab are often sent next
            const auto offset = static_cast<std::size_t>(start - memory_.base()) / granule * granule;
            const auto last = static_cast<std::size_t>(end - memory_.base());
            start = memory_.base() + offset;
            end = memory_.base() + (last + granule - 1) / granule * granule;
            if (end > memory_.base() + memory_.bytes()) end = memory_.base() + memory_.bytes();
        }
        clear(*best, drop);
        best->region = make(start, static_cast<std::size_t>(end - start));
        if (best->region.error != 0) return nullptr;
        best->start = start;
        best->end = end;
        best->kept = keep;
        best->users = 1;
        best->used = ++clock_;
        return best;
    }
    template <class Drop>
    void give(place& p, Drop&& drop) noexcept {
        if (--p.users == 0 && !p.kept) clear(p, drop);
    }
    /// Drops what nobody uses.  False: there was nothing.
    template <class Drop>
    bool drop_idle(Drop&& drop) noexcept {
        bool any = false;
        for (place& p : all_) {
            if (p.users > 0 || p.start == nullptr) continue;
            clear(p, drop);
            any = true;
        }
        return any;
    }
    template <class Drop>
    void clear_all(Drop&& drop) noexcept {
        for (place& p : all_) clear(p, drop);
    }

  private:
    static constexpr std::size_t granule = 64 * 1024;

    template <class Drop>
    static void clear(place& p, Drop&& drop) noexcept {
        if (p.start != nullptr) drop(p.region);
        p.start = p.end = nullptr;
        p.users = 0;
    }

    const slab& memory_;
    std::array<place, places> all_{};
    std::uint64_t clock_ = 0;
};

/// The caches of one rank on one network. Separate, because memory is registered for other accesses.
template <class Region>
struct registration_caches {
    std::unique_ptr<registration_cache<Region>> targets, sources; ///< nullptr: not made yet

    void make(const slab& memory) {
        for (auto* cache : {&targets, &sources})
            if (!*cache) *cache = std::make_unique<registration_cache<Region>>(memory);
    }
    /// Drops what no message uses, and what may leave the system no room for other memory.  False: there was nothing.
    template <class Drop>
    bool drop_idle(Drop&& drop) noexcept {
        bool any = false;
        for (auto* cache : {targets.get(), sources.get()})
            if (cache != nullptr) any = cache->drop_idle(drop) || any;
        return any;
    }
    template <class Drop>
    void clear_all(Drop&& drop) noexcept {
        for (auto* cache : {targets.get(), sources.get()})
            if (cache != nullptr) cache->clear_all(drop);
    }
};

} // namespace halocline::comm
