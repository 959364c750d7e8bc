// SPDX-License-Identifier: Apache-2.0
// Which fields a plan can send, and what it was given instead.
#pragma once

#include <halocline/halo/field_view.hpp>
#include <halocline/halo/plan_options.hpp>
#include <halocline/halo/team.hpp>
#include <halocline/lattice/geometry.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace halocline::halo {

class field_check {
  public:
    field_check() = default;
    /// `extents` of the local box.
    field_check(const plan_options& options, const lattice::coordinate& extents)
        : fields_(static_cast<std::size_t>(options.fields)), site_bytes_(options.bytes_per_site),
          element_(options.element), extents_(extents), prepared_(options.order.get()),
          ordered_(options.order && !options.order->is_lexicographic()) {}

    /// Can a message hold this number of fields?
    [[nodiscard]] bool fits(std::size_t fields) const noexcept { return fields == fields_; }
    /// Can a message be filled from this field?
    [[nodiscard]] bool fits(const source_field& x) const noexcept {
        return x.order && x.values && x.shape.bytes() == site_bytes_ && has_extents(*x.order) && has_sites(*x.order) &&
               (element_.bytes == 0 || element_ == x.element || (x.element.bytes == 0 && has_size(x.shape)));
    }
    /// Can a message be filled from bytes of sites, x fastest, of this number of fields?
    [[nodiscard]] bool fits_bytes(std::size_t fields) const noexcept { return !ordered_ && fits(fields); }

    /// Notes what was given: `fields` fields, of which `unfit` (null: none) can't be sent.
    void refuse(std::size_t fields, const source_field* unfit) noexcept;
    /// Notes that bytes of `fields` fields were given; `there`: all at addresses that aren't null.
    void refuse_bytes(std::size_t fields, bool there) noexcept;
    /// The last refused input, and what the plan sends.
    [[nodiscard]] std::string describe_refused() const;

  private:
    [[nodiscard]] bool has_extents(const lattice::site_order& order) const noexcept {
        int difference = 0; // == would call memcmp(), which takes longer than all of this
        for (std::size_t mu = 0; mu < extents_.size(); ++mu) difference |= order.extents()[mu] ^ extents_[mu];
        return difference == 0;
    }

    [[nodiscard]] bool has_size(const site_shape& shape) const noexcept {
        return shape.component_bytes == element_.bytes;
    }

    /// The sites of the plan have positions in the order that it was made for.
    [[nodiscard]] bool has_sites(const lattice::site_order& order) const noexcept {
        return order.is_whole() || &order == prepared_;
    }

    struct given_fields {
        std::size_t count = 0;
        std::size_t site_bytes = 0; // of a field that doesn't fit; 0: none, or one without storage
        comm::element_type element{};
        lattice::coordinate extents{};
        bool of_one_parity = false;
    };
    std::size_t fields_ = 0, site_bytes_ = 0;
    comm::element_type element_;
    lattice::coordinate extents_{};
    const lattice::site_order* prepared_ = nullptr;
    bool ordered_ = false;                // otherwise than bytes of sites are
    std::optional<given_fields> refused_; ///< nothing: bytes
    std::size_t byte_fields_ = 0;         ///< that start_bytes() was given
    bool bytes_there_ = true;
};

} // namespace halocline::halo
