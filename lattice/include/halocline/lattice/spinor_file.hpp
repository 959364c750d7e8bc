// SPDX-License-Identifier: Apache-2.0
// Spinor files: a Dirac fermion field as a SciDAC (LIME) file; every rank reads or writes only the sites of its own
// box. Sites x fastest, on each spin, colour, (re, im); big endian.  Numbers are returned as the file holds them; the
// spin basis is dirac/'s business.  As with gauge files, the caller combines the totals of all ranks.
// Ref: [QIO] sections 2, 4.2 and A.2.
#pragma once

#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/partial_file.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace halocline::lattice {

/// A spinor file's description of itself; made by open_spinor_file() from its records alone.
struct spinor_file {
    std::string path;
    coordinate extents{};                                        ///< x, y, z, t
    std::int64_t data_offset = 0;                                ///< byte where the spinors start
    int real_bytes = 8;                                          ///< 4 or 8
    std::optional<std::array<std::uint32_t, 2>> scidac_checksum; ///< suma, sumb
    std::vector<std::string> warnings;                           ///< trailing bytes, a missing checksum
};

/// What one rank found in its part.  To combine over ranks: `xor` xors, `sum` adds, `min` is the least.
struct spinor_totals {
    static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

    std::array<std::uint32_t, 2> scidac_xor{}; ///< xor
    std::int64_t sites = 0;                    ///< sum
    std::int64_t first_not_finite = none;      ///< min; lexicographic index of a site with a NaN or an infinity
};
/// The combination described above.
spinor_totals combine(const spinor_totals& a, const spinor_totals& b);

/// Inspects the records of a file: lattice, precision, spins, colours, sizes (compared with the file's), checksum.
/// Err: file_error for anything that is not a whole SciDAC file with one field of 4 x 3 spinors on a 4-d lattice, or
/// whose datatype is that of colour vectors, colour matrices or propagators.
spinor_file open_spinor_file(const std::string& path);

/// Reads the spinors of `local`, a box inside the file's lattice.
/// Shape: spinors has local.extents, lexicographic order, 24 components.
/// Err:   file_error (short read, vanished file), input_error (wrong shape, or no storage).
/// Cost:  one pread per contiguous run of at most 4 MiB.
spinor_totals read_spinors(const spinor_file& file, const box& local, field<double>& spinors);

/// Compares the totals of all ranks with what the file recorded.
/// Err: file_error (a NaN or an infinity, another checksum); input_error when they do not cover the file once.
void check_totals(const spinor_file& file, const spinor_totals& totals);

/// Writes a spinor file in 64 bit so that ranks can write their own parts in parallel: one rank creates it, every rank
/// writes its sites, all ranks verify them, and the creator finishes it. Until then it is `path`.partial
/// (partial_file.hpp), which the creator removes if it is destroyed before finish(). What is written is read back, from
/// disk where there is one, and compared before the file takes the place of an older one. Its bytes depend only on the
/// field and on `info`, not on ranks, cut, host or date.
class spinor_writer {
  public:
    /// `info`: names and values for the record's XML that describe the field, the same on every rank, whose sites lie
    /// behind it; names are XML names.
    /// Err: input_error for an extent below 1.
    spinor_writer(const std::string& path, const coordinate& extents,
                  const std::vector<std::pair<std::string, std::string>>& info);
    spinor_writer(const spinor_writer&) = delete;
    spinor_writer& operator=(const spinor_writer&) = delete;
    ~spinor_writer() = default;

    /// On one rank, first: reserves the space of the whole file.  Err: as partial_file::create().
    void create();
    /// partial_file::identity(), after create(): what differs between ranks is the text of different files.
    [[nodiscard]] std::string identity() const { return partial_.identity(); }
    /// On every rank, after create() returned on the creator; on return this part is on disk.
    /// Returns this part's totals, as read_spinors() would.  Pre: as read_spinors().  Err: file_error.
    spinor_totals write(const box& local, const field<double>& spinors);
    /// On every rank, after every write() returned: reads back what write() was given. Before that, another host might
    /// still destroy it.  Err: file_error: the file has other bytes, or can't be read.
    void verify(const box& local, const field<double>& spinors) const;
    /// On the creator, last, after every verify() returned: checksum record, fsync, comparison, rename to `path`.
    /// Err: file_error; input_error if the totals, reduced over ranks, do not cover the lattice, or are not finite.
    void finish(const spinor_totals& totals);

  private:
    partial_file partial_;
    spinor_file layout_; ///< of the file being written
    std::string head_;   ///< everything before the spinors
};

} // namespace halocline::lattice
