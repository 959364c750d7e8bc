// SPDX-License-Identifier: Apache-2.0
// The vector space of lattice fields with complex components: component 2k is the real part, 2k + 1 the imaginary part,
// stored [outer][component][lane]. Products are accumulated in fp64, in an order that depends on the site order (and so
// on its lane width), and summed over the job by the space's comm::global_sum.
#pragma once

#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/field_shape.hpp>
#include <halocline/lattice/site_order.hpp>
#include <halocline/solvers/concepts.hpp>

#include <limits>
#include <memory>
#include <memory_resource>
#include <span>

namespace halocline::solvers {

/// T is float or double. Models vector_space<field_space<T>, lattice::field<T>>, and sums_of_several.
/// What writes a vector marks it (lattice::field::mark_written()).
/// Err: vectors of another shape than make() gives them, or whose sites lie elsewhere, are an input_error in every
/// operation on several, and in norm().
template <class T>
class field_space {
  public:
    using vector = lattice::field<T>;
    static constexpr double epsilon = std::numeric_limits<T>::epsilon();
    static constexpr double least = std::numeric_limits<T>::min();

    /// Vectors get `components` reals per site; components is even.  `sum` outlives the space.
    /// Err: input_error for no order, an odd number of components, or a sum of fewer than 2 values.
    field_space(std::shared_ptr<const lattice::site_order> order, int components, comm::global_sum& sum,
                std::pmr::memory_resource* memory = lattice::huge_pages());

    [[nodiscard]] vector make() const { return vector(order_, components_, memory_); }
    void set_zero(vector& y) const noexcept;
    void copy(vector& y, const vector& x) const {
        require(y);
        require(x);
        y.copy_from(x);
    }
    void scale(vector& y, double alpha) const noexcept;
    void axpy(vector& y, complex a, const vector& x) const { combine(y, 1, {&a, 1}, {&x, 1}); }
    /// y = alpha y + sum_i c_i v_i.  Cost: reads y and every v_i once, writes y once.
    void combine(vector& y, double alpha, std::span<const complex> c, std::span<const vector> v) const;
    /// products_i = <v_i, x>; infinite or NaN beyond 1e308, as for two vectors of norm 1e155.
    /// Cost: one global sum for each sum.max_values() / 2 products; reads every v_i once, and x once per sum.
    [[nodiscard]] comm::status multi_dot(std::span<const vector> v, const vector& x, std::span<complex> products) {
        const dot_request<vector> one{v, &x, products};
        return multi_dot(std::span(&one, 1));
    }
    /// The products of all requests.  Cost: one global sum for each sum.max_values() / 2 of them; reads as above.
    [[nodiscard]] comm::status multi_dot(std::span<const dot_request<vector>> requests);
    /// result = ||x||, right to rounding where it is a normal number of fp64; infinite or NaN if x holds such a number.
    /// Cost: one global sum; a second one only if x = 0, or the squares under- or overflow.
    [[nodiscard]] comm::status norm(const vector& x, double& result) {
        const vector* const one = &x;
        return norms(std::span(&one, 1), {&result, 1});
    }
    /// results_k = ||x_k||.  Cost: as norm() for each sum.max_values() of them.
    [[nodiscard]] comm::status norms(std::span<const vector* const> x, std::span<double> results);

  private:
    /// The sum over this rank's numbers of (factor x_l)^2.
    [[nodiscard]] double sum_of_squares(const vector& x, double factor) const noexcept;
    /// norms() of up to sum.max_values() vectors.
    [[nodiscard]] comm::status norms_in_one_sum(std::span<const vector* const> x, std::span<double> results);
    /// Err:  input_error: a vector of another shape, or whose sites lie elsewhere.
    void require(const vector& x) const { lattice::require_shape(x, "field_space: a vector", components_, *order_); }

    std::shared_ptr<const lattice::site_order> order_;
    int components_;
    comm::global_sum* sum_;
    std::pmr::memory_resource* memory_;
};
extern template class field_space<float>;
extern template class field_space<double>;

} // namespace halocline::solvers
