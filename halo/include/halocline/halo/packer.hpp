// SPDX-License-Identifier: Apache-2.0
// Built-in pack functions, for plan::start(packer.of(x)): a message may hold a projection of each site (half-spinors),
// times the phase of a twisted boundary, in fewer bits than the field. Compiled for every SIMD target;
// pack_reference.hpp has the same as plain loops.
#pragma once

#include <halocline/halo/plan.hpp>

#include <complex>

namespace halocline::halo {

/// How the reals of a message are stored.
enum class message_format : std::uint8_t {
    as_stored, ///< like the field: float or double
    /// IEEE half of scale * value, 2 B. For 2^-14 <= |scale * value| < 65520 the relative error is at most 2^-11 (2^-11
    /// + 2^-23 if scale is not a power of two); below, the absolute error is at most 2^-25 / scale; above: infinity.
    half,
    /// The upper 16 bits of the float, rounded to nearest, 2 B; relative error at most 2^-8, range as float.
    bfloat16,
};
/// Bytes of one real in a message of a field whose reals have `stored_bytes`.
std::size_t bytes_per_real(message_format format, std::size_t stored_bytes);

/// A linear map of the blocks of a site (a block: say, the colours of one spin):
/// out[r] = sum over terms t of row r of t.coefficient * in[t.block]. The reals of a block are pairs (re, im); a block
/// of an odd number of reals is allowed if all coefficients are real.
struct block_map {
    struct term {
        int block = 0;
        std::complex<double> coefficient = 1;
    };
    int block_reals = 0; ///< reals per block
    std::vector<std::vector<term>> rows;

    [[nodiscard]] bool empty() const { return rows.empty(); }
};

struct packer_options {
    int components = 0; ///< reals per site of the fields
    message_format format = message_format::as_stored;
    double scale = 1; ///< for half and bfloat16: the message holds scale * value
    /// By the face through which a message is sent, e.g. the half-spinor projections 1 -+ gamma_mu. All empty: whole
    /// sites.
    std::array<block_map, lattice::faces> projections{};
    /// Twisted boundaries: beyond the upper edge of the lattice the field continues as phase * field (-1:
    /// antiperiodic), beyond the lower edge as conj(phase) * field. The sender applies them, on faces at the edge of
    /// the lattice.
    std::array<std::complex<double>, lattice::dimensions> phases{1, 1, 1, 1};
};

/// Packs fields of one site order for one plan. Immutable: any number of threads and exchanges may use it.
/// Lifetime: what of() returns uses the packer and the field until plan.start() returns.
template <class T>
class packer {
  public:
    /// Reals of a site in a message, and bytes of a site in a message: the plan's plan_options::bytes_per_site.
    static int reals_per_site(const packer_options& options);
    static std::size_t bytes_per_site(const packer_options& options);

    /// Err: input_error: a map that does not fit the components, projections of different size, half or bfloat16 of
    /// doubles, an order of another box, a plan of other bytes per site.  Cost: O(sites of the plan's messages).
    packer(const plan& p, const lattice::decomposition& cut, std::shared_ptr<const lattice::site_order> order,
           packer_options options);

    /// The pack function for this field.  Pre: x has the site order and components that the packer was made for.
    /// Cost: one read of the sites and one write of the message; a change of format goes through 8 KiB of stack.
    [[nodiscard]] auto of(const lattice::field<T>& x) const noexcept {
        return [this, values = x.data()](int index, std::int64_t first, std::int64_t last, std::byte* target) noexcept {
            pack(index, values, first, last, target);
        };
    }
    /// The reals of the ghost sites [first, last), divided by the scale again; out[0] is the first real of site
    /// `first`.
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
