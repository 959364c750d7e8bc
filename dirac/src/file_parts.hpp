// SPDX-License-Identifier: Apache-2.0
// Files of which each rank reads or writes its own part.  Private to dirac/.
#pragma once

#include "reduce_totals.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/partial_file.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace halocline::dirac {

/// The error of this rank, whose host may not see the file.
inline input_error with_rank(const comm::job& j, const file_error& e) {
    const comm::rank_info& me = j.members()[static_cast<std::size_t>(j.rank())];
    return input_error(std::string(e.what()) + " (rank " + std::to_string(me.rank) + " on " + me.host + ")");
}

/// How much longer than the deadline of its job a rank may take for its part of a file with so many bytes on each site
/// of the lattice: a slow disk gives all ranks together 10 MB a second.
inline std::chrono::milliseconds time_for_file(const lattice::coordinate& global, std::int64_t bytes_per_site) {
    constexpr std::int64_t bytes_per_millisecond = 10'000;
    return std::chrono::milliseconds(lattice::volume(global) * bytes_per_site / bytes_per_millisecond);
}

/// Calls work() on every rank, for its part of a file. `time`: time_for_file(). Collective.
/// Err: that of the lowest rank that failed. Of a file, it names the rank and its host; but with `unless_one_host`
/// rank 0 names nobody if all hosts are one, because nobody there can do it.
template <class Work>
void in_parts(const comm::job& j, std::chrono::milliseconds time, bool unless_one_host, Work&& work) {
    const auto named = [&] {
        try {
            work();
        } catch (const file_error& e) {
            const auto elsewhere = [&](const comm::rank_info& r) { return r.host != j.members()[0].host; };
            if (unless_one_host && j.rank() == 0 && std::ranges::none_of(j.members(), elsewhere)) throw;
            throw with_rank(j, e);
        }
    };
    j.collectively(named, time);
}
/// in_parts() of ranks that read.
template <class Read>
void read_parts(const comm::job& j, std::chrono::milliseconds time, Read&& read) {
    in_parts(j, time, true, read);
}

/// Writes `path` by a writer of lattice/, of which each rank has made one with the same arguments: write() writes a
/// part and returns its totals, verify() reads it back, finish(totals) is called on rank 0. No rank reads before all
/// have written, because of hosts that share a page of the file (lattice/src/site_data.hpp). Collective.
/// Err: input_error on every rank, which names the rank that could not write its part, or writes another file.
template <class Writer, class Write, class Verify, class Finish>
void write_file(const comm::job& j, std::chrono::milliseconds time, const std::string& path, Writer& writer,
                Write&& write, Verify&& verify, Finish&& finish) {
    std::string made;
    const auto create = [&] {
        if (j.rank() != 0) return;
        writer.create();
        made = writer.identity();
    };
    j.collectively(create, time + lattice::partial_file::patience);
    made = j.broadcast(made);
    decltype(write()) mine;
    in_parts(j, time, false, [&] {
        if (const std::string seen = writer.identity(); seen != made)
            throw file_error(lattice::partial_name(path),
                             "is " + seen + ", and the one that rank 0 on " + j.members()[0].host + " has made is " +
                                 made + ": every rank writes a part, so give a name in a folder that all of them see");
        mine = write();
    });
    in_parts(j, time, false, verify);
    const auto totals = reduce_totals(j, mine);
    const auto finish_on_0 = [&] {
        if (j.rank() == 0) finish(totals);
    };
    j.collectively(finish_on_0, time);
}

} // namespace halocline::dirac
