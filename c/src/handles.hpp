// SPDX-License-Identifier: Apache-2.0
// The types behind the handles of halocline.h.
#pragma once

#include "errors.hpp"

#include <halocline/comm/element_type.hpp>
#include <halocline/comm/job.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

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

} // namespace halocline::c
