// SPDX-License-Identifier: Apache-2.0
#include <halocline/amg/sap_smoother.hpp>

#include <halocline/lattice/field_shape.hpp>

#include <algorithm>

namespace halocline::amg {

sap_smoother::sap_smoother(dirac::wilson_clover<float>& d, int block_steps)
    : d_(&d), block_steps_(block_steps), two_colours_(d.order()->blocks()->two_colours),
      r_(d.order(), lattice::spinor_components), e_(d.order(), lattice::spinor_components) {}

void sap_smoother::require(const lattice::field<float>& x, const lattice::field<float>& b) const {
    lattice::require_shape(x, "sap_smoother: x", lattice::spinor_components, r_.order());
    lattice::require_shape(b, "sap_smoother: b", lattice::spinor_components, r_.order());
}

comm::status sap_smoother::from_zero(lattice::field<float>& x, const lattice::field<float>& b, int sweeps) {
    require(x, b);
    std::fill(x.values().begin(), x.values().end(), 0.0F);
    x.mark_written();
    r_.copy_from(b);
    return sweep(x, sweeps);
}

comm::status sap_smoother::improve(lattice::field<float>& x, const lattice::field<float>& b, int sweeps) {
    require(x, b);
    // r = b - D x
    const comm::status s = d_->apply(r_, x);
    if (s != comm::status::ok) return s;
    float* const r = r_.data();
    const float* const rhs = b.data();
    for (std::size_t i = 0; i < r_.values().size(); ++i) r[i] = rhs[i] - r[i];
    return sweep(x, sweeps);
}

comm::status sap_smoother::sweep(lattice::field<float>& x, int sweeps) {
    const int colours = two_colours_ ? 2 : 1;
    for (int half = 0; half < sweeps * colours; ++half) {
        const int colour = two_colours_ ? half % 2 : -1;
        // D_block e = r on this colour; x = x + e, r = r - D_block e
        d_->block_solve(x, r_, e_, colour, block_steps_);
        if (half + 1 == sweeps * colours) break; // the residual is no longer needed
        // r = r - (D - D_block) e on the other colour
        auto hops = d_->start_surface(e_, colour);
        const comm::status s = hops.finish_and_add_to(r_, two_colours_ ? 1 - colour : -1, -1.0F);
        if (s != comm::status::ok) return s;
    }
    return comm::status::ok;
}

} // namespace halocline::amg
