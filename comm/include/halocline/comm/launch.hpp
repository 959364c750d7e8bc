// SPDX-License-Identifier: Apache-2.0
// Between halocline-run and the ranks it starts. The environment says who a rank is and the number of an inherited
// stream socket; frames on it, each way: u64 length, bytes. A rank's frame is its part of a gather. The launcher
// answers 'g' and (u64 length, bytes) of every rank, or 'd', i32 rank, i32 pid, host, text: that rank ended before it
// gave its part. Gathers follow each other; all ranks take part in each.
//
// Lifelines: one pipe per rank, made before any rank starts. A rank alone keeps the writing end of its own, so when it
// dies all others see the end of that pipe, also while the launcher is stopped. What the pipe holds is the rank's pid
// (i32), once for each reader. The variable lists one descriptor per rank, ',' between: the own one to be kept open; -1
// for ranks of other hosts.
#pragma once

namespace halocline::comm::launch {

inline constexpr const char* rank_variable = "HALOCLINE_RANK";
inline constexpr const char* ranks_variable = "HALOCLINE_SIZE";
inline constexpr const char* socket_variable = "HALOCLINE_BOOTSTRAP_FD";
inline constexpr const char* lifelines_variable = "HALOCLINE_LIFELINES";
/// Then the rank's pid, '-' and what makes it unique: names in /dev/shm that libfabric is given. The launcher removes
/// those of ranks that could not.
inline constexpr const char* shared_file_prefix = "halocline-ofi-";
/// Exit code of programs whose job has ended because a rank died or a deadline passed.
inline constexpr int rank_lost = 3;
inline constexpr char gathered = 'g', died = 'd';

} // namespace halocline::comm::launch
