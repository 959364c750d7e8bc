// SPDX-License-Identifier: Apache-2.0
#include "field_kernels.hpp"

#include <halocline/base/simd_targets.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "field_kernels.cpp"
#include <hwy/foreach_target.h> // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace halocline::solvers::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using wide = hn::CappedTag<double, 8>;

HWY_INLINE hn::Vec<wide> load(wide d, const double* p) { return hn::LoadU(d, p); }
HWY_INLINE hn::Vec<wide> load(wide d, const float* p) {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, wide>(), p));
}

// I vectors at once: w and u are loaded once for all of them.
template <int I, class T>
HWY_INLINE void products_of(const T* const* v, const double* HWY_RESTRICT w, const double* HWY_RESTRICT u,
                            std::size_t n, double* HWY_RESTRICT p, double* HWY_RESTRICT q) {
    const wide d;
    constexpr std::size_t lanes = hn::MaxLanes(wide()), parts = 8 / lanes;
    hn::Vec<wide> ps[I][parts], qs[I][parts];
    for (int i = 0; i < I; ++i)
        for (std::size_t k = 0; k < parts; ++k) ps[i][k] = qs[i][k] = hn::Zero(d);
    std::size_t l = 0;
    for (; l + 8 <= n; l += 8) {
        for (std::size_t k = 0; k < parts; ++k) {
            const auto wl = hn::LoadU(d, w + l + k * lanes), ul = hn::LoadU(d, u + l + k * lanes);
            for (int i = 0; i < I; ++i) {
                const auto x = load(d, v[i] + l + k * lanes);
                ps[i][k] = hn::MulAdd(x, wl, ps[i][k]);
                qs[i][k] = hn::MulAdd(x, ul, qs[i][k]);
            }
        }
    }
    for (int i = 0; i < I; ++i) {
        double a[8], b[8];
        for (std::size_t k = 0; k < parts; ++k) {
            hn::StoreU(ps[i][k], d, a + k * lanes);
            hn::StoreU(qs[i][k], d, b + k * lanes);
        }
        for (std::size_t r = l; r < n; ++r) {
            a[r - l] += static_cast<double>(v[i][r]) * w[r];
            b[r - l] += static_cast<double>(v[i][r]) * u[r];
        }
        p[i] += ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
        q[i] += ((b[0] + b[1]) + (b[2] + b[3])) + ((b[4] + b[5]) + (b[6] + b[7]));
    }
}

template <class T>
HWY_INLINE void products(const T* const* v, int count, const double* w, const double* u, std::size_t n, double* p,
                         double* q) {
    constexpr int most = hn::MaxLanes(wide()) == 8 ? 4 : 2; // whose partial sums stay in registers
    int i = 0;
    for (; i + most <= count; i += most) products_of<most>(v + i, w, u, n, p + i, q + i);
    for (; i + 2 <= count; i += 2) products_of<2>(v + i, w, u, n, p + i, q + i);
    if (i < count) products_of<1>(v + i, w, u, n, p + i, q + i);
}

template <class T>
HWY_INLINE void sums(const T* const* v, int count, const T* a, const T* b, std::size_t n, T* HWY_RESTRICT s,
                     T* HWY_RESTRICT t) {
    const hn::ScalableTag<T> d;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t l = 0;
    for (; l + 2 * lanes <= n; l += 2 * lanes) {
        auto s0 = hn::LoadU(d, s + l), s1 = hn::LoadU(d, s + l + lanes);
        auto t0 = hn::LoadU(d, t + l), t1 = hn::LoadU(d, t + l + lanes);
        for (int i = 0; i < count; ++i) {
            const auto ai = hn::Set(d, a[i]), bi = hn::Set(d, b[i]);
            const auto x0 = hn::LoadU(d, v[i] + l), x1 = hn::LoadU(d, v[i] + l + lanes);
            s0 = hn::MulAdd(ai, x0, s0);
            s1 = hn::MulAdd(ai, x1, s1);
            t0 = hn::MulAdd(bi, x0, t0);
            t1 = hn::MulAdd(bi, x1, t1);
        }
        hn::StoreU(s0, d, s + l);
        hn::StoreU(s1, d, s + l + lanes);
        hn::StoreU(t0, d, t + l);
        hn::StoreU(t1, d, t + l + lanes);
    }
    for (; l < n; ++l) {
        for (int i = 0; i < count; ++i) {
            s[l] += a[i] * v[i][l];
            t[l] += b[i] * v[i][l];
        }
    }
}

void products_f32(const float* const* v, int count, const double* w, const double* u, std::size_t n, double* p,
                  double* q) {
    products(v, count, w, u, n, p, q);
}
void products_f64(const double* const* v, int count, const double* w, const double* u, std::size_t n, double* p,
                  double* q) {
    products(v, count, w, u, n, p, q);
}
void sums_f32(const float* const* v, int count, const float* a, const float* b, std::size_t n, float* s, float* t) {
    sums(v, count, a, b, n, s, t);
}
void sums_f64(const double* const* v, int count, const double* a, const double* b, std::size_t n, double* s,
              double* t) {
    sums(v, count, a, b, n, s, t);
}

} // namespace halocline::solvers::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halocline::solvers::kernels {

HWY_EXPORT(products_f32);
HWY_EXPORT(products_f64);
HWY_EXPORT(sums_f32);
HWY_EXPORT(sums_f64);

void add_products(const float* const* v, int count, const double* w, const double* u, std::size_t n, double* p,
                  double* q) noexcept {
    HWY_DYNAMIC_DISPATCH(products_f32)(v, count, w, u, n, p, q);
}
void add_products(const double* const* v, int count, const double* w, const double* u, std::size_t n, double* p,
                  double* q) noexcept {
    HWY_DYNAMIC_DISPATCH(products_f64)(v, count, w, u, n, p, q);
}
void accumulate(const float* const* v, int count, const float* a, const float* b, std::size_t n, float* s,
                float* t) noexcept {
    HWY_DYNAMIC_DISPATCH(sums_f32)(v, count, a, b, n, s, t);
}
void accumulate(const double* const* v, int count, const double* a, const double* b, std::size_t n, double* s,
                double* t) noexcept {
    HWY_DYNAMIC_DISPATCH(sums_f64)(v, count, a, b, n, s, t);
}

} // namespace halocline::solvers::kernels
#endif
