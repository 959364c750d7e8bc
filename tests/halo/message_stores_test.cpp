// SPDX-License-Identifier: Apache-2.0
// Messages whose short runs are gathered first are those that are filled straight, and only messages of short runs and
// of some size are gathered; on processors, too, on which no plan gathers. All that is filled is shown, once.
#include "message_stores.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

using namespace halocline::halo;

namespace {

/// Every byte of every site is known.
std::byte value_of(std::int64_t site, std::size_t byte) {
    return static_cast<std::byte>(static_cast<std::uint64_t>(site) * 31 + byte * 7 + 1);
}

TEST(MessageStores, GatheredMessagesAreTheSame) {
    constexpr std::byte untouched{0xee};
    path_watch gathering;
    gathering.gather();
    for (const std::size_t site_bytes : {1U, 12U, 48U, 96U, 192U, 5000U, 8192U}) {
        const auto sites = static_cast<std::int64_t>(40000 / site_bytes + 3);
        for (const std::int64_t first : {std::int64_t{0}, std::int64_t{1}, sites / 3})
            for (const std::int64_t last : {first, first + 1, sites - 1, sites}) {
                std::vector<std::byte> message(static_cast<std::size_t>(sites) * site_bytes + 64, untouched);
                int calls = 0;
                std::vector<std::byte> seen(message.size(), untouched);
                fill_sites(
                    gathering, site_bytes, first, last, message.data(),
                    [&](std::byte* start, std::int64_t begin, std::int64_t end) {
                        ++calls;
                        for (std::int64_t s = begin; s < end; ++s)
                            for (std::size_t b = 0; b < site_bytes; ++b)
                                start[static_cast<std::size_t>(s) * site_bytes + b] = value_of(s, b);
                    },
                    [&](const std::byte* written, std::size_t count, std::size_t offset) {
                        for (std::size_t i = 0; i < count; ++i) {
                            ASSERT_EQ(seen.at(offset + i), untouched) << "shown twice";
                            seen[offset + i] = written[i];
                        }
                    });
                ASSERT_EQ(seen, message);

                const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(0, last - first)) * site_bytes;
                if (bytes > 2 * largest_assembled_site) {
                    EXPECT_GT(calls, 2) << "not gathered";
                }
                if (bytes < long_run_bytes) {
                    EXPECT_EQ(calls, 1) << "gathered for nothing";
                }
                for (std::size_t i = 0; i < message.size(); ++i) {
                    const auto site = static_cast<std::int64_t>(i / site_bytes);
                    const bool filled = site >= first && site < last;
                    ASSERT_EQ(message[i], filled ? value_of(site, i % site_bytes) : untouched)
                        << "byte " << i << ", sites [" << first << ", " << last << ") of " << site_bytes;
                }
            }
    }
}

TEST(MessageStores, GathersOnlyShortRunsOfMessagesOfSomeSize) {
    const auto rows = [](std::int64_t count, std::int64_t sites) { // of a field whose rows have 2 * sites
        const position_list from = position_list::of([&](auto&& visit) {
            for (std::int64_t row = 0; row < count; ++row)
                for (std::int64_t s = 0; s < sites; ++s) visit(row * 2 * sites + s);
        });
        return site_copy(from, 1, position_list::counted(from.size()), 1);
    };
    EXPECT_EQ(gathering_pays(rows(512, 1), 96), short_runs_are_gathered);
    EXPECT_FALSE(gathering_pays(rows(8, 1), 96)) << "a small message";
    EXPECT_FALSE(gathering_pays(rows(1, 512), 96)) << "one run";
    EXPECT_FALSE(gathering_pays(rows(8, 512), 96)) << "long runs";
    EXPECT_FALSE(gathering_pays(rows(8192, 1), 96)) << "a large message";
    EXPECT_FALSE(gathering_pays(rows(8, 1), largest_assembled_site + 1)) << "sites larger than a block";
}

} // namespace
