// SPDX-License-Identifier: Apache-2.0
#include <halocline/amg/sap_smoother.hpp>

#include <halocline/lattice/field_shape.hpp>

#include <algorithm>
#include <utility>

namespace halocline::amg {

sap_smoother::sap_smoother(dirac::schwarz_blocks<float>& blocks, int block_steps)
    : blocks_(&blocks), block_steps_(block_steps), two_colours_(blocks.d().order()->blocks()->two_colours),
      r_(blocks.d().order(), lattice::spinor_components), e_(blocks.d().order(), lattice::spinor_components) {}

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
    const comm::status s = blocks_->d().apply(r_, x);
    if (s != comm::status::ok) return s;
    float* const r = r_.data();
    const float* const rhs = b.data();
    for (std::size_t i = 0; i < r_.values().size(); ++i) r[i] = rhs[i] - r[i];
    return sweep(x, sweeps);
}

comm::status sap_smoother::sweep(lattice::field<float>& x, int sweeps) {
    using dirac::block_colour;
    const int halves = two_colours_ ? 2 * sweeps : sweeps;
    block_colour now = two_colours_ ? block_colour::red : block_colour::all;
    block_colour next = two_colours_ ? block_colour::black : block_colour::all;
    for (int half = 0; half < halves; ++half, std::swap(now, next)) {
        // D_block e = r on this colour; x = x + e, r = r - D_block e
        blocks_->solve(x, r_, e_, now, block_steps_);
        if (half + 1 == halves) break; // the residual is no longer needed
        // r = r - (D - D_block) e on the other colour
        auto hops = blocks_->start_surface(e_, now);
        const comm::status s = hops.finish_and_add_to(r_, next, -1.0F);
        if (s != comm::status::ok) return s;
    }
    return comm::status::ok;
}

} // namespace halocline::amg
