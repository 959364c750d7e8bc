// SPDX-License-Identifier: Apache-2.0
// What launcher and agent send each other over the remote shell's standard input and output: a kind, a length, bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace halocline::app::frames {

inline constexpr std::string_view greeting = "halocline-agent 2\n"; ///< first bytes of an agent

enum kind : char {
    start = 's',   ///< to the agent: group_plan, working directory, variables
    answer = 'a',  ///< to the agent: for ranks that have given their part
    signal = 'k',  ///< to the agent: i32
    part = 'p',    ///< from it: i32 rank, bytes
    who = 'w',     ///< from it: i32 rank, which has waited too long and asks who is missing
    ended = 'e',   ///< from it: i32 rank, i32 pid, i32 code, i32 signal, text
    output = 'o',  ///< from it: what ranks wrote to standard output
    trouble = 'x', ///< from it: why the ranks can't be started
};

/// Queue: std::string or byte_queue.
template <class Queue>
void append(Queue& to, kind what, std::string_view bytes) {
    const std::uint64_t length = bytes.size();
    const char letter = what;
    to.append(std::string_view(&letter, 1));
    to.append(std::string_view(reinterpret_cast<const char*>(&length), sizeof length)).append(bytes);
}

/// Removes the first complete frame from `from`. False if there is none yet.
inline bool take(std::string& from, kind& what, std::string& bytes) {
    std::uint64_t length = 0;
    constexpr std::size_t head = 1 + sizeof length;
    if (from.size() < head) return false;
    std::memcpy(&length, from.data() + 1, sizeof length);
    if (from.size() - head < length) return false;
    what = static_cast<kind>(from[0]);
    bytes = from.substr(head, length);
    from.erase(0, head + length);
    return true;
}

} // namespace halocline::app::frames
