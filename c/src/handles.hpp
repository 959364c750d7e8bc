// SPDX-License-Identifier: Apache-2.0
// The types behind the handles of halocline.h.
#pragma once

#include "errors.hpp"

#include <halocline/comm/job.hpp>

struct halocline_job {
    halocline::comm::job value;
    std::string transport;
};
