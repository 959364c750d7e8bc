// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/detail/ofi_channel.hpp>

#include "network_direct_channel_body.hpp"
#include "network_window_channel_body.hpp"
#include "ofi/world.hpp"

namespace halocline::comm {

template class network_channel<ofi_world, ofi_end>;
template class network_direct_channel<ofi_world, ofi_end>;
template class network_window_channel<ofi_world, ofi_end>;

} // namespace halocline::comm
