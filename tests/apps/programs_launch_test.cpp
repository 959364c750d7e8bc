// SPDX-License-Identifier: Apache-2.0
// Programs under launchers: what ranks of a job get, and what becomes of those that fail, or are on other hosts.
#include "programs.hpp"

#include <halocline_test/shell_script.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace {

using namespace halocline_test;

TEST(Programs, AnMpiLauncherInsideHaloclineRunIsToldAndOneAroundItIsNot) {
    const auto inside =
        run_command(bin + "halocline-run -n 2 -- env PMI_RANK=1 PMI_SIZE=2 " + bin + "heat4d --grid 4.4.4.4");
    const auto around = shell("PMI_RANK=1 PMIX_RANK=1 OMPI_COMM_WORLD_RANK=1 " + bin + "halocline-run -np 2 -- " + bin +
                              "heat4d --grid 4.4.4.4 --steps 1");

    EXPECT_EQ(inside.exit_code, 2) << inside.out;
    EXPECT_TRUE(contains(inside.err, "heat4d: error: two launchers: halocline-run started rank 0, which started the "
                                     "launcher of an MPI, which started this program (PMI_RANK=1)"))
        << inside.err;
    EXPECT_EQ(around.exit_code, 0) << around.err;
    EXPECT_TRUE(contains(around.out, "on 2 ranks")) << around.out;
}

/// As in containers that share their host's network.
TEST(Containers, RanksInPidNamespacesOfTheirOwnAreAJob) {
    const std::string inside = "unshare -rpf ";
    if (shell(inside + "true").exit_code != 0) GTEST_SKIP() << "no pid namespaces here";
    for (const std::string ranks : {"0", "1", "0|1"}) {
        const auto run = shell(bin + "halocline-run -n 2 -- sh -c \"case \\$HALOCLINE_RANK in " + ranks + ") exec " +
                               inside + bin + "heat4d --steps 2;; esac; exec " + bin + "heat4d --steps 2\"");

        EXPECT_EQ(run.exit_code, 0) << ranks << run.err;
        EXPECT_TRUE(contains(run.out, "over shm")) << ranks << run.out;
    }
}

TEST(Programs, RanksWithDifferentCommandLinesAreTold) {
    for (const std::string line : {"heat4d --steps ", "generate_gauge --grid 4.4.4.4 --sweeps 0 --seed "}) {
        const auto run = shell(bin + "halocline-run -n 2 -- sh -c \"exec " + bin + line + "\\$HALOCLINE_RANK\"");

        expect_one_error(run, 2, "ranks disagree on the command line: rank 0 has");
    }
    const scratch_folder scratch;
    for (const std::string flag : {"--dry-run", "--json r.json", "--solution s.lime"}) {
        const std::string of_rank_0 = "[ \\$HALOCLINE_RANK = 1 ] || set -- " + flag + "; ";
        const auto run = shell("cd " + (scratch / "") + "; " + bin + "halocline-run -n 2 -- sh -c \"" + of_rank_0 +
                               "exec " + bin + "coarse_solve \\$*\"");

        expect_one_error(run, 2, "ranks disagree on configuration of the run");
        EXPECT_TRUE(contains(run.err, flag.substr(0, flag.find(" ")))) << run.err;
    }
    EXPECT_TRUE(std::filesystem::is_empty(scratch / ""));
}

TEST(Programs, FlagsOfTheLauncherAreGivenOnce) {
    const std::pair<std::string, std::string> wrong[] = {
        {"-n 2 -n 4", "-n is given once"},
        {"-n 2 -np 2", "-n and -np: only one of them is given"},
        {"-n 2 --bind --no-bind", "--bind and --no-bind: only one of them is given"},
        {"-n 2 --no-bind --no-bind", "--no-bind is given once"},
        {"-n 2 --timeout 5 --timeout 6", "--timeout is given once"},
        {"-n 2 --ranks 2", "unknown option '--ranks'"},
        {"-n 2 -x", "unknown option '-x'"},
        {"-n2x", "-n 2x: a number from 1 to 4096"},
        {"-n 2 --bind=maybe", "--bind = maybe"},
        {"-n 2 --remote-shell= --hosts=a:1,b:1", "--remote-shell needs a value"}};
    for (const auto& [flags, says] : wrong)
        expect_one_error(run_command(bin + "halocline-run " + flags + " -- true"), 2, says);

    EXPECT_EQ(run_command(bin + "halocline-run -n 1 --no-bind -- sh -c \"exit 0\" -n -n").exit_code, 0);
}

TEST(Programs, ValuesMayBeJoinedToTheLaunchersFlagsAndTheProgramGetsItsWordsAsTheyAre) {
    const std::string program = "printf %s, -np -n2 --hosts=a:1 \"\" -- --bind --bind -h";
    for (const std::string flags :
         {"-n 1 --timeout 60 --", "-n1 --timeout=60 --", "-np 1", "--np=1 --no-bind", "-n1"}) {
        const auto run = run_command(bin + "halocline-run " + flags + " " + program);

        EXPECT_EQ(run.out, "-np,-n2,--hosts=a:1,,--,--bind,--bind,-h,") << flags << run.err;
    }
    const scratch_folder scratch;
    const std::string remote_shell = shell_of_this_host(scratch);
    const auto on_hosts = run_command(bin + "halocline-run --remote-shell=" + remote_shell + " --hosts=A:1,B -- echo");
    EXPECT_EQ(on_hosts.out, "\n\n") << on_hosts.err;
}

/// The launcher itself ignores them.
TEST(Programs, RanksEndBySignalsOfWritingUnlessTheyIgnoreThem) {
    for (const auto& [name, number] : {std::pair("PIPE", SIGPIPE), std::pair("XFSZ", SIGXFSZ)}) {
        const auto run = shell("ulimit -c 0; " + bin + "halocline-run -n 1 -- sh -c \"kill -" + name + " \\$\\$\"");

        EXPECT_EQ(run.exit_code, 128 + number) << name << run.err;
    }
}

TEST(Programs, RanksThatTheJobDoesNotHaveAreTold) {
    const auto run = run_command(bin + "halocline-run -n 2 -- env HALOCLINE_RANK=7 " + bin + "heat4d --steps 1");

    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_TRUE(contains(run.err, "HALOCLINE_RANK")) << run.err;
}

TEST(Programs, ARankThatTheOthersCannotHearReportsItsErrorItself) {
    for (const std::string damage :
         {"unset HALOCLINE_LIFELINES", "export HALOCLINE_SIZE=3", "export HALOCLINE_LIFELINES=3"}) {
        const auto run = shell(bin + "halocline-run -n 2 -- sh -c \"[ \\$HALOCLINE_RANK = 1 ] && " + damage +
                               "; exec " + bin + "heat4d --grid 4.4.4.4\"");

        EXPECT_EQ(run.exit_code, 2) << damage << run.err;
        EXPECT_TRUE(contains(run.err, "heat4d: error: rank 1: HALOCLINE_LIFELINES=")) << damage << run.err;
    }
}

#ifdef HALOCLINE_WITH_OFI
/// A connection that lacks a descriptor is never made, and libfabric reports nothing.
TEST(Programs, TooFewDescriptorsForLibfabricAreOneErrorWithTheRemedy) {
    const std::string over_tcp = "env HALOCLINE_COMM_TRANSPORTS=ofi \"HALOCLINE_COMM_OFI_PROVIDER=tcp;ofi_rxm\" ";
    const std::string heat = bin + "heat4d --grid 4.4.4.4 --steps 1";
    ASSERT_EQ(shell(over_tcp + run2 + "heat4d --grid 4.4.4.4 --steps 1").exit_code, 0);
    int refused = 0;
    for (int files = 12; files <= 26; ++files) {
        const auto run = shell(over_tcp + bin + "halocline-run -n 2 -- sh -c \"ulimit -n " + std::to_string(files) +
                               "; exec " + heat + "\"");

        if (run.exit_code == 0) continue;
        ++refused;
        expect_one_error(run, 2, "ulimit -n");
    }
    EXPECT_GE(refused, 5);
}
#endif

TEST(Programs, HostsThatCannotBeReachedAreBadInputAndEndTheOthersAtOnce) {
    const scratch_folder scratch;
    const std::string remote_shell =
        shell_script(scratch, "shell", "host=$1\nshift\n[ $host = here ] && exec \"$@\"\nexit 255\n");
    const std::string launch = bin + "halocline-run --timeout 60 --remote-shell " + remote_shell;
    const std::string heat = " -- " + bin + "heat4d --grid 4.4.4.4 --steps 1";

    const auto reached = run_command(launch + " --hosts here:2" + heat);
    EXPECT_EQ(reached.exit_code, 0) << reached.err;
    for (const char* hosts : {"gone:1", "here:1,gone:2", "gone:1,here:2"}) {
        const auto run = run_command(launch + " --hosts " + hosts + heat);

        expect_one_error(run, 2, "ended with exit code 255; check the name");
        EXPECT_TRUE(run.err.starts_with("halocline-run: host gone can't be reached: '" + remote_shell + " gone "))
            << run.err;
        EXPECT_TRUE(run.out.empty()) << run.out;
    }
}

/// As ssh does, this shell passes the words on as one line.
TEST(Programs, ABlankInTheLaunchersPathIsNamedWhereTheRemoteShellSplitsIt) {
    const scratch_folder scratch;
    const std::string remote_shell = shell_script(scratch, "shell", "shift\nexec sh -c \"$*\"\n");
    std::filesystem::create_directory(scratch / "a folder");
    const std::string launcher = scratch / "a folder/halocline-run";
    std::filesystem::copy_file(bin + "halocline-run", launcher);

    const auto run =
        run_command("'" + launcher + "' --timeout 60 --remote-shell " + remote_shell + " --hosts there:1 -- true");

    EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
    EXPECT_TRUE(contains(run.err, "ended with exit code 127; the path of halocline-run has a blank, at which"))
        << run.err;
}

TEST(Programs, AProgramOnOtherHostsIsTheOneThatPathLeadsToHere) {
    const scratch_folder scratch;
    const std::string remote_shell = shell_script(scratch, "shell", "shift\nexec env PATH=/nowhere \"$@\"\n");
    std::filesystem::create_directory(scratch / "tools");
    shell_script(scratch, "tools/say-hello", "echo hello\n");

    for (const std::string& folder : {scratch / "tools", std::string("tools")}) {
        const auto run = shell("cd " + (scratch / "") + "; PATH=" + folder + ":$PATH; " + bin +
                               "halocline-run --remote-shell " + remote_shell + " --hosts A:1 -- say-hello");

        EXPECT_EQ(run.out, "hello\n") << folder << run.err;
    }
}

/// The remote shell removes the one that was found here.
TEST(Programs, AProgramThatLiesElsewhereOnAnotherHostIsTheOneThatPathLeadsToThere) {
    const scratch_folder scratch;
    std::filesystem::create_directory(scratch / "here");
    std::filesystem::create_directory(scratch / "there");
    shell_script(scratch, "here/say-hello", "echo here\n");
    shell_script(scratch, "there/say-hello", "echo there\n");
    const std::string remote_shell =
        shell_script(scratch, "shell",
                     "shift\nrm -r " + (scratch / "here") + "\nexec env PATH=" + (scratch / "there") + " \"$@\"\n");

    const auto run = shell("PATH=" + (scratch / "here") + ":$PATH; " + bin + "halocline-run --remote-shell " +
                           remote_shell + " --hosts A:1 -- say-hello");

    EXPECT_EQ(run.out, "there\n") << run.err;
}

TEST(Programs, APathThatRanksGetDecidesWhichProgramTheyAre) {
    const scratch_folder scratch;
    std::filesystem::create_directory(scratch / "tools");
    shell_script(scratch, "tools/say-hello", "echo hello\n");
    for (const std::string& on :
         {std::string("-n 1"), "--remote-shell " + shell_of_this_host(scratch) + " --hosts A:1"}) {
        const auto run =
            run_command(bin + "halocline-run " + on + " --env PATH=" + (scratch / "tools") + " -- say-hello");

        EXPECT_EQ(run.out, "hello\n") << on << run.err;
    }
}

TEST(Programs, HostsWithBracesBracketsOrBlanksInTheirNamesAreRefused) {
    for (const std::string name : {"{host}", "a b", "a ", "n[1-3]", "[[::1]]"}) {
        const auto run = run_command("timeout 20 " + bin + "halocline-run --hosts '" + name + ":1,b:1' -- true");

        const std::string says = ": the name '" + (name == "[[::1]]" ? "[::1]" : name);
        expect_one_error(run, 2, says + "' has a brace, a bracket or a blank; names are expected");
    }
}

TEST(Programs, AddressesOfHostsHaveBrackets) {
    const scratch_folder scratch;
    const std::string shell =
        shell_script(scratch, "shell", "echo $1 >>" + (scratch / "names") + "\nshift\nexec \"$@\"\n");
    const std::string launch = bin + "halocline-run --remote-shell " + shell + " --hosts ";

    const auto run = run_command(launch + "'[fd00::7:2]:2,[::1],10.0.0.1:1' -- echo");

    EXPECT_EQ(run.out, "\n\n\n\n") << run.err;
    const std::string names = read_text(scratch / "names");
    for (const char* name : {"fd00::7:2\n", "::1\n", "10.0.0.1\n"}) EXPECT_TRUE(contains(names, name)) << names;
    for (const std::string address : {"2001:db8::10", "::1", "fd00::7:2", "[::1]:2:3"})
        expect_one_error(run_command(launch + "'" + address + "' -- true"), 2,
                         "--hosts " + address + ": '" + address + "' has several colons; an address is expected in br");
    for (const std::string empty : {"[]", "[]:2", ":2"})
        expect_one_error(run_command(launch + "'" + empty + "' -- true"), 2,
                         ": names with numbers of ranks are expected");
}

TEST(Programs, HostsMayStandInAFile) {
    const scratch_folder scratch;
    const std::string remote_shell =
        shell_script(scratch, "shell", "echo $1 >>" + (scratch / "names") + "\nshift\nexec \"$@\"\n");
    const std::string launch = bin + "halocline-run --remote-shell " + remote_shell + " --hosts @" + (scratch / "");
    std::ofstream(scratch / "hosts") << "# four\nA:1\n\n  B  # one rank\r\nC:2, ,A ,\n,A\n";
    std::ofstream(scratch / "none") << "# A:1\n";
    std::ofstream(scratch / "blank") << "A slots=2\n";

    const auto run = shell(launch + "hosts -- sh -c \"echo \\$HALOCLINE_RANK of \\$HALOCLINE_SIZE\" | sort; sort " +
                           (scratch / "names") + " >&2");

    EXPECT_EQ(run.out, "0 of 6\n1 of 6\n2 of 6\n3 of 6\n4 of 6\n5 of 6\n");
    EXPECT_EQ(run.err, "A\nA\nB\nC\n"); // equal names in a row are one host
    expect_one_error(run_command(launch + "none -- true"), 2, "none: names are expected, as in nodeA:2,nodeB:2");
    expect_one_error(run_command(launch + "nowhere -- true"), 2, "nowhere: can't be read: No such file or directory");
    expect_one_error(run_command(launch + ". -- true"), 2, ".: can't be read: Is a directory");
    expect_one_error(run_command(launch + "blank -- true"), 2, "blank: the name 'A slots=2' has a brace, a bracket or");
}

/// As one on another host, the shell keeps no variable.
TEST(Programs, VariablesAreGivenToRanksHereAndElsewhere) {
    const scratch_folder scratch;
    const std::string remote_shell = shell_script(scratch, "shell", "shift\nexec env -i PATH=\"$PATH\" \"$@\"\n");
    const std::string given = "export PASSED=b LEFT=c OMP_NUM_THREADS=3; ",
                      flags = " --env GIVEN=a=1 --env PASSED --env=EMPTY= --env OMP_NUM_THREADS=1",
                      show = " -- sh -c \"echo \\$GIVEN \\$PASSED \\${EMPTY-unset} \\$OMP_NUM_THREADS \\$LEFT\"";
    const auto here = shell(given + bin + "halocline-run -n 1" + flags + show);
    const auto there =
        shell(given + bin + "halocline-run --remote-shell " + remote_shell + " --hosts A:1" + flags + show);

    EXPECT_EQ(here.out, "a=1 b 1 c\n") << here.err;
    EXPECT_EQ(there.out, "a=1 b 1\n") << there.err;
    for (const std::string wrong : {"=a", "\"\""})
        expect_one_error(run_command(bin + "halocline-run -n 1 --env " + wrong + " -- true"), 2,
                         "': expected NAME, or NAME=VALUE");
    expect_one_error(run_command("env -u ABSENT " + bin + "halocline-run -n 1 --env ABSENT -- true"), 2,
                     "--env ABSENT: there is no such variable here");
}

TEST(Programs, RemoteShellsWithQuotesOrWithoutHostsAreRefused) {
    const std::string launch = bin + "halocline-run ", remote = "--remote-shell ";
    for (const std::string command :
         {"\"ssh -o \\\"ProxyCommand=nc %h %p\\\" {host}\"", "\"ssh -i 'my key'\"", "'ssh\\ -4'"})
        expect_one_error(run_command(launch + remote + command + " --hosts a:1 -- true"), 2,
                         ": quotes and backslashes have no meaning here; put the command into a script");
    expect_one_error(run_command(launch + remote + "' ' --hosts a:1 -- true"), 2, "--remote-shell is empty");
    expect_one_error(run_command(launch + remote + "\"docker exec -i {host}\" -n 2 -- true"), 2,
                     "--remote-shell: on which hosts? --hosts A:2,B:2 is missing");
}

/// A rank's exit code says nothing of signals, however large it is.
TEST(Programs, ALargeExitCodeIsNoSignal) {
    const scratch_folder scratch;
    const std::string remote_shell = shell_of_this_host(scratch);
    for (const std::string& where : {std::string("-n 2"), "--remote-shell " + remote_shell + " --hosts there:2"}) {
        const std::string launch = bin + "halocline-run " + where + " -- ";
        // Whichever rank ends first, the one with code 3 has only lost the other.
        for (const std::string waits : {"0", "1"}) {
            for (const std::string code : {"128", "130", "139", "255"}) {
                const auto run = shell(launch + "sh -c \"[ \\$HALOCLINE_RANK = " + waits +
                                       " ] && sleep 0.3; [ \\$HALOCLINE_RANK = 0 ] && exit " + code + "; exit 3\"");

                EXPECT_EQ(run.exit_code, std::stoi(code)) << where << waits << run.err;
                expect_one_error(run, std::stoi(code), ") on ");
                EXPECT_TRUE(run.err.starts_with("halocline-run: rank 0 (pid ")) << where << waits << run.err;
                EXPECT_TRUE(contains(run.err, " ended with exit code " + code + ", before any rank")) << run.err;
            }
        }
        const auto ended = shell(launch + "sh -c \"kill -SEGV \\$\\$\"");
        EXPECT_EQ(ended.exit_code, 139) << where << ended.err;
        EXPECT_TRUE(contains(ended.err, ") was ended by signal 11 (Segmentation fault)")) << where << ended.err;
    }
}

TEST(Programs, RanksThatAreStoppedAndToldToEndAreNamedBeforeTheyAreKilled) {
    const scratch_folder scratch;
    const std::string launch = bin + "halocline-run -n 2 ", stopped = "-- sh -c \"echo \\$\\$ > " + (scratch / "r") +
                                                                      "\\$HALOCLINE_RANK; kill -STOP \\$\\$\"";
    const std::string both_are_there = "for r in 0 1; do until grep -qs stopped /proc/$(cat " + (scratch / "r") +
                                       "$r 2> /dev/null)/status; do sleep 0.05; done; done; ";

    const auto limited = shell(launch + "--timeout 5 " + stopped);
    EXPECT_EQ(limited.exit_code, 3) << limited.err;
    for (const char* file : {"r0", "r1"}) std::filesystem::remove(scratch / file);
    const auto signalled = shell(launch + stopped + " & " + both_are_there + "kill -TERM $!; wait $!");
    EXPECT_EQ(signalled.exit_code, 143) << signalled.err;

    for (const auto& run : {limited, signalled}) {
        EXPECT_TRUE(contains(run.err, "halocline-run: the ranks were told to end; not ended ")) << run.err;
        EXPECT_TRUE(contains(run.err, " s later, and killed now: rank 0 (pid ")) << run.err;
        EXPECT_TRUE(contains(run.err, ", stopped), rank 1 (pid ")) << run.err;
        EXPECT_TRUE(run.err.ends_with(", stopped)\n")) << run.err;
    }
}

TEST(Programs, ARankThatFailsAndNeverJoinedTheJobIsNamed) {
    const std::string launch = bin + "halocline-run -n 2 -- ";

    expect_one_error(run_command(launch + "false"), 1, " ended with exit code 1, before any rank had joined the job");
    expect_one_error(
        run_command(bin + "halocline-run -n 1 -- sh -c 'trap \"\" USR1; kill -USR1 $PPID; sleep 0.5; exit 5'"), 5,
        " ended with exit code 5, before any rank had joined the job");
    expect_one_error(shell(launch + "sh -c \"[ \\$HALOCLINE_RANK = 0 ] || exit 5\""), 5, "halocline-run: rank 1 (pid ");
    for (const char* silent : {"true", "sh -c \"exit 2\""}) EXPECT_EQ(shell(launch + silent).err, "") << silent;
    expect_one_error(run_command(launch + bin + "heat4d --steps many"), 2, "heat4d: error: --steps 'many'");
    const auto late = run_command(bin + "halocline-run -n 2 --timeout 0.3 -- sleep 5");
    EXPECT_FALSE(contains(late.err, "joined")) << late.err;
}

} // namespace
