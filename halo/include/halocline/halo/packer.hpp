// SPDX-License-Identifier: Apache-2.0
// Built-in pack functions for plan::start(packer.of(x)): a message may hold a projection of each site, with the phase
// of a twisted boundary, in fewer bits than the field. Compiled for every SIMD target; pack_reference.hpp says the same
// plainly.
#pragma once

#include <halocline/halo/plan.hpp>

#include <complex>

namespace halocline::halo {

/// How the reals of a message are stored.
enum class message_format : std::uint8_t {
    as_stored, ///< like the field: float or double
    /// IEEE half of scale * value, 2 B. For 2^-14 <= |scale * value| < 65520 the relative error is at most 2^-11 (2^-11
    /// + 2^-23 where scale is not a power of two), below that the absolute one at most 2^-25 / scale; above: infinity.
    half,
    /// The upper 16 bits of the float, 2 B; relative error at most 2^-8 (rounded to nearest), range as float.
    bfloat16,
};
std::size_t bytes_per_real(message_format format, std::size_t stored_bytes);

/// A linear map of the blocks of a site (a block: the colours of one spin), block by block:
/// out[r] = sum over terms of row r of coefficient * in[block]. The reals of a block are pairs (re, im), except that
/// blocks of an odd number of reals may be used with real coefficients.
struct block_map {
    struct term {
        int block = 0;
        std::complex<double> coefficient = 1;
    };
    int block_reals = 0;
    std::vector<std::vector<term>> rows;

    [[nodiscard]] bool empty() const { return rows.empty(); }
};

struct packer_options {
    int components = 0; ///< reals per site of the fields
    message_format format = message_format::as_stored;
    double scale = 1; ///< for half and bfloat16: the message holds scale * value
    /// By the face that a message is sent through, e.g. the half-spinor projections 1 -+ gamma_mu; all empty: all
    /// components.
    std::array<block_map, lattice::faces> projections{};
    /// A field continued over the upper edge of the lattice is phase * field (twisted boundaries; -1: antiperiodic),
    /// over the lower edge conj(phase) * field. Applied on the faces at the edge of the lattice, by the sender.
    std::array<std::complex<double>, lattice::dimensions> phases{1, 1, 1, 1};
};

/// Packs fields of one site order for one plan. Immutable: any number of threads and exchanges may use it.
/// Lifetime: what of() returns uses the packer and the field until plan.start() returns.
template <class T>
class packer {
  public:
    /// Reals per site in a message, and its bytes: what plan_options::bytes_per_site must be.
    static int reals_per_site(const packer_options& options);
    static std::size_t bytes_per_site(const packer_options& options);

    /// Err: input_error: a map that does not fit the components, projections of different size, half or bfloat16 of
    /// doubles, an order of another box, a plan of other bytes per site.  Cost: O(sites of the plan's messages).
    packer(const plan& p, const lattice::decomposition& cut, std::shared_ptr<const lattice::site_order> order,
           packer_options options);

    /// The pack function of this field.  Pre: x has the order and the components that the packer was made for.
    /// Cost: reads the field's sites once and writes the message once; changes of format go through 8 KiB of stack.
    [[nodiscard]] auto of(const lattice::field<T>& x) const noexcept {
        return [this, values = x.data()](int index, std::int64_t first, std::int64_t last, std::byte* target) noexcept {
            pack(index, values, first, last, target);
        };
    }
    /// The reals of ghost sites [first, last): out[0] is the first real of site `first`. Divided by the scale again.
    void unpack(const std::byte* ghost, std::int64_t first, std::int64_t last, T* out) const noexcept;

    [[nodiscard]] const packer_options& options() const { return options_; }

  private:
    struct flat_map { // rows, terms: as the kernels read them
        flat_map() = default;
        explicit flat_map(const block_map& map);
        std::vector<std::int32_t> row_begin, block;
        std::vector<T> re, im;
        int block_reals = 0;
        bool real = true; // no coefficient has an imaginary part
    };
    struct message {
        site_copy copy; // without a map
        std::vector<std::int32_t> positions;
        flat_map map; // no rows: copy
    };
    void check_options(const std::string& who, const plan& p, const lattice::decomposition& cut,
                       const lattice::site_order& order) const;
    [[nodiscard]] block_map map_of(face f, bool wraps, const std::string& where) const;
    void pack(int index, const T* values, std::int64_t first, std::int64_t last, std::byte* target) const noexcept;
    void gather(const message& m, const T* values, std::int64_t first, std::int64_t last, T* out) const noexcept;

    packer_options options_;
    int reals_ = 0, lanes_ = 1;
    std::vector<message> messages_;
};

extern template class packer<float>;
extern template class packer<double>;

} // namespace halocline::halo
