// SPDX-License-Identifier: Apache-2.0
// A plan's view of a field: where it lies, in which order its sites are stored, and how many bytes a site has.
// The field must outlive the plans that it is bound to, and must not move in memory.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/comm/element_type.hpp>
#include <halocline/lattice/component.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/site_order.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace halocline::halo {

/// The type of a field's components, which a plan that adds must know.
enum class scalar : std::uint8_t { bits, float32, float64 };
constexpr std::string_view to_string(scalar s) {
    switch (s) {
    case scalar::bits: return "bits";
    case scalar::float32: return "float32";
    case scalar::float64: return "float64";
    }
    return "?";
}

/// The shape of one site of a field.
struct site_shape {
    int components = 1;
    std::size_t component_bytes = 0;
    scalar kind = scalar::bits;

    [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(components) * component_bytes; }
    /// Bytes from the start of a storage with `lanes` lanes to component 0 of the site at this position; the next
    /// component follows lanes x component_bytes later.
    [[nodiscard]] std::size_t offset(std::int64_t position, int lanes) const {
        return static_cast<std::size_t>(position / lanes * lanes) * bytes() +
               static_cast<std::size_t>(position % lanes) * component_bytes;
    }
    friend bool operator==(const site_shape&, const site_shape&) = default;
};

/// view() makes one, of a lattice::field or of memory of your own.
struct field_view {
    std::byte* data = nullptr; ///< [outer][component][lane], as lattice::field stores it
    std::shared_ptr<const lattice::site_order> order{};
    site_shape shape{};
    /// The field's version (lattice::field::mark_written()). Without one, is_fresh() is never true.
    std::shared_ptr<std::uint64_t> version = nullptr;

    /// Size of the whole storage, including padding lanes.
    [[nodiscard]] std::size_t bytes() const {
        return static_cast<std::size_t>(order->outer_sites() * order->lane_width()) * shape.bytes();
    }
};

/// A type of components that plans move: of 4 or 8 bytes, or complex.
template <class T>
concept movable_component = std::is_trivially_copyable_v<T> &&
    (sizeof(lattice::real_of<T>) == 4 || sizeof(lattice::real_of<T>) == 8);

/// A site of `components` components T: complex ones count as two reals.
template <movable_component T>
constexpr site_shape site_of(int components) {
    using real = lattice::real_of<T>;
    return {components * lattice::reals_of<T>, sizeof(real),
            std::is_same_v<real, float>    ? scalar::float32
            : std::is_same_v<real, double> ? scalar::float64
                                           : scalar::bits};
}

/// View of memory of your own, which holds `components` components T per site in that order.
/// Err: input_error: complex components in an order with lanes.
template <movable_component T>
field_view view(T* values, std::shared_ptr<const lattice::site_order> order, int components = 1) {
    if (lattice::reals_of < T >> 1 && order && order->lane_width() > 1)
        throw input_error("a view of complex components in a site order of " + std::to_string(order->lane_width()) +
                          " lanes; there they are two real ones each, re and im");
    return {.data = reinterpret_cast<std::byte*>(values), .order = std::move(order), .shape = site_of<T>(components)};
}
/// View of a field.
template <movable_component T>
field_view view(lattice::field<T>& x) {
    field_view all = view(x.data(), x.shared_order(), x.components());
    all.version = x.shared_version();
    return all;
}

/// A field as the source of messages. It owns nothing, so that no references are counted between start() and finish().
struct source_field {
    const std::byte* values = nullptr;
    const lattice::site_order* order = nullptr; ///< null: bytes of sites, x fastest; or a field without storage
    site_shape shape;
    comm::element_type element{}; ///< of its components; not told: of any of their size
};

template <movable_component T>
source_field source_of(const lattice::field<T>& x) noexcept {
    return {reinterpret_cast<const std::byte*>(x.data()), x.shared_order().get(), site_of<T>(x.components()),
            comm::element_type_of<lattice::real_of<T>>()};
}
/// One of several fields that a caller names: null counts as a field without storage.
template <class T>
source_field source_of(const lattice::field<T>* x) noexcept {
    return x != nullptr ? source_of(*x) : source_field{};
}
inline source_field source_of(const field_view& x) noexcept {
    const comm::element_type element = x.shape.kind == scalar::float32   ? comm::element_type_of<float>()
                                       : x.shape.kind == scalar::float64 ? comm::element_type_of<double>()
                                                                         : comm::element_type{};
    return {x.data, x.order.get(), x.shape, element};
}
inline const source_field& source_of(const source_field& x) noexcept { return x; }

// What lattice::field::mark_written() changes; 0: nothing can be marked.
template <class T>
std::uint64_t version_of(const lattice::field<T>* x) noexcept {
    return x != nullptr ? x->version() : 0;
}
inline std::uint64_t version_of(const field_view& x) noexcept { return x.version ? *x.version : 0; }
inline std::uint64_t version_of(const source_field&) noexcept { return 0; }

} // namespace halocline::halo
