// SPDX-License-Identifier: Apache-2.0
// Jobs over two hosts: network namespaces with a link between them, two ranks each; shared memory within, libfabric
// between. The link can be cut, flap or lose packets, and ranks can be killed. Needs root.
#include <gtest/gtest.h>
#include <halocline_test/killed_job.hpp>
#include <halocline_test/run_command.hpp>
#include <halocline_test/run_tests.hpp>
#include <halocline_test/send_signal.hpp>
#include <halocline_test/shell_script.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <thread>
#include <vector>

using namespace halocline_test;
using nlohmann::json;
using clock_type = std::chrono::steady_clock;

namespace {

const std::string bin = HALOCLINE_BIN;
std::string rank_program; // comm_kill_test

bool shell(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

/// Two namespaces that vanish with this object. `first`: a shell command before a program on each.
class two_hosts {
  public:
    explicit two_hosts(const std::array<std::string, 2>& first = {":", ":"}) {
        const std::string id = std::to_string(getpid());
        a = "hca" + id;
        b = "hcb" + id;
        const std::string in_a = "ip -n " + a + " ", in_b = "ip -n " + b + " ";
        there = shell("ip netns add " + a) && shell("ip netns add " + b) &&
                shell("ip link add " + a + " netns " + a + " type veth peer name " + b + " netns " + b) &&
                shell(in_a + "addr add 10.231.7.1/24 dev " + a) && shell(in_b + "addr add 10.231.7.2/24 dev " + b) &&
                shell(in_a + "link set lo up") && shell(in_b + "link set lo up") &&
                shell(in_a + "link set " + a + " up") && shell(in_b + "link set " + b + " up");
        shell_script(scratch_, "shell",
                     "[ \"$1\" = " + a + " ] && " + first[0] + " || " + first[1] +
                         "\nexec ip netns exec \"$1\" unshare --uts sh -c 'hostname \"$0\"; exec \"$@\"' \"$@\"\n");
    }
    ~two_hosts() {
        shell("ip netns del " + a);
        shell("ip netns del " + b);
    }
    two_hosts(const two_hosts&) = delete;
    two_hosts& operator=(const two_hosts&) = delete;

    [[nodiscard]] std::string on_both(const std::string& command) const {
        return bin + "/halocline-run --hosts " + a + ":2," + b + ":2 --remote-shell '" + (scratch_ / "shell") +
               " {host}' --timeout 60 -- " + command;
    }
    void cut() const { shell("ip -n " + a + " link set " + a + " down"); }
    void mend() const { shell("ip -n " + a + " link set " + a + " up"); }
    /// Number of packets that host b has received.
    [[nodiscard]] long packets() const {
        const command_result r = run_command("ip -n " + b + " -s -j link show dev " + b);
        const json links = json::parse(r.out, nullptr, false);
        return links.is_array() ? links[0]["stats64"]["rx"]["packets"].get<long>() : -1;
    }
    /// From now on each host drops one arriving packet in a hundred, using whatever its kernel offers for that; "": it
    /// offers nothing.
    [[nodiscard]] std::string lose_packets() const {
        const auto on_each = [&](const auto& command) { return shell(command(a)) && shell(command(b)); };
        if (on_each([](const std::string& host) {
                return "tc -n " + host + " qdisc add dev " + host + " root netem loss 1%";
            }))
            return "netem";
        if (on_each([](const std::string& host) {
                return "ip netns exec " + host +
                       " nft 'add table ip loss; add chain ip loss in { type filter hook input " +
                       "priority 0; }; add rule ip loss in iifname " + host +
                       " numgen random mod 100 == 0 counter drop'";
            }))
            return "nft";
        return "";
    }
    [[nodiscard]] long lost(const std::string& by) const {
        long all = 0;
        for (const std::string& host : {a, b}) {
            const command_result r =
                run_command(by == "netem" ? "tc -n " + host + " -s qdisc show dev " + host
                                          : "ip netns exec " + host + " nft list chain ip loss in");
            const std::string before = by == "netem" ? "(dropped " : "counter packets ";
            const std::size_t at = r.out.find(before);
            if (at != std::string::npos) all += std::atol(r.out.c_str() + at + before.size());
        }
        return all;
    }

    std::string a, b;
    bool there = false;

  private:
    scratch_folder scratch_;
};

/// Connects again and again to every open port in a namespace: sends nonsense, stays silent, or hangs up.
class strangers {
  public:
    explicit strangers(const std::string& name_space) {
        child_ = fork();
        if (child_ != 0) return;
        const int fd = open(("/run/netns/" + name_space).c_str(), O_RDONLY);
        if (setns(fd, CLONE_NEWNET) != 0) _exit(1);
        std::vector<int> held;
        for (long made = 0;;) {
            std::ifstream table("/proc/thread-self/net/tcp");
            std::string line;
            while (std::getline(table, line)) {
                unsigned ip = 0, port = 0, state = 0;
                if (std::sscanf(line.c_str(), " %*d: %x:%x %*x:%*x %x", &ip, &port, &state) != 3 || state != 10)
                    continue;
                sockaddr_in to{};
                to.sin_family = AF_INET;
                to.sin_addr.s_addr = ip;
                to.sin_port = htons(static_cast<std::uint16_t>(port));
                for (int n = 0; n < 50; ++n, ++made) {
                    const int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
                    connect(s, reinterpret_cast<const sockaddr*>(&to), sizeof to);
                    const std::string nonsense(static_cast<std::size_t>(n) * 40, "halofar1"[n % 8]);
                    send(s, nonsense.data(), nonsense.size(), MSG_NOSIGNAL);
                    held.push_back(s);
                }
                for (; held.size() > 500; held.erase(held.begin())) close(held.front());
                const std::string so_far = std::to_string(made) + "\n";
                pwrite(count_.fd, so_far.data(), so_far.size(), 0);
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1)); // the ranks need processors, too
        }
    }
    ~strangers() {
        if (child_ <= 0) return;
        kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
    }
    strangers(const strangers&) = delete;
    strangers& operator=(const strangers&) = delete;
    [[nodiscard]] long connections() const {
        std::array<char, 32> text{};
        return pread(count_.fd, text.data(), text.size() - 1, 0) > 0 ? std::atol(text.data()) : 0;
    }

  private:
    struct shared_file {
        int fd = memfd_create("count", MFD_CLOEXEC);
        ~shared_file() { close(fd); }
    } count_;
    pid_t child_ = -1;
};

/// Ranks that add numbers forever, started in the background.
struct summing_job : running_job {
    explicit summing_job(const two_hosts& hosts)
        : running_job(4, {"sh", "-c", hosts.on_both(rank_program + " rank hosts-adding")}, 4) {}
};

double seconds_since(clock_type::time_point begin) {
    return std::chrono::duration<double>(clock_type::now() - begin).count();
}

class Hosts : public testing::Test {
  protected:
    void SetUp() override {
        if (geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
        if (!hosts.there) GTEST_SKIP() << "this machine allows no network namespaces with a veth pair between them";
    }
    two_hosts hosts;
};

json solve(const std::string& job, const scratch_folder& scratch) {
    const command_result r = run_command(job + " --mpi 1.1.2.2 --setup 1 --json " + (scratch / "r.json"), 100);
    EXPECT_EQ(r.exit_code, 0) << r.out << r.err;
    return json::parse(read_text(scratch / "r.json"), nullptr, false);
}

/// Compares a program within a node with the same program over two hosts, with shared memory inside each.
void expect_the_bits_of_shared_memory(const two_hosts& hosts, const std::string& program, const std::string& between,
                                      const scratch_folder& scratch) {
    const json shm = solve(bin + "/halocline-run -n 4 -- " + program + " --transport shm", scratch);
    const json mixed = solve(hosts.on_both(program + " --transport shm," + between), scratch);

    EXPECT_EQ(mixed["transport"], "shm+" + between);
    for (const char* key : {"solution_norm", "solution_sum", "first_component", "true_relative_residual",
                            "outer_iterations", "coarse_iterations_average", "history"})
        EXPECT_EQ(mixed[key], shm[key]) << key;
    ASSERT_EQ(mixed["coarse_halo"].size(), 2u);
    for (const json& lane : mixed["coarse_halo"]) EXPECT_GT(lane["bytes"], 0) << lane;
}

TEST_F(Hosts, AMixedPlanGivesTheBitsOfSharedMemory) {
    expect_the_bits_of_shared_memory(hosts, bin + "/coarse_solve --vectors 8", "ofi", scratch_folder());
}

// For a machine with two RDMA devices that reach each other: each host has its own, chosen by its configuration.
TEST(HostsOverVerbs, AMixedPlanOverTwoDevicesGivesTheBitsOfSharedMemory) {
    const two_hosts hosts({"export HALOCLINE_COMM_VERBS_DEVICE=rxe0", "export HALOCLINE_COMM_VERBS_DEVICE=rxe1"});
    ASSERT_TRUE(hosts.there);
    const scratch_folder scratch;
    const std::string gauge = scratch / "4444";
    const command_result made =
        run_command(bin + "/generate_gauge --grid 4.4.4.4 --thermalisation 4 --sweeps 0 --output " + gauge);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const auto received = [] { // packets that went over the cable
        return std::stoull(read_text("/sys/class/net/veth1/statistics/rx_packets"));
    };
    const auto before = received();
    setenv("HALOCLINE_SOLVER_TOLERANCE", "1e-4", 1); // the emulated machine is slow
    expect_the_bits_of_shared_memory(hosts, bin + "/coarse_solve --vectors 2 --gauge " + gauge, "verbs", scratch);
    unsetenv("HALOCLINE_SOLVER_TOLERANCE");
    EXPECT_GT(received(), before + 1000);
}

TEST_F(Hosts, EveryRankNamesOneThatIsKilledElsewhere) {
    summing_job job(hosts);
    const auto begin = clock_type::now();
    send_signal(job.ranks[3], SIGKILL);

    EXPECT_EQ(job.wait(), 3);
    EXPECT_LT(seconds_since(begin), 8);
    ASSERT_EQ(job.failures.size(), 3u);
    const std::string name = "rank 3 (pid " + std::to_string(job.ranks[3]) + " on " + hosts.b + ") died while";
    for (const std::string& f : job.failures) EXPECT_NE(f.find(name), std::string::npos) << f;
}

/// Cuts the link of a job. Returns the seconds from there to its end.
double cut_a_link(const two_hosts& hosts) {
    summing_job job(hosts);
    const auto begin = clock_type::now();
    hosts.cut();

    EXPECT_EQ(job.wait(), 3);
    const double seconds = seconds_since(begin);
    std::printf("%.2f s from the cut to the end of the job\n", seconds);
    EXPECT_EQ(job.failures.size(), 4u);
    for (const std::string& f : job.failures) {
        EXPECT_NE(f.find("can't be reached any more: the link from hc"), std::string::npos) << f;
        for (const char* end : {"(10.231.7.1)", "(10.231.7.2)"}) EXPECT_NE(f.find(end), std::string::npos) << f;
        EXPECT_NE(f.find("while this rank waited for"), std::string::npos) << f;
    }
    return seconds;
}

TEST_F(Hosts, ACutLinkIsReportedWithBothEnds) {
    constexpr double promised = 5.5 + 2; // the second is for the job's end on a loaded machine
    double seconds = cut_a_link(hosts);
    for (int again = 0; again < 2 && seconds >= promised && !HasFailure(); ++again) { // it may have stood still
        hosts.mend();
        seconds = cut_a_link(hosts);
    }
    EXPECT_LT(seconds, promised);
}

/// Runs heat4d on both hosts and returns its result.  `meanwhile` runs at the same time. A link may be silent for 20 s:
/// on a busy machine a short cut may last long.
template <class Work>
json diffuse(const two_hosts& hosts, int steps, Work meanwhile) {
    const scratch_folder scratch;
    command_result r;
    std::thread job([&] {
        r = run_command("env HALOCLINE_FAULTS_LINK_TIMEOUT_MS=20000 HALOCLINE_COMM_TRANSPORTS=shm,ofi "
                        "'HALOCLINE_COMM_OFI_PROVIDER=tcp;ofi_rxm' " +
                            hosts.on_both(bin + "/heat4d --grid 8.8.8.8 --steps " + std::to_string(steps) + " --json " +
                                          (scratch / "r.json")),
                        200); // normally about 10, but the machine may be loaded
    });
    meanwhile();
    job.join();
    EXPECT_EQ(r.exit_code, 0) << r.out << r.err;
    return json::parse(read_text(scratch / "r.json"), nullptr, false);
}

/// The checksum of the same steps on one host over shared memory.
std::string checksum_within_a_host(int steps) {
    const scratch_folder scratch;
    const command_result r = run_command(bin + "/halocline-run -n 4 -- " + bin + "/heat4d --grid 8.8.8.8 --steps " +
                                         std::to_string(steps) + " --json " + (scratch / "r.json"));
    EXPECT_EQ(r.exit_code, 0) << r.out << r.err;
    return json::parse(read_text(scratch / "r.json")).value("checksum", "");
}

TEST_F(Hosts, AJobGoesOnAfterItsLinkWasDownForAWhile) {
    constexpr int few = 1000;
    double quick = 1e9;
    for (int run = 0; run < 3; ++run) { // a busy machine slows down some
        const json result = diffuse(hosts, few, [] {});
        ASSERT_FALSE(result.is_discarded());
        quick = std::min(quick, result["seconds"].get<double>());
    }
    int steps = static_cast<int>(few * std::clamp(6 / quick, 1.0, 100.0)); // about 6 s

    constexpr double time_of_cuts = 2 * 2.0;
    long before = 0, down = 0, at_end = 0;
    const auto cut_twice = [&] {
        const long unused = hosts.packets();
        for (int flaps = 0; flaps < 2; ++flaps) {
            // They have met, and exchange; after a flap, again: TCP retries at growing intervals, and must not find the
            // link down each time until the job takes it for lost.
            const long idle = hosts.packets();
            for (int i = 0; i < 200 && hosts.packets() < idle + 1000; ++i)
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
            // Wait also until unused links have been heard from: they are probed once a second.
            std::this_thread::sleep_for(std::chrono::milliseconds(1500));
            before = hosts.packets() - unused;
            hosts.cut();
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            down = hosts.packets();
            std::this_thread::sleep_for(std::chrono::milliseconds(1800));
            at_end = hosts.packets();
            hosts.mend();
        }
    };
    json result;
    for (int tries = 0; tries < 3; ++tries, steps *= 4) { // the machine may have become quicker
        result = diffuse(hosts, steps, cut_twice);
        ASSERT_FALSE(result.is_discarded());
        if (result["seconds"].get<double>() > time_of_cuts) break;
    }

    EXPECT_GT(before, 1000);
    EXPECT_EQ(down, at_end);
    EXPECT_GT(result["seconds"].get<double>(), time_of_cuts);
    EXPECT_EQ(result["checksum"], checksum_within_a_host(steps));
}

class HostsThatLosePackets : public Hosts {};

TEST_F(HostsThatLosePackets, GetTheSameBits) {
    const std::string by = hosts.lose_packets();
    if (by.empty()) GTEST_SKIP() << "the kernel has no netem, or nft (package nftables) is missing";
    constexpr int steps = 500;

    const json result = diffuse(hosts, steps, [] {});

    ASSERT_FALSE(result.is_discarded());
    EXPECT_GT(hosts.lost(by), 10);
    EXPECT_EQ(result["checksum"], checksum_within_a_host(steps));
    std::printf("%s: %ld packets lost, %.1f s\n", by.c_str(), hosts.lost(by), result["seconds"].get<double>());
}

TEST_F(Hosts, ARankThatIsStoppedIsNotDead) {
    summing_job job(hosts);
    send_signal(job.ranks[2], SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(6500)); // longer than the link may be silent
    send_signal(job.ranks[2], SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    for (const int pid : job.ranks) EXPECT_EQ(kill(pid, 0), 0);
    send_signal(job.ranks[0], SIGKILL);

    EXPECT_EQ(job.wait(), 3);
    EXPECT_EQ(job.failures.size(), 3u);
    for (const std::string& f : job.failures) EXPECT_NE(f.find("rank 0 (pid"), std::string::npos) << f;
}

TEST_F(Hosts, StrangersAtTheDoorsHaveNoEffect) {
    constexpr double promised = 10;
    const strangers at_a(hosts.a), at_b(hosts.b);
    for (int round = 0; round < 10; ++round) {
        // The error occurs after the ranks have met, and needs no port of libfabric's, which strangers would find too.
        double seconds = promised;
        for (int again = 0; again < 3 && seconds >= promised; ++again) { // the machine may have been busy
            const command_result r = run_command(hosts.on_both(bin + "/coarse_solve --transport shm"));
            EXPECT_EQ(r.exit_code, 2) << r.err;
            EXPECT_NE(r.err.find("no transport of [shm] reaches rank 2"), std::string::npos) << r.err;
            seconds = r.seconds;
        }
        EXPECT_LT(seconds, promised);
    }
    EXPECT_GT(at_a.connections() + at_b.connections(), 100);
    std::printf("%ld connections of strangers\n", at_a.connections() + at_b.connections());
}

TEST_F(Hosts, AProgramThatIsNotThereIsOneError) {
    const command_result r = run_command(hosts.on_both("no-such-program-here"));
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_NE(r.err.find("host " + hosts.a + ": cannot run 'no-such-program-here'"), std::string::npos) << r.err;
}

} // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    rank_program = argc > 1 ? argv[1] : "comm_kill_test";
    return run_tests();
}
