// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/field.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace {

using namespace halocline::lattice;
using halocline_test::refusal;

constexpr box whole{{0, 0, 0, 0}, {2, 3, 4, 5}};

field<float> numbered(std::shared_ptr<const site_order> order, int components) {
    field<float> f(std::move(order), components);
    for (std::size_t i = 0; i < f.values().size(); ++i) f.values()[i] = 1 + static_cast<float>(i);
    return f;
}

TEST(Field, IsCopiedFromOneWhoseOrderIsAlike) {
    const field<float> x = numbered(site_order::even_odd(whole), 6);
    field<float> y(site_order::even_odd(whole), 6);
    const std::uint64_t before = y.version();

    y.copy_from(x);

    EXPECT_TRUE(std::ranges::equal(x.values(), y.values()));
    EXPECT_NE(y.version(), before);
    field<float> none;
    none.copy_from(field<float>());
    EXPECT_EQ(none.version(), 0U);
}

TEST(Field, RefusesToBeCopiedFromOneOfAnotherShape) {
    const coordinate smaller{2, 3, 2, 5};
    const auto said = [](const field<float>& to_like, const field<float>& from) {
        field<float> y = numbered(to_like.shared_order(), to_like.components());
        const std::uint64_t before = y.version();
        std::string text = refusal([&] { y.copy_from(from); });
        for (std::size_t i = 0; i < y.values().size(); ++i) EXPECT_EQ(y.values()[i], 1 + static_cast<float>(i));
        EXPECT_EQ(y.version(), before);
        return text;
    };
    const field<float> x(whole.extents, 6);

    EXPECT_EQ(
        said(x, field<float>(smaller, 6)),
        "copy_from(): a field of 6 components on a box of 2.3.2.5 can't be copied to one of 6 components on a box "
        "of 2.3.4.5; both must have the same shape and order");
    EXPECT_EQ(
        said(field<float>(smaller, 6), x),
        "copy_from(): a field of 6 components on a box of 2.3.4.5 can't be copied to one of 6 components on a box "
        "of 2.3.2.5; both must have the same shape and order");
    EXPECT_EQ(
        said(x, field<float>(whole.extents, 12)),
        "copy_from(): a field of 12 components on a box of 2.3.4.5 can't be copied to one of 6 components on a box "
        "of 2.3.4.5; both must have the same shape and order");
    EXPECT_EQ(
        said(x, field<float>(site_order::even_odd(whole), 6)),
        "copy_from(): a field of 6 components on a box of 2.3.4.5 can't be copied to one of 6 components on a box "
        "of 2.3.4.5 in another site order; both must have the same shape and order");
    EXPECT_EQ(said(x, field<float>()),
              "copy_from(): a field of nothing can't be copied to one of 6 components on a box of 2.3.4.5; both must "
              "have the same shape and order");
}

} // namespace
