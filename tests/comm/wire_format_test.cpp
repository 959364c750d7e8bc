// SPDX-License-Identifier: Apache-2.0
// Formats of set-up messages: what is written has the bytes of the fields in their order, and is read back as it was.
#include "control/wire_format.hpp"

#include <halocline/base/error.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace halocline::comm;

enum class colour : char { red = 'r', blue = 'b' };

struct part {
    std::string name;
    double size = 0;
    template <class Self, class Pass>
    static void fields(Self& p, Pass& pass) {
        pass(p.name, p.size);
    }
    friend bool operator==(const part&, const part&) = default;
};

struct whole {
    std::uint64_t place = 0;
    colour of = colour::red;
    bool near = false;
    part first;
    std::vector<part> others;
    std::vector<int> numbers;
    std::vector<std::string> rest;
    template <class Self, class Pass>
    static void fields(Self& w, Pass& pass) {
        pass(w.place, w.of, sent_as<std::uint32_t>(w.near), w.first, counted<std::uint64_t>(w.others));
        pass(counted<std::uint32_t>(w.numbers, [](auto& p, auto& n) { p(sent_as<std::uint16_t>(n)); }));
        pass(up_to_end(w.rest));
    }
    friend bool operator==(const whole&, const whole&) = default;
};

whole example() {
    whole w;
    w.place = 7;
    w.of = colour::blue;
    w.near = true;
    w.first = {"first", 1.5};
    w.others = {{"second", 2}, {"", -3}};
    w.numbers = {4, 65535};
    w.rest = {"fifth", ""};
    return w;
}

TEST(WireFormat, WritesTheFieldsInTheirOrder) {
    wire_writer w;
    w.number<std::uint64_t>(7).number('b').number<std::uint32_t>(1).text("first").number(1.5);
    w.number<std::uint64_t>(2).text("second").number(2.0).text("").number(-3.0);
    w.number<std::uint32_t>(2).number<std::uint16_t>(4).number<std::uint16_t>(65535);
    w.text("fifth").text("");

    EXPECT_EQ(to_wire(example()), w.take());
}

TEST(WireFormat, ReadsWhatItWrites) {
    EXPECT_EQ(from_wire<whole>(to_wire(example())), example());
    EXPECT_EQ(from_wire<whole>(to_wire(whole())), whole());
}

struct plain {
    std::uint32_t a = 0, b = 0;
    std::uint64_t c = 0;
};
struct padded {
    std::uint32_t a = 0;
    std::uint64_t c = 0;
};
static_assert(travels<plain> && !travels<padded> && !travels<std::string>);

TEST(WireFormat, PassesAStructWithoutFieldsAsItsBytes) {
    wire_writer w;
    w.number<std::uint32_t>(1).number<std::uint32_t>(2).number<std::uint64_t>(3);
    const std::string bytes = w.take();

    EXPECT_EQ(to_wire(plain{1, 2, 3}), bytes);
    EXPECT_EQ(to_wire(from_wire<plain>(bytes)), bytes);
}

TEST(WireFormat, LeavesWhatFollowsToItsReader) {
    wire_writer w;
    w.number(1);
    write_fields(w, example().first);
    const std::string bytes = w.number(2).take();

    wire_reader r(bytes);
    EXPECT_EQ(r.number<int>(), 1);
    EXPECT_EQ(read_fields<part>(r), example().first);
    EXPECT_EQ(r.number<int>(), 2);
    EXPECT_TRUE(r.empty());
}

TEST(WireFormat, RefusesBytesThatEndEarly) {
    const std::string bytes = to_wire(example().first);

    for (std::size_t n = 0; n < bytes.size(); ++n)
        EXPECT_THROW((void)from_wire<part>(std::string_view(bytes).substr(0, n)), halocline::error) << n << " bytes";
}

} // namespace
