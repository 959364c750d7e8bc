// SPDX-License-Identifier: Apache-2.0
// Send and receive as published two-sided programs call them: MPI's arguments in MPI's order, on matched messages
// (messenger.hpp). For running such programs side by side with MPI; new code uses the messenger, or better a plan.
// Differences: the communicator is an object, a failure is an exception, and there are only contiguous types.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/comm/messenger.hpp>
#include <halocline/comm/status.hpp>

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

namespace halocline::comm::two_sided {

enum class datatype : std::size_t { byte = 1, int32 = 4, float32 = 4, int64 = 8, float64 = 8 };
inline constexpr int any_source = comm::any_source, any_tag = comm::any_tag;

/// A request owned by the communicator; nullptr: none.
using request = message_request*;
inline constexpr request request_null = nullptr;

struct receive_status {
    int source = any_source;
    int tag = any_tag;
    std::size_t bytes = 0;
};
/// Returned in place of a count (MPI_UNDEFINED).
inline constexpr int undefined = -32766;
/// Elements received; undefined if not a whole number, or more than fit in an int.
inline int get_count(const receive_status& s, datatype type) {
    const std::size_t size = static_cast<std::size_t>(type), count = s.bytes / size;
    return s.bytes % size == 0 && std::in_range<int>(count) ? static_cast<int>(count) : undefined;
}

/// Requests are reused; one is allocated only when more are under way than ever before.
class communicator {
  public:
    /// Collective.  Err: as messenger.
    explicit communicator(const job& j, const messenger_options& options = {}) : messages_(j, options) {}
    [[nodiscard]] int rank() const { return messages_.job().rank(); }
    [[nodiscard]] int size() const { return messages_.job().ranks(); }
    /// Memory for buffers that peers can reach directly.
    [[nodiscard]] slab& memory() const { return messages_.job().memory(); }
    [[nodiscard]] messenger& messages() { return messages_; }

    [[nodiscard]] request take();
    void give(request r) { free_.push_back(r); }
    /// Err: rank_failure, naming rank and message.
    void require(status s) const {
        if (s != status::ok) fail(s);
    }

  private:
    [[noreturn, gnu::cold]] void fail(status s) const;

    messenger messages_;
    std::deque<message_request> all_;
    std::vector<request> free_;
};

// Each function does what its namesake in MPI does.  Err: rank_failure.
void send(const void* buffer, std::size_t count, datatype type, int to, int tag, communicator& c);
void recv(void* buffer, std::size_t count, datatype type, int from, int tag, communicator& c,
          receive_status* s = nullptr);
void sendrecv(const void* out, std::size_t out_count, datatype out_type, int to, int out_tag, void* in,
              std::size_t in_count, datatype in_type, int from, int in_tag, communicator& c,
              receive_status* s = nullptr);
void isend(const void* buffer, std::size_t count, datatype type, int to, int tag, communicator& c, request* r);
void irecv(void* buffer, std::size_t count, datatype type, int from, int tag, communicator& c, request* r);
/// Sets a request that is done to request_null.
void wait(request* r, communicator& c, receive_status* s = nullptr);
void waitall(std::size_t count, request* requests, communicator& c, receive_status* statuses = nullptr);
void test(request* r, bool* done, communicator& c, receive_status* s = nullptr);
void iprobe(int from, int tag, communicator& c, bool* there, receive_status* s = nullptr);
/// Takes log2(ranks) rounds of empty messages.
void barrier(communicator& c);
/// The time in seconds, as MPI_Wtime().
double wtime();

} // namespace halocline::comm::two_sided
