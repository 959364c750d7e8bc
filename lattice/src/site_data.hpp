// SPDX-License-Identifier: Apache-2.0
// What files with data on every site have in common: sites stored lexicographically (x fastest), read and written by
// each rank in contiguous runs.  Private to lattice/.
#pragma once

#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/partial_file.hpp>

#include "binary_file.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace halocline::lattice {

/// Buffer size of one read or write.
inline constexpr std::int64_t run_bytes = 4 << 20;

/// Bytes of a lattice's data.  Err: file_error if an extent given by `head` is not in [1, 2^24).
uint128 lattice_bytes(const std::string& path, const std::string& head, const coordinate& extents, int site_bytes);

/// Err: input_error unless `data` has storage for `components` reals on the sites of `local`: its extents,
/// lexicographic order.
void check_field(const box& local, const field<double>& data, int components, const std::string& name);
/// Err: input_error if `local` is not inside the lattice that is written to `path`.
void check_inside(const box& local, const coordinate& extents, const std::string& path);

/// Err: input_error: no file can hold so many bytes.
void check_size(const std::string& path, const coordinate& extents, uint128 bytes);

/// Writes what stands before the sites and, from byte `end` on, behind them, has both on the disk and reads them back
/// from there; then the file has its name.
/// Err: file_error: it can't be written, or has other bytes afterwards.
void complete(partial_file& partial, const std::string& head, std::uint64_t end, const std::string& tail);

/// Calls f(file_site, local_site, sites) for runs that are contiguous in the file and in the lexicographic order of
/// `local`, a box of the periodic repetition of a lattice of these extents.
template <class F>
void for_each_run(const box& local, const coordinate& extents, std::int64_t max_sites, F&& f) {
    const coordinate lines{1, local.extents[1], local.extents[2], local.extents[3]};
    std::int64_t file_site = 0, local_site = 0, sites = 0;
    for (std::int64_t line = 0; line < volume(lines); ++line) {
        coordinate x = lexicographic_coordinate(line, lines);
        for (int mu = 0; mu < dimensions; ++mu) x[mu] = (local.origin[mu] + x[mu]) % extents[mu];
        for (int done = 0; done < local.extents[0];) {
            const int first = (x[0] + done) % extents[0];
            std::int64_t length = std::min(local.extents[0] - done, extents[0] - first);
            length = std::min(length, max_sites);
            const std::int64_t at = lexicographic_index({first, x[1], x[2], x[3]}, extents);
            if (at == file_site + sites && sites + length <= max_sites) {
                sites += length;
            } else {
                if (sites > 0) f(file_site, local_site, sites);
                local_site += sites;
                file_site = at;
                sites = length;
            }
            done += static_cast<int>(length);
        }
    }
    if (sites > 0) f(file_site, local_site, sites);
}

/// Reads the sites of `local` from a file whose data begin at `data_offset`. take(file_site, local_site, stored): the
/// bytes of a site, site_bytes of them.
/// Err: file_error: it can't be read.
template <class Take>
void read_sites(const binary_file& file, std::int64_t data_offset, std::int64_t site_bytes, const box& local,
                const coordinate& extents, Take&& take) {
    const auto bytes = static_cast<std::size_t>(site_bytes);
    const std::int64_t most = std::min(std::max<std::int64_t>(1, run_bytes / site_bytes), local.volume());
    std::vector<std::byte> buffer(static_cast<std::size_t>(most) * bytes);
    for_each_run(local, extents, most, [&](std::int64_t file_site, std::int64_t local_site, std::int64_t sites) {
        const auto run = std::span(buffer).first(static_cast<std::size_t>(sites) * bytes);
        file.read(static_cast<std::uint64_t>(data_offset + file_site * site_bytes), run);
        for (std::int64_t i = 0; i < sites; ++i)
            take(file_site + i, local_site + i,
                 std::span<const std::byte>(run).subspan(static_cast<std::size_t>(i) * bytes, bytes));
    });
}

/// Calls f(file_site, local_site, stored) for runs of sites that are contiguous in a file; `stored`: their bytes, of
/// which encode(local_site, to) makes those of a site.
template <class Encode, class F>
void for_each_encoded_run(int site_bytes, const box& local, const coordinate& extents, Encode&& encode, F&& f) {
    const auto bytes = static_cast<std::size_t>(site_bytes);
    const std::int64_t most = std::min(run_bytes / site_bytes, local.volume());
    std::vector<std::byte> buffer(static_cast<std::size_t>(most) * bytes);
    for_each_run(local, extents, most, [&](std::int64_t file_site, std::int64_t local_site, std::int64_t sites) {
        for (std::int64_t i = 0; i < sites; ++i)
            encode(local_site + i, buffer.data() + static_cast<std::size_t>(i) * bytes);
        f(file_site, local_site, std::span<const std::byte>(buffer).first(static_cast<std::size_t>(sites) * bytes));
    });
}

/// Writes the sites of `local` to a file whose data begin at `data_offset`, and has them on the disk.  encode(): as
/// above.  note(file_site, local_site, stored): called once for each site that is written.
/// Err: file_error: it can't be written.
template <class Encode, class Note>
void write_sites(const std::string& path, std::int64_t data_offset, int site_bytes, const box& local,
                 const coordinate& extents, Encode&& encode, Note&& note) {
    const binary_file file = binary_file::open_to_write(path);
    for_each_encoded_run(site_bytes, local, extents, encode,
                         [&](std::int64_t file_site, std::int64_t local_site, std::span<const std::byte> stored) {
                             const auto bytes = static_cast<std::size_t>(site_bytes);
                             for (std::size_t i = 0; i * bytes < stored.size(); ++i)
                                 note(file_site + static_cast<std::int64_t>(i),
                                      local_site + static_cast<std::int64_t>(i), stored.subspan(i * bytes, bytes));
                             file.write(static_cast<std::uint64_t>(data_offset + file_site * site_bytes), stored);
                         });
    file.sync();
}

/// Reads back what write_sites() has written. Pre: all ranks have written, because what one has read its host may send
/// again with what another writes into the same page.
/// Err: file_error: the file has other bytes, or can't be read.
template <class Encode>
void verify_sites(const std::string& path, std::int64_t data_offset, int site_bytes, const box& local,
                  const coordinate& extents, Encode&& encode) {
    const binary_file file = binary_file::open_to_read(path); // anew: then an NFS client asks what the server has
    file.drop_cache();
    for_each_encoded_run(site_bytes, local, extents, encode,
                         [&](std::int64_t file_site, std::int64_t, std::span<const std::byte> stored) {
                             file.expect(static_cast<std::uint64_t>(data_offset + file_site * site_bytes), stored);
                         });
}

} // namespace halocline::lattice
