// SPDX-License-Identifier: Apache-2.0
// How halocline-run ends: its exit codes, what it reports about ranks that don't end, and what it leaves behind.

#include <halocline/comm/processor_quota.hpp>
#include <halocline/comm/processors.hpp>

#include <gtest/gtest.h>
#include <halocline_test/eventually.hpp>
#include <halocline_test/forbid_system_calls.hpp>
#include <halocline_test/killed_job.hpp>
#include <halocline_test/run_command.hpp>
#include <halocline_test/send_signal.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace {

using namespace halocline_test;
using clock_type = std::chrono::steady_clock;

TEST(Launcher, EndsWithTheCodeOfTheRankThatFailedNotOfThoseWhoLostIt) {
    for (int round = 0; round < 5; ++round) { // whether or not rank 0 ends with 3 before anybody looks
        running_job failing(2, "exit", 2);
        EXPECT_EQ(failing.wait(), 7);
    }
    running_job fine(2, "ok", 2);
    EXPECT_EQ(fine.wait(), 0);
}

TEST(Launcher, NamesTheRankThatNeverJoinedNotOneThatEndedBecauseOfIt) {
    for (int round = 0; round < 10; ++round) { // ranks that give their parts early are informed first, and end
        running_job failing(4, "early", 1);
        EXPECT_EQ(failing.wait(), 7);
        ASSERT_EQ(failing.failures.size(), 3u) << failing.said;
        for (const std::string& f : failing.failures) EXPECT_NE(f.find(failing.name_of(1)), std::string::npos) << f;
    }
}

TEST(Launcher, TellsRanksThatHaveWaitedTooLongWhoIsMissing) {
    running_job job_under_test(3, "short-join", 3);

    job_under_test.wait();

    ASSERT_EQ(job_under_test.failures.size(), 2u) << job_under_test.said;
    for (const std::string& f : job_under_test.failures) {
        EXPECT_EQ(f.find("failure of 1: "), 0u) << f;
        EXPECT_NE(f.find(", missing: " + job_under_test.name_of(1) + ", sleeping) on "), std::string::npos) << f;
    }
    EXPECT_NE(job_under_test.said.find("not every rank came within 1500 ms, missing: "), std::string::npos)
        << job_under_test.said;
}

std::string maps_of(pid_t process) {
    std::ifstream in("/proc/" + std::to_string(process) + "/maps");
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Names in /dev/shm that contain that word.
std::vector<std::string> shared_files(const std::string& word) {
    std::vector<std::string> found;
    for (const auto& f : std::filesystem::directory_iterator("/dev/shm"))
        if (std::string name = f.path().filename(); name.find(word) != std::string::npos) found.push_back(name);
    return found;
}

TEST(Launcher, LeavesNothingInSharedMemory) {
    running_job job_under_test(2, "sum", 2);
    for (const pid_t p : job_under_test.ranks) // slabs have no names that a killed rank could leave
        EXPECT_NE(maps_of(p).find("/memfd:halocline-slab"), std::string::npos) << maps_of(p);
    send_signal(job_under_test.ranks[0], SIGKILL);
    job_under_test.wait();
    auto left = shared_files("halocline");
    std::erase_if(left, [](const std::string& f) { // those of other tests
        return f.starts_with("halocline-ofi-") || f.starts_with("halocline-test-");
    });
    EXPECT_EQ(left, std::vector<std::string>());
}

TEST(Launcher, ThatIsKilledLeavesNothingOfLibfabricInSharedMemory) {
    running_job job_under_test(2, "file", 2);
    const auto left = [&] {
        std::size_t files = 0;
        for (const pid_t p : job_under_test.ranks)
            files += shared_files("halocline-ofi-" + std::to_string(p) + "-").size();
        return files;
    };
    EXPECT_EQ(left(), 2u) << "nothing to remove";
    send_signal(job_under_test.launcher, SIGKILL);
    job_under_test.wait();
    for (const auto end = clock_type::now() + under_load; left() > 0 && clock_type::now() < end;)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(left(), 0u);
}

TEST(Launcher, RemovesWhatLibfabricLeavesInSharedMemory) {
    running_job job_under_test(2, "file", 2);
    const std::string of_the_dead = "halocline-ofi-" + std::to_string(job_under_test.ranks[0]) + "-";
    EXPECT_EQ(shared_files(of_the_dead).size(), 1u) << "nothing to remove";
    send_signal(job_under_test.ranks[0], SIGKILL);
    job_under_test.wait();
    EXPECT_EQ(shared_files(of_the_dead), std::vector<std::string>());
}

#ifdef HALOCLINE_WITH_OFI
TEST(Ofi, SharedFilesHaveNoNameOnceRanksHaveJoined) {
    running_job job_under_test(2, "ofi-shm-sum", 2);
    for (const pid_t p : job_under_test.ranks) {
        const std::string of_rank = "halocline-ofi-" + std::to_string(p) + "-";
        EXPECT_EQ(shared_files(of_rank), std::vector<std::string>());
        EXPECT_NE(maps_of(p).find(of_rank), std::string::npos) << "no file, no test";
    }
    send_signal(job_under_test.ranks[0], SIGKILL);
    job_under_test.wait();
}

TEST(Launcher, TellsTheSignalThatEndedARankOverLibfabric) {
    for (const char* program : {"ofi-shm-sum", "ofi-sum"}) {
        running_job job_under_test(2, program, 2);
        send_signal(job_under_test.ranks[0], SIGTERM);
        EXPECT_EQ(job_under_test.wait(), 128 + SIGTERM) << program;
        EXPECT_NE(job_under_test.said.find("was ended by signal 15"), std::string::npos) << job_under_test.said;
    }
}
#endif

int exit_code_of(const std::string& arguments) { return run_command(launcher_program() + " " + arguments).exit_code; }

TEST(Launcher, ASurvivorThatNeverReportsIsNamedBesideTheDead) {
    const std::string rank =
        "'if [ $HALOCLINE_RANK = 1 ]; then kill -9 $$; fi; while :; do :; done'"; // for instance in a library

    const command_result run = run_command(launcher_program() + " -n 2 -- sh -c " + rank);

    const std::string& said = run.err;
    EXPECT_NE(run.exit_code, 0);
    EXPECT_NE(said.find("rank 1 (pid "), std::string::npos) << said;
    EXPECT_NE(said.find(") died of signal 9; not ended "), std::string::npos) << said;
    EXPECT_NE(said.find("killed now: rank 0 (pid "), std::string::npos) << said;
    EXPECT_NE(said.find(", running)"), std::string::npos) << said;
}

TEST(Launcher, LeavesAloneWhatItWasStartedToIgnore) {
    for (const std::string signal : {"HUP", "INT"}) { // as by nohup; as in a shell's background jobs
        const std::string job = launcher_program() + " -n 2 -- sh -c \"sleep 0.5; exit 9\"";

        const command_result run =
            run_command("sh -c 'trap \"\" " + signal + "; " + job + " & sleep 0.2; kill -" + signal + " $!; wait $!'");

        EXPECT_EQ(run.exit_code, 9) << signal << run.err;
    }
}

/// Runs two ranks under a launcher that gets `signals` when `ready`, a command of a shell, has ended. Files of both begin
/// with $here.
command_result run_while_signalled(const std::string& rank, const std::string& signals, const std::string& ready) {
    const scratch_folder scratch;
    std::ofstream(scratch / "job") << "export here=" << (scratch / "") << "\n"
                                   << launcher_program() << " -n 2 -- " << rank << " &\n"
                                   << ready << "\nfor s in " << signals << "; do kill -$s $!; done\nwait $!\n";
    return run_command("sh " + (scratch / "job"));
}

TEST(Launcher, PassesTheUsersOwnSignalsOnAndGoesOn) {
    const std::string rank = "sh -c 'trap \"one=1\" USR1; trap \"two=1\" USR2; touch ${here}ready.$HALOCLINE_RANK; "
                             "while test \"$one$two\" != 11; do sleep 0.05; done; sleep 3; echo both'";

    const command_result run = run_while_signalled(
        rank, "USR1 USR2", "until test -e ${here}ready.0 -a -e ${here}ready.1; do sleep 0.05; done");

    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.out, "both\nboth\n") << "2 s after a signal that ends the job all are killed";
}

/// The whole machine may have paused.
TEST(Launcher, DoesNotTakeAPauseOfItsOwnForTimeThatASurvivorHad) {
    const std::string rank = "sh -c '[ $HALOCLINE_RANK = 1 ] && touch ${here}dead && exit 7; "
                             "until test -e ${here}end; do sleep 0.05; done; echo saved'";
    const std::string pause = "until test -e ${here}dead; do sleep 0.05; done; sleep 0.3\n"
                              "kill -STOP $!; sleep 3; kill -CONT $!; sleep 0.2; touch ${here}end";

    const command_result run = run_while_signalled(rank, "", pause);

    EXPECT_EQ(run.exit_code, 7) << run.err;
    EXPECT_EQ(run.out, "saved\n") << run.err;
}

TEST(Launcher, ARankThatDoesNotKnowTheUsersSignalIsEndedByIt) {
    for (const auto& [signal, number] : {std::pair{"USR1", SIGUSR1}, {"USR2", SIGUSR2}}) {
        const command_result run = run_while_signalled("sleep 30", signal, "sleep 0.5");

        EXPECT_EQ(run.exit_code, 128 + number) << run.err;
        EXPECT_NE(run.err.find("was ended by signal " + std::to_string(number)), std::string::npos)
            << "the ranks, not the launcher: " << run.err;
    }
}

TEST(Launcher, EndsTheJobOnSigquit) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    running_job job_under_test(2, "sum", 2);

    send_signal(job_under_test.launcher, SIGQUIT);

    EXPECT_EQ(job_under_test.wait(), 128 + SIGQUIT);
    EXPECT_NE(job_under_test.said.find("was ended by signal 3"), std::string::npos) << "ranks got another";
    EXPECT_FALSE(job_under_test.anybody_alive());
}

TEST(Launcher, ReportsRanksThatASignalToAllEndsOnce) {
    const std::string told = "was ended by signal ", rank = "sh -c 'touch ${here}ready.$HALOCLINE_RANK; exec sleep 30'",
                      ready = "until test -e ${here}ready.0 -a -e ${here}ready.1; do sleep 0.05; done";
    for (const std::string signal : {"HUP", "TERM", "USR1"}) {
        const std::string said = run_while_signalled(rank, signal, ready).err;

        EXPECT_NE(said.find(told), std::string::npos) << said;
        EXPECT_EQ(said.find(told), said.rfind(told)) << said;
    }
    const std::string late = run_command(launcher_program() + " -n 3 --timeout 0.5 -- sleep 30").err;
    EXPECT_EQ(late.find(told), late.rfind(told)) << late;
}

TEST(Launcher, SaysWhatToDoWhereSignalsCannotBeTakenFromADescriptor) {
    std::array<int, 2> said{};
    ASSERT_EQ(pipe(said.data()), 0);
    const pid_t launcher = fork();
    if (launcher == 0) {
        dup2(said[1], STDERR_FILENO);
        refuse_system_call(SYS_signalfd4);
        execl(launcher_program().c_str(), launcher_program().c_str(), "-n", "1", "--", "true", nullptr);
        _exit(127);
    }
    ::close(said[1]);
    std::string text(4096, '\0');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(said[0], text.data(), text.size()))));
    ::close(said[0]);
    int how = 0;
    waitpid(launcher, &how, 0);

    EXPECT_EQ(WEXITSTATUS(how), 2);
    EXPECT_NE(text.find("signalfd: Operation not permitted; allow that system call"), std::string::npos) << text;
}

TEST(Launcher, SeesTheEndOfItsRanksWhoeverStartedIt) {
    const pid_t launcher = fork();
    if (launcher == 0) {
        std::signal(SIGCHLD, SIG_IGN); // inherited from a parent that waits for nobody
        execl(launcher_program().c_str(), launcher_program().c_str(), "-n", "2", "--", "sh", "-c", "exit 9", nullptr);
        _exit(127);
    }
    const auto end = clock_type::now() + under_load;
    int how = 0;
    pid_t ended = 0;
    while ((ended = waitpid(launcher, &how, WNOHANG)) == 0 && clock_type::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (ended == 0) {
        kill(launcher, SIGKILL);
        waitpid(launcher, nullptr, 0);
    }

    EXPECT_EQ(ended, launcher) << "it waits for ranks that have ended";
    EXPECT_EQ(WEXITSTATUS(how), 9);
}

using text_lines = std::vector<std::string>;

/// Lines "RANK PROCESSORS", from /proc, of what each rank may use, in the order of ranks.
text_lines processors_by_rank(const std::string& before, const std::string& options) {
    std::stringstream said(
        run_command("env " + before + " " + launcher_program() + " " + options +
                    " -- awk '/^Cpus_allowed_list/{print ENVIRON[\"HALOCLINE_RANK\"], $2}' /proc/self/status")
            .out);
    text_lines lines;
    for (std::string line; std::getline(said, line);) lines.push_back(line);
    std::ranges::sort(lines, {}, [](const std::string& line) { return std::stoi(line); });
    return lines;
}

/// Another job may have some of the processors, but not for long.
void expect_processors_by_rank(const std::string& before, const std::string& options, const text_lines& expected) {
    EXPECT_EQ(eventually([&] { return processors_by_rank(before, options); }, expected), expected)
        << before << " " << options;
}

/// Is processor time rationed? Then no rank is bound (apps.quota_test).
bool rationed(const std::vector<int>& usable) {
    const auto quotas = halocline::comm::processor_quotas();
    return std::ranges::any_of(quotas,
                               [&](const auto& q) { return q.processors < static_cast<double>(usable.size()); });
}

TEST(Launcher, RanksGetProcessorsInOrderOfUseOneForEachThread) {
    using halocline::comm::to_text;
    const std::vector<int> usable = halocline::comm::usable_processors();
    if (rationed(usable)) GTEST_SKIP() << "a quota allows less than these processors: no rank is bound";
    const auto bound = [&](int ranks, std::size_t each) { // in blocks, or not at all
        text_lines lines;
        for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r)
            lines.push_back(std::to_string(r) + " " +
                            (static_cast<std::size_t>(ranks) * each > usable.size()
                                 ? to_text(usable)
                                 : to_text({usable.begin() + r * each, usable.begin() + (r + 1) * each})));
        return lines;
    };
    const int all = static_cast<int>(std::min<std::size_t>(16, usable.size()));

    expect_processors_by_rank("-u OMP_NUM_THREADS", "-n 1", bound(1, 1));
    expect_processors_by_rank("-u OMP_NUM_THREADS", "-n " + std::to_string(all), bound(all, 1));
    expect_processors_by_rank("OMP_NUM_THREADS=2", "-n 1", bound(1, 2));
    expect_processors_by_rank("OMP_NUM_THREADS=2,4", "-n 2", bound(2, 2));
    expect_processors_by_rank("OMP_NUM_THREADS=4096", "-n 2", bound(2, 4096));
    expect_processors_by_rank("OMP_NUM_THREADS=2", "-n 1 --no-bind", {"0 " + to_text(usable)});
}

TEST(Launcher, RanksThatOutnumberProcessorsEvenlyShareThemInBlocks) {
    const std::vector<int> usable = halocline::comm::usable_processors();
    if (usable.size() < 2) GTEST_SKIP() << "one processor";
    if (rationed(usable)) GTEST_SKIP() << "a quota allows less than these processors: no rank is bound";
    const std::string first = std::to_string(usable[0]), second = std::to_string(usable[1]);
    const std::string both = halocline::comm::to_text({usable[0], usable[1]});
    const std::string on_two = " taskset -c " + first + "," + second;

    expect_processors_by_rank("-u OMP_NUM_THREADS" + on_two, "-n 4",
                              {"0 " + first, "1 " + first, "2 " + second, "3 " + second});
    expect_processors_by_rank("-u OMP_NUM_THREADS" + on_two, "-n 3", {"0 " + both, "1 " + both, "2 " + both});
    expect_processors_by_rank("OMP_NUM_THREADS=2" + on_two, "-n 2", {"0 " + both, "1 " + both});
    expect_processors_by_rank("-u OMP_NUM_THREADS" + on_two, "-n 2 --no-bind", {"0 " + both, "1 " + both});
}

TEST(Launcher, BindsNoRanksToWhatAnotherJobHas) {
    const std::vector<int> usable = halocline::comm::usable_processors();
    if (usable.size() < 2) GTEST_SKIP() << "one processor";
    if (rationed(usable)) GTEST_SKIP() << "a quota allows less than these processors: no rank is bound";
    const std::string first = std::to_string(usable[0]), second = std::to_string(usable[1]);
    const auto ask = [&](const std::string& job) { // in a job that may use two processors and is bound to one
        const std::string two = "taskset -c " + first + "," + second + " " + launcher_program();
        const command_result run =
            run_command("sh -c \"unset OMP_NUM_THREADS; " + two + " -n 1 -- " + two + " " + job +
                        " -- sh -c 'echo \\$(grep Cpus_allowed_list: /proc/self/status) \\$OMP_NUM_THREADS'\"");
        return run.out + run.err;
    };
    const auto expect_inside = [&](const std::string& job, const std::string& expected) {
        EXPECT_EQ(eventually([&] { return ask(job); }, expected), expected) << job;
    };
    const std::string begin = "Cpus_allowed_list: ", both = halocline::comm::to_text({usable[0], usable[1]});

    expect_inside("-n 1", begin + second + "\n");
    expect_inside("-n 1 --no-bind", begin + both + "\n");
    const std::string left_to_the_scheduler = begin + both + " 1\n";
    expect_inside("-n 2", left_to_the_scheduler + left_to_the_scheduler);    // one is not enough for two
    expect_processors_by_rank("-u OMP_NUM_THREADS", "-n 1", {"0 " + first}); // what has ended has nothing
}

TEST(Launcher, BindingThatIsDemandedAndCannotBeIsAnError) {
    const std::vector<int> usable = halocline::comm::usable_processors();
    const std::string demanding = launcher_program() + " --bind -n 1 -- ";
    const std::string on_one = "env -u OMP_NUM_THREADS taskset -c " + std::to_string(usable[0]) + " ";

    const auto too_many = run_command("env -u OMP_NUM_THREADS " + launcher_program() + " --bind -n 4096 -- true");
    const auto threads = run_command("env OMP_NUM_THREADS=4096 " + demanding + "true");
    const auto taken = run_command(on_one + demanding + demanding + "true");
    const int met = eventually([&] { return run_command(on_one + demanding + "true").exit_code; }, 0);

    EXPECT_EQ(too_many.exit_code, 2) << too_many.err;
    EXPECT_EQ(too_many.err, "halocline-run: --bind: the 4096 ranks here take 4096 processors; " +
                                std::to_string(usable.size()) +
                                " may be used; start fewer ranks, or leave --bind out\n");
    EXPECT_EQ(threads.exit_code, 2) << threads.err;
    EXPECT_NE(threads.err.find("take 4096 processors, 4096 each ($OMP_NUM_THREADS)"), std::string::npos) << threads.err;
    EXPECT_EQ(taken.exit_code, 2) << taken.err;
    EXPECT_NE(taken.err.find("1 may be used, and other jobs of halocline-run have bound ranks"), std::string::npos)
        << taken.err;
    EXPECT_EQ(met, 0);
}

TEST(Launcher, NeedsLittleStack) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the sanitizer takes more";
#endif
    EXPECT_EQ(run_command("sh -c 'ulimit -s 64; " + launcher_program() + " -n 2 -- true'").exit_code, 0);
}

TEST(Launcher, BadArgumentsEndWithTwo) {
    EXPECT_EQ(exit_code_of("--help"), 0);
    EXPECT_EQ(run_command("sh -c '" + launcher_program() + " --help >/dev/full'").exit_code, 1);
    EXPECT_EQ(exit_code_of(""), 2);
    EXPECT_EQ(exit_code_of("-n 0 -- true"), 2);
    EXPECT_EQ(exit_code_of("-n x -- true"), 2);
    EXPECT_EQ(exit_code_of("-n 2"), 2);
    EXPECT_EQ(exit_code_of("--color -n 2 -- true"), 2);
    EXPECT_EQ(exit_code_of("-n 2 -- no-such-program-here"), 2);
    EXPECT_EQ(exit_code_of("-n 2 -- true"), 0);
    EXPECT_EQ(exit_code_of("-n 2 --timeout 0.2 -- sleep 5"), 3);
    // A survivor may be seen to end before the rank that was interrupted.
    EXPECT_EQ(exit_code_of("-n 2 -- sh -c '[ $HALOCLINE_RANK = 1 ] && exit 3; sleep 0.3; kill -TERM $$'"), 143);
}

} // namespace
