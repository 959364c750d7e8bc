// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/geometry.hpp>

#include <gtest/gtest.h>

using namespace halocline::lattice;

TEST(Geometry, LexicographicIndexRunsXFastestAndInverts) {
    const coordinate extents{2, 3, 4, 5};

    std::int64_t expected = 0;
    for (int t = 0; t < 5; ++t)
        for (int z = 0; z < 4; ++z)
            for (int y = 0; y < 3; ++y)
                for (int x = 0; x < 2; ++x, ++expected) {
                    EXPECT_EQ(lexicographic_index({x, y, z, t}, extents), expected);
                    EXPECT_EQ(lexicographic_coordinate(expected, extents), (coordinate{x, y, z, t}));
                }
    EXPECT_EQ(expected, volume(extents));
}

TEST(Geometry, SitesOfABoxAreNumberedFromItsOrigin) {
    const box part{{3, -1, 0, 5}, {2, 3, 1, 2}};

    std::int64_t index = 0;
    for (int t = 5; t < 7; ++t)
        for (int y = -1; y < 2; ++y)
            for (int x = 3; x < 5; ++x) EXPECT_EQ(part.site(index++), (coordinate{x, y, 0, t}));
    EXPECT_EQ(index, part.volume());
}

TEST(Geometry, ABoxMayEndBeyondTheLastCoordinate) {
    constexpr int last = 2147483647;
    const box part{{last - 1, 0, 0, 0}, {4, 1, 1, 1}};

    EXPECT_TRUE(part.contains({last, 0, 0, 0}));
    EXPECT_FALSE(part.contains({last - 2, 0, 0, 0}));
}

TEST(Geometry, WrappedIsTheSiteOfThePeriodicLatticeThatACoordinateStandsFor) {
    const coordinate extents{4, 3, 2, 2147483647};

    EXPECT_EQ(wrapped({3, 0, 1, 2147483646}, extents), (coordinate{3, 0, 1, 2147483646}));
    EXPECT_EQ(wrapped({4, 3, 2, 2147483647}, extents), (coordinate{0, 0, 0, 0}));
    EXPECT_EQ(wrapped({-1, -1, -1, -1}, extents), (coordinate{3, 2, 1, 2147483646}));
    EXPECT_EQ(wrapped({-9, 8, 5, -2147483647}, extents), (coordinate{3, 2, 1, 0}));
}

TEST(Geometry, VolumeDoesNotOverflow32Bits) { EXPECT_EQ(volume({256, 256, 256, 512}), std::int64_t{1} << 33); }

TEST(Geometry, FacesAreNumberedAndNamed) {
    for (int i = 0; i < faces; ++i) EXPECT_EQ(face_of(i).index(), i);
    EXPECT_EQ(face_of(3).opposite().index(), 2);
    EXPECT_EQ(to_string(face_of(0)), "x-low");
    EXPECT_EQ(to_string(face_of(7)), "t-high");
}

TEST(Geometry, ParsesWhatItPrints) {
    EXPECT_EQ(parse_coordinate(to_string(coordinate{8, 8, 8, 16})), (coordinate{8, 8, 8, 16}));
    EXPECT_EQ(parse_coordinate("1x2x3x4"), (coordinate{1, 2, 3, 4}));
    EXPECT_EQ(parse_coordinate("1,2,3,4"), (coordinate{1, 2, 3, 4}));
}

TEST(Geometry, RefusesEverythingElse) {
    for (const char* text : {"", "8", "8.8.8", "8.8.8.", "8.8.8.8.8", ".8.8.8.8", "8.8,8.8", "8 8 8 8", "8.8.8.-8",
                             "8.8.8.8 ", "8.8.8.a", "+8.8.8.8", "8.8.8.99999999999", "8:8:8:8"})
        EXPECT_EQ(parse_coordinate(text), std::nullopt) << text;
}
