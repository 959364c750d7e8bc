// SPDX-License-Identifier: Apache-2.0
// A field: a number of components, chosen at run time, on each site of a local box; stored [outer][component][lane]. A field knows nothing of ghosts: they lie in a plan's slots, or they are sites of a site
// order that has room for them (halo/). Memory comes from a std::pmr::memory_resource. A comm::slab is one, so fields
// can live where peers reach them.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/lattice/component.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/huge_pages.hpp>
#include <halocline/lattice/site_order.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <utility>

namespace halocline::lattice {

/// Alignment of field storage in bytes: a cache-line pair.
inline constexpr std::size_t field_alignment = 128;

/// A number that no other call returns: what a field's version becomes when its values have changed.
inline std::uint64_t next_version() {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// A field of components T: float, double, std::complex of them, or another type. A complex component lies in memory as
/// two reals would, so halo/ exchanges a field<std::complex<double>> of n components like a field<double> of 2 n; only
/// in site orders with SIMD lanes, where re and im lie apart, a field has real components. Move-only, because copies of large fields should be visible in the code: copy_from().
template <class T>
class field {
  public:
    field() = default;
    /// Zero-filled.  Shape: order->outer_sites() x components x order->lane_width().
    /// Err: input_error: no order, a negative number of components, more values than any memory holds, or complex
    /// components in an order with lanes; std::bad_alloc.
    field(std::shared_ptr<const site_order> order, int components, std::pmr::memory_resource* memory = huge_pages())
        : order_(std::move(order)), components_(components), memory_(memory), size_(size_of(order_.get(), components)),
          version_(std::make_shared<std::uint64_t>(next_version())) {
        data_ = static_cast<T*>(memory_->allocate(std::max<std::size_t>(size_, 1) * sizeof(T), field_alignment));
        std::fill_n(data_, size_, T{});
    }
    /// A field in lexicographic order, on a box of these extents.
    field(const coordinate& extents, int components, std::pmr::memory_resource* memory = huge_pages())
        : field(site_order::lexicographic(extents), components, memory) {}
    field(field&& other) noexcept { swap(other); }
    field& operator=(field&& other) noexcept {
        field(std::move(other)).swap(*this);
        return *this;
    }
    ~field() {
        if (data_) memory_->deallocate(data_, std::max<std::size_t>(size_, 1) * sizeof(T), field_alignment);
    }

    [[nodiscard]] const site_order& order() const { return *order_; }
    [[nodiscard]] const std::shared_ptr<const site_order>& shared_order() const { return order_; }
    [[nodiscard]] int components() const { return components_; }
    [[nodiscard]] std::int64_t volume() const { return order_->volume(); } ///< sites of the box
    /// All storage, including padding lanes (they hold zeros, and linear kernels keep them so).
    [[nodiscard]] std::span<T> values() { return {data_, size_}; }
    [[nodiscard]] std::span<const T> values() const { return {data_, size_}; }
    [[nodiscard]] T* data() { return data_; }
    [[nodiscard]] const T* data() const { return data_; }
    /// Storage of one outer index: [component][lane].
    [[nodiscard]] T* outer(std::int64_t o) { return data_ + o * components_ * order_->lane_width(); }
    [[nodiscard]] const T* outer(std::int64_t o) const { return data_ + o * components_ * order_->lane_width(); }
    /// Component c of the site with this lexicographic index in the local box.  For set-up, tests and references, not
    /// for kernels.  Pre: 0 <= site < volume(), the site has a position, 0 <= c < components().
    [[nodiscard]] T& at(std::int64_t site, int c) { return data_[offset(site, c)]; }
    [[nodiscard]] const T& at(std::int64_t site, int c) const { return data_[offset(site, c)]; }

    /// Shape: other has as many components, and each site in the same place; its order may be another object.
    /// Err: input_error if not; nothing is copied.
    void copy_from(const field& other) {
        if (!has_shape_of(other)) refuse_shape_of(other);
        std::copy_n(other.data_, size_, data_);
        mark_written();
    }
    /// To be called when values have changed: copies elsewhere, such as ghosts, are stale from now on (halo:
    /// ensure_halo). Every function of the library that writes a field of its caller does so itself; programs call it
    /// after they wrote through values(), data(), outer() or at().
    void mark_written() {
        if (version_) *version_ = next_version();
    }
    /// A number that changes with each mark, and differs between fields of this process; 0 without storage.
    [[nodiscard]] std::uint64_t version() const { return version_ ? *version_ : 0; }
    /// The storage of version(). It stays with the values when fields are moved or swapped, so that it serves code that
    /// identifies a field by its memory.
    [[nodiscard]] const std::shared_ptr<std::uint64_t>& shared_version() const { return version_; }
    /// Swaps orders and memory too; no values are copied.
    void swap(field& other) noexcept {
        std::swap(order_, other.order_);
        std::swap(components_, other.components_);
        std::swap(memory_, other.memory_);
        std::swap(size_, other.size_);
        std::swap(data_, other.data_);
        std::swap(version_, other.version_);
    }

  private:
    [[nodiscard]] static std::size_t size_of(const site_order* order, int components) {
        if (order == nullptr) throw input_error("a field was made without a site order");
        if (reals_of < T >> 1 && order->lane_width() > 1)
            throw input_error("a field of complex components in a site order of " +
                              std::to_string(order->lane_width()) +
                              " lanes; there it has two real ones for each, re and im");
        const std::int64_t sites = order->outer_sites() * order->lane_width();
        const std::int64_t most = std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(sizeof(T));
        if (components < 0 || sites * components > most)
            throw input_error("a field of " + std::to_string(components) + " components on " + std::to_string(sites) +
                              " sites: no memory can hold it");
        return static_cast<std::size_t>(sites * components);
    }
    [[nodiscard]] bool has_shape_of(const field& other) const {
        if (order_ == nullptr || other.order_ == nullptr) return order_ == other.order_;
        return components_ == other.components_ && order_->places_as(*other.order_);
    }
    [[noreturn]] void refuse_shape_of(const field& other) const {
        const auto shown = [](const field& f) {
            return f.order_
                       ? std::to_string(f.components_) + " components on a box of " + to_string(f.order_->extents())
                       : std::string("nothing");
        };
        const std::string mine = shown(*this), its = shown(other);
        throw input_error("copy_from(): a field of " + its + " can't be copied to one of " + mine +
                          (mine == its ? " in another site order" : "") + "; both must have the same shape and order");
    }
    [[nodiscard]] std::size_t offset(std::int64_t site, int c) const {
        const std::int64_t position = order_->position(site);
        const int bits = order_->lane_bits();
        return static_cast<std::size_t>((((position >> bits) * components_ + c) << bits) +
                                        (position & (order_->lane_width() - 1)));
    }

    std::shared_ptr<const site_order> order_;
    int components_ = 0;
    std::pmr::memory_resource* memory_ = nullptr;
    std::size_t size_ = 0;
    T* data_ = nullptr;
    std::shared_ptr<std::uint64_t> version_;
};

/// The links of a gauge configuration, in lexicographic order with 72 components: U_mu(x) for mu = x, y, z, t, each a
/// row-major 3x3 complex matrix that acts on column colour vectors. They carry no boundary sign, which belongs to the
/// operator.
using gauge_field = field<double>;
inline constexpr int link_components = 18;
inline constexpr int gauge_components = dimensions * link_components;
/// Reals of a Dirac spinor: 4 spins x 3 colours x (re, im), component 2 * (3 * spin + colour) + {0, 1}.
inline constexpr int spinor_components = 24;

} // namespace halocline::lattice
