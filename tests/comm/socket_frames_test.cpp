// SPDX-License-Identifier: Apache-2.0
// Frames of the control plane's sockets: each kind is decoded as it was encoded, however little of the next has
// arrived.
#include "control/socket_frames.hpp"

#include <gtest/gtest.h>

#include <array>

namespace {

using namespace halocline::comm;

TEST(SocketFrames, ComeOutInOrderWithTheirKindAndBody) {
    struct sent {
        frame_kind kind;
        std::string body;
    };
    const std::array all{sent{frame_kind::message, "of set-up"},
                         sent{frame_kind::letter, ""},
                         sent{frame_kind::far_word, "awake"},
                         sent{frame_kind::message, ""},
                         sent{frame_kind::end_of_job, "why, by whom"},
                         sent{frame_kind::letter, std::string(5000, 'l')},
                         sent{frame_kind::goodbye, ""}};
    std::string bytes;

    for (const sent& s : all) append_frame(bytes, s.kind, s.body);

    std::string_view left = bytes;
    for (const sent& s : all) {
        const auto f = first_frame(left);
        ASSERT_TRUE(f);
        EXPECT_EQ(f->kind, s.kind);
        EXPECT_EQ(f->body, s.body);
        left.remove_prefix(f->bytes);
    }
    EXPECT_TRUE(left.empty());
}

TEST(SocketFrames, WaitForTheirLastByte) {
    for (const frame_kind kind :
         {frame_kind::message, frame_kind::letter, frame_kind::far_word, frame_kind::end_of_job, frame_kind::goodbye}) {
        std::string bytes;
        append_frame(bytes, kind, kind == frame_kind::goodbye ? "" : "body");

        for (std::size_t come = 0; come < bytes.size(); ++come)
            EXPECT_FALSE(first_frame(std::string_view(bytes).substr(0, come))) << come << " bytes of " << bytes.size();
        EXPECT_TRUE(first_frame(bytes));
    }
}

} // namespace
