// SPDX-License-Identifier: Apache-2.0
#include "region_outline.hpp"

#include "set_up_row.hpp"

#include <bit>
#include <cstdint>
#include <type_traits>

namespace halocline::halo {
namespace {

/// Passes the outline through a row.  Outline: const for the writer.
template <class Row, class Outline>
void pass(Row& row, Outline& o) {
    row.list(o.shapes, [&](auto& shape) {
        row.number(shape.components);
        row.number(shape.component_bytes);
        row.number(shape.kind);
    });
    row.number(o.asked);
    row.number(o.adds);
    row.number(o.has_checksums);
    row.number(o.format);
    auto scale = std::bit_cast<std::uint32_t>(o.scale); // a row holds whole numbers
    row.number(scale);
    if constexpr (!std::is_const_v<Outline>) o.scale = std::bit_cast<float>(scale);
    row.map(o.sends);
    row.map(o.receives);
    row.number(o.offers_direct);
    row.number(o.alternates);
    row.number(o.in_the_way);
    row.list(o.targets, [&](auto& fields) { row.list(fields, [&](auto& offset) { row.number(offset); }); });
    const auto pass_sites = [&](auto& field) {
        row.number(field.lanes);
        row.positions(field.positions);
    };
    row.list(o.filled, pass_sites);
    row.list(o.sent, pass_sites);
}

} // namespace

std::string encoded(const region_outline& o) {
    row_writer row;
    pass(row, o);
    return row.take();
}

region_outline decoded(const std::string& bytes) {
    region_outline o;
    row_reader row(bytes);
    pass(row, o);
    row.end();
    return o;
}

} // namespace halocline::halo
