// SPDX-License-Identifier: Apache-2.0
// Gauge files: DDalphaAMG, NERSC, ILDG/LIME, SciDAC, MILC v5 and openQCD; every rank reads only the sites of its box.
// A reader returns *partial* checksums and sums of what it read; the caller reduces them over ranks (lattice/ sees no
// communication) and hands the totals to check_totals().
#pragma once

#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/partial_file.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace halocline::lattice {

/// `scidac`: LIME files of QIO without ILDG's records.
enum class gauge_format : std::uint8_t { ddalphaamg, nersc, ildg, milc, openqcd, scidac };
std::string to_string(gauge_format f); ///< "DDalphaAMG", "NERSC", "ILDG", "MILC", "openQCD", "SciDAC"

/// 64-bit links miss SU(3) by as much as rounding to 32 bits makes them miss it: gauge_file::rounded_to_32_bits accepts
/// them.
class rounded_links_error : public file_error {
    using file_error::file_error;
};

/// A gauge file's description of itself; made by open_gauge_file() from the header (and LIME records) alone.
struct gauge_file {
    std::string path;
    gauge_format format{};
    coordinate extents{};         ///< x, y, z, t
    std::int64_t data_offset = 0; ///< byte where the links start
    int real_bytes = 8;           ///< 4 or 8
    int rows = 3;                 ///< NERSC: 2 or 3
    bool big_endian = false;
    bool rounded_to_32_bits = false;  ///< set by the caller: 64 bits that are verified only as precisely as 32
    std::optional<double> plaquette;  ///< Re tr / 3, if recorded
    std::optional<double> link_trace; ///< mean Re tr U / 3 (NERSC), if recorded
    double plaquette_digit = 0;       ///< a unit of the last digit that NERSC's or ILDG's text records, at most 1e-4
    double link_trace_digit = 0;
    std::optional<std::uint32_t> nersc_checksum;
    std::optional<std::array<std::uint32_t, 2>> scidac_checksum; ///< suma, sumb
    std::optional<std::array<std::uint32_t, 2>> milc_checksum;   ///< sum29, sum31
    /// NERSC's BOUNDARY_1 … 4: the boundary conditions of the fermions with which the links were generated. The links
    /// themselves carry no sign for them.
    std::array<std::string, dimensions> fermion_boundaries;
    std::string origin;                ///< where the links come from, as ILDG's info or NERSC's ENSEMBLE_LABEL say it
    std::vector<std::string> warnings; ///< trailing bytes, missing checksums, …
};

/// What one rank found in its part.  To combine over ranks: `sum` adds (mod 2^32), `xor` xors, counts and traces add,
/// `max` is the maximum, `finite` is "and".
struct gauge_totals {
    std::uint32_t nersc_sum = 0;               ///< sum
    std::array<std::uint32_t, 2> scidac_xor{}; ///< xor
    std::array<std::uint32_t, 2> milc_xor{};   ///< xor
    double link_trace_sum = 0;                 ///< sum of Re tr U
    std::int64_t links = 0;                    ///< sum; links covered by the checksums and the trace
    std::int64_t open_links = 0;               ///< sum; those among them that are zero: openQCD's open boundary in t
    double max_su3_error = 0;                  ///< max |U U^dagger - 1|, |row 3 - (row 1 x row 2)^*|; never NaN
    bool finite = true;                        ///< and
};
/// The combination described above.
gauge_totals combine(const gauge_totals& a, const gauge_totals& b);

/// Inspects the header of a file: format, sizes (compared with the file's before anything is allocated), recorded sums.
/// A header that openQCD may have written too is reported as DDalphaAMG's: as_openqcd().
/// Err: file_error for anything that is not a whole gauge file: missing, too short, impossible sizes, unknown format;
/// ILDG: QIO's records name another lattice or precision; LIME: bytes that are no record at the end, but no checksum.
gauge_file open_gauge_file(const std::string& path);

/// `file` interpreted as openQCD's format, whose header is the same as DDalphaAMG's: only the plaquette distinguishes
/// the two (dirac::read_configuration()). Empty if the file has another format, an odd extent, or what openQCD never
/// writes: big-endian numbers, no plaquette.
std::optional<gauge_file> as_openqcd(const gauge_file& file);

/// Reads the links of `local`, a box of the lattice that the periodically repeated file covers, into `links`.
/// Checksums, traces and counts take each site of the *file* once over all ranks: global coordinate < extents.
/// Shape: links has local.extents, lexicographic order, 72 components.
/// Err:   file_error (short read, vanished file), input_error (wrong shape, or no storage).
/// Cost:  one pread per contiguous run of at most 4 MiB; for openQCD's files, where odd sites store the links that end
///        there, one row more in each direction.
gauge_totals read_links(const gauge_file& file, const box& local, gauge_field& links);

/// Compares the totals of all ranks with what the file recorded: finiteness, checksums, SU(3) (1e-5 / 1e-10 for
/// 32- / 64-bit files), link trace (like a plaquette), a boundary in t that is open everywhere or nowhere.  The caller
/// compares the plaquette (tolerance below).
/// Err: file_error, of links that rounded_to_32_bits would accept a rounded_links_error; input_error when the totals do
/// not cover the file exactly once.
void check_totals(const gauge_file& file, const gauge_totals& totals);
/// One sentence for each direction in which `used` contradicts what the file says about its fermions. PERIODIC
/// contradicts nothing, because many writers say so whatever the fermions are.
std::vector<std::string> boundary_warnings(const gauge_file& file, const std::array<boundary, dimensions>& used);
/// How far a plaquette may be from the recorded one: 1e-6 for 32-bit files, 1e-10 for 64-bit ones, and more if the file
/// records fewer digits.
double plaquette_tolerance(const gauge_file& file);

/// Writes DDalphaAMG, ILDG or NERSC (three rows) with 64 bits, so that ranks can write their own parts in parallel: one
/// rank creates the file, every rank writes its sites, all ranks verify them, and the creator finishes it. Until then
/// it is `path`.partial (partial_file.hpp), which the creator removes if it is destroyed before finish(). What is
/// written is read back, from disk where there is one, and compared before the file takes the place of an older one.
class gauge_writer {
  public:
    /// `origin`: as in gauge_file; DDalphaAMG's format has no room for it.
    /// Err: input_error for a format that can't be written, an extent below 1, or an origin of more than 200 characters
    ///      or others than printable ASCII without <, > and &.
    gauge_writer(const std::string& path, gauge_format format, const coordinate& extents, std::string origin = {});
    gauge_writer(const gauge_writer&) = delete;
    gauge_writer& operator=(const gauge_writer&) = delete;
    ~gauge_writer() = default;

    /// On one rank, first: reserves the space of the whole file.  Err: as partial_file::create().
    void create();
    /// partial_file::identity(), after create(): what differs between ranks is the text of different files.
    [[nodiscard]] std::string identity() const { return partial_.identity(); }
    /// On every rank, after create() returned on the creator; on return this part is on disk.
    /// Returns this part's totals, as read_links() would.  Pre: as read_links(), `local` inside the lattice.
    /// Err: file_error.
    gauge_totals write(const box& local, const gauge_field& links);
    /// On every rank, after every write() returned: reads back what write() was given. Before that, another host might
    /// still destroy it.  Err: file_error: the file has other bytes, or can't be read.
    void verify(const box& local, const gauge_field& links) const;
    /// On the creator, last, after every verify() returned: checksums and sums of the format, fsync, comparison, rename
    /// to `path`.
    /// `totals`: reduced over ranks.  `plaquette`: Re tr / 3; ILDG's usqcdInfo has it as <plaq>.
    /// Err: file_error; input_error when the totals do not cover the lattice, a link is less unitary than a reader of a
    /// 64-bit file accepts, or the plaquette is not between -0.5 and 1.
    void finish(const gauge_totals& totals, double plaquette);

  private:
    partial_file partial_;
    gauge_file layout_; ///< of the file being written: path, offsets, sizes
};

} // namespace halocline::lattice
