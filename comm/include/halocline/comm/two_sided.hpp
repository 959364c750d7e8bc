// SPDX-License-Identifier: Apache-2.0
// Send and receive as published two-sided programs call them: MPI's arguments in MPI's order, on matched messages
// (messenger.hpp), and the collectives of a few values that such programs need. For running such programs side by side
// with MPI; new code uses the messenger, or better a plan.
// Differences: the communicator is an object, a failure is an exception, there are only contiguous types, and the number
// of messages that wait for their receives is limited (messenger_options::unexpected).
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/comm/messenger.hpp>
#include <halocline/comm/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace halocline::comm::two_sided {

enum class datatype { byte, int32, float32, int64, float64 };
/// Size of an element in bytes.
constexpr std::size_t size_of(datatype type) {
    switch (type) {
    case datatype::byte: return 1;
    case datatype::int32:
    case datatype::float32: return 4;
    case datatype::int64:
    case datatype::float64: return 8;
    }
    return 0;
}
/// How allreduce() combines the elements of all ranks.
enum class op { sum, min, max };
inline constexpr int any_source = comm::any_source, any_tag = comm::any_tag;

/// A request owned by the communicator; nullptr: none.
using request = message_request*;
inline constexpr request request_null = nullptr;

struct receive_status {
    int source = any_source;
    int tag = any_tag;
    std::size_t bytes = 0;
};
/// Returned where there is no count or index (MPI_UNDEFINED).
inline constexpr int undefined = -32766;
/// Elements received; undefined if not a whole number, or more than fit in an int.
inline int get_count(const receive_status& s, datatype type) {
    const std::size_t size = size_of(type), count = s.bytes / size;
    return s.bytes % size == 0 && std::in_range<int>(count) ? static_cast<int>(count) : undefined;
}

/// A handle; copies refer to the same communicator. Requests are reused; one is allocated only when more are under way
/// than ever before.
class communicator {
  public:
    /// Collective.  Err: as messenger.
    explicit communicator(const job& j, const messenger_options& options = {});
    [[nodiscard]] int rank() const { return messages().job().rank(); }
    [[nodiscard]] int size() const { return messages().job().ranks(); }
    /// Memory for buffers that peers can reach directly.
    [[nodiscard]] slab& memory() const { return messages().job().memory(); }
    /// Shared by all duplicates.
    [[nodiscard]] messenger& messages() const;
    /// The context of the program's messages on this communicator; its collectives use the next one.
    [[nodiscard]] std::uint32_t context() const { return context_; }

    [[nodiscard]] request take();
    void give(request r);
    /// Err: rank_failure, naming rank and message.
    void require(status s) const {
        if (s != status::ok) fail(s);
    }

  private:
    friend communicator dup(const communicator& c);
    friend void allreduce(const void*, void*, std::size_t, datatype, op, communicator&);
    struct shared; ///< what duplicates share

    communicator(std::shared_ptr<shared> all, std::uint32_t context) : all_(std::move(all)), context_(context) {}
    [[noreturn, gnu::cold]] void fail(status s) const;
    /// allreduce() of doubles, by a global_sum.
    void reduce(std::span<double> values, op how);

    std::shared_ptr<shared> all_;
    std::uint32_t context_;
};

/// A communicator of the same ranks whose messages never match those of `c`.  Pre: all ranks make their duplicates in
/// the same order.  Cost: no message.
[[nodiscard]] communicator dup(const communicator& c);

// Each function does what its namesake in MPI does.  Err: rank_failure; input_error: a count that no memory holds.
void send(const void* buffer, std::size_t count, datatype type, int to, int tag, communicator& c);
void recv(void* buffer, std::size_t count, datatype type, int from, int tag, communicator& c,
          receive_status* s = nullptr);
void sendrecv(const void* out, std::size_t out_count, datatype out_type, int to, int out_tag, void* in,
              std::size_t in_count, datatype in_type, int from, int in_tag, communicator& c,
              receive_status* s = nullptr);
void isend(const void* buffer, std::size_t count, datatype type, int to, int tag, communicator& c, request* r);
void irecv(void* buffer, std::size_t count, datatype type, int from, int tag, communicator& c, request* r);
void probe(int from, int tag, communicator& c, receive_status* s = nullptr);
void iprobe(int from, int tag, communicator& c, bool* there, receive_status* s = nullptr);

// A request that is reported as done becomes request_null. If all requests are null, indices and counts are
// `undefined`. `statuses` has room for all requests; waitsome() fills one for each index that it returns.
void wait(request* r, communicator& c, receive_status* s = nullptr);
void waitall(std::size_t count, request* requests, communicator& c, receive_status* statuses = nullptr);
void waitany(std::size_t count, request* requests, int* index, communicator& c, receive_status* s = nullptr);
void waitsome(std::size_t count, request* requests, int* done_count, int* indices, communicator& c,
              receive_status* statuses = nullptr);
void test(request* r, bool* done, communicator& c, receive_status* s = nullptr);
void testall(std::size_t count, request* requests, bool* done, communicator& c, receive_status* statuses = nullptr);
void testany(std::size_t count, request* requests, int* index, bool* done, communicator& c,
             receive_status* s = nullptr);

/// Takes log2(ranks) rounds of empty messages.
void barrier(communicator& c);
/// Pre:  `root` is the same on all ranks: as under MPI, nobody compares them (job::broadcast() does).
/// Err:  input_error: `root` is not a rank.
/// Cost: log2(ranks) messages, one after another, until the last rank has its bytes.
void bcast(void* buffer, std::size_t count, datatype type, int root, communicator& c);
/// The result has the same bits on every rank. `in` may be `out`.
/// Err:  input_error: type is byte.
/// Cost: for doubles that of a global_sum, which the first call makes; for other types 2 log2(ranks) messages.
void allreduce(const void* in, void* out, std::size_t count, datatype type, op how, communicator& c);
/// The time in seconds, as MPI_Wtime().
double wtime();

} // namespace halocline::comm::two_sided
