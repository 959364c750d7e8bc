// SPDX-License-Identifier: Apache-2.0
// What two ends tell each other about their message: nothing is lost on the way, and what is not an outline is refused.
#include "region_outline.hpp"

#include <halocline/base/error.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

using namespace halocline::halo;

namespace {

region_outline example() {
    return {.shapes = {{24, 8, scalar::float64}, {3, 4, scalar::bits}},
            .asked = path::streamed,
            .adds = true,
            .has_checksums = true,
            .format = message_format::bfloat16,
            .scale = 0.1F,
            .sends = {{0, 8}, {4'000'000'000, 0}},
            .receives = {{7, 1'000'000'000'000}},
            .offers_direct = true,
            .alternates = true,
            .in_the_way = obstacle::none,
            .targets = {{std::size_t{1} << 40, 64}, {0, 128}},
            .filled = {{8, position_list({20, 21, 17, 18, 14, 15, 100})}, {1, {}}}};
}

} // namespace

TEST(RegionOutline, ArrivesAsItWasTold) {
    const region_outline told = example();

    const region_outline heard = decoded(encoded(told));

    EXPECT_EQ(heard.shapes, told.shapes);
    EXPECT_EQ(heard.asked, told.asked);
    EXPECT_EQ(heard.adds, told.adds);
    EXPECT_EQ(heard.has_checksums, told.has_checksums);
    EXPECT_EQ(heard.format, told.format);
    EXPECT_EQ(heard.scale, told.scale);
    EXPECT_EQ(heard.sends, told.sends);
    EXPECT_EQ(heard.receives, told.receives);
    EXPECT_EQ(heard.offers_direct, told.offers_direct);
    EXPECT_EQ(heard.alternates, told.alternates);
    EXPECT_EQ(heard.in_the_way, told.in_the_way);
    EXPECT_EQ(heard.targets, told.targets);
    ASSERT_EQ(heard.filled.size(), told.filled.size());
    for (std::size_t f = 0; f < told.filled.size(); ++f) {
        EXPECT_EQ(heard.filled[f].lanes, told.filled[f].lanes);
        EXPECT_EQ(heard.filled[f].positions.expanded(), told.filled[f].positions.expanded());
    }
}

TEST(RegionOutline, SaysWhatIsInTheWay) {
    region_outline told;
    for (const obstacle o : {obstacle::changed, obstacle::transport, obstacle::streaming, obstacle::outside_slab,
                             obstacle::scattered, obstacle::not_registered}) {
        told.in_the_way = o;

        const region_outline heard = decoded(encoded(told));

        EXPECT_EQ(heard.in_the_way, o);
        EXPECT_FALSE(heard.offers_direct);
    }
}

TEST(RegionOutline, RefusesOneThatIsCutOff) {
    const std::string whole = encoded(example());

    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
        EXPECT_THROW(decoded(whole.substr(0, bytes)), halocline::error) << bytes << " of " << whole.size();
    EXPECT_THROW(decoded(whole + whole), halocline::error);
}

TEST(RegionTransfers, TwoEndsThatDisagreeAreToldAlike) {
    const auto text = [](const sites_by_tag& sent, const sites_by_tag& expected) {
        return halocline_test::refusal([&] { compare_transfers(sent, expected, 3, 5, "x"); });
    };
    const std::string what_to_do = "; list the transfer on both ranks, with the same tag and number of sites";

    EXPECT_EQ(text({{1, 4}, {2, 0}}, {{1, 4}, {2, 0}}), "accepted");
    EXPECT_EQ(text({{1, 4}}, {{1, 5}}),
              "'x': rank 3 sends 4 sites as tag 1 to rank 5, which expects 5 sites" + what_to_do);
    EXPECT_EQ(text({{1, 4}, {2, 6}}, {{1, 4}}),
              "'x': rank 3 sends 6 sites as tag 2 to rank 5, which expects nothing" + what_to_do);
    EXPECT_EQ(text({}, {{2, 0}}), "'x': rank 3 sends nothing as tag 2 to rank 5, which expects 0 sites" + what_to_do);
}
