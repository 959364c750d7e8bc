// SPDX-License-Identifier: Apache-2.0
#include "handles.hpp"

#include <halocline/comm/window.hpp>

using namespace halocline;
using c::element_of, c::guarded, c::present, c::with;

struct halocline_connection {
    comm::connection value;
};

/// A window whose element type is known only at run time.
struct halocline_window final : comm::window {
    halocline_window(comm::connection& c, bool sender, comm::element_type e, std::size_t n, std::byte* user)
        : window(c, {sender, e, n, user}), job(c.job()), element_bytes(e.bytes), count(n),
          fills(sender && user == nullptr), sends(sender) {}
    comm::status init() noexcept { return fills ? fill() : begin(); }
    comm::status post(std::size_t n) noexcept { return post_elements(sends ? n : count, element_bytes); }
    /// Not sticky: the step can still be posted.
    halocline_status posted(std::size_t n) noexcept {
        if (sends || n == 0 || n == count) return checked(post(n));
        guarded([&] {
            c::failed(HALOCLINE_MISUSED, pending() + ": post() with count " + std::to_string(n) +
                                             "; of a receive window it is the window's size, " + std::to_string(count) +
                                             ", or 0");
        });
        return HALOCLINE_MISUSED;
    }
    [[nodiscard]] std::size_t received() const noexcept { return received_bytes() / element_bytes; }
    using window::buffer;
    halocline_status checked(comm::status s) const noexcept {
        return c::checked(s, job, [this] { return pending(); });
    }

    comm::job job;
    std::size_t element_bytes, count;
    bool fills, sends; // fills: it has its own buffer, which the caller fills
};

halocline_status halocline_connection_create(halocline_job* job, int peer, int send_tag, int receive_tag,
                                             const char* name, halocline_connection** connection) {
    return guarded([&] {
        present(connection, "connection") = nullptr;
        comm::connection_options options{name != nullptr ? name : "", send_tag, receive_tag};
        *connection = new halocline_connection{comm::connection(present(job, "job").value, peer, std::move(options))};
    });
}

halocline_status halocline_connection_connect(halocline_connection* connection) {
    return guarded([&] { present(connection, "connection").value.connect(); });
}

void halocline_connection_free(halocline_connection* connection) { delete connection; }

halocline_status halocline_send_window_create(halocline_connection* connection, halocline_type type, size_t count,
                                              const void* buffer, halocline_window** window) {
    return guarded([&] {
        present(window, "window") = nullptr;
        auto* from = static_cast<std::byte*>(const_cast<void*>(buffer)); // only read
        *window = new halocline_window(present(connection, "connection").value, true, element_of(type), count, from);
    });
}

halocline_status halocline_recv_window_create(halocline_connection* connection, halocline_type type, size_t count,
                                              void* buffer, halocline_window** window) {
    return guarded([&] {
        present(window, "window") = nullptr;
        *window = new halocline_window(present(connection, "connection").value, false, element_of(type), count,
                                       static_cast<std::byte*>(buffer));
    });
}

void halocline_window_free(halocline_window* window) { delete window; }

halocline_status halocline_window_init(halocline_window* window) {
    return with(window, "window", [](halocline_window& w) { return w.checked(w.init()); });
}
halocline_status halocline_window_post(halocline_window* window, size_t count) {
    return with(window, "window", [=](halocline_window& w) { return w.posted(count); });
}
int halocline_window_test(halocline_window* window) { return window->test() ? 1 : 0; }
halocline_status halocline_window_wait(halocline_window* window) {
    return with(window, "window", [](halocline_window& w) { return w.checked(w.wait()); });
}
size_t halocline_window_count(const halocline_window* window) { return window->received(); }
void* halocline_window_buffer(const halocline_window* window) { return window->buffer(); }
