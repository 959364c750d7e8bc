// SPDX-License-Identifier: Apache-2.0
// The tree of a global sum, without channels: whichever leaves swap, each ends with the result of the tree over all
// leaves, whatever the largest group. The combination is not associative, so another order would be noticed.
#include "channels/sum_label.hpp"
#include "channels/sum_tree.hpp"

#include <halocline/base/error.hpp>

#include <gtest/gtest.h>

#include <array>
#include <bit>

using namespace halocline::comm;

namespace {

double combined(double left, double right) { return 0.5 * left + 0.75 * right + 1; }

/// The tree over the parts [first, last), by recursive halving: the definition.
double tree(const std::vector<double>& parts, std::size_t first, std::size_t last) {
    if (last - first == 1) return parts[first];
    const std::size_t middle = first + (last - first) / 2;
    return combined(tree(parts, first, middle), tree(parts, middle, last));
}

std::vector<double> drawn(std::size_t leaves) {
    std::vector<double> parts(leaves);
    for (std::size_t l = 0; l < leaves; ++l) parts[l] = static_cast<double>((l * 37 + 11) % 101);
    return parts;
}

double over_group(const std::vector<double>& parts, leaf_interval group) {
    std::vector<const double*> places;
    for (std::size_t l = group.first; l < group.last; ++l) places.push_back(&parts[l]);
    std::vector<double> scratch(std::bit_width(places.size()));
    double result = 0;
    over_leaves(places.data(), {0, places.size()}, 1, &result, scratch.data(), combined);
    return result;
}

} // namespace

TEST(SumTree, IsHalvesOfHalves) {
    for (std::size_t leaves = 1; leaves <= 33; ++leaves) {
        const std::vector<double> parts = drawn(leaves);

        EXPECT_EQ(over_group(parts, {0, leaves}), tree(parts, 0, leaves)) << leaves;
    }
}

TEST(SumTree, GivesEachLeafTheSameWhateverTheGroups) {
    for (std::size_t leaves = 1; leaves <= 33; ++leaves)
        for (const std::size_t largest : {1, 2, 3, 8, 32}) {
            const std::vector<double> parts = drawn(leaves);
            std::vector<leaf_steps> steps;
            std::vector<double> has;
            for (std::size_t l = 0; l < leaves; ++l) {
                steps.push_back(steps_of(l, leaves, largest));
                has.push_back(over_group(parts, steps.back().group));
            }

            for (std::size_t s = 1; s < steps.front().steps.size(); ++s) {
                const std::vector<double> had = has;
                for (std::size_t l = 0; l < leaves; ++l)
                    for (const std::size_t other : steps[l].steps[s].partners) // if there are two, both have the same
                        has[l] = steps[l].steps[s].left ? combined(had[l], had[other]) : combined(had[other], had[l]);
            }

            for (std::size_t l = 0; l < leaves; ++l)
                EXPECT_EQ(has[l], tree(parts, 0, leaves))
                    << "leaf " << l << " of " << leaves << ", groups of " << largest;
        }
}

TEST(SumTree, SwapsAreMutualAndAllLeavesHaveAsManySteps) {
    for (std::size_t leaves = 1; leaves <= 33; ++leaves)
        for (const std::size_t largest : {1, 2, 3, 8, 32})
            for (std::size_t l = 0; l < leaves; ++l) {
                const leaf_steps mine = steps_of(l, leaves, largest);

                ASSERT_EQ(mine.steps.size(), steps_of(0, leaves, largest).steps.size());
                EXPECT_LE(mine.group.size(), largest);
                for (std::size_t s = 0; s < mine.steps.size(); ++s)
                    for (const std::size_t other : mine.steps[s].partners) {
                        const std::vector<std::size_t> theirs = steps_of(other, leaves, largest).steps[s].partners;
                        EXPECT_EQ(std::count(theirs.begin(), theirs.end(), l), 1) << l << " and " << other;
                    }
            }
}

TEST(SumTree, RefusesAnOrderThatIsNoPermutation) {
    EXPECT_EQ(leaf_of_each({}, 3), (std::vector<std::size_t>{0, 1, 2}));
    EXPECT_EQ(leaf_of_each(std::array{2, 0, 1}, 3), (std::vector<std::size_t>{1, 2, 0}));
    EXPECT_THROW(leaf_of_each(std::array{2, 0, 2}, 3), halocline::input_error);
    EXPECT_THROW(leaf_of_each(std::array{2, 0, 3}, 3), halocline::input_error);
    EXPECT_THROW(leaf_of_each(std::array{2, 0}, 3), halocline::input_error);
}

TEST(SumLabel, TellsSumsAndRefusalsApart) {
    const sum_label label(7, sum_word(1024, true)), heard(label.field_index());

    EXPECT_EQ(heard, label);
    EXPECT_EQ(heard.what().values(), 1024U);
    EXPECT_TRUE(heard.what().is_maximum());
    EXPECT_NE(heard, sum_label(7, sum_word(1024, false)));
    EXPECT_EQ(sum_word(5000, true), sum_word(1025, true)) << "more than the most";
    EXPECT_TRUE(heard.is_of_sum(7));
    EXPECT_FALSE(heard.is_of_sum(8));
    EXPECT_FALSE(heard.is_refusal());
    EXPECT_TRUE(sum_label::of_refusal(7).is_refusal());
    EXPECT_TRUE(sum_label::of_refusal(7).is_of_sum(7));
    const summed most = summed::of(summed{2'147'483'647, sum_word(1024, true)}.packed());
    EXPECT_EQ(most.rank, 2'147'483'647);
    EXPECT_EQ(most.what, sum_word(1024, true));
}
