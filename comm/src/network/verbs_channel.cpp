// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/detail/verbs_channel.hpp>

#include "network_direct_channel_body.hpp"
#include "network_window_channel_body.hpp"
#include "verbs/world.hpp"

namespace halocline::comm {

template class network_channel<verbs_world, verbs_end>;
template class network_direct_channel<verbs_world, verbs_end>;
template class network_window_channel<verbs_world, verbs_end>;

std::uint64_t verbs_channel::receives() const noexcept { return end_->receives; }
std::uint64_t verbs_channel::completions() const noexcept { return end_->completions; }

} // namespace halocline::comm
