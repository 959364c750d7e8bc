// SPDX-License-Identifier: Apache-2.0
#include <halocline/solvers/field_space.hpp>

#include "field_kernels.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace halocline::solvers {
namespace {

// Reals per pass: x, its partner and the accumulators stay in the first-level cache while the basis streams past.
// A multiple of 2 lanes for every lane width up to 512.
constexpr std::size_t chunk = 1024;
// Products that the largest global_sum holds, and that fit on the stack.
constexpr std::size_t most_products = 512;

// w = x and u = -i x: <v, x> = sum v w + i sum v u, over the reals of v.
template <class T>
void widen(const T* x, std::size_t n, std::size_t lanes, double* w, double* u) {
    for (std::size_t l = 0; l < n; ++l) w[l] = static_cast<double>(x[l]);
    for (std::size_t k = 0; k < n; k += 2 * lanes) {
        for (std::size_t l = 0; l < lanes; ++l) {
            u[k + l] = w[k + lanes + l];  // re(v) im(x)
            u[k + lanes + l] = -w[k + l]; // - im(v) re(x)
        }
    }
}

/// products_i = <v_i, x> over the numbers of this rank, up to most_products of them.
template <class T>
void local_products(std::span<const lattice::field<T>> v, const lattice::field<T>& x, complex* products) noexcept {
    const std::size_t n = x.values().size(), lanes = static_cast<std::size_t>(x.order().lane_width());
    alignas(64) double w[chunk], u[chunk];
    double p[most_products], q[most_products];
    std::fill_n(p, v.size(), 0.0);
    std::fill_n(q, v.size(), 0.0);
    for (std::size_t begin = 0; begin < n; begin += chunk) {
        const std::size_t size = std::min(chunk, n - begin);
        widen(x.data() + begin, size, lanes, w, u);
        for (std::size_t i = 0; i < v.size(); i += kernels::group) {
            const int count = static_cast<int>(std::min<std::size_t>(kernels::group, v.size() - i));
            const T* data[kernels::group];
            for (int k = 0; k < count; ++k) data[k] = v[i + k].data() + begin;
            kernels::add_products(data, count, w, u, size, p + i, q + i);
        }
    }
    for (std::size_t i = 0; i < v.size(); ++i) products[i] = {p[i], q[i]};
}

} // namespace

template <class T>
field_space<T>::field_space(std::shared_ptr<const lattice::site_order> order, int components, comm::global_sum& sum,
                            std::pmr::memory_resource* memory)
    : order_(std::move(order)), components_(components), sum_(&sum), memory_(memory) {
    if (order_ == nullptr) throw input_error("field_space: no site order was given");
    if (components <= 0 || components % 2 != 0)
        throw input_error(std::string("field_space: ") + std::to_string(components) +
                          " real components; complex fields need an even number, at least 2");
    if (sum.max_values() < 2)
        throw input_error(std::string("field_space: a global sum of ") + std::to_string(sum.max_values()) +
                          " values can't hold one complex product; give it at least 2");
}

template <class T>
void field_space<T>::set_zero(vector& y) const noexcept {
    std::fill_n(y.data(), y.values().size(), T{});
    y.mark_written();
}

template <class T>
void field_space<T>::scale(vector& y, double alpha) const noexcept {
    // in fp64: 1 / ||r|| may be out of range for T even if the result isn't
    for (T& value : y.values()) value = static_cast<T>(alpha * static_cast<double>(value));
    y.mark_written();
}

template <class T>
void field_space<T>::combine(vector& y, double alpha, std::span<const complex> c, std::span<const vector> v) const {
    require(y);
    for (const vector& x : v) require(x);
    y.mark_written();
    const std::size_t n = y.values().size(), lanes = static_cast<std::size_t>(y.order().lane_width());
    alignas(64) T s[chunk], t[chunk];
    for (std::size_t begin = 0; begin < n; begin += chunk) {
        const std::size_t size = std::min(chunk, n - begin);
        T* const out = y.data() + begin;
        // s = alpha y + sum re(c_i) v_i, t = sum im(c_i) v_i
        const T factor = static_cast<T>(alpha);
        for (std::size_t l = 0; l < size; ++l) s[l] = factor * out[l];
        std::fill_n(t, size, T{});
        for (std::size_t i = 0; i < v.size(); i += kernels::group) {
            const int count = static_cast<int>(std::min<std::size_t>(kernels::group, v.size() - i));
            const T* data[kernels::group];
            T re[kernels::group], im[kernels::group];
            for (int k = 0; k < count; ++k) {
                data[k] = v[i + k].data() + begin;
                re[k] = static_cast<T>(c[i + k].real());
                im[k] = static_cast<T>(c[i + k].imag());
            }
            kernels::accumulate(data, count, re, im, size, s, t);
        }
        // y = s + i t
        for (std::size_t k = 0; k < size; k += 2 * lanes) {
            for (std::size_t l = 0; l < lanes; ++l) {
                out[k + l] = s[k + l] - t[k + lanes + l];
                out[k + lanes + l] = s[k + lanes + l] + t[k + l];
            }
        }
    }
}

template <class T>
comm::status field_space<T>::multi_dot(std::span<const dot_request<vector>> requests) {
    for (const dot_request<vector>& r : requests) {
        require(*r.x);
        for (const vector& y : r.v) require(y);
    }
    const std::size_t most = std::min(most_products, static_cast<std::size_t>(sum_->max_values()) / 2);
    complex values[most_products];
    complex* results[most_products];
    std::size_t filled = 0;
    const auto sum_up = [&] {
        // std::complex<double> is laid out as two doubles
        const comm::status s = (*sum_)({reinterpret_cast<double*>(values), 2 * filled});
        if (s == comm::status::ok)
            for (std::size_t i = 0; i < filled; ++i) *results[i] = values[i];
        filled = 0;
        return s;
    };
    for (const dot_request<vector>& r : requests) {
        for (std::size_t first = 0; first < r.v.size();) {
            const std::size_t number = std::min(most - filled, r.v.size() - first);
            local_products(r.v.subspan(first, number), *r.x, values + filled);
            for (std::size_t i = 0; i < number; ++i) results[filled + i] = &r.products[first + i];
            first += number;
            filled += number;
            if (filled < most) continue;
            if (const comm::status s = sum_up(); s != comm::status::ok) return s;
        }
    }
    return filled > 0 ? sum_up() : comm::status::ok;
}

template <class T>
double field_space<T>::sum_of_squares(const vector& x, double factor) const noexcept {
    alignas(64) double w[chunk];
    double square = 0, unused = 0;
    for (std::size_t begin = 0, n = x.values().size(); begin < n; begin += chunk) {
        const std::size_t size = std::min(chunk, n - begin);
        const T* const data = x.data() + begin;
        for (std::size_t l = 0; l < size; ++l) w[l] = factor * static_cast<double>(data[l]);
        const double* const scaled = w;
        kernels::add_products(&scaled, 1, w, w, size, &square, &unused);
    }
    return square;
}

template <class T>
comm::status field_space<T>::norms(std::span<const vector* const> x, std::span<double> results) {
    for (const vector* one : x) require(*one);
    const std::size_t most = std::min(most_products, static_cast<std::size_t>(sum_->max_values()));
    for (std::size_t first = 0; first < x.size(); first += most) {
        const std::size_t number = std::min(most, x.size() - first);
        const comm::status s = norms_in_one_sum(x.subspan(first, number), results.subspan(first, number));
        if (s != comm::status::ok) return s;
    }
    return comm::status::ok;
}

template <class T>
comm::status field_space<T>::norms_in_one_sum(std::span<const vector* const> x, std::span<double> results) {
    for (std::size_t k = 0; k < x.size(); ++k) results[k] = sum_of_squares(*x[k], 1); // ||x||^2
    comm::status s = (*sum_)(results);
    if (s != comm::status::ok) return s;

    // ||x||^2 = sum (factor x_l)^2 / factor^2
    constexpr double up = 0x1p700;    // the square of the smallest number stays normal, and a norm of 1e-140 finite
    constexpr double down = 0x1p-600; // 2^40 squares of the largest number stay finite, and one of 1e154 normal
    // squares below 1e-280 may have lost digits, or all of them, to underflow
    const auto factor_of = [](double square) { return square < 1e-280 ? up : std::isinf(square) ? down : 1.0; };
    double squares[most_products];
    std::size_t again = 0;
    for (std::size_t k = 0; k < x.size(); ++k)
        if (const double factor = factor_of(results[k]); factor != 1) squares[again++] = sum_of_squares(*x[k], factor);
    if (again > 0) s = (*sum_)({squares, again});
    if (s != comm::status::ok) return s;
    again = 0;
    for (double& result : results) {
        const double factor = factor_of(result);
        result = std::sqrt(factor != 1 ? squares[again++] : result) / factor;
    }
    return s;
}

template class field_space<float>;
template class field_space<double>;

} // namespace halocline::solvers
