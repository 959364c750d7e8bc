// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/field_shape.hpp>

#include <halocline/base/error.hpp>

#include <string>

namespace halocline::lattice::detail {
namespace {

std::string text_of(int components, const site_order* order) {
    if (order == nullptr) return "no storage";
    const std::string lanes = order->lane_width() > 1 ? " in " + std::to_string(order->lane_width()) + " lanes" : "";
    return std::to_string(components) + " components on a box of " + to_string(order->extents()) + lanes +
           (order->is_whole() ? "" : ", whose sites of one parity alone have values");
}

std::string text_of(const field_shape& shape) {
    std::string text = std::to_string(shape.components) + " components";
    if (shape.extents) text += " on a box of " + to_string(*shape.extents);
    if (shape.orders == site_orders::one_lane) text += " in one lane";
    if (shape.orders == site_orders::lexicographic) text += " in lexicographic order";
    return text;
}

bool is_among(const site_order& order, site_orders orders) {
    if (!order.is_whole()) return false;
    if (orders == site_orders::any || order.is_lexicographic()) return true;
    if (order.lane_width() > 1) return false;
    for (std::int64_t s = 0; orders == site_orders::lexicographic && s < order.volume(); ++s)
        if (order.position(s) != s) return false;
    return true;
}

[[noreturn]] void refuse(std::string_view what, const std::string& has, const std::string& needs) {
    throw input_error(std::string(what) + " has " + has + "; must have " + needs);
}

} // namespace

void require_shape(std::string_view what, int components, const site_order* order, const field_shape& needed) {
    const bool fits = order != nullptr && components == needed.components &&
                      (!needed.extents || order->extents() == *needed.extents) && is_among(*order, needed.orders);
    if (!fits) refuse(what, text_of(components, order), text_of(needed));
}

void refuse_shape(std::string_view what, int components, const site_order* order, int needed_components,
                  const site_order& needed_order) {
    const std::string its = text_of(components, order), needs = text_of(needed_components, &needed_order);
    refuse(what, its + (its == needs ? " in another site order" : ""), needs);
}

} // namespace halocline::lattice::detail
