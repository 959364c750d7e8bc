// SPDX-License-Identifier: Apache-2.0
// What launcher and agent send each other over the remote shell's standard input and output: a kind, a length, bytes.
#pragma once

#include "byte_queue.hpp"
#include "control/wire_format.hpp"
#include "host.hpp"
#include "local_ranks.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace halocline::app::frames {

inline constexpr std::string_view greeting = "halocline-agent 4\n"; ///< first bytes of an agent

enum kind : char {
    start = 's',   ///< to the agent: start_order
    answer = 'a',  ///< to the agent: for ranks that have given their part
    signal = 'k',  ///< to the agent: rank_or_signal
    part = 'p',    ///< from it: part_of_rank
    who = 'w',     ///< from it: rank_or_signal: a rank that has waited too long and asks who is missing
    ended = 'e',   ///< from it: end_of_rank
    output = 'o',  ///< from it: what ranks wrote to standard output
    trouble = 'x', ///< from it: why the ranks can't be started
};

/// Which ranks to start, and as what.
struct start_order {
    group_plan plan;
    std::string folder;                 ///< to work in
    std::vector<std::string> variables; ///< of the environment: "NAME=value"
    template <class Self, class Pass>
    static void fields(Self& o, Pass& pass) {
        pass(o.plan.first, o.plan.count, o.plan.total, o.plan.bind, o.plan.label, o.plan.otherwise, o.folder);
        pass(comm::counted<std::uint64_t>(o.variables), comm::counted<std::uint64_t>(o.plan.command));
    }
};
struct part_of_rank {
    int rank = 0;
    std::string bytes;
    template <class Self, class Pass>
    static void fields(Self& p, Pass& pass) {
        pass(p.rank, p.bytes);
    }
};
struct end_of_rank {
    int rank = 0;
    ending how;
    template <class Self, class Pass>
    static void fields(Self& e, Pass& pass) {
        pass(e.rank, e.how.pid, e.how.code, e.how.signal, e.how.text);
    }
};
struct rank_or_signal {
    int value = 0;
};

inline void append(byte_queue& to, kind what, std::string_view bytes) {
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
