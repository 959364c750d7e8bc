// SPDX-License-Identifier: Apache-2.0
// What a plan records about the fields it was given: which one it sent, and which ones it can't send.
#include <halocline/halo/detail/field_check.hpp>
#include <halocline/halo/detail/sent_field.hpp>

#include <gtest/gtest.h>

#include <string>

using namespace halocline;
using halo::field_check;
using halo::sent_field;

namespace {

TEST(SentField, IsFreshUntilItIsWrittenOrAnotherExchangeStarts) {
    const int x = 0, y = 0;
    const sent_field sent(&x, 7, 3, 99);
    int sums = 0;
    const auto why = [&](const void* values, std::uint64_t version, std::uint64_t epoch, std::uint64_t sum) {
        const char* text = sent.why_stale(values, version, epoch, [&] { return ++sums, sum; });
        return std::string(text ? text : "");
    };

    EXPECT_TRUE(sent.is_fresh(&x, 7, 3));
    EXPECT_FALSE(sent.is_fresh(&y, 7, 3));
    EXPECT_FALSE(sent.is_fresh(&x, 8, 3));
    EXPECT_FALSE(sent.is_fresh(&x, 7, 2)); // not finished
    EXPECT_FALSE(sent_field().is_fresh(&x, 7, 0));
    EXPECT_EQ(why(&x, 7, 3, 99), "");
    EXPECT_EQ(why(&x, 7, 3, 98), "was written since, without mark_written()");
    EXPECT_EQ(sums, 2);
    EXPECT_EQ(why(&x, 8, 3, 99), "was marked as written since");
    EXPECT_EQ(why(&y, 7, 3, 99), "is not what the last finished exchange sent");
    EXPECT_EQ(why(&x, 7, 2, 99), "is not what the last finished exchange sent");
    EXPECT_EQ(sums, 2) << "read the field for nothing";
}

TEST(SentField, GoesByItsValuesWhereItCantBeMarked) {
    const int x = 0;
    const auto why = [&](const sent_field& sent, std::uint64_t version, std::uint64_t sum) {
        const char* text = sent.why_stale(&x, version, 3, [&] { return sum; });
        return std::string(text ? text : "");
    };

    EXPECT_EQ(why(sent_field(&x, 0, 3, 99), 7, 99), "") << "sent as memory, asked for as a field";
    EXPECT_EQ(why(sent_field(&x, 7, 3, 99), 0, 99), "") << "and the reverse";
    EXPECT_EQ(why(sent_field(&x, 0, 3, 99), 7, 98), "was written since, without mark_written()");
    EXPECT_FALSE(sent_field(&x, 0, 3, 99).is_fresh(&x, 0, 3)) << "ensure_halo() knows only marks";
}

TEST(SentField, IsNeverAFieldWithoutStorage) {
    const lattice::field<double> none;
    const sent_field nothing;

    EXPECT_FALSE(nothing.is_of(none.data()));
    EXPECT_FALSE(nothing.is_fresh(none.data(), none.version(), 0));
    EXPECT_STREQ(nothing.why_stale(none.data(), none.version(), 0, [] { return std::uint64_t{0}; }),
                 "is not what the last finished exchange sent");
}

TEST(FieldCheck, SaysWhatWasRefused) {
    const lattice::coordinate box{4, 4, 4, 4}, other{4, 4, 4, 2};
    const lattice::field<double> right(lattice::site_order::lexicographic(box), 3),
        wide(lattice::site_order::lexicographic(box), 6), short_one(lattice::site_order::lexicographic(other), 3), none;
    field_check one({.bytes_per_site = 24}, box);
    const auto refused = [&](std::size_t fields, const lattice::field<double>* x) {
        if (!x) {
            one.refuse(fields, nullptr);
            return one.describe_refused();
        }
        const halo::source_field source = halo::source_of(*x);
        EXPECT_FALSE(one.fits(source));
        one.refuse(fields, &source);
        return one.describe_refused();
    };

    EXPECT_TRUE(one.fits(halo::source_of(right)));
    EXPECT_TRUE(one.fits(1));
    EXPECT_FALSE(one.fits(2));
    EXPECT_EQ(refused(1, &wide),
              "start() was given 1 field, one of 48 bytes per site on a box of 4.4.4.4; it sends 1 of "
              "24 bytes per site on a box of 4.4.4.4");
    EXPECT_EQ(refused(1, &short_one),
              "start() was given 1 field, one of 24 bytes per site on a box of 4.4.4.2; it sends "
              "1 of 24 bytes per site on a box of 4.4.4.4");
    EXPECT_EQ(refused(1, &none),
              "start() was given 1 field, one without storage; it sends 1 of 24 bytes per site on a box of 4.4.4.4");
    EXPECT_EQ(refused(2, nullptr), "start() was given 2 fields; it sends 1 of 24 bytes per site on a box of 4.4.4.4");
}

TEST(FieldCheck, TakesBytesOfItsFieldsInLexicographicOrder) {
    const lattice::coordinate box{4, 4, 4, 4};
    const field_check two({.bytes_per_site = 24, .fields = 2}, box);
    const field_check ordered({.bytes_per_site = 24, .order = lattice::site_order::even_odd({{}, box})}, box);
    const field_check lexicographic({.bytes_per_site = 24, .order = lattice::site_order::lexicographic(box)}, box);

    const auto refused = [](field_check check, std::size_t fields) {
        EXPECT_FALSE(check.fits_bytes(fields));
        check.refuse_bytes(fields, true);
        return check.describe_refused();
    };

    EXPECT_TRUE(field_check({.bytes_per_site = 24}, box).fits_bytes(1));
    EXPECT_TRUE(lexicographic.fits_bytes(1));
    EXPECT_TRUE(two.fits_bytes(2));
    EXPECT_EQ(refused(two, 1), "start_bytes() was given 1 field; it sends 2 fields");
    EXPECT_EQ(refused(lexicographic, 2), "start_bytes() was given 2 fields; it sends 1 field");
    EXPECT_EQ(refused(ordered, 1),
              "start_bytes() sends fields in lexicographic order; the plan was made for another order");
}

} // namespace
