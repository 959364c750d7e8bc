// SPDX-License-Identifier: Apache-2.0
// How close is an exchange to one hand-written copy, and how far from MPI?  scripts/bench.sh halo
//   (halocline-run -n 2 -- bench_halo [--peer 'NAME=COMMAND'], or mpirun … bench_halo --peer-mpi for ours over MPI)
//
// "limit" is a plain loop that copies each face straight into the neighbour's slot in shared memory, with the flag
// protocol of our appended ghosts: two slots in turn, an epoch per slot. Short slices of both alternate; each is
// bracketed by a probe of the flag time between two cores, and dropped if the probes differ by more than 15 %; a point
// with fewer than 3 slices left takes them all and is marked as noisy. The source
// is dirtied before each step, outside the timed part; the payload of the last step of each slice is verified.
// A peer is a program of another MPI that takes its turns in the same rounds, by orders through a pipe (halo_mpi.cpp);
// our ranks sleep meanwhile, and its ranks sleep while ours work.

#include <halocline/comm/clock.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/halo/plan.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <fcntl.h>
#include <sched.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace halocline;
using lattice::coordinate;
using lattice::face;
using lattice::side;

constexpr std::size_t largest_face_bytes = std::size_t{32} << 20;

/// Memory that all ranks of this host map, apart from the library: for the limit and the flag probe.
class shared_memory {
  public:
    struct alignas(64) flag {
        std::atomic<std::uint64_t> epoch{0};
    };
    struct receiver { // one direction into one rank
        flag arrived[2];
        std::byte* slot[2];
    };

    explicit shared_memory(const comm::job& j) : ranks_(j.ranks()) {
        const std::string name = j.broadcast("/halocline-bench-" + std::to_string(getpid()));
        j.collectively([&] { if (j.rank() == 0) open_and_map(name, O_RDWR | O_CREAT | O_EXCL); });
        j.collectively([&] { if (j.rank() != 0) open_and_map(name, O_RDWR); });
        j.barrier();
        if (j.rank() == 0) shm_unlink(name.c_str());
    }
    ~shared_memory() { munmap(base_, bytes()); }
    shared_memory(const shared_memory&) = delete;
    shared_memory& operator=(const shared_memory&) = delete;

    [[nodiscard]] std::atomic<std::uint64_t>& probe(int rank) const { return flags(rank)[0].epoch; }
    [[nodiscard]] std::atomic<std::uint64_t>& arrived(int rank, side s, std::uint64_t epoch) const {
        return flags(rank)[1 + 2 * static_cast<std::size_t>(s) + (epoch & 1)].epoch;
    }
    [[nodiscard]] std::byte* slot(int rank, side s, std::uint64_t epoch) const {
        return base_ + flag_bytes * static_cast<std::size_t>(ranks_) +
               largest_face_bytes * (4 * static_cast<std::size_t>(rank) + 2 * static_cast<std::size_t>(s) + (epoch & 1));
    }

  private:
    static constexpr std::size_t flag_bytes = 4096;
    [[nodiscard]] std::size_t bytes() const {
        return (flag_bytes + 4 * largest_face_bytes) * static_cast<std::size_t>(ranks_);
    }
    [[nodiscard]] flag* flags(int rank) const {
        return reinterpret_cast<flag*>(base_ + flag_bytes * static_cast<std::size_t>(rank));
    }
    void open_and_map(const std::string& name, int how) {
        const int fd = shm_open(name.c_str(), how, 0600);
        if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes())) != 0)
            throw error("shm_open '" + name + "': " + std::strerror(errno) + "; the ranks of this bench share one host");
        void* p = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        if (p == MAP_FAILED) throw error("mmap of " + std::to_string(bytes()) + " bytes: " + std::strerror(errno));
        base_ = static_cast<std::byte*>(p);
    }

    int ranks_;
    std::byte* base_ = nullptr;
};

int cores() {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void await(const std::atomic<std::uint64_t>& flag, std::uint64_t epoch, int spins) {
    for (int polls = 0; flag.load(std::memory_order_acquire) < epoch; ++polls)
        if (polls > spins) sched_yield();
}

struct point {
    int extent = 4;
    int bytes_per_site = 96;
    int mu = 3; ///< the dimension that is cut
};

/// The source of one rank. Words of a site: one in eight (one per cache line) changes with each step.
class source {
  public:
    source(const comm::job& j, const point& p)
        : rank_(j.rank()), words_(p.bytes_per_site / 8),
          x_(lattice::site_order::lexicographic({p.extent, p.extent, p.extent, p.extent}), words_, &j.memory()) {
        for (std::int64_t s = 0; s < x_.volume(); ++s)
            for (int w = 0; w < words_; ++w) set(s, w, word(rank_, s, w, 0));
    }
    void dirty(const halo::plan& plan, std::uint64_t step) {
        for (const halo::plan_message& m : plan.messages())
            for (const std::int32_t s : m.send_sites)
                for (int w = 0; w < words_; w += 8) set(s, w, word(rank_, s, w, step));
    }
    /// Do these ghosts hold the sites that `sender` sent at its face, in message order, of this step?
    [[nodiscard]] bool holds(const std::byte* ghost, int sender, std::span<const std::int32_t> sites,
                             std::uint64_t step) const {
        for (const std::int32_t s : sites)
            for (int w = 0; w < words_; ++w, ghost += 8) {
                const std::uint64_t expected = word(sender, s, w, step);
                if (std::memcmp(ghost, &expected, 8) != 0) return false;
            }
        return true;
    }
    [[nodiscard]] const lattice::field<double>& field() const { return x_; }

  private:
    static std::uint64_t word(int rank, std::int64_t site, int w, std::uint64_t step) {
        const auto constant = static_cast<std::uint64_t>((site << 16) + (w << 8) + rank);
        return w % 8 == 0 ? constant + (step << 40) : constant;
    }
    void set(std::int64_t site, int w, std::uint64_t value) { std::memcpy(x_.data() + site * words_ + w, &value, 8); }

    int rank_, words_;
    lattice::field<double> x_;
};

/// The limit: one strided copy per face, written for this case alone.
class one_copy {
  public:
    one_copy(const shared_memory& memory, const halo::plan& plan, const point& p, const source& x, int spins)
        : memory_(memory), x_(x), spins_(spins), rank_(plan.owner().rank()) {
        std::size_t inner = 1, outer = 1; // sites in x-fastest order: [outer][extent][inner]
        for (int nu = 0; nu < lattice::dimensions; ++nu) {
            if (nu < p.mu) inner *= static_cast<std::size_t>(p.extent);
            if (nu > p.mu) outer *= static_cast<std::size_t>(p.extent);
        }
        run_bytes_ = inner * static_cast<std::size_t>(p.bytes_per_site);
        stride_ = run_bytes_ * static_cast<std::size_t>(p.extent);
        runs_ = outer;
        last_layer_ = run_bytes_ * static_cast<std::size_t>(p.extent - 1);
        low_ = plan.messages()[static_cast<std::size_t>(plan.message_of({p.mu, side::low}))].peer;
        high_ = plan.messages()[static_cast<std::size_t>(plan.message_of({p.mu, side::high}))].peer;
    }
    void exchange() {
        ++epoch_;
        const auto* values = reinterpret_cast<const std::byte*>(x_.field().data());
        send(values, low_, side::high);
        send(values + last_layer_, high_, side::low);
        await(memory_.arrived(rank_, side::low, epoch_), epoch_, spins_);
        await(memory_.arrived(rank_, side::high, epoch_), epoch_, spins_);
    }
    [[nodiscard]] const std::byte* ghost(side s) const { return memory_.slot(rank_, s, epoch_); }
    /// Before another run may use the flags. Collective with a barrier on both sides.
    void clear() {
        for (const side s : {side::low, side::high})
            for (const std::uint64_t k : {0U, 1U}) memory_.arrived(rank_, s, k).store(0);
    }

  private:
    void send(const std::byte* from, int peer, side at_peer) {
        std::byte* to = memory_.slot(peer, at_peer, epoch_);
        switch (run_bytes_) { // sizes of a site are known to who writes the loop by hand
        case 96: copy<96>(to, from); break;
        case 192: copy<192>(to, from); break;
        default:
            for (std::size_t i = 0; i < runs_; ++i) std::memcpy(to + i * run_bytes_, from + i * stride_, run_bytes_);
        }
        memory_.arrived(peer, at_peer, epoch_).store(epoch_, std::memory_order_release);
    }
    template <std::size_t Bytes>
    void copy(std::byte* to, const std::byte* from) const {
        for (std::size_t i = 0; i < runs_; ++i) std::memcpy(to + i * Bytes, from + i * stride_, Bytes);
    }

    const shared_memory& memory_;
    const source& x_;
    int spins_, rank_, low_ = 0, high_ = 0;
    std::size_t run_bytes_ = 0, stride_ = 0, runs_ = 0, last_layer_ = 0;
    std::uint64_t epoch_ = 0;
};

/// One-way flag time between ranks 2i and 2i + 1, in ns; 0 for a rank without partner.
double flag_ns(const comm::job& j, const shared_memory& memory, double duration, int spins, std::uint64_t& epoch) {
    const int partner = j.rank() ^ 1;
    j.barrier();
    if (partner >= j.ranks()) return 0;
    // The even rank decides when to stop: the last flag has the top bit set.
    constexpr std::uint64_t stop = std::uint64_t{1} << 63;
    std::atomic<std::uint64_t>& mine = memory.probe(j.rank());
    std::atomic<std::uint64_t>& theirs = memory.probe(partner);
    const std::uint64_t begin = comm::ticks();
    std::uint64_t trips = 0, now = begin;
    if (j.rank() % 2 == 0) {
        while (comm::seconds(now - begin) < duration) {
            for (int i = 0; i < 16; ++i, ++trips) {
                theirs.store(++epoch, std::memory_order_release);
                await(mine, epoch, spins);
            }
            now = comm::ticks();
        }
        theirs.store(++epoch | stop, std::memory_order_release);
    } else {
        for (;; ++trips) {
            await(mine, epoch + 1, spins);
            const bool over = (mine.load(std::memory_order_acquire) & stop) != 0;
            ++epoch;
            if (over) break;
            theirs.store(epoch, std::memory_order_release);
        }
        mine.store(epoch, std::memory_order_relaxed); // the even rank is waiting no more
        now = comm::ticks();
    }
    return trips == 0 ? 0 : 1e9 * comm::seconds(now - begin) / (2 * static_cast<double>(trips));
}

/// Numbers of all ranks, element-wise maximum.
std::vector<double> slowest(const comm::job& j, const std::vector<double>& mine) {
    std::vector<double> result = mine;
    const std::string bytes(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(double));
    for (const std::string& theirs : j.gather(bytes))
        for (std::size_t i = 0; i < result.size(); ++i) {
            double value = 0;
            std::memcpy(&value, theirs.data() + i * sizeof(double), sizeof(double));
            result[i] = std::max(result[i], value);
        }
    return result;
}

double quantile(std::vector<double> values, double q) {
    if (values.empty()) return 0;
    const auto n = static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5);
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n), values.end());
    return values[n];
}

/// A foreign program that answers orders "mode L bytes cut seconds" with microseconds per exchange, a line each.
class peer_program {
  public:
    explicit peer_program(const std::string& name_and_command) {
        const auto equals = name_and_command.find('=');
        name_ = name_and_command.substr(0, equals);
        command_ = equals == std::string::npos ? "" : name_and_command.substr(equals + 1);
        if (name_.empty() || command_.empty()) throw input_error("--peer " + name_and_command + ": expected NAME=COMMAND");
    }
    ~peer_program() {
        if (orders_) std::fclose(orders_); // the end of its input is its order to end
        if (answers_) std::fclose(answers_);
        if (process_ > 0) waitpid(process_, nullptr, 0);
    }
    peer_program(const peer_program&) = delete;
    peer_program& operator=(const peer_program&) = delete;

    [[nodiscard]] const std::string& name() const { return name_; }
    void start() {
        int orders[2], answers[2];
        if (pipe2(orders, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0)
            throw error(std::string("pipe: ") + std::strerror(errno));
        process_ = fork();
        if (process_ == 0) {
            dup2(orders[0], STDIN_FILENO);
            dup2(answers[1], STDOUT_FILENO);
            cpu_set_t all; // halocline-run has pinned this rank; the peer chooses for itself
            std::memset(&all, 0xff, sizeof all);
            sched_setaffinity(0, sizeof all, &all);
            execl("/bin/sh", "sh", "-c", ("exec " + command_).c_str(), nullptr);
            _exit(127);
        }
        std::signal(SIGPIPE, SIG_IGN); // a peer that ended is told by ask()
        close(orders[0]);
        close(answers[1]);
        orders_ = fdopen(orders[1], "w");
        answers_ = fdopen(answers[0], "r");
        if (process_ < 0) throw error(std::string("fork: ") + std::strerror(errno));
    }
    /// Err: error when the program ended or says something else.
    std::vector<double> ask(const std::string& order) {
        char line[1024];
        std::fprintf(orders_, "%s\n", order.c_str());
        if (std::fflush(orders_) != 0 || std::fgets(line, sizeof line, answers_) == nullptr)
            throw error("peer " + name_ + " ended at order '" + order + "': " + command_);
        std::stringstream stream(line);
        std::vector<double> us;
        for (double value = 0; stream >> value;) us.push_back(value);
        if (us.empty()) throw error("peer " + name_ + " answered '" + std::string(line) + "' to order '" + order + "'");
        return us;
    }

  private:
    std::string name_, command_;
    pid_t process_ = -1;
    std::FILE *orders_ = nullptr, *answers_ = nullptr;
};

struct contender {
    std::string who, mode, transport;
    std::vector<double> us{}, flags{};                 ///< of kept slices: batches, probes
    std::vector<double> dropped_us{}, dropped_flags{}; ///< of the others
    int kept = 0, dropped = 0;                         ///< slices
    peer_program* peer = nullptr;                      ///< on rank 0

    /// Where fewer slices are kept than this, the figures are those of all slices, and marked as noisy.
    static constexpr int fewest_slices = 3;
    [[nodiscard]] bool noisy() const { return kept < fewest_slices; }
    void settle() {
        if (!noisy()) return;
        us.insert(us.end(), dropped_us.begin(), dropped_us.end());
        flags.insert(flags.end(), dropped_flags.begin(), dropped_flags.end());
    }
};

struct bench_options {
    double seconds = 150;
    std::vector<int> extents{4, 8, 12, 16}, bytes{96, 192}, cuts{3, 0};
    std::string json, git = "unknown";
    std::vector<std::string> peers;
    bool peer_mpi = false;
};

[[noreturn]] void usage(const std::string& wrong) {
    throw input_error(wrong + "\nusage: bench_halo [--seconds S] [--L 4,8,12,16] [--bytes 96,192] [--cut t,x] "
                              "[--quick] [--json FILE] [--git HASH] [--peer NAME=COMMAND]... [--peer-mpi]");
}

std::vector<int> numbers(const std::string& text) {
    std::vector<int> result;
    std::stringstream stream(text);
    for (std::string item; std::getline(stream, item, ',');) result.push_back(std::atoi(item.c_str()));
    if (result.empty() || *std::min_element(result.begin(), result.end()) < 1) usage("'" + text + "' is no list of positive numbers");
    return result;
}

bench_options parse(int argc, char** argv) {
    bench_options o;
    for (int i = 1; i < argc; ++i) {
        const std::string flag = argv[i];
        if (flag == "--peer-mpi") {
            o.peer_mpi = true;
            continue;
        }
        if (flag == "--quick") { // a smoke test of everything
            o.seconds = 3;
            o.extents = {4, 8};
            o.bytes = {96};
            continue;
        }
        if (i + 1 == argc) usage("'" + flag + "' is unknown or lacks its value");
        const std::string value = argv[++i];
        if (flag == "--seconds") o.seconds = std::atof(value.c_str());
        else if (flag == "--L") o.extents = numbers(value);
        else if (flag == "--bytes") o.bytes = numbers(value);
        else if (flag == "--json") o.json = value;
        else if (flag == "--git") o.git = value;
        else if (flag == "--peer") o.peers.push_back(value);
        else if (flag == "--cut") {
            o.cuts.clear();
            for (const char c : value)
                if (const auto mu = std::string("xyzt").find(c); mu != std::string::npos) o.cuts.push_back(static_cast<int>(mu));
                else if (c != ',') usage("--cut " + value + ": dimensions are x, y, z, t");
        } else usage("unknown option '" + flag + "'");
    }
    if (o.seconds <= 0) usage("--seconds must be positive");
    for (const int b : o.bytes)
        if (b % 8 != 0) usage("--bytes " + std::to_string(b) + ": must be a multiple of 8");
    for (const int l : o.extents)
        if (std::size_t(l) * l * l * static_cast<std::size_t>(*std::max_element(o.bytes.begin(), o.bytes.end())) > largest_face_bytes)
            usage("--L " + std::to_string(l) + ": a face would have more than 32 MiB");
    return o;
}

std::string json_line(const contender& c, const point& p, int ranks, bool pinned, const std::string& host,
                      const std::string& git) {
    char line[768];
    std::snprintf(line, sizeof line,
                  R"({"bench":"halo","who":"%s","mode":"%s","transport":"%s","ranks":%d,"threads":1,"L":[%d,%d,%d,%d],)"
                  R"("bytes_per_site":%d,"cut":[%d,%d,%d,%d],"layout":"appended","flag_ns":%.1f,"us_min":%.4f,"us_median":%.4f,)"
                  R"("us_p95":%.4f,"slices_kept":%d,"slices_dropped":%d,"noisy":%s,"pinned":%s,"host":"%s","compiler":"%s","git":"%s"})",
                  c.who.c_str(), c.mode.c_str(), c.transport.c_str(), ranks, p.extent, p.extent, p.extent, p.extent,
                  p.bytes_per_site, p.mu == 0 ? ranks : 1, p.mu == 1 ? ranks : 1, p.mu == 2 ? ranks : 1,
                  p.mu == 3 ? ranks : 1, quantile(c.flags, 0.5), quantile(c.us, 0),
                  quantile(c.us, 0.5), quantile(c.us, 0.95), c.kept, c.dropped, c.noisy() ? "true" : "false", pinned ? "true" : "false", host.c_str(), __VERSION__, git.c_str());
    return line;
}

class driver {
  public:
    driver(const comm::job& j, const bench_options& o, std::deque<peer_program>& peers)
        : job_(j), options_(o), peers_(peers), memory_(j), spins_(j.ranks() <= cores() ? 2000 : 50) {}

    /// Measures one point; every rank gets the same result.
    std::vector<contender> measure(const point& p) {
        coordinate global{p.extent, p.extent, p.extent, p.extent}, grid{1, 1, 1, 1};
        grid[p.mu] = job_.ranks();
        global[p.mu] *= job_.ranks();
        const auto cut = lattice::decomposition::even(global, grid);
        halo::plan_options plan_options{.name = "bench", .bytes_per_site = static_cast<std::size_t>(p.bytes_per_site)};
        source x(job_, p);
        plan_options.order = x.field().shared_order();
        halo::plan plan(job_, cut, plan_options);
        one_copy limit(memory_, plan, p, x, spins_);

        std::vector<contender> result;
        if (!options_.peer_mpi) result.push_back({.who = "limit", .mode = "one-copy", .transport = "shm"});
        result.push_back({.who = "ours", .mode = job_.transport() == "shm" ? "direct" : "packed",
                          .transport = job_.transport()});
        for (peer_program& peer : peers_)
            for (const char* mode : {"packed", "in-place"})
                result.push_back({.who = peer.name(), .mode = mode, .transport = "mpi", .peer = &peer});
        const std::size_t points = options_.extents.size() * options_.bytes.size() * options_.cuts.size();
        // Half of the time is for rounds in place of dropped slices.
        const double budget = options_.seconds / static_cast<double>(points);
        const double slice = std::min(0.5, budget / (2 * rounds * static_cast<double>(result.size())));
        const std::uint64_t begin = comm::ticks();
        const auto enough = [&](int round) {
            if (round < rounds) return false;
            const bool kept = std::all_of(result.begin(), result.end(), [](const contender& c) { return c.kept >= rounds; });
            return kept || slowest(job_, {comm::seconds(comm::ticks() - begin)})[0] > budget;
        };
        for (int round = 0; !enough(round); ++round)
            for (contender& c : result) {
                if (c.peer) {
                    run_peer_slice(c, slice, p);
                    continue;
                }
                const bool ours = c.who == "ours";
                run_slice(c, slice, plan, x, [&] {
                    if (!ours) return limit.exchange();
                    plan.start(x.field());
                    if (plan.finish() != comm::status::ok) plan.finish_or_throw();
                }, [&](face f) { return ours ? plan.ghost(f) : limit.ghost(f.end); });
            }
        job_.barrier();
        limit.clear();
        job_.barrier();
        for (contender& c : result) c.settle();
        return result;
    }

  private:
    static constexpr int rounds = 5, batches = 16;

    void run_peer_slice(contender& c, double slice, const point& p) {
        const double probe = std::min(5e-3, slice / 6);
        const double before = flag_ns(job_, memory_, probe, spins_, probe_epoch_);
        std::vector<double> us;
        job_.collectively([&] { // the other ranks sleep
            char order[96];
            std::snprintf(order, sizeof order, "%s %d %d %c %g", c.mode.c_str(), p.extent, p.bytes_per_site, "xyzt"[p.mu], slice * 2 / 3);
            if (job_.rank() == 0) us = c.peer->ask(order);
        });
        const double after = flag_ns(job_, memory_, probe, spins_, probe_epoch_);
        note(c, us, before, after);
    }

    template <class Exchange, class Ghost>
    void run_slice(contender& c, double slice, const halo::plan& plan, source& x, Exchange&& exchange, Ghost&& ghost) {
        const double probe = std::min(5e-3, slice / 6);
        const double before = flag_ns(job_, memory_, probe, spins_, probe_epoch_);
        const auto step = [&] { // one timed exchange, in ticks
            x.dirty(plan, ++step_);
            const std::uint64_t begin = comm::ticks();
            exchange();
            return comm::ticks() - begin;
        };
        // Warm up, and agree on how many steps fill the slice.
        const std::uint64_t begin = comm::ticks();
        for (int i = 0; i < 4; ++i) step();
        const double each = slowest(job_, {comm::seconds(comm::ticks() - begin) / 4})[0];
        const int steps = std::clamp(static_cast<int>(slice * 2 / 3 / batches / each), 1, 10'000);
        std::vector<double> mine;
        for (int b = 0; b < batches; ++b) {
            std::uint64_t sum = 0;
            for (int i = 0; i < steps; ++i) sum += step();
            mine.push_back(1e6 * comm::seconds(sum) / steps);
        }
        verify(c, plan, x, ghost);
        const double after = flag_ns(job_, memory_, probe, spins_, probe_epoch_);

        note(c, slowest(job_, mine), before, after);
    }

    /// Keeps a slice if the machine had the same speed before and after it.
    void note(contender& c, const std::vector<double>& us, double before, double after) {
        const std::vector<double> flags = slowest(job_, {before, after});
        const bool keep = std::abs(flags[0] - flags[1]) <= 0.15 * std::max(flags[0], flags[1]);
        ++(keep ? c.kept : c.dropped);
        std::vector<double>& all_us = keep ? c.us : c.dropped_us;
        std::vector<double>& all_flags = keep ? c.flags : c.dropped_flags;
        all_us.insert(all_us.end(), us.begin(), us.end());
        all_flags.insert(all_flags.end(), flags.begin(), flags.end());
    }

    template <class Ghost>
    void verify(const contender& c, const halo::plan& plan, const source& x, Ghost&& ghost) {
        job_.collectively([&] {
            for (const halo::plan_message& m : plan.messages()) {
                // All local boxes are alike: what the peer sends at its opposite face are the sites that we send there.
                const auto sites = std::span(plan.messages()[static_cast<std::size_t>(plan.message_of(m.where.opposite()))].send_sites);
                if (!x.holds(ghost(m.where), m.peer, sites, step_))
                    throw error(c.who + " over " + c.transport + ": wrong ghosts behind " + to_string(m.where) + " of rank " +
                                std::to_string(job_.rank()));
            }
        });
    }

    const comm::job& job_;
    const bench_options& options_;
    std::deque<peer_program>& peers_;
    shared_memory memory_;
    int spins_;
    std::uint64_t step_ = 0, probe_epoch_ = 0;
};

int run(int argc, char** argv) {
    const bench_options o = parse(argc, argv);
    comm::job_options job_options;
    job_options.transports = {o.peer_mpi ? "mpi" : "shm"};
    const comm::job j = comm::job::from_environment(job_options);
    if (j.ranks() < 2) throw input_error("bench_halo needs 2 ranks or more: halocline-run -n 2 -- bench_halo");
    if (!o.peers.empty() && j.ranks() != 2) throw input_error("--peer: peers of MPI are measured on 2 ranks, not " + std::to_string(j.ranks()));
    std::deque<peer_program> peers;
    j.collectively([&] {
        for (const std::string& text : o.peers) {
            peers.emplace_back(text);
            if (j.rank() == 0) peers.back().start();
        }
    });
    const bool pinned = j.ranks() <= cores();
    if (pinned) {
        cpu_set_t all, one;
        CPU_ZERO(&one);
        sched_getaffinity(0, sizeof all, &all);
        for (int core = 0, n = 0; core < CPU_SETSIZE; ++core)
            if (CPU_ISSET(core, &all) && n++ == j.rank()) CPU_SET(core, &one);
        if (CPU_COUNT(&one) == 1) sched_setaffinity(0, sizeof one, &one);
    }
    std::FILE* json = j.rank() == 0 && !o.json.empty() ? std::fopen(o.json.c_str(), "w") : nullptr;
    j.collectively([&] {
        if (j.rank() == 0 && !o.json.empty() && !json) throw input_error("--json " + o.json + ": " + std::strerror(errno));
    });

    const bool table = j.rank() == 0 && isatty(STDOUT_FILENO) != 0;
    const std::string& host = j.members()[static_cast<std::size_t>(j.rank())].host;
    if (table) std::printf("%-8s %6s %4s  %-8s %-9s %10s %10s %10s %8s %8s %8s %6s\n", "L", "B/site", "cut", "who", "mode", "us min", "us median", "us p95", "flag ns", "/limit", "min/min", "kept");
    driver bench(j, o, peers);
    for (const int mu : o.cuts)
        for (const int bytes : o.bytes)
            for (const int extent : o.extents) {
                const point p{extent, bytes, mu};
                double limit = 0, least = 0;
                for (const contender& c : bench.measure(p)) {
                    if (j.rank() != 0) continue;
                    const double us = quantile(c.us, 0.5);
                    if (c.who == "limit") limit = us, least = quantile(c.us, 0);
                    const std::string line = json_line(c, p, j.ranks(), pinned, host, o.git);
                    if (json) std::fprintf(json, "%s\n", line.c_str());
                    if (!table) std::printf("%s\n", line.c_str());
                    else std::printf("%-8d %6d %4c  %-8s %-9s %10.3f %10.3f %10.3f %8.0f %8.2f %8.2f %4d/%d%s\n", extent, bytes, "xyzt"[mu], c.who.c_str(), c.mode.c_str(), quantile(c.us, 0), us, quantile(c.us, 0.95), quantile(c.flags, 0.5), limit > 0 ? us / limit : 0.0, least > 0 ? quantile(c.us, 0) / least : 0.0, c.kept, c.kept + c.dropped, c.noisy() ? " noisy" : "");
                    std::fflush(stdout);
                }
            }
    if (json) std::fclose(json);
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const input_error& e) {
        std::fprintf(stderr, "bench_halo: %s\n", e.what());
        return 2;
    } catch (const job_error& e) {
        std::fprintf(stderr, "bench_halo: %s\n", e.what());
        return 3;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "bench_halo: %s\n", e.what());
        return 1;
    }
}
