// SPDX-License-Identifier: Apache-2.0
// Programs in a control group that is made for the test, whose quota of processor time is real.
#include <halocline/comm/processors.hpp>

#include <halocline_test/contains.hpp>
#include <halocline_test/control_group.hpp>
#include <halocline_test/eventually.hpp>
#include <halocline_test/run_command.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace {

using halocline_test::command_result;
using halocline_test::contains;
using halocline_test::control_group;
using halocline_test::eventually;
using halocline_test::run_command;

const std::string bin = HALOCLINE_BIN "/";

/// A control group with a number of processors, and what is run in it.
class limited_group : public control_group {
  public:
    explicit limited_group(double processors)
        : control_group(kinds(std::to_string(std::lround(processors * 100'000)))) {}
    /// Runs a shell's command line in it, which contains no single quotes.
    [[nodiscard]] command_result run(const std::string& line) const {
        return run_command("sh -c 'echo $$ >" + this->processes() + " && " + line + "'");
    }

  private:
    static std::vector<kind> kinds(const std::string& quota) {
        return {{"/sys/fs/cgroup/cpu", {{"cpu.cfs_quota_us", quota}}},
                {"/sys/fs/cgroup/cpu,cpuacct", {{"cpu.cfs_quota_us", quota}}},
                {"/sys/fs/cgroup", {{"cpu.max", quota + " 100000"}}, "cpu"}};
    }
};

/// A control group that may use so many bytes of memory, and no swap; none of that kind can be made everywhere.
class small_group : public control_group {
  public:
    explicit small_group(long bytes) : control_group(kinds(std::to_string(bytes))) {}
    /// Joins it: a command for a shell that another starts by a line in double quotes.
    [[nodiscard]] std::string join() const { return "echo \\$\\$ >" + this->processes(); }

  private:
    static std::vector<kind> kinds(const std::string& most) {
        return {{"/sys/fs/cgroup/memory", {{"memory.limit_in_bytes", most}, {"memory.memsw.limit_in_bytes", most}}},
                {"/sys/fs/cgroup", {{"memory.max", most}, {"memory.swap.max", "0"}}}};
    }
};

TEST(Quota, RanksThatCanExceedItSleepInWaits) {
    const limited_group half(0.5);
    if (!half.there()) GTEST_SKIP() << "no control group with a quota can be made here";
    const std::size_t usable = halocline::comm::usable_processors().size();
    const std::string info = bin + "halocline-run -n 4 -- " + bin + "halocline-info";

    const auto short_of_time = half.run(info);

    EXPECT_EQ(short_of_time.exit_code, 0) << short_of_time.err;
    EXPECT_TRUE(contains(short_of_time.out, "quota of processor time    0.5 processors\n")) << short_of_time.out;
    EXPECT_TRUE(contains(short_of_time.out, "sleeps after 50 us of its own, because the 4 ranks of a quota of 0.5 "
                                            "processors can keep " +
                                                std::to_string(std::min<std::size_t>(usable, 4)) + " busy\n"))
        << short_of_time.out;
}

TEST(Quota, BelowWhatProcessorsCanDoLeavesRanksToTheScheduler) {
    const limited_group half(0.5);
    if (!half.there()) GTEST_SKIP() << "no control group with a quota can be made here";
    const std::string all = halocline::comm::to_text(halocline::comm::usable_processors());
    const std::string ask = " -- sh -c \"awk /^Cpus_allowed_list/ /proc/self/status; echo \\$OMP_NUM_THREADS\"";

    const auto unset = half.run("unset OMP_NUM_THREADS; " + bin + "halocline-run -n 1" + ask);
    const auto set = half.run("OMP_NUM_THREADS=3 " + bin + "halocline-run -n 1" + ask);

    EXPECT_EQ(unset.out, "Cpus_allowed_list:\t" + all + "\n1\n") << unset.err;
    EXPECT_EQ(set.out, "Cpus_allowed_list:\t" + all + "\n3\n") << set.err;

    const std::string demanding = "unset OMP_NUM_THREADS; " + bin + "halocline-run --bind -n 1" + ask;
    const std::string first = std::to_string(halocline::comm::usable_processors()[0]);
    const std::string bound = "Cpus_allowed_list:\t" + first + "\n\n";
    EXPECT_EQ(eventually([&] { return half.run(demanding).out; }, bound), bound); // another job may have that processor
}

TEST(Quota, ThatIsLargeEnoughChangesNothing) {
    const limited_group large(4096);
    if (!large.there()) GTEST_SKIP() << "no control group with a quota can be made here";

    const auto run = large.run(bin + "halocline-run -n 4 -- " + bin + "halocline-info");

    EXPECT_TRUE(contains(run.out, "quota of processor time    4096 processors\n")) << run.out;
    EXPECT_FALSE(contains(run.out, "sleeps")) << run.out;
}

TEST(MemoryLimit, BelowWhatTheRanksInItNeedIsRefused) {
    const small_group group(400L << 20);
    if (!group.there()) GTEST_SKIP() << "no control group with a limit on memory can be made here";
    const auto with_ranks_inside = [&](const std::string& which) { // each needs 150 MiB
        return run_command("sh -c '" + bin + "halocline-run -n 4 -- sh -c \"case \\$HALOCLINE_RANK in " + which + ") " +
                           group.join() + ";; esac; exec " + bin +
                           "coarse_solve --grid 8.8.8.32 --max-iterations 1 --setup 0\"'");
    };

    const auto all = with_ranks_inside("*"), one = with_ranks_inside("1");

    EXPECT_EQ(all.exit_code, 2) << all.out;
    EXPECT_TRUE(contains(all.err, " GiB in a control group (of a container or batch job) that allows 0.4 GiB;"))
        << all.err;
    EXPECT_EQ(one.exit_code, 1) << one.err;
    EXPECT_TRUE(contains(one.out, "NOT converged")) << one.out << one.err;
}

TEST(MemoryLimit, HoldsForEveryProgramWithAGrid) {
    const small_group group(100L << 20);
    if (!group.there()) GTEST_SKIP() << "no control group with a limit on memory can be made here";
    for (const std::string line : {"heat4d --grid 64.64.64.64", "generate_gauge --grid 16.16.16.32"}) {
        const auto run = run_command("sh -c '" + bin + "halocline-run -n 2 -- sh -c \"" + group.join() + "; exec " +
                                     bin + line + "\"'");

        EXPECT_EQ(run.exit_code, 2) << line << run.out << run.err;
        EXPECT_TRUE(contains(run.err, " needs at least 0.")) << run.err;
        EXPECT_TRUE(contains(run.err, "that allows 0.1 GiB; take a smaller lattice")) << run.err;
    }
}

} // namespace
