// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/ofi_channel.hpp>

#include "network_channel_body.hpp"
#include "ofi/world.hpp"

namespace halocline::comm {

template class network_channel<ofi_world, ofi_end>;

} // namespace halocline::comm
