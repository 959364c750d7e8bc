// SPDX-License-Identifier: Apache-2.0
#include "operator_input.hpp"

#include "require_ranks.hpp"

#include <halocline/base/error.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

namespace halocline::dirac {
namespace {

std::string text_of(const lattice::box& box, const lattice::coordinate& global) {
    return "a box of " + lattice::to_string(box.extents) + " at " + lattice::to_string(box.origin) +
           " of a lattice of " + lattice::to_string(global);
}

} // namespace

void require_operator_input(const comm::job& j, const lattice::decomposition& cut, const padded_links& links,
                            const wilson_parameters& p) {
    j.collectively([&] {
        require_ranks(j, cut, "Wilson operator");
        const lattice::box local = cut.local_box(j.rank());
        if (links.local() != local || links.global() != cut.global())
            throw input_error("Wilson operator: the links of rank " + std::to_string(j.rank()) + " are on " +
                              text_of(links.local(), links.global()) + "; the operator is on " +
                              text_of(local, cut.global()) + ": make both with the same cut");
        for (const auto& [name, value] : {std::pair{"m0", p.m0}, {"csw", p.csw}})
            if (!std::isfinite(value))
                throw input_error(std::string("wilson_parameters::") + name + " = " + std::to_string(value) +
                                  ": must be finite");
    });
    char numbers[80];
    std::snprintf(numbers, sizeof numbers, "m0 %.17g, csw %.17g, boundaries", p.m0, p.csw);
    std::string all = numbers;
    for (const lattice::boundary b : p.boundaries) all += " " + std::string(to_string(b));
    j.agree("the parameters of the Wilson operator", all);
}

} // namespace halocline::dirac
