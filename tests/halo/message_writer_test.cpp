// SPDX-License-Identifier: Apache-2.0
// One message of a plan, without a plan: whichever way it is written, it equals the plain loop's byte for byte, nothing
// next to it is touched, and it has the sum that its shares are said to have.
#include "pack_reference.hpp"

#include <halocline/halo/detail/message_writer.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

using namespace halocline;
using halo::message_writer;
using halo::path_watch;
using lattice::site_order;

namespace {

constexpr lattice::coordinate extents{6, 5, 4, 4};
constexpr std::byte untouched{0xee};

struct way {
    std::string name;
    path_watch watch;
    bool sums = false;
};
std::vector<way> ways() {
    std::vector<way> ways{{"through the cache", {}},
                          {"claimed", path_watch::always_cached({})},
                          {"streamed", path_watch::always_streamed()}};
    for (std::size_t i = 0; i < 3; ++i) ways.push_back({ways[i].name + ", summed up", ways[i].watch, true});
    return ways;
}

/// A writer of messages of this kind.
message_writer writer_of(const way& w, std::span<const std::int32_t> sites, const site_order* order,
                         std::size_t site_bytes, int fields) {
    message_writer writer(sites, order, site_bytes, fields);
    writer.follow(w.watch);
    if (w.sums) writer.sum_up();
    return writer;
}

/// The face across x, and all sites in a row: more than a block of either kind.
std::vector<std::vector<std::int32_t>> lists() {
    std::vector<std::int32_t> face, all;
    for (int site = 0; site < lattice::volume(extents); ++site) {
        if (site % extents[0] == 0) face.push_back(site);
        all.push_back(site);
    }
    return {face, all};
}

/// Every component of every site is a different number.
lattice::field<float> numbered(const std::shared_ptr<const site_order>& order, int components, int field) {
    lattice::field<float> x(order, components);
    for (std::int64_t site = 0; site < x.volume(); ++site)
        for (int c = 0; c < components; ++c) x.at(site, c) = static_cast<float>((field * 1000 + site) * 100 + c);
    return x;
}

std::vector<std::byte> by_plain_loop(const std::vector<std::int32_t>& sites,
                                     const std::vector<lattice::field<float>>& fields, std::int64_t first,
                                     std::int64_t last) {
    const auto components = static_cast<std::size_t>(fields[0].components());
    std::vector<std::byte> message(fields.size() * sites.size() * components * sizeof(float), untouched);
    for (std::size_t f = 0; f < fields.size(); ++f)
        for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i)
            for (std::size_t c = 0; c < components; ++c) {
                const float value = fields[f].at(sites[i], static_cast<int>(c));
                std::memcpy(&message[((f * sites.size() + i) * components + c) * sizeof value], &value, sizeof value);
            }
    return message;
}

/// Memory that begins with a cache line, as slots do.
struct slot {
    explicit slot(std::size_t bytes) : lines((bytes + 63) / 64 + 1), size(bytes) {
        std::memset(lines.data(), static_cast<int>(untouched), 64 * lines.size());
    }
    struct alignas(64) line {
        std::byte bytes[64];
    };
    [[nodiscard]] std::byte* data() { return lines[0].bytes; }
    [[nodiscard]] std::vector<std::byte> content() { return {data(), data() + size}; }
    std::vector<line> lines;
    std::size_t size;
};

TEST(MessageWriter, WritesWhatAPlainLoopDoesWhateverTheWay) {
    const auto lexicographic = site_order::lexicographic(extents);
    const auto even_odd = site_order::even_odd({{0, 0, 0, 0}, extents});
    for (const auto& prepared : {lexicographic, even_odd})
        for (const auto& order : {lexicographic, even_odd}) // prepared, or copied site by site
            for (const auto& sites : lists())
                for (const int components : {1, 24})
                    for (way& w : ways()) {
                        std::vector<lattice::field<float>> fields;
                        for (int f = 0; f < 2; ++f) fields.push_back(numbered(order, components, f));
                        const message_writer writer = writer_of(
                            w, sites, prepared.get(), sizeof(float) * static_cast<std::size_t>(components), 2);
                        slot message(writer.bytes());

                        const std::int64_t cut = writer.sites() / 3; // as for two members of a team
                        std::uint64_t sum = 0;
                        for (std::size_t f = 0; f < 2; ++f) {
                            sum += writer.write(halo::source_of(fields[f]), f, cut, writer.sites(), message.data());
                            sum += writer.write(halo::source_of(fields[f]), f, 0, cut, message.data());
                        }

                        const std::vector<std::byte> right = by_plain_loop(sites, fields, 0, writer.sites());
                        ASSERT_EQ(message.content(), right)
                            << w.name << ", " << sites.size() << " sites of " << components;
                        ASSERT_EQ(sum, w.sums ? halo::reference::message_sum(right, 0) : 0) << w.name;
                    }
}

TEST(MessageWriter, LeavesTheSharesOfOthersAlone) {
    const auto order = site_order::lexicographic(extents);
    const std::vector<std::int32_t> sites = lists()[1];
    for (way& w : ways()) {
        std::vector<lattice::field<float>> fields;
        fields.push_back(numbered(order, 24, 0));
        const message_writer writer = writer_of(w, sites, order.get(), 96, 1);
        slot message(writer.bytes());

        writer.write(halo::source_of(fields[0]), 0, 17, 401, message.data()); // both ends inside a line

        EXPECT_EQ(message.content(), by_plain_loop(sites, fields, 17, 401)) << w.name;
    }
}

TEST(MessageWriter, WritesWhatCallersPack) {
    const auto order = site_order::lexicographic(extents);
    const std::vector<std::int32_t> sites = lists()[1];
    for (way& w : ways()) {
        std::vector<lattice::field<float>> fields;
        for (int f = 0; f < 3; ++f) fields.push_back(numbered(order, 3, f));
        const message_writer writer = writer_of(w, sites, nullptr, 12, 3);
        slot message(writer.bytes());
        const std::vector<std::byte> packed = by_plain_loop(sites, fields, 0, writer.sites());
        const auto pack = [&](std::int64_t first, std::int64_t last) {
            return writer.write_packed(
                [&](std::byte* start) {
                    EXPECT_EQ(start == message.data(), !w.watch.streamed()) << w.name;
                    for (std::size_t f = 0; f < 3; ++f) {
                        const std::size_t begin = f * writer.field_bytes() + 12 * static_cast<std::size_t>(first);
                        std::memcpy(start + begin, &packed[begin], 12 * static_cast<std::size_t>(last - first));
                    }
                },
                first, last, message.data());
        };

        const std::uint64_t sum = pack(0, 100) + pack(100, writer.sites());

        EXPECT_EQ(message.content(), packed) << w.name;
        EXPECT_EQ(sum, w.sums ? halo::reference::message_sum(packed, 0) : 0) << w.name;
    }
}

} // namespace
