// SPDX-License-Identifier: Apache-2.0
// Quotas of processor time: read from made-up control groups, and which ranks can exceed them.
#include <halocline/comm/processor_quota.hpp>

#include <halocline_test/made_up_process.hpp>

#include <gtest/gtest.h>

#include <numeric>

namespace {

using namespace halocline::comm;

struct made_up_process : halocline_test::made_up_process {
    [[nodiscard]] std::vector<double> quotas() const {
        std::vector<double> found;
        for (const processor_quota& q : processor_quotas(folder())) found.push_back(q.processors);
        return found;
    }
    [[nodiscard]] std::string group(std::size_t i) const { return processor_quotas(folder()).at(i).group; }
};

const std::string version_2 = "cgroup2 cgroup2 rw,nsdelegate", version_1 = "cgroup cgroup rw,cpu,cpuacct";
using numbers = std::vector<double>;

TEST(ProcessorQuota, OfVersion2IsInCpuMax) {
    const made_up_process p;
    p.is_in("0::/");
    p.mount("/", "unified", version_2);
    EXPECT_EQ(p.quotas(), numbers{}) << "the root has no cpu.max";

    p.write("unified/cpu.max", "max 100000\n");
    EXPECT_EQ(p.quotas(), numbers{});
    p.write("unified/cpu.max", "150000 100000\n");
    EXPECT_EQ(p.quotas(), numbers{1.5});
    p.write("unified/cpu.max", "5000 20000\n");
    EXPECT_EQ(p.quotas(), numbers{0.25});
}

TEST(ProcessorQuota, OfVersion1IsInTwoFiles) {
    const made_up_process p;
    p.is_in("5:memory:/somewhere/else");
    p.is_in("4:cpu,cpuacct:/jobs/7");
    p.is_in("1:name=systemd:/");
    p.is_in("0::/");
    p.mount("/", "memory", "cgroup cgroup rw,memory");
    p.mount("/", "cpu", version_1);
    p.mount("/", "unified", version_2); // without this controller, as in a hybrid hierarchy
    p.write("cpu/jobs/7/cpu.cfs_quota_us", "-1\n");
    p.write("cpu/jobs/7/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(p.quotas(), numbers{});

    p.write("cpu/jobs/7/cpu.cfs_quota_us", "300000\n");
    EXPECT_EQ(p.quotas(), numbers{3});
}

TEST(ProcessorQuota, OfGroupsAroundCountToo) {
    const made_up_process p;
    p.is_in("0::/a/b c/d");
    p.mount("/", "groups", version_2);
    p.mount("/", "groups", version_2); // the same mount twice
    p.write("groups/a/b c/d/cpu.max", "200000 100000\n");
    p.write("groups/a/b c/cpu.max", "max 100000\n");
    p.write("groups/a/cpu.max", "100000 100000\n");
    p.write("groups/x/cpu.max", "1000 100000\n");

    EXPECT_EQ(p.quotas(), (numbers{2, 1}));
    EXPECT_NE(p.group(0), p.group(1));
}

TEST(ProcessorQuota, IsFoundWhereAContainerSeesItsOwnGroupOnly) {
    for (const std::string root : {"/docker/1f", "/docker/a\\040b"}) {
        const made_up_process p;
        const bool spaced = root.ends_with("b");
        p.is_in(std::string("2:cpu:") + (spaced ? "/docker/a b" : "/docker/1f") + "/inner");
        p.mount(root, "my\\040cpu", version_1);
        p.write("my cpu/cpu.cfs_quota_us", "50000");
        p.write("my cpu/cpu.cfs_period_us", "100000");
        p.write("my cpu/inner/cpu.cfs_quota_us", "25000");
        p.write("my cpu/inner/cpu.cfs_period_us", "100000");
        EXPECT_EQ(p.quotas(), (numbers{0.25, 0.5})) << root;
    }
    const made_up_process outside; // outside its namespace's root: only the mount itself is visible
    outside.is_in("0::/../2e");
    outside.mount("/", "groups", version_2);
    outside.write("groups/cpu.max", "400000 100000\n");
    EXPECT_EQ(outside.quotas(), numbers{4});
}

TEST(ProcessorQuota, IsNoneWhereNothingIsKnownOrUnderstood) {
    EXPECT_TRUE(processor_quotas("/nonexistent").empty());
    const made_up_process p;
    p.is_in("no colons");
    p.is_in("0::/");
    p.is_in("");
    EXPECT_EQ(p.quotas(), numbers{});
    for (const std::string line :
         {"", "31", " - ", "31 23 0:28 / /x rw", "31 23 0:28 / /x rw - ", "- cgroup2 cgroup2 rw"}) {
        p.write("mountinfo", line + "\n");
        EXPECT_EQ(p.quotas(), numbers{}) << line;
    }
    p.write("mountinfo", "");
    p.mount("/", "groups", version_2);
    for (const std::string text :
         {"", "max", "100000", "100000 max", "0 100000", "-1 100000", "100000 0", "nan 1", "x y"}) {
        p.write("groups/cpu.max", text);
        EXPECT_EQ(p.quotas(), numbers{}) << text;
    }
}

processor_share share(int processors, std::vector<processor_quota> quotas, int threads = 1) {
    processor_share s{std::vector<int>(static_cast<std::size_t>(processors)), std::move(quotas), threads};
    std::iota(s.processors.begin(), s.processors.end(), 0);
    return s;
}

TEST(ProcessorQuota, IsExceededByRanksThatCanKeepMoreBusy) {
    const auto job = [](int ranks, const processor_share& each) {
        return exceeded_quotas(std::vector(static_cast<std::size_t>(ranks), each));
    };

    EXPECT_EQ(exceeded_quotas({}).size(), 0u);
    EXPECT_FALSE(job(4, share(12, {}))[0]);
    EXPECT_FALSE(job(4, share(12, {{"a", 4}}))[3]);
    EXPECT_FALSE(job(4, share(1, {{"a", 1}}))[0]) << "they share one processor, which can't be busier than that";
    EXPECT_FALSE(job(1, share(12, {{"a", 1}}))[0]);
    const auto four = job(4, share(12, {{"a", 1.5}}));
    for (const auto& rank : four) {
        ASSERT_TRUE(rank);
        EXPECT_EQ(rank->processors, 1.5);
        EXPECT_EQ(rank->wanted, 4);
        EXPECT_EQ(rank->ranks, 4);
    }
    EXPECT_TRUE(job(2, share(12, {{"a", 1.5}}))[0]) << "half a processor is none";
    EXPECT_TRUE(job(2, share(12, {{"a", 6}}, 4))[0]) << "2 ranks of 4 threads";
    EXPECT_FALSE(job(2, share(12, {{"a", 8}}, 4))[0]);
    EXPECT_EQ(job(4, share(2, {{"a", 1}}))[0]->wanted, 2) << "of two processors";
}

TEST(ProcessorQuota, OfNestedGroupsTheTightestIsTold) {
    std::vector<processor_share> ranks(4, share(12, {{"inner", 1.5}, {"outer", 3}}));
    ranks[2].quotas = ranks[3].quotas = {{"other", 2}, {"outer", 3}};

    const auto exceeded = exceeded_quotas(ranks);

    ASSERT_TRUE(exceeded[1] && exceeded[2]);
    EXPECT_EQ(exceeded[1]->processors, 1.5) << "3 / 4 of what they want, as of the outer one: the first";
    EXPECT_EQ(exceeded[1]->ranks, 2);
    EXPECT_EQ(exceeded[2]->processors, 3);
    EXPECT_EQ(exceeded[2]->ranks, 4);
    EXPECT_FALSE(exceeded_quotas(std::span(ranks).subspan(2))[0]) << "two alone exceed neither";
}

TEST(ProcessorQuota, IsWrittenInProcessors) {
    EXPECT_EQ(in_processors(1), "1 processor");
    EXPECT_EQ(in_processors(1.5), "1.5 processors");
    EXPECT_EQ(in_processors(0.25), "0.25 processors");
}

} // namespace
