// SPDX-License-Identifier: Apache-2.0
// An end of a pair that sends and receives: one source for our matched messages, Open MPI and MPICH. With
// HALOCLINE_BENCH_MPI the calls below are MPI's, otherwise those of comm/two_sided.hpp, which have the same arguments.
#pragma once

#include "../support/huge_pages.hpp"

#ifdef HALOCLINE_BENCH_MPI
#include <mpi.h>
#else
#include <halocline/comm/two_sided.hpp>
#endif

#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <utility>
#include <vector>

namespace halocline::bench::p2p {

#ifdef HALOCLINE_BENCH_MPI
namespace two_sided {

enum class datatype { byte };
using request = MPI_Request;
struct communicator {
    MPI_Comm c = MPI_COMM_WORLD;
    [[nodiscard]] int rank() const {
        int r = 0;
        MPI_Comm_rank(c, &r);
        return r;
    }
};
inline void send(const void* p, std::size_t n, datatype, int to, int tag, communicator& c) {
    MPI_Send(p, static_cast<int>(n), MPI_BYTE, to, tag, c.c);
}
inline void recv(void* p, std::size_t n, datatype, int from, int tag, communicator& c) {
    MPI_Recv(p, static_cast<int>(n), MPI_BYTE, from, tag, c.c, MPI_STATUS_IGNORE);
}
inline void sendrecv(const void* out, std::size_t n, datatype, int to, int tag, void* in, std::size_t m, datatype,
                     int from, int in_tag, communicator& c) {
    MPI_Sendrecv(out, static_cast<int>(n), MPI_BYTE, to, tag, in, static_cast<int>(m), MPI_BYTE, from, in_tag, c.c,
                 MPI_STATUS_IGNORE);
}
inline void isend(const void* p, std::size_t n, datatype, int to, int tag, communicator& c, request* r) {
    MPI_Isend(p, static_cast<int>(n), MPI_BYTE, to, tag, c.c, r);
}
inline void irecv(void* p, std::size_t n, datatype, int from, int tag, communicator& c, request* r) {
    MPI_Irecv(p, static_cast<int>(n), MPI_BYTE, from, tag, c.c, r);
}
inline void test(request* r, bool* done, communicator&) {
    int flag = 0;
    MPI_Test(r, &flag, MPI_STATUS_IGNORE);
    *done = flag != 0;
}

} // namespace two_sided

#else
namespace two_sided = comm::two_sided;
#endif

/// In pages of the same kind in any memory.
class buffer {
  public:
    buffer(std::pmr::memory_resource& memory, std::size_t shift) : memory_(memory), shift_(shift) {}
    std::byte* of(std::size_t bytes) {
        if (bytes > bytes_) {
            bytes_ = std::max<std::size_t>(bytes, 4 << 20);
            const std::size_t whole = round_up(bytes_ + shift_, huge_page_bytes);
            p_ = static_cast<std::byte*>(memory_.allocate(whole, huge_page_bytes));
            make_huge(p_, whole);
        }
        return p_ + shift_;
    }

  private:
    std::pmr::memory_resource& memory_;
    std::size_t shift_;
    std::size_t bytes_ = 0;
    std::byte* p_ = nullptr; // a smaller one is not freed: the program is short
};

/// Slowest: numbers of both ranks, element-wise maximum.
template <class Slowest>
class two_sided_endpoint {
  public:
    using request = two_sided::request;
    /// `memory`: for what is sent and received.
    two_sided_endpoint(two_sided::communicator& c, std::pmr::memory_resource& memory, Slowest slowest_of)
        : c_(c), slowest_(slowest_of), rank_(c.rank()), peer_(1 - rank_), out_(memory, 0), in_(memory, apart) {}

    [[nodiscard]] int rank() const { return rank_; }
    std::byte* out(std::size_t bytes) { return out_.of(bytes); }
    std::byte* in(std::size_t bytes) { return in_.of(bytes); }
    std::vector<double> slowest(std::vector<double> mine) { return slowest_(std::move(mine)); }

    void send(const std::byte* p, std::size_t n) { two_sided::send(p, n, two_sided::datatype::byte, peer_, tag, c_); }
    const std::byte* recv(std::byte* p, std::size_t n) {
        two_sided::recv(p, n, two_sided::datatype::byte, peer_, tag, c_);
        return p;
    }
    const std::byte* exchange(const std::byte* out, std::byte* in, std::size_t n) {
        two_sided::sendrecv(out, n, two_sided::datatype::byte, peer_, tag, in, n, two_sided::datatype::byte, peer_, tag,
                            c_);
        return in;
    }
    void isend(const std::byte* p, std::size_t n, request& r) {
        two_sided::isend(p, n, two_sided::datatype::byte, peer_, tag, c_, &r);
    }
    void irecv(std::byte* p, std::size_t n, request& r) {
        two_sided::irecv(p, n, two_sided::datatype::byte, peer_, tag, c_, &r);
    }
    bool test(request& r) {
        bool done = false;
        two_sided::test(&r, &done, c_);
        return done;
    }
    /// An empty message from that rank.
    void token(int from) {
        if (rank_ == from)
            send(nullptr, 0);
        else
            recv(nullptr, 0);
    }

  private:
    static constexpr int tag = 17;
    /// Source and target of a copy at the same offset in their pages would make loads wait for stores.
    static constexpr std::size_t apart = 1024;
    two_sided::communicator& c_;
    Slowest slowest_;
    int rank_, peer_;
    buffer out_, in_;
};

} // namespace halocline::bench::p2p
