// SPDX-License-Identifier: Apache-2.0
// What a kernel of a box stencil sees: one site and all those within the stencil's widths, also in other fields.
#pragma once

#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>

#include <array>
#include <concepts>
#include <cstdint>

namespace halocline::halo {

/// A kernel's view of one site: its values, and those of all sites within the stencil's widths.
template <class T, int Components>
class box_neighbourhood {
  public:
    /// Consecutive sites along x.
    struct run {
        std::int64_t first = 0;                               ///< index of the first site in the stencil's fields
        const T* here = nullptr;                              ///< its component 0
        std::array<std::int64_t, lattice::dimensions> step{}; ///< values from a site to the next along each dimension
        const lattice::field<T>* fields = nullptr;            ///< of the stencil
    };
    /// Site i of a run.
    box_neighbourhood(const run& r, std::int64_t i) : box_neighbourhood(r, r.here, i) {}

    /// Index of this site in the stencil's fields: component c is data()[index() * Components + c].
    [[nodiscard]] std::int64_t index() const { return run_.first + i_; }
    /// Index of the site `steps` away: for arrays of your own with the sites of the stencil's fields, or the fields of
    /// another stencil with the same widths.  Pre: as for at().
    [[nodiscard]] std::int64_t index(const lattice::coordinate& steps) const {
        return index() + away(steps) / Components;
    }
    /// Component c of this site.
    [[nodiscard]] T here(int c = 0) const { return here_[i_ * Components + c]; }
    /// Component c of the site `steps` away.  Pre: -widths.low[mu] <= steps[mu] <= widths.high[mu].
    [[nodiscard]] T at(const lattice::coordinate& steps, int c = 0) const {
        return here_[i_ * Components + away(steps) + c];
    }
    /// Component c of the site k steps along mu, as a neighbourhood of a star has it: one kernel can serve both. (A
    /// template, so that {} is no dimension.)
    [[nodiscard]] T at(std::integral auto mu, int k, int c = 0) const {
        return here_[i_ * Components + k * run_.step[mu] + c];
    }
    /// The same site in field(f) of the stencil: n.of(1).at({1, 0, 0, 0}). Beyond this rank's box lie the ghosts that
    /// its last exchange brought: in for_boundary() that must be the one just finished, or an earlier one, since which
    /// the field has not changed.  Pre: there is such a field.
    [[nodiscard]] box_neighbourhood of(int f) const {
        return {run_, run_.fields[f].data() + run_.first * Components, i_};
    }

  private:
    box_neighbourhood(const run& r, const T* here, std::int64_t i) : run_(r), here_(here), i_(i) {}
    /// Values from this site to the one `steps` away.
    [[nodiscard]] std::int64_t away(const lattice::coordinate& steps) const {
        // Along x by a constant, which costs no register.
        return steps[0] * Components + steps[1] * run_.step[1] + steps[2] * run_.step[2] + steps[3] * run_.step[3];
    }

    const run& run_;
    const T* here_; // component 0 of the run's first site
    std::int64_t i_;
};

/// What a kernel sees with checks. require.field(f) throws if there is no such field, require.neighbours(f) if the
/// kernel may not read neighbours in it, require.reach(steps, f) if it may not read so far away in field f, -1 for the
/// one that was started.
template <class T, int Components, class Require>
class checked_box_neighbourhood : public box_neighbourhood<T, Components> {
    using unchecked = box_neighbourhood<T, Components>;

  public:
    checked_box_neighbourhood(const unchecked& n, Require& require, int field = -1)
        : unchecked(n), require_(require), field_(field) {}

    [[nodiscard]] T at(const lattice::coordinate& steps, int c = 0) const {
        require_.reach(steps, field_);
        if (field_ >= 0) require_.neighbours(field_);
        return unchecked::at(steps, c);
    }
    [[nodiscard]] T at(std::integral auto mu, int k, int c = 0) const {
        lattice::coordinate steps{};
        steps[mu] = k;
        return at(steps, c);
    }
    [[nodiscard]] checked_box_neighbourhood of(int f) const {
        require_.field(f);
        return {unchecked::of(f), require_, f};
    }

  private:
    Require& require_;
    int field_; // -1: the one that was started
};

} // namespace halocline::halo
