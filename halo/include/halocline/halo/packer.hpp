// SPDX-License-Identifier: Apache-2.0
// Built-in pack functions, for plan::start(packer.of(x)): a message may hold a projection of each site (half-spinors),
// times the phase of a twisted boundary, in fewer bits than the field; and several fields, one after the other.
// Compiled for every SIMD target; pack_reference.hpp has the same functions as plain loops. unpacker.hpp takes such
// messages apart and adds them to a field.
#pragma once

#include <halocline/base/checked_pointer.hpp>
#include <halocline/halo/block_map.hpp>
#include <halocline/halo/detail/site_copy.hpp>
#include <halocline/halo/detail/site_map.hpp>
#include <halocline/halo/field_view.hpp>
#include <halocline/halo/message_format.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/lattice/component.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/site_order.hpp>

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace halocline::halo {

/// What a message holds of each site.
struct packer_options {
    int components = 0; ///< reals per site of a field: of complex components two each
    message_format format = message_format::as_stored;
    /// For half and bfloat16: the message holds scale * value. Equal on all ranks, which nothing checks: a rank that
    /// unpacks with another scale gets other values.
    double scale = 1;
    /// Projection of messages through each face, e.g. the half-spinor projections 1 -+ gamma_mu. All empty: whole
    /// sites.
    std::array<block_map, lattice::faces> projections{};
    /// Twisted boundaries: beyond the upper edge of the lattice the field continues as phase * field (-1:
    /// antiperiodic), beyond the lower edge as conj(phase) * field. The sender applies the phases, on faces at the edge
    /// of the lattice.
    std::array<std::complex<double>, lattice::dimensions> phases{1, 1, 1, 1};
};

/// Packs fields of one site order for one plan. Immutable: any number of threads and exchanges may use it.
/// T: float or double; a packer<double> takes fields of double, and of std::complex<double>.
/// Lifetime: the result of of() uses the packer and the field until plan.start() returns.
template <class T>
class packer {
  public:
    /// Reals of a site in a message; bytes_per_site(): its bytes, for plan_options::bytes_per_site.
    static int reals_per_site(const packer_options& options);
    static std::size_t bytes_per_site(const packer_options& options);

    /// `order`: of the fields; null: plan_options::order.
    /// Err: input_error: a map that does not fit the components, projections of different sizes, half or bfloat16 of
    /// doubles, a scale that is not a normal float or whose inverse is not, a phase that is not finite, an order of
    /// another box, a plan with other bytes per site, more than 2048 reals of a site that are not copied as they are.
    /// On every rank, if some rank sends through the face, except for the order of another box.
    /// Cost: O(sites of the plan's messages).
    packer(const plan& p, packer_options options, std::shared_ptr<const lattice::site_order> order = nullptr);

    /// The pack function for this field.  Pre: start() is that of the packer's plan, or of one with the same messages:
    /// sites, bytes per site and number of fields. Otherwise nothing is sent and finish() returns misused.
    /// Err:  input_error: another site order than the packer was made for (another object, unless both are
    ///       lexicographic); other components; the plan was made for several fields; the packer was moved from.
    /// Cost: one read of the sites and one write of the message; a change of format, and a projection of sites in
    ///       lanes, go through 8 KiB of stack each.
    template <class C>
    requires std::is_same_v<lattice::real_of<C>, T>
    [[nodiscard]] auto of(const lattice::field<C>& x) const {
        using one_field = std::array<const lattice::field<C>*, 1>;
        const std::span<const message> messages = *messages_;
        check_field(source_of(x), 1);
        return pack_of<one_field>{*this, messages, {&x}};
    }
    /// The pack function for memory of your own: of(source_of(view(values, order, components))).  Lifetime: uses the
    /// memory and the site order until plan.start() returns.
    [[nodiscard]] auto of(const source_field& x) const {
        const std::span<const message> messages = *messages_;
        check_field(x, 1);
        return pack_of<std::array<source_field, 1>>{*this, messages, {x}};
    }
    /// The pack function for all fields of a message: several right-hand sides. Site i of field f goes where
    /// plan::start() of fields puts it, f * send_sites + i sites from the start; its ghost is read at plan::ghost(face,
    /// f).
    /// Shape: options().fields of the plan, all in one site order.  Lifetime: also uses `xs` until plan.start()
    /// returns.
    /// Err: input_error: another number of fields, another site order, other components; the packer was moved from.
    [[nodiscard]] auto of(std::span<const lattice::field<T>* const> xs) const { return of_all(xs); }
    [[nodiscard]] auto of(std::span<const lattice::field<std::complex<T>>* const> xs) const { return of_all(xs); }
    /// The reals of the ghost sites [first, last) of one field, with the scale removed; out[0] is the first real of
    /// site `first`.  Shape: `ghost` is where the field's ghosts start, plan::ghost(face, field).
    void unpack(const std::byte* ghost, std::int64_t first, std::int64_t last, T* out) const noexcept;
    /// The inverse of unpack(): reals of sites [first, last), already projected, become part of a message, in its
    /// format. reals[0] is the first real of site `first`; `target` is where the field's part of the message starts.
    void write(const T* reals, std::int64_t first, std::int64_t last, std::byte* target) const noexcept;

    [[nodiscard]] const packer_options& options() const { return options_; }

  private:
    struct message {
        site_copy copy;                      // without a map, or if the storage has lanes
        std::vector<std::int32_t> positions; // otherwise
        site_map<T> map;
        face where;
        std::size_t field_bytes = 0;
        std::uint64_t fingerprint = 0; // as plan_message::fingerprint
    };
    /// What of() returns: packs `fields`, pointers to fields or source_fields.
    template <class Fields>
    struct pack_of {
        const packer& by;
        std::span<const message> messages;
        Fields fields;

        void operator()(int index, std::int64_t first, std::int64_t last, std::byte* target) const noexcept {
            const message& m = messages[index];
            for (const auto& x : fields) {
                by.pack(m, reinterpret_cast<const T*>(source_of(x).values), first, last, target);
                target += m.field_bytes;
            }
        }
        /// Does the plan have the messages that the packer was made for?
        [[nodiscard]] bool fits(const plan& p) const noexcept {
            const auto alike = [](const plan_message& asked, const message& m) {
                return asked.where == m.where && asked.fingerprint == m.fingerprint;
            };
            return p.options().bytes_per_site == by.bytes_ && p.options().fields == by.fields_ &&
                   std::ranges::equal(p.messages(), messages, alike);
        }
        // For plans, which note whose ghosts they have.
        [[nodiscard]] std::span<const typename Fields::value_type> sources() const noexcept { return fields; }
        [[nodiscard]] std::uint64_t packed_by() const noexcept { return by.number_; }
    };

    template <class C>
    [[nodiscard]] auto of_all(std::span<const lattice::field<C>* const> xs) const {
        const std::span<const message> messages = *messages_;
        for (const lattice::field<C>* x : xs) check_field(source_of(x), xs.size());
        if (xs.empty()) refuse_count(0);
        return pack_of<std::span<const lattice::field<C>* const>>{*this, messages, xs};
    }
    void check_options(const std::string& who, const plan& p) const;
    void check_field(const source_field& x, std::size_t count) const {
        if (count != static_cast<std::size_t>(fields_)) refuse_count(count);
        const bool there = x.values != nullptr;
        constexpr comm::element_type mine = comm::element_type_of<T>();
        if (there && x.element.bytes == mine.bytes && x.element != mine) refuse_element(x.element);
        if (!there || x.shape.components != options_.components || x.shape.component_bytes != sizeof(T))
            refuse_components(there ? x.shape : site_shape{.components = 0, .component_bytes = sizeof(T)});
        if (x.order == nullptr || !x.order->is_like(*order_)) refuse_order();
    }
    [[noreturn]] void refuse_count(std::size_t count) const;
    [[noreturn]] void refuse_components(const site_shape& given) const;
    [[noreturn]] void refuse_element(const comm::element_type& given) const;
    [[noreturn]] void refuse_order() const;
    [[nodiscard]] block_map map_of(face f, bool wraps, const std::string& who) const;
    void pack(const message& m, const T* values, std::int64_t first, std::int64_t last,
              std::byte* target) const noexcept;
    void gather(const message& m, const T* values, std::int64_t first, std::int64_t last, T* out) const noexcept;

    packer_options options_;
    std::string name_;                                 // the plan's
    std::shared_ptr<const lattice::site_order> order_; // of the fields
    int reals_ = 0, lanes_ = 1, fields_ = 1;
    std::size_t bytes_ = 0;                          // of a site in a message
    std::uint64_t number_ = lattice::next_version(); // no other packer's, but for its copies
    checked_pointer<std::shared_ptr<const std::vector<message>>> messages_{"a halo::packer", nullptr};
};

extern template class packer<float>;
extern template class packer<double>;

} // namespace halocline::halo
