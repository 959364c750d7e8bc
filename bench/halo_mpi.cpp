// SPDX-License-Identifier: Apache-2.0
// How long does plain MPI take for an exchange of bench/halo?  echo "packed 8 96 t 0.5" | mpirun -n 2 bench_halo_openmpi
//
// Compiled once per MPI; bench_halo --peer drives it. Each line of standard input is an order: mode (packed: copied into a
// message; in-place: a derived datatype, contiguous where the face is), extent, bytes per site, dimension that is cut,
// seconds. The answer is one line: microseconds per exchange of each batch, of the slowest rank. Persistent requests;
// ghosts are appended, so that nothing is unpacked. Between orders every rank sleeps: its cores belong to others then.
#include <halocline/comm/clock.hpp>

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sched.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using namespace halocline;

constexpr int batches = 16;

struct order {
    char mode[16] = "";
    int extent = 0, bytes_per_site = 0;
    char cut = 't';
    double seconds = 0;
};

/// A face in x-fastest order: `runs` runs of contiguous bytes.
struct shape {
    explicit shape(const order& o) : run_bytes(static_cast<std::size_t>(o.bytes_per_site)) {
        for (const char mu : {'x', 'y', 'z', 't'}) {
            if (mu == o.cut) past = true;
            else (past ? runs : run_bytes) *= static_cast<std::size_t>(o.extent);
        }
        stride = run_bytes * static_cast<std::size_t>(o.extent);
    }
    bool past = false;
    std::size_t run_bytes, stride = 0, runs = 1;
    [[nodiscard]] std::size_t bytes() const { return runs * run_bytes; }
};

class exchange {
  public:
    exchange(const order& o, int rank, int ranks)
        : face_(o), packed_(std::strcmp(o.mode, "packed") == 0), rank_(rank), low_((rank + ranks - 1) % ranks),
          high_((rank + 1) % ranks), values_(face_.runs * face_.stride / 8) {
        for (auto& message : messages_) message.resize(packed_ ? face_.bytes() / 8 : 0);
        for (auto& ghost : ghosts_) ghost.resize(face_.bytes() / 8);
        for (std::size_t end : {0U, 1U})
            for (std::size_t run = 0; run < face_.runs; ++run)
                for (std::size_t w = 0; w < face_.run_bytes / 8; ++w) *word(end, run, w) = value(rank, end, run, w, 0);

        const auto int_of = [](std::size_t n) { return static_cast<int>(n); };
        MPI_Type_vector(int_of(face_.runs), int_of(face_.run_bytes), int_of(face_.stride), MPI_BYTE, &type_);
        MPI_Type_commit(&type_);
        // What leaves at the low face (tag 0) arrives behind the neighbour's high face.
        const std::array<int, 2> peers{low_, high_};
        for (std::size_t end : {0U, 1U}) {
            if (packed_)
                MPI_Send_init(messages_[end].data(), int_of(face_.bytes()), MPI_BYTE, peers[end], int_of(end),
                              MPI_COMM_WORLD, &requests_[2 + end]);
            else MPI_Send_init(word(end, 0, 0), 1, type_, peers[end], int_of(end), MPI_COMM_WORLD, &requests_[2 + end]);
            MPI_Recv_init(ghosts_[end].data(), int_of(face_.bytes()), MPI_BYTE, peers[end], int_of(1 - end), MPI_COMM_WORLD,
                          &requests_[end]);
        }
    }
    ~exchange() {
        for (MPI_Request& r : requests_) MPI_Request_free(&r);
        MPI_Type_free(&type_);
    }
    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;

    /// One exchange, in ticks. The source is dirtied before, one word per cache line.
    std::uint64_t step() {
        ++step_;
        for (std::size_t end : {0U, 1U})
            for (std::size_t run = 0; run < face_.runs; ++run)
                for (std::size_t w = 0; w < face_.run_bytes / 8; w += 8) *word(end, run, w) = value(rank_, end, run, w, step_);
        const std::uint64_t begin = comm::ticks();
        MPI_Startall(2, requests_.data());
        if (packed_)
            for (std::size_t end : {0U, 1U}) pack(end);
        MPI_Startall(2, requests_.data() + 2);
        MPI_Waitall(4, requests_.data(), MPI_STATUSES_IGNORE);
        return comm::ticks() - begin;
    }
    [[nodiscard]] bool ghosts_are_right() const {
        for (std::size_t end : {0U, 1U}) {
            const std::uint64_t* ghost = ghosts_[end].data();
            for (std::size_t run = 0; run < face_.runs; ++run)
                for (std::size_t w = 0; w < face_.run_bytes / 8; ++w)
                    if (*ghost++ != value(end == 0 ? low_ : high_, 1 - end, run, w, step_)) return false;
        }
        return true;
    }

  private:
    static std::uint64_t value(int rank, std::size_t end, std::size_t run, std::size_t w, std::uint64_t step) {
        const std::uint64_t constant = (run << 20) + (w << 4) + (end << 3) + static_cast<std::uint64_t>(rank);
        return w % 8 == 0 ? constant + (step << 40) : constant;
    }
    std::uint64_t* word(std::size_t end, std::size_t run, std::size_t w) {
        return values_.data() + (run * face_.stride + end * (face_.stride - face_.run_bytes)) / 8 + w;
    }
    void pack(std::size_t end) {
        auto* to = reinterpret_cast<std::byte*>(messages_[end].data());
        const auto* from = reinterpret_cast<const std::byte*>(word(end, 0, 0));
        switch (face_.run_bytes) { // sizes of a site are known to who writes the loop by hand
        case 96: return copy<96>(to, from);
        case 192: return copy<192>(to, from);
        default:
            for (std::size_t i = 0; i < face_.runs; ++i)
                std::memcpy(to + i * face_.run_bytes, from + i * face_.stride, face_.run_bytes);
        }
    }
    template <std::size_t Bytes>
    void copy(std::byte* to, const std::byte* from) const {
        for (std::size_t i = 0; i < face_.runs; ++i) std::memcpy(to + i * Bytes, from + i * face_.stride, Bytes);
    }

    shape face_;
    bool packed_;
    int rank_, low_, high_;
    std::vector<std::uint64_t> values_;
    std::array<std::vector<std::uint64_t>, 2> messages_, ghosts_;
    std::array<MPI_Request, 4> requests_{}; ///< two receives, two sends
    MPI_Datatype type_{};
    std::uint64_t step_ = 0;
};

/// The next order on every rank, false at the end; waits without load.
bool next_order(order& o, int rank) {
    char line[128] = "";
    if (rank == 0 && std::fgets(line, sizeof line, stdin) == nullptr) line[0] = '\0';
    MPI_Request request;
    MPI_Ibcast(line, sizeof line, MPI_CHAR, 0, MPI_COMM_WORLD, &request);
    for (int done = 0; !done;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done) usleep(1000);
    }
    o = {};
    if (line[0] == '\0') return false;
    const int read = std::sscanf(line, "%15s %d %d %c %lf", o.mode, &o.extent, &o.bytes_per_site, &o.cut, &o.seconds);
    if (read != 5 || o.extent < 1 || o.bytes_per_site < 8 || o.bytes_per_site % 8 != 0 || std::strchr("xyzt", o.cut) == nullptr ||
        (std::strcmp(o.mode, "packed") != 0 && std::strcmp(o.mode, "in-place") != 0)) {
        if (rank == 0) std::fprintf(stderr, "bench_halo_mpi: '%s' is no order 'packed|in-place L bytes cut seconds'\n", line);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return true;
}

void obey(const order& o, int rank, int ranks) {
    exchange e(o, rank, ranks);
    std::uint64_t warm = 0;
    for (int i = 0; i < 4; ++i) e.step(); // connections are made by the first messages
    for (int i = 0; i < 4; ++i) warm += e.step();
    double each = comm::seconds(warm) / 4;
    MPI_Allreduce(MPI_IN_PLACE, &each, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const int steps = std::clamp(static_cast<int>(o.seconds / batches / each), 1, 10'000);
    std::array<double, batches> us{};
    for (double& batch : us) {
        std::uint64_t sum = 0;
        for (int i = 0; i < steps; ++i) sum += e.step();
        batch = 1e6 * comm::seconds(sum) / steps;
    }
    if (!e.ghosts_are_right()) {
        std::fprintf(stderr, "bench_halo_mpi: wrong ghosts on rank %d\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Allreduce(MPI_IN_PLACE, us.data(), batches, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank != 0) return;
    for (const double batch : us) std::printf("%.4f ", batch);
    std::printf("\n");
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    // One core per rank, where there are enough: as bench_halo does.
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) == 0 && CPU_COUNT(&all) >= ranks) {
        for (int core = 0, n = 0; core < CPU_SETSIZE; ++core)
            if (CPU_ISSET(core, &all) && n++ == rank) CPU_SET(core, &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    for (order o; next_order(o, rank);) obey(o, rank, ranks);
    MPI_Finalize();
}
