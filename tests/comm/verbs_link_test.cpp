// SPDX-License-Identifier: Apache-2.0
// A link that is cut, flaps or loses packets under a job over verbs: two ranks with a soft-RoCE device each, rxe0 and
// rxe1, on veth0 and veth1, which a cable joins (scripts/verbs-vm.sh). The ranks' control connection takes another
// path, so it is the device that has to notice.
#include "contract/messages.hpp"

#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/messenger.hpp>
#include <halocline_test/environment_variable.hpp>
#include <halocline_test/killed_job.hpp>
#include <halocline_test/run_command.hpp>
#include <halocline_test/send_signal.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace halocline_test {
namespace {

using clock_type = std::chrono::steady_clock;
using std::chrono::milliseconds;

double seconds_since(clock_type::time_point begin) {
    return std::chrono::duration<double>(clock_type::now() - begin).count();
}

volatile std::sig_atomic_t enough = 0;

/// Exchanges small and larger messages of a plan, large ones of a messenger, and sums, and compares every word, until
/// rank 0 gets a SIGUSR1. Prints the number of steps and the longest one's time.  Returns 5 if a word was wrong.
int exchange(const job& j) {
    std::signal(SIGUSR1, [](int) { enough = 1; });
    constexpr std::size_t large = 200'000;
    const tape t(large);
    channel_set small(j, ring(j, 64), {"small", ""}), pages(j, ring(j, 5000), {"pages", ""});
    messenger m(j);
    global_sum sum(j, 1);
    std::vector<std::byte> in(large);
    const int peer = 1 - j.rank();

    announce(j.rank());
    std::uint64_t steps = 0, wrong = 0;
    double longest = 0;
    for (double over[]{0}; over[0] == 0;) {
        const auto since = clock_type::now();
        ++steps;
        for (channel_set* const set : {&small, &pages}) fill_and_send(*set, t, j.rank(), steps);
        for (channel_set* const set : {&small, &pages}) {
            wait_for(j, *set, steps);
            wrong += static_cast<std::uint64_t>(wrong_messages(*set, t, steps));
        }
        message_request sent;
        m.isend(sent, {t.message(j.rank(), 0, steps), large}, peer, 1);
        status s = m.recv(in, peer, 1);
        if (s == status::ok) s = m.wait(sent);
        if (s != status::ok) j.fail(s, m.pending());
        wrong += std::memcmp(in.data(), t.message(peer, 0, steps), large) != 0;
        over[0] = j.rank() == 0 && enough != 0;
        if (s = sum(over); s != status::ok) j.fail(s, sum.pending());
        longest = std::max(longest, seconds_since(since));
    }
    std::printf("did %lu steps, the longest in %f s, %lu wrong\n", static_cast<unsigned long>(steps), longest,
                static_cast<unsigned long>(wrong));
    return wrong > 0 ? 5 : 0;
}

/// The link between the two devices.
class cable {
  public:
    cable() = default;
    ~cable() { mend(); }
    cable(const cable&) = delete;
    cable& operator=(const cable&) = delete;

    /// From now on that share of the packets vanishes, in each direction.
    void lose(const std::string& share) {
        for (const char* end : {"veth0", "veth1"})
            shell(std::string("tc qdisc replace dev ") + end + " root netem loss " + share);
        loses_ = true;
    }
    /// From now on neither port has a carrier.
    void cut() {
        for (const char* end : {"cable0", "cable1"}) shell(std::string("ip link set ") + end + " down");
        cut_ = true;
    }
    void mend() {
        if (loses_)
            for (const char* end : {"veth0", "veth1"}) shell(std::string("tc qdisc del dev ") + end + " root");
        if (cut_)
            for (const char* end : {"cable0", "cable1"}) shell(std::string("ip link set ") + end + " up");
        loses_ = cut_ = false;
    }
    [[nodiscard]] static long lost() {
        long all = 0;
        for (const char* end : {"veth0", "veth1"}) {
            const std::string said = run_command(std::string("tc -s qdisc show dev ") + end).out;
            const std::size_t at = said.find("(dropped ");
            if (at != std::string::npos) all += std::atol(said.c_str() + at + std::strlen("(dropped "));
        }
        return all;
    }
    [[nodiscard]] static bool port_is_active() {
        return read_text("/sys/class/infiniband/rxe1/ports/1/state").find("ACTIVE") != std::string::npos;
    }

  private:
    static void shell(const std::string& command) {
        if (const int code = std::system(command.c_str()); code != 0)
            throw std::runtime_error(command + ": " + std::to_string(code));
    }
    bool loses_ = false, cut_ = false;
};

class VerbsLink : public testing::Test {
  protected:
    void SetUp() override {
        for (const char* needed : {"/sys/class/infiniband/rxe1", "/sys/class/net/cable1"})
            if (!std::filesystem::exists(needed)) GTEST_SKIP() << "no " << needed << "; see comm.verbs_vm";
    }
    cable link;
};

/// Two ranks that run exchange(), whose link may be silent for `link_timeout`.
class exchanging_job {
  public:
    explicit exchanging_job(milliseconds link_timeout) {
        const environment_variable timeout("HALOCLINE_FAULTS_LINK_TIMEOUT_MS", std::to_string(link_timeout.count()));
        job_.emplace(2, "exchange", 2, 100);
        std::this_thread::sleep_for(milliseconds(1000)); // so the exchange is running
    }
    /// Ends it after the current step, and expects that all words were right.  Returns the longest step's seconds.
    double end() {
        send_signal(job_->ranks[0], SIGUSR1);
        EXPECT_EQ(job_->wait(), 0) << job_->said;
        unsigned long steps = 0;
        double longest = 0;
        const std::size_t at = std::min(job_->said.find("did "), job_->said.size());
        std::sscanf(job_->said.c_str() + at, "did %lu steps, the longest in %lf s", &steps, &longest);
        EXPECT_GE(steps, 3u) << job_->said;
        return longest;
    }
    running_job& operator*() { return *job_; }

  private:
    std::optional<running_job> job_;
};

// The link is down for 2 s, but may be silent for 20: on a loaded machine an emulated one hardly runs at times.
constexpr milliseconds flap(2000), patient(20'000);

TEST_F(VerbsLink, AJobGoesOnAfterAllPacketsWereLostForAWhile) {
    exchanging_job job_under_test(patient);
    link.lose("100%");
    std::this_thread::sleep_for(flap);
    link.mend();

    EXPECT_GT(job_under_test.end(), 1.9);
}

TEST_F(VerbsLink, AJobGoesOnAfterItsPortsWereDownForAWhile) {
    exchanging_job job_under_test(patient);
    link.cut();
    EXPECT_FALSE(cable::port_is_active());
    std::this_thread::sleep_for(flap);
    link.mend();

    EXPECT_GT(job_under_test.end(), 1.9);
}

TEST_F(VerbsLink, LostPacketsChangeNoBit) {
    exchanging_job job_under_test(patient);
    // Soft-RoCE counts all retries of up to 64 packets together: at 1 % it gave up once in about 20 runs.
    link.lose("0.2%");
    for (int i = 0; i < 600 && cable::lost() < 20; ++i) std::this_thread::sleep_for(milliseconds(100));
    const long lost = cable::lost();
    const double longest = job_under_test.end();

    EXPECT_GE(lost, 20);
    std::printf("%ld packets lost; the longest step took %.2f s\n", lost, longest);
}

/// Expects the job to end within `link_timeout` and half a second from `begin`, because 7 tries of `wait` each were not
/// acknowledged.
void expect_report(running_job& job_under_test, clock_type::time_point begin, milliseconds link_timeout,
                   const std::string& wait) {
    EXPECT_EQ(job_under_test.wait(), 3) << job_under_test.said;
    const double took = seconds_since(begin);

    const double promise = std::chrono::duration<double>(link_timeout).count() + 0.5;
    EXPECT_LT(took, promise + 15) << "15 s are for an emulated machine on a loaded one; the deadline is 60 s";
    std::printf("%.2f s from the cut to the end of the job\n", took);
    ASSERT_EQ(job_under_test.failures.size(), 2u) << job_under_test.said;
    for (const std::string& f : job_under_test.failures) {
        const std::string tries = "none of 7 tries of " + wait + " was acknowledged";
        for (const char* part :
             {" can't be reached: verbs (rxe", "transport retry counter exceeded from 10.9.0.", "10.9.0.1", "10.9.0.2",
              tries.c_str(), "the link is cut, or the process there is gone", "while this rank waited for"})
            EXPECT_NE(f.find(part), std::string::npos) << part << " is not in " << f;
        EXPECT_TRUE(f.find(job_under_test.name_of(0) + " on ") != std::string::npos ||
                    f.find(job_under_test.name_of(1) + " on ") != std::string::npos)
            << f;
    }
}

TEST_F(VerbsLink, ThatLosesAllIsReportedWithBothEnds) {
    constexpr milliseconds by_default(5000);
    exchanging_job job_under_test(by_default);
    const auto begin = clock_type::now();
    link.lose("100%");
    expect_report(*job_under_test, begin, by_default, "536 ms");
}

TEST_F(VerbsLink, ThatIsDownIsReportedWithinTheLinkTimeout) {
    constexpr milliseconds least(2000);
    exchanging_job job_under_test(least);
    const auto begin = clock_type::now();
    link.cut();
    expect_report(*job_under_test, begin, least, "268 ms");
}

} // namespace

int be_rank(std::string) {
    job_options options;
    options.transports = {"verbs"};
    options.verbs.device = std::string("rxe") + std::getenv("HALOCLINE_RANK");
    try {
        return exchange(job::from_environment(options));
    } catch (const rank_failure& e) {
        return report(e.culprit(), e.what());
    }
}

} // namespace halocline_test

int main(int argc, char** argv) { return halocline_test::run_tests_or_be_rank(argc, argv); }
