// SPDX-License-Identifier: Apache-2.0
// The protocol between halocline-run and the ranks it starts. The environment gives a rank its number and that of an
// inherited stream socket. Frames on the socket, both ways: u64 length, bytes. A rank's frame is its part of a gather.
// The launcher answers 'g' and (u64 length, bytes) of every rank, or 'd', i32 rank, i32 pid, host, text: that rank
// ended before it gave its part. A rank that has waited too long asks who is missing by sending only the length
// asks_who; then all waiting ranks are answered 'm', i32 the first missing rank, i32 pid (0: unknown), host, text that
// names all. Gathers follow each other; all ranks take part in each. The launcher closes its end when the process that
// it started as the rank has ended; a program that this process has started then has no job any more, and ends.
//
// Lifelines: one pipe per rank, made before any rank starts. Only the rank itself holds the writing end, so when it
// dies all others see end of file, even while the launcher is stopped. The pipe holds the rank's pid (i32), once for
// each reader. The variable lists one descriptor per rank, separated by ',': a rank keeps its own open; -1 for ranks of
// other hosts.
#pragma once

#include <cstdint>

namespace halocline::comm::launch {

inline constexpr const char* rank_variable = "HALOCLINE_RANK";
inline constexpr const char* ranks_variable = "HALOCLINE_SIZE";
inline constexpr const char* socket_variable = "HALOCLINE_BOOTSTRAP_FD";
inline constexpr const char* lifelines_variable = "HALOCLINE_LIFELINES";
/// Whatever has this value in its environment was started by ranks of one job on one host, and ends with the job.
inline constexpr const char* job_variable = "HALOCLINE_JOB";
/// Variables through which MPI launchers give a process its rank. halocline-run removes them from the environment of
/// its own ranks, so a process that has these and rank_variable was started by an MPI launcher inside a rank of
/// halocline-run.
inline constexpr const char* others_variables[]{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_SIZE",
                                                "PMI_SIZE"};
/// Prefix of the names in /dev/shm that libfabric is given, followed by the rank's pid, '-' and a unique part. The
/// launcher removes those that a killed rank has left behind.
inline constexpr const char* shared_file_prefix = "halocline-ofi-";
/// Exit codes (docs/decisions/0035-exit-codes.md); the last: the job has ended because a rank died or a deadline passed.
inline constexpr int failed = 1, bad_input = 2, job_ended = 3;
/// How the launcher's answers begin.
enum class answer_kind : char { gathered = 'g', died = 'd', missing = 'm' };
using enum answer_kind;
inline constexpr std::uint64_t asks_who = UINT64_MAX; ///< sent in place of a length

} // namespace halocline::comm::launch
