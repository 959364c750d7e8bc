// SPDX-License-Identifier: Apache-2.0
#include <halocline/config/value_text.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace halocline::config;

/// What a reading function says of a text that it refuses; "accepted" if it doesn't.
std::string refused(const std::function<void()>& read) {
    try {
        read();
    } catch (const std::invalid_argument& e) {
        return e.what();
    }
    return "accepted";
}

TEST(ValueText, IntegersAreWholeTextsWithinTheirRange) {
    EXPECT_EQ(read_integer<int>("-3", -3, 7), -3);
    EXPECT_EQ(read_integer<int>("7", -3, 7), 7);
    constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
    EXPECT_EQ(read_integer<std::uint64_t>("18446744073709551615", 0, largest), largest);

    for (const char* const text : {"", " 1", "1 ", "+1", "1.0", "1e2", "0x1", "8", "-4", "99999999999", "one"})
        EXPECT_EQ(refused([&] { read_integer<int>(text, -3, 7); }), "expected a whole number from -3 to 7") << text;
    EXPECT_NE(refused([&] { read_integer<std::uint64_t>("18446744073709551616", 0, largest); }), "accepted");
    EXPECT_NE(refused([&] { read_integer<std::uint64_t>("-1", 0, largest); }), "accepted");
}

TEST(ValueText, RealsAreWholeTextsWithinTheirRange) {
    EXPECT_EQ(read_real("-0.5", -1, 1, ""), -0.5);
    EXPECT_EQ(read_real("+1e-1", -1, 1, ""), 0.1);
    EXPECT_EQ(read_real("1", -1, 1, ""), 1);

    for (const char* const text :
         {"", " 0", "0 ", "0,5", "1.0001", "-2", "nan", "inf", "1e999", "0x1p-1", "+-1", "++1", "half"})
        EXPECT_EQ(refused([&] { read_real(text, -1, 1, "a number from -1 to 1"); }), "expected a number from -1 to 1")
            << text;
}

TEST(ValueText, RealsAreShownAsTheyAreRead) {
    EXPECT_EQ(show_real(0.1), "0.1");
    EXPECT_EQ(show_real(1e-10), "1e-10");
    constexpr double most = std::numeric_limits<double>::max();
    std::mt19937_64 g(1);
    std::uniform_real_distribution<double> mantissa(-1, 1);
    std::uniform_int_distribution<int> exponent(-1000, 1000);
    for (int i = 0; i < 1000; ++i) {
        const double value = std::ldexp(mantissa(g), exponent(g));
        EXPECT_EQ(read_real(show_real(value), -most, most, ""), value);
    }
}

TEST(ValueText, ListsAreNamesBetweenCommas) {
    EXPECT_EQ(read_list("shm"), std::vector<std::string>{"shm"});
    EXPECT_EQ(read_list(" shm , mpi one-sided,ofi"), (std::vector<std::string>{"shm", "mpi one-sided", "ofi"}));
    EXPECT_EQ(show_list(read_list("shm, ofi,")), "shm,ofi");

    for (const char* const text : {"", ",", " , ", "shm,,mpi", ",shm"})
        EXPECT_EQ(refused([&] { read_list(text); }), "expected one or more names, like shm,mpi") << text;
}

TEST(ValueText, ChoicesAreTheirNamesAndErrorsListThem) {
    const std::vector<choice<int>> choices{{"off", 0}, {"light", 1}, {"normal", 2}};

    for (const choice<int>& c : choices) {
        EXPECT_EQ(read_choice(c.name, choices), c.value);
        EXPECT_EQ(show_choice(c.value, choices), c.name);
    }
    for (const char* const text : {"", "Off", "off ", "2"})
        EXPECT_EQ(refused([&] { read_choice(text, choices); }), "expected off, light or normal") << text;
    EXPECT_EQ(alternatives(std::vector<std::string>{"one"}), "one");
}

} // namespace
