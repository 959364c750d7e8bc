// SPDX-License-Identifier: Apache-2.0
// A linear map of a site's reals (block_map) as steps for vector registers: each takes some neighbouring reals,
// permutes them, multiplies each by a coefficient, and adds them to some neighbouring reals of the result. Made once,
// for the SIMD target of this machine. Neither storage has lanes.
#pragma once

#include <halocline/halo/block_map.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace halocline::halo {

/// sum[lane] += coefficient[lane] * in[from + permuted lane]; the first step of a sum begins it, the last stores it at
/// `to`.
template <class T>
struct map_step {
    alignas(64) std::array<T, 64 / sizeof(T)> coefficient{};
    /// The source of each place: in vectors longer than 16 bytes the index of a 32-bit word, otherwise of a byte, four
    /// per element.
    alignas(64) std::array<std::uint32_t, 16> permutation{};
    std::int32_t from = 0, to = 0;
    bool first = false, last = false;
};

/// Steps as the kernels read them: plain data.
template <class T>
struct map_program {
    const map_step<T>* steps = nullptr;
    /// Steps of vectors of 64, 32, 16, 8 and 4 bytes: [end[i - 1], end[i]).
    std::array<std::int32_t, 5> end{};
    std::int64_t in_reals = 0, out_reals = 0;
};

/// to[to_at[i]] = or += map from[from_at[i]], site by site; a list that is null is 0, 1, 2, …
template <class T>
using map_kernel = void(const map_program<T>& program, const T* from, const std::int32_t* from_at, T* to,
                        const std::int32_t* to_at, std::int64_t count);

template <class T>
class site_map {
  public:
    site_map() = default;
    /// Pre: check_map(map, in_reals) succeeds.  Cost: O(steps); 192 bytes each, about one for 32 bytes of a site.
    site_map(const block_map& map, int in_reals);

    [[nodiscard]] bool empty() const { return steps_.empty(); }
    /// to[i] = map from[i] for `count` consecutive sites on both sides.  Cost: an indirect call, one read, one write.
    void assign(const T* from, T* to, std::int64_t count) const noexcept {
        assign_(program(), from, nullptr, to, nullptr, count);
    }
    /// to[i] = map from[positions[i]].
    void gather(const T* from, const std::int32_t* positions, T* to, std::int64_t count) const noexcept {
        assign_(program(), from, positions, to, nullptr, count);
    }
    /// to[positions[i]] += map from[i].  Pre: positions differ.
    void add(const T* from, T* to, const std::int32_t* positions, std::int64_t count) const noexcept {
        add_(program(), from, nullptr, to, positions, count);
    }

  private:
    [[nodiscard]] map_program<T> program() const noexcept { return {steps_.data(), end_, in_reals_, out_reals_}; }

    std::vector<map_step<T>> steps_;
    std::array<std::int32_t, 5> end_{};
    std::int64_t in_reals_ = 0, out_reals_ = 0;
    map_kernel<T>*assign_ = nullptr, *add_ = nullptr;
};

extern template class site_map<float>;
extern template class site_map<double>;

} // namespace halocline::halo
