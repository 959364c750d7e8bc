// SPDX-License-Identifier: Apache-2.0
// What goes over a socket of the control plane: frames, one after the other. A message or a letter is its length and
// its bytes; a letter's length has the top bit set. Other frames begin with a word that can't be a length: a goodbye
// consists of that word alone; in the end of the job and in a far word, a length and bytes follow. Changes raise
// layout_number (job/layout_number.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace halocline::comm {

/// Encoded in the first word, on top of a length or in its place.
enum class frame_kind : std::uint64_t {
    message = 0,
    letter = std::uint64_t{1} << 63,
    far_word = ~std::uint64_t{2},   ///< the word, and the rank that it is about
    end_of_job = ~std::uint64_t{1}, ///< a failure record: why, culprit, text
    goodbye = ~std::uint64_t{0},    ///< the peer has closed its job in good order; no body
};

constexpr bool is_mail(frame_kind kind) { return kind == frame_kind::message || kind == frame_kind::letter; }

struct socket_frame {
    frame_kind kind;
    std::string_view body;
    std::size_t bytes; ///< of the whole frame
};

inline void append_frame(std::string& out, frame_kind kind, std::string_view body) {
    const auto append_word = [&](std::uint64_t word) { out.append(reinterpret_cast<const char*>(&word), sizeof word); };
    const auto first_word = static_cast<std::uint64_t>(kind);
    if (is_mail(kind)) {
        append_word(body.size() | first_word);
    } else {
        append_word(first_word);
        if (kind != frame_kind::goodbye) append_word(body.size());
    }
    out.append(body);
}

/// The first frame of `bytes`; none if it has not arrived completely. Does not allocate.
inline std::optional<socket_frame> first_frame(std::string_view bytes) {
    constexpr std::size_t word_bytes = sizeof(std::uint64_t);
    constexpr auto letter_bit = static_cast<std::uint64_t>(frame_kind::letter);
    const auto word_at = [&](std::size_t at) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + at, word_bytes);
        return word;
    };
    if (bytes.size() < word_bytes) return std::nullopt;
    const std::uint64_t word = word_at(0);
    if (word == static_cast<std::uint64_t>(frame_kind::goodbye))
        return socket_frame{frame_kind::goodbye, {}, word_bytes};
    const bool mail = word < static_cast<std::uint64_t>(frame_kind::far_word);
    const std::size_t head = mail ? word_bytes : 2 * word_bytes;
    if (bytes.size() < head) return std::nullopt;
    const std::uint64_t length = mail ? word & ~letter_bit : word_at(word_bytes);
    if (bytes.size() - head < length) return std::nullopt;
    return socket_frame{static_cast<frame_kind>(mail ? word & letter_bit : word), bytes.substr(head, length),
                        head + length};
}

} // namespace halocline::comm
