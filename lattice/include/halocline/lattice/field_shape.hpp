// SPDX-License-Identifier: Apache-2.0
// The shape that a function needs of its fields, and the error that says which one a field has instead.
#pragma once

#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/site_order.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace halocline::lattice {

/// In which site orders a function finds its way. All sites of the box have values.
enum class site_orders : std::uint8_t {
    any,           ///< it asks the order for each site
    one_lane,      ///< it asks, but reads the components of a site as neighbours
    lexicographic, ///< it reads site after site
};

/// What a function needs of a field.
struct field_shape {
    int components = 0;
    std::optional<coordinate> extents{}; ///< of its box; empty: any
    site_orders orders = site_orders::any;
};

namespace detail {

/// `order` is the field's; null: it has no storage.
void require_shape(std::string_view what, int components, const site_order* order, const field_shape& needed);
[[noreturn]] void refuse_shape(std::string_view what, int components, const site_order* order, int needed_components,
                               const site_order& needed_order);

} // namespace detail

/// Err: input_error, which begins with `what` ("solver: field x"), unless the field has this shape.
template <class T>
void require_shape(const field<T>& x, std::string_view what, const field_shape& needed) {
    detail::require_shape(what, x.components(), x.shared_order().get(), needed);
}

/// Has the field so many components, and each site where `order` places it?
/// Cost: a comparison of pointers; a look at all sites if its order is another object, and not lexicographic.
template <class T>
[[nodiscard]] bool has_shape(const field<T>& x, int components, const site_order& order) noexcept {
    return x.components() == components && x.shared_order() != nullptr && order.places_as(*x.shared_order());
}
/// Err: input_error, which begins with `what`, unless has_shape().
template <class T>
void require_shape(const field<T>& x, std::string_view what, int components, const site_order& order) {
    if (!has_shape(x, components, order))
        detail::refuse_shape(what, x.components(), x.shared_order().get(), components, order);
}

} // namespace halocline::lattice
