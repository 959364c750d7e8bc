// SPDX-License-Identifier: Apache-2.0
// The types behind the handles of halocline.h.
#pragma once

#include "errors.hpp"

#include <halocline/comm/element_type.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/rank_order.hpp>

#include <cstdint>
#include <string>
#include <vector>

struct halocline_job {
    halocline::comm::job value;
    std::string transport;
};

namespace halocline::c {

inline comm::element_type element_of(halocline_type type) {
    switch (type) {
    case HALOCLINE_BYTE: return comm::element_type_of<std::byte>();
    case HALOCLINE_INT32: return comm::element_type_of<std::int32_t>();
    case HALOCLINE_INT64: return comm::element_type_of<std::int64_t>();
    case HALOCLINE_FLOAT: return comm::element_type_of<float>();
    case HALOCLINE_DOUBLE: return comm::element_type_of<double>();
    }
    throw input_error("halocline_type " + std::to_string(static_cast<int>(type)) + " is none of 0 to 4");
}

/// This cut with the owners that a caller asks for, of halocline_plan_options or halocline_solver_options.
/// Pre: cut.ranks() == j.ranks().  Err: input_error: both are asked for, or no permutation of the ranks.
template <class Options>
lattice::decomposition with_owners(const comm::job& j, const lattice::decomposition& cut, const Options& given) {
    if (given.order_by_nodes != 0 && given.rank_order != nullptr)
        throw input_error("order_by_nodes and rank_order are both set: at most one is expected");
    if (given.rank_order != nullptr)
        return cut.with_rank_order(std::vector<int>(given.rank_order, given.rank_order + cut.ranks()));
    return given.order_by_nodes != 0 ? cut.with_rank_order(lattice::rank_order_by_nodes(cut, j.nodes())) : cut;
}

} // namespace halocline::c
