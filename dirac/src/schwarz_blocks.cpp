// SPDX-License-Identifier: Apache-2.0
#include <halocline/dirac/schwarz_blocks.hpp>

#include "operator_input.hpp"
#include "packed_clover.hpp"
#include "wilson_clover_impl.hpp"

#include <halocline/base/error.hpp>

#include <cstddef>
#include <new>

namespace halocline::dirac {
namespace {

struct aligned_delete {
    template <class T>
    void operator()(T* p) const {
        ::operator delete[](p, std::align_val_t{lattice::field_alignment});
    }
};
template <class T>
using aligned_array = std::unique_ptr<T[], aligned_delete>;
template <class T>
aligned_array<T> make_aligned(std::size_t size) {
    return aligned_array<T>(new (std::align_val_t{lattice::field_alignment}) T[size]());
}

} // namespace

template <class T>
struct schwarz_blocks<T>::impl {
    /// Pre: red or black.
    [[nodiscard]] std::unique_ptr<surface_exchange>& surfaces_of(block_colour colour) {
        return colour == block_colour::red ? red_surfaces : black_surfaces;
    }

    wilson_clover<T>* d = nullptr;
    lattice::field<T> schur;        ///< packed: D_ee on even block sites, -1/D_oo on odd ones
    aligned_array<T> group_spinors; ///< scratch
    std::unique_ptr<surface_exchange> red_surfaces, black_surfaces;
};

template <class T>
schwarz_blocks<T>::schwarz_blocks(wilson_clover<T>& d, const padded_links& links) : impl_(std::make_unique<impl>()) {
    impl& s = *impl_;
    s.d = &d;
    const typename wilson_clover<T>::impl& of_d = *d.impl_;
    require_operator_input(of_d.job, of_d.cut, links, of_d.parameters);
    of_d.job.collectively([&] {
        s.group_spinors = make_aligned<T>(static_cast<std::size_t>(of_d.group_offset(1, kernels::spinor_reals)));
    });
    try {
        of_d.job.collectively([&] {
            const padded_links u = with_boundaries(links, of_d.parameters.boundaries);
            s.schur = packed_schur(of_d.clover, u, of_d.parameters);
        });
    } catch (const input_error& e) { // on every rank; all other input was checked before
        throw singular_local_term(e.what());
    }
    for (const block_colour colour : {block_colour::red, block_colour::black})
        s.surfaces_of(colour) =
            make_surface_exchange(of_d.job, of_d.cut, of_d.order, colour, kernels::half_spinor_reals * sizeof(T));
}
template <class T>
schwarz_blocks<T>::~schwarz_blocks() = default;
template <class T>
schwarz_blocks<T>::schwarz_blocks(schwarz_blocks&&) noexcept = default;

template <class T>
wilson_clover<T>& schwarz_blocks<T>::d() const {
    return *impl_->d;
}

template <class T>
typename wilson_clover<T>::surface schwarz_blocks<T>::start_surface(const lattice::field<T>& x,
                                                                    block_colour sources) noexcept {
    if (sources == block_colour::all) return impl_->d->start_surface(x);
    return {*impl_->d->impl_, *impl_->surfaces_of(sources), x};
}

template <class T>
void schwarz_blocks<T>::solve(lattice::field<T>& x, lattice::field<T>& r, lattice::field<T>& update,
                              block_colour colour, int steps) {
    const typename wilson_clover<T>::impl& d = *impl_->d->impl_;
    d.require(x, "schwarz_blocks: x of solve()");
    d.require(r, "schwarz_blocks: r of solve()");
    d.require(update, "schwarz_blocks: update of solve()");
    for (lattice::field<T>* written : {&x, &r, &update}) written->mark_written();
    const auto [first, last] = d.groups(colour);
    for (int g = first; g < last; ++g) {
        const std::int64_t spinors = d.group_offset(g, kernels::spinor_reals);
        d.kernel.solve(d.stencil, d.minus_half_links.data() + d.group_offset(g, kernels::site_link_reals),
                       impl_->schur.data() + d.group_offset(g, kernels::site_clover_reals), x.data() + spinors,
                       r.data() + spinors, update.data() + spinors, impl_->group_spinors.get(), steps,
                       d.from_memory && g + 1 < last);
    }
}

template class schwarz_blocks<float>;
template class schwarz_blocks<double>;

} // namespace halocline::dirac
