// SPDX-License-Identifier: Apache-2.0
// No system calls between start and finish of plans, whatever path their messages take, with and without a team: after
// set-up each thread of the ranks installs a seccomp filter that kills the process at any system call except exit_group
// and, in teams, sched_yield, with which members wait for each other. This program is both the test and, with "rank",
// the ranks.
#include "job/job_core.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline/halo/packer.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/halo/shell_plan.hpp>
#include <halocline/halo/unpacker.hpp>

#include <halocline_test/forbid_system_calls.hpp>
#include <halocline_test/run_tests.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace halocline;
using halo::path;
using halo::team;
using lattice::field;

std::string self, runner;

constexpr lattice::coordinate global{8, 8, 8, 8};
constexpr int components = 24; // messages of 96 KiB and more, which a team shares

path path_named(const std::string& name) {
    for (const path p : {path::packed, path::direct, path::streamed, path::joint})
        if (to_string(p) == name) return p;
    std::_Exit(2);
}

/// One exchange by one member of a team; false if it failed.
using exchange = std::function<bool(team)>;

/// The rest of an exchange that has been started, with all that member 0 may ask meanwhile; false if it failed.
template <class Plan>
bool end_exchange(Plan& p, team me) {
    if (me.index == 0) {
        (void)p.test();
        (void)p.completed();
    }
    const bool ok = p.finish(me) == comm::status::ok;
    if (me.index == 0) (void)p.completed();
    return ok;
}

/// The plan's own slots, filled by the built-in copy, by a caller's function, and in place. They are never packed here.
exchange slots(const comm::job& j, const lattice::decomposition& cut, path way) {
    struct subject {
        std::shared_ptr<const lattice::site_order> order;
        halo::plan plan;
        field<double> x;
    };
    const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
    const auto s = std::make_shared<subject>(subject{
        order,
        halo::plan(j, cut,
                   {.bytes_per_site = components * sizeof(double), .self_exchange = true, .order = order, .path = way}),
        {order, components, &j.memory()}});
    return [s, way, me_in_job = j.rank()](team me) {
        bool ok = true;
        for (const halo::plan_message& m : s->plan.messages()) ok = ok && (m.peer == me_in_job || m.path == way);
        s->plan.start(s->x, me);
        ok = end_exchange(s->plan, me) && ok;
        s->plan.start(
            [s](int, std::int64_t first, std::int64_t last, std::byte* target) {
                std::memset(target + first * components * 8, 1,
                            static_cast<std::size_t>(last - first) * components * 8);
            },
            me);
        ok = end_exchange(s->plan, me) && ok;
        s->plan.start_filled(me);
        ok = end_exchange(s->plan, me) && ok;
        if (me.size > 1) return ok;
        s->x.mark_written();
        return s->plan.ensure_halo(s->x) == comm::status::ok && s->plan.ensure_halo(s->x) == comm::status::ok && ok;
    };
}

/// The same slots, filled from plain memory, and by a packer whose messages an unpacker adds to a field.
exchange packers(const comm::job& j, const lattice::decomposition& cut, path way) {
    struct subject {
        halo::plan plain, packed;
        std::unique_ptr<halo::packer<float>> pack;
        std::unique_ptr<halo::unpacker<float>> unpack;
        std::vector<std::byte> values;
        field<float> x, y;
    };
    const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
    const halo::packer_options options{
        .components = components, .format = halo::message_format::half, .phases = {1, 1, 1, {0, 1}}};
    const halo::plan_options plain{.bytes_per_site = components * sizeof(double), .self_exchange = true, .path = way};
    halo::plan_options packed = plain;
    packed.bytes_per_site = halo::packer<float>::bytes_per_site(options);
    const auto s = std::make_shared<subject>(
        subject{halo::plan(j, cut, plain),
                halo::plan(j, cut, packed),
                nullptr,
                nullptr,
                std::vector<std::byte>(static_cast<std::size_t>(order->volume()) * plain.bytes_per_site),
                {order, components},
                {order, components}});
    s->pack = std::make_unique<halo::packer<float>>(s->packed, options, order);
    s->unpack = std::make_unique<halo::unpacker<float>>(s->packed, halo::expansion_of(options), order);
    return [s](team me) {
        s->plain.start_bytes(s->values.data(), me);
        bool ok = end_exchange(s->plain, me);
        s->packed.start(s->pack->of(s->x), me);
        ok = end_exchange(s->packed, me) && ok;
        s->unpack->add(s->packed, s->y, me);
        return ok;
    };
}

/// Ghosts in the field, including edges and corners, by both routes; and the reverse.
exchange shells(const comm::job& j, const lattice::decomposition& cut, path way) {
    struct subject {
        field<double> x;
        std::vector<halo::shell_plan> plans;
    };
    const auto box = halo::grown(cut.local_box(j.rank()), {});
    const auto s = std::make_shared<subject>(
        subject{{lattice::site_order::lexicographic(box.extents), components, &j.memory()}, {}});
    for (const auto route : {halo::corner_route::at_once, halo::corner_route::by_dimension})
        s->plans.emplace_back(
            j, cut,
            halo::shell_options{
                .phases = {1, 1, 1, -1}, .shape = halo::shell::box, .corners = route, .path = way, .reverse = true},
            std::vector{halo::bind(s->x)});
    return [s](team me) {
        bool ok = true;
        for (halo::shell_plan& p : s->plans) {
            p.start(0, me);
            ok = end_exchange(p, me) && ok;
            p.start_reverse(0, me);
            ok = end_exchange(p, me) && ok;
            if (me.size > 1) continue;
            ok = p.ensure_halo() == comm::status::ok && p.ensure_halo() == comm::status::ok && ok;
        }
        return ok;
    };
}

/// Half of a field goes to the other rank, and every third site to the rank itself.
exchange regions(const comm::job& j, const lattice::decomposition& cut, path way) {
    struct subject {
        field<double> x, y;
        field<float> a, b;
        std::unique_ptr<halo::region_plan> plan, rounded;
    };
    const auto extents = cut.local_box(j.rank()).extents;
    const auto order = lattice::site_order::lexicographic(extents);
    const auto s = std::make_shared<subject>(subject{{order, components, &j.memory()},
                                                     {order, components, &j.memory()},
                                                     {order, components, &j.memory()},
                                                     {order, components, &j.memory()},
                                                     nullptr,
                                                     nullptr});
    const auto volume = static_cast<std::int32_t>(lattice::volume(extents));
    halo::transfer away{1 - j.rank(), 1, {}}, home{j.rank(), 2, {}}, came{1 - j.rank(), 1, {}}, kept{j.rank(), 2, {}};
    for (std::int32_t i = 0; i < volume / 2; ++i) {
        away.sites.push_back(2 * i);
        came.sites.push_back(i);
        if (i % 3 == 0) home.sites.push_back(i), kept.sites.push_back(volume / 2 + i);
    }
    s->plan = std::make_unique<halo::region_plan>(j, std::vector{away, home}, std::vector{came, kept},
                                                  std::vector{halo::binding{{halo::view(s->x)}, {halo::view(s->y)}}},
                                                  halo::region_plan_options{.path = way});
    s->rounded = std::make_unique<halo::region_plan>(j, std::vector{away, home}, std::vector{came, kept},
                                                     std::vector{halo::binding{{halo::view(s->a)}, {halo::view(s->b)}}},
                                                     halo::region_plan_options{.format = halo::message_format::half});
    return [s](team me) {
        s->plan->start(0, me);
        const bool ok = end_exchange(*s->plan, me);
        s->rounded->start(0, me);
        return end_exchange(*s->rounded, me) && ok;
    };
}

/// Where all members of a team meet before an exchange, so that its sources are complete.
class meeting {
  public:
    explicit meeting(int members) : members_(members) {}
    void meet() {
        const int round = round_.load();
        if (come_.fetch_add(1) == members_ - 1) {
            come_ = 0;
            round_ = round + 1;
        } else {
            while (round_ == round) std::this_thread::yield();
        }
    }

  private:
    const int members_;
    std::atomic<int> come_{0}, round_{0};
};

/// Exit code 10: success. "call": the last member makes one system call on purpose.
int be_rank(const std::string& what, const std::string& way, int members, const std::string& mode) {
    comm::job_options options;
    options.transports = {"shm"};
    options.spin_polls = std::numeric_limits<int>::max(); // other load must not push a wait beyond its budget
    const comm::job j = comm::job::from_environment(options);
    j.core().spin.look_after_all_polls(); // nor a millisecond
    const auto cut = lattice::decomposition::even(global, {1, 1, 1, j.ranks()});
    const auto make = what == "plan" ? slots : what == "packer" ? packers : what == "shell" ? shells : regions;
    const exchange exchange_once = make(j, cut, path_named(way));
    const int steps = members > 1 ? 5 : 10;
    meeting point(members);
    const auto be_member = [&](int index) {
        const team me{index, members};
        const auto exchange_many = [&] {
            for (int k = 0; k < steps; ++k) {
                if (members > 1) point.meet();
                if (!exchange_once(me)) std::_Exit(1);
            }
        };
        exchange_many();
        if (index == 0) j.barrier();
        if (members > 1) point.meet();
        halocline_test::forbid_system_calls(members > 1);
        exchange_many();
        if (mode == "call" && index == members - 1) (void)getppid();
        if (members > 1) point.meet();
        halocline_test::exit_by_system_call(10);
    };
    std::vector<std::thread> others;
    for (int i = 1; i < members; ++i) others.emplace_back(be_member, i);
    be_member(0);
    return 1;
}

int run(const std::string& what, path way, int members, const char* mode = "none") {
    const pid_t pid = fork();
    if (pid == 0) {
        // Unbound, because otherwise the members of a team would share a core.
        execl(runner.c_str(), runner.c_str(), "-n", "2", "--timeout", "60", "--no-bind", "--", self.c_str(), "rank",
              what.c_str(), std::string(to_string(way)).c_str(), std::to_string(members).c_str(), mode, nullptr);
        _exit(127);
    }
    int how = 0;
    waitpid(pid, &how, 0);
    return WEXITSTATUS(how);
}

class BetweenStartAndFinish : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Members, BetweenStartAndFinish, testing::Values(1, 2));

TEST_P(BetweenStartAndFinish, PlansMakeNoSystemCalls) {
    for (const path way : {path::direct, path::streamed, path::joint})
        EXPECT_EQ(run("plan", way, GetParam()), 10) << to_string(way);
}

TEST_P(BetweenStartAndFinish, PackersMakeNoSystemCalls) {
    for (const path way : {path::direct, path::streamed, path::joint})
        EXPECT_EQ(run("packer", way, GetParam()), 10) << to_string(way);
}

TEST_P(BetweenStartAndFinish, ShellPlansMakeNoSystemCalls) {
    for (const path way : {path::packed, path::direct, path::streamed, path::joint})
        EXPECT_EQ(run("shell", way, GetParam()), 10) << to_string(way);
}

TEST_P(BetweenStartAndFinish, RegionPlansMakeNoSystemCalls) {
    for (const path way : {path::packed, path::direct, path::streamed, path::joint})
        EXPECT_EQ(run("region", way, GetParam()), 10) << to_string(way);
}

TEST_P(BetweenStartAndFinish, TheFilterCatchesASystemCallOfAnyMember) {
    EXPECT_EQ(run("plan", path::direct, GetParam(), "call"), 128 + SIGSYS);
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 6 && std::string(argv[1]) == "rank") return be_rank(argv[2], argv[3], std::atoi(argv[4]), argv[5]);
    testing::InitGoogleTest(&argc, argv);
    self = std::filesystem::read_symlink("/proc/self/exe");
    runner = argc > 1 ? argv[1] : "halocline-run";
    return halocline_test::run_tests();
}
