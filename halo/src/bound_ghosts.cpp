// SPDX-License-Identifier: Apache-2.0
#include "bound_ghosts.hpp"

#include "source_fingerprint.hpp"

#include <algorithm>

namespace halocline::halo {
namespace {

void mark_written(const field_view& f) noexcept {
    if (f.version) *f.version = lattice::next_version();
}

} // namespace

bound_ghosts::bound_ghosts(const binding& b)
    : fields(b.source), sources(b.source.size()), versions(b.source.size() + b.destination.size()), sums(sources) {
    fields.insert(fields.end(), b.destination.begin(), b.destination.end());
}

bool bound_ghosts::overwrites(const bound_ghosts& other) const noexcept {
    for (std::size_t i = 0; i < sources; ++i)
        for (std::size_t j = 0; j < other.sources; ++j)
            if (destination(i).data == other.destination(j).data && fields[i].data != other.fields[j].data) return true;
    return false;
}

void bound_ghosts::note_versions() noexcept {
    // Where a field gets the ghosts of another one, those of its own are gone: plans that filled them must know.
    for (std::size_t i = 0; i < sources; ++i)
        if (destination(i).data != fields[i].data) mark_written(destination(i));
    for (std::size_t i = 0; i < fields.size(); ++i) versions[i] = fields[i].version ? *fields[i].version : 0;
}

bool bound_ghosts::was_marked(std::size_t i) const noexcept {
    const auto has_changed = [&](std::size_t k) { return fields[k].version && *fields[k].version != versions[k]; };
    return has_changed(i) || has_changed(sources + i);
}

bool bound_ghosts::was_marked() const noexcept {
    for (std::size_t i = 0; i < sources; ++i)
        if (was_marked(i)) return true;
    return false;
}

void bound_ghosts::mark_sources() const noexcept {
    for (std::size_t i = 0; i < sources; ++i) mark_written(fields[i]);
}

bool bound_ghosts::is_fresh() const noexcept {
    return !absent && !was_marked() &&
           std::ranges::all_of(fields, [](const field_view& f) { return f.version != nullptr; });
}

void bound_ghosts::note_sent(std::span<const std::int32_t> sites) noexcept {
    for (std::size_t i = 0; i < sources; ++i) sums[i].sent = checksum_sites(0, sites, source_of(fields[i]));
}

void bound_ghosts::note_arrived(std::span<const std::int32_t> sites) noexcept {
    for (std::size_t i = 0; i < sources; ++i) sums[i].ghosts = checksum_sites(0, sites, source_of(destination(i)));
}

bool bound_ghosts::sends_what_it_sent(std::size_t i, std::span<const std::int32_t> sites) const noexcept {
    return checksum_sites(0, sites, source_of(fields[i])) == sums[i].sent;
}

bool bound_ghosts::has_what_arrived(std::size_t i, std::span<const std::int32_t> sites) const noexcept {
    return checksum_sites(0, sites, source_of(destination(i))) == sums[i].ghosts;
}

} // namespace halocline::halo
