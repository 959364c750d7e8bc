// SPDX-License-Identifier: Apache-2.0
// The public class: its calls are passed on to the engine.
#include <halocline/comm/messenger.hpp>

#include "message_engine.hpp"

namespace halocline::comm {

message_request::~message_request() {
    if (operation_.owner != nullptr) operation_.owner->engine->withdraw(*this);
}

messenger::messenger(const comm::job& j, const messenger_options& options)
    : engine_("a messenger", std::make_unique<message_engine>(j, options)) {}
messenger::messenger(messenger&&) noexcept = default;
messenger& messenger::operator=(messenger&& other) noexcept {
    if (this == &other) return *this;
    const messenger old(std::move(*this)); // its destructor knows what a forked child may not do
    engine_ = std::move(other.engine_);
    return *this;
}
messenger::~messenger() {
    if (engine_ && engine_->job().core().in_forked_child())
        leave_to_parent(engine_.pointer()); // requests may still refer to it
}

void messenger::isend(message_request& request, std::span<const std::byte> data, int to, int tag,
                      std::uint32_t context) noexcept {
    if (request.done() && engine_->try_send_immediate(data, to, tag, context)) return; // it is done already
    engine_->isend(request, data, to, tag, context);
}
void messenger::irecv(message_request& request, std::span<std::byte> into, int from, int tag,
                      std::uint32_t context) noexcept {
    engine_->irecv(request, into, from, tag, context);
}
bool messenger::test(message_request& request) noexcept { return engine_->test(request); }
status messenger::wait(message_request& request) noexcept { return engine_->wait_one(request); }
status messenger::wait_all(std::span<message_request> requests) noexcept { return engine_->wait_all(requests); }
status messenger::wait_all(std::span<message_request* const> requests) noexcept { return engine_->wait_all(requests); }
status messenger::wait_any(std::span<message_request* const> requests) noexcept { return engine_->wait_any(requests); }
status messenger::wait_all_for(std::span<message_request> requests, std::chrono::nanoseconds longest) noexcept {
    return engine_->wait_all(requests, longest);
}
status messenger::start_all(std::span<message_request> requests, std::chrono::nanoseconds longest) noexcept {
    return engine_->start_all(requests, longest);
}
bool messenger::probe(int from, int tag, message_info& info, std::uint32_t context) noexcept {
    return engine_->probe(from, tag, context, info);
}
status messenger::wait_probe(int from, int tag, message_info& info, std::uint32_t context) noexcept {
    return engine_->wait_probe(from, tag, context, info);
}
status messenger::send(std::span<const std::byte> data, int to, int tag, std::uint32_t context) noexcept {
    if (engine_->try_send_immediate(data, to, tag, context)) return engine_->state();
    return engine_->send(data, to, tag, context);
}
status messenger::recv(std::span<std::byte> into, int from, int tag, message_info* info,
                       std::uint32_t context) noexcept {
    message_info unwanted;
    message_info& received = info != nullptr ? *info : unwanted;
    if (engine_->try_receive_immediate(into, from, tag, context, received)) return engine_->state();
    return engine_->recv(into, from, tag, context, received);
}
status messenger::sendrecv(std::span<const std::byte> data, int to, int tag, std::span<std::byte> into, int from,
                           int in_tag, message_info* info, std::uint32_t context) noexcept {
    if (engine_->try_send_immediate(data, to, tag, context)) return recv(into, from, in_tag, info, context);
    message_request sending, receiving;
    isend(sending, data, to, tag, context);
    irecv(receiving, into, from, in_tag, context);
    (void)wait(receiving);
    const status s = wait(sending);
    if (info != nullptr) *info = receiving.info();
    return s;
}
status messenger::state() const noexcept { return engine_->state(); }
std::string messenger::pending() const { return engine_->pending(); }
const message_counts& messenger::counts() const noexcept { return engine_->counts(); }
std::string messenger::describe() const { return engine_->describe(); }
const job& messenger::job() const noexcept { return engine_->job(); }

} // namespace halocline::comm
