// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include "control/host_addresses.hpp"

#include <halocline/base/error.hpp>
#include <halocline/base/version.h>
#include <halocline/comm/detail/launch.hpp>
#include <halocline/comm/option_keys.hpp>
#include <halocline_app/flag_count.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

namespace halocline::app {
namespace {

constexpr int most_ranks = 4096;
constexpr const char* ssh = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 {host}";

constexpr const char* usage =
    "usage: halocline-run -n N [options] -- program [arguments...]\n"
    "       halocline-run --hosts A:2,B:2 [options] -- program [arguments...]\n"
    "\n"
    "Runs the ranks of a program as processes, of this host or of several.\n"
    "\n"
    "  -n N                number of ranks\n"
    "  --hosts LIST        hosts with their numbers of ranks; ranks are numbered in that order. An IPv6 address has\n"
    "                      brackets: [2001:db8::10]:2. @FILE: the lines of that file, without comments (#)\n"
    "  --remote-shell CMD  how a host is reached: words with blanks between them, no quotes; {host} in it stands\n"
    "                      for its name, which comes last otherwise (default: ssh -o BatchMode=yes ...); this\n"
    "                      program must lie there under the same path\n"
    "  --network NET       where ranks of several hosts meet: interface, address or a.b.c.d/n of each host\n"
    "                      (default: the first network in which every host has an address of its own)\n"
    "  --config FILE       the ranks' transports, deadlines, ... : [comm] and [faults] of configs/demo.toml;\n"
    "                      the same as HALOCLINE_CONFIG=FILE\n"
    "  --env NAME[=VALUE]  a variable of the ranks, by default with the value that it has here; may be given several\n"
    "                      times\n"
    "  --label             begin each line that a rank prints with its number: '3: text'\n"
    "  --timeout S         end the job after S seconds, exit code 3\n"
    "  --bind              give each rank of a host a core of its own, or a hardware thread of one, as many as\n"
    "                      $OMP_NUM_THREADS says; an error if there are not enough that no other job has\n"
    "                      (default: if there are, and no quota of processor time is below their number; ranks that\n"
    "                      outnumber processors share them, if each can have as many)\n"
    "  --no-bind           don't\n"
    "  --help, --version\n"
    "\n"
    "On one host rank 0 reads standard input. Other hosts get the working directory, the variables HALOCLINE_*, "
    "OMP_*,\n"
    "FI_* and LD_LIBRARY_PATH, and those of --env. SIGINT, SIGTERM, SIGHUP and SIGQUIT go to all ranks and end the "
    "job,\n"
    "SIGUSR1 and SIGUSR2 go to all ranks and end nothing, but for those that it was started to ignore (nohup).\n"
    "When a rank fails, the others have 2 seconds, on several hosts 8, to say why and end. Exit code: that of the\n"
    "first rank that failed (128 + signal if a signal ended it, but 3 if a rank that outlived it reported the loss, "
    "or\n"
    "if a host was lost); 2 for bad arguments, or a host that can't be reached; 0 if all ranks ended well.\n";

[[noreturn]] void print_and_exit(const char* text) {
    if (std::fputs(text, stdout) >= 0 && std::fflush(stdout) == 0) std::exit(0);
    std::perror("halocline-run: standard output can't be written");
    std::exit(comm::launch::failed);
}

template <class T>
T number(std::string_view option, const std::string& text, T least, T most) {
    T value{};
    const char* end = text.data() + text.size();
    const auto [rest, bad] = std::from_chars(text.data(), end, value);
    if (bad != std::errc() || rest != end || !(value >= least && value <= most)) {
        std::ostringstream range;
        range << least << " to " << most;
        throw input_error(std::string(option) + " " + text + ": a number from " + range.str() + " is expected");
    }
    return value;
}

/// "nodeA:2", "nodeA", "[2001:db8::10]:2"; `option` begins messages.  Err: input_error.
host_share read_host(const std::string& option, const std::string& item) {
    const std::size_t colon = item.find(':', item.starts_with("[") ? item.find(']') : 0);
    host_share h{item.substr(0, colon)};
    if (colon != item.rfind(':') && colon != std::string::npos)
        throw input_error(option + ": '" + item +
                          "' has several colons; an address is expected in brackets, as in [2001:db8::10]:2");
    if (colon != std::string::npos) h.ranks = number<int>(option + ":", item.substr(colon + 1), 1, most_ranks);
    if (h.name.starts_with("[") && h.name.ends_with("]")) h.name = h.name.substr(1, h.name.size() - 2);
    if (h.name.find_first_of("{}[] \t\n") != std::string::npos)
        throw input_error(option + ": the name '" + h.name +
                          "' has a brace, a bracket or a blank; names are expected, as in nodeA:2,nodeB:2");
    if (h.name.empty() || h.name.starts_with("-"))
        throw input_error(option + ": names with numbers of ranks are expected, as in nodeA:2,nodeB:2");
    return h;
}

/// The items in the lines of a file of hosts as a list, without comments and blanks.  Err: input_error.
std::string hosts_in(const std::string& option, const std::string& file) {
    const auto cannot = [&](int why) { return input_error(option + ": can't be read: " + std::strerror(why)); };
    std::ifstream in(file);
    if (!in) throw cannot(errno);
    std::error_code none;
    if (std::filesystem::is_directory(file, none)) throw cannot(EISDIR); // which opens, and has no lines
    std::string list;
    for (std::string line; std::getline(in, line);) {
        std::istringstream items(line.substr(0, line.find('#')));
        for (std::string item; std::getline(items, item, ',');) {
            item.erase(item.find_last_not_of(" \t\r") + 1);
            item.erase(0, item.find_first_not_of(" \t"));
            if (!item.empty()) list += (list.empty() ? "" : ",") + item;
        }
    }
    return list;
}

std::vector<host_share> read_hosts(const std::string& given) {
    const std::string option = "--hosts " + given;
    std::vector<host_share> hosts;
    std::istringstream in(given.starts_with("@") ? hosts_in(option, given.substr(1)) : given);
    for (std::string item; std::getline(in, item, ',');) {
        const host_share h = read_host(option, item);
        if (!hosts.empty() && hosts.back().name == h.name)
            hosts.back().ranks += h.ranks; // a batch system's file may have a line for each rank
        else
            hosts.push_back(h);
    }
    if (hosts.empty()) throw input_error(option + ": names are expected, as in nodeA:2,nodeB:2");
    return hosts;
}

/// "NAME=value", also of "NAME" alone, which has its value here.  Err: input_error.
std::string read_variable(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (text.empty() || equals == 0) throw input_error("--env '" + text + "': expected NAME, or NAME=VALUE");
    if (equals != std::string::npos) return text;
    const char* const value = std::getenv(text.c_str());
    if (value == nullptr)
        throw input_error("--env " + text + ": there is no such variable here; NAME=VALUE would give it a value");
    return text + "=" + value;
}

/// Err: input_error: no word, or one that a shell would understand in another way.
std::string checked_shell(const std::string& command) {
    if (command.find_first_not_of(" \t\n") == std::string::npos)
        throw input_error("--remote-shell is empty; 'ssh {host}' would do");
    if (command.find_first_of("'\"\\") != std::string::npos)
        throw input_error("--remote-shell " + command +
                          ": quotes and backslashes have no meaning here; put the command into a script");
    return command;
}

/// The file's absolute name; errors in it are reported once, before any rank starts.  Err: input_error.
std::string checked_config(const std::string& file) {
    if (file.empty()) throw input_error("--config '': expected the name of a file; without --config there is none");
    config::reader<comm::job_options> reader(comm::option_keys());
    reader.read_file(file, config::other_sections::left_alone);
    comm::require_known_transports(reader.values().transports, reader.as_given("comm.transports"));
    return std::filesystem::absolute(file);
}

constexpr const char* see_help = "; see halocline-run --help";

/// Does what must come before any option is read: help and version, whatever else is wrong; and words like "--hosts=",
/// for which the parser would take the next word as the value.  Err: input_error.
void look_ahead(const CLI::App& cli, const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size() && words[i].starts_with("-") && words[i] != "--"; ++i) {
        if (words[i] == "-h" || words[i] == "--help") print_and_exit(usage);
        if (words[i] == "--version") print_and_exit("halocline-run " HALOCLINE_VERSION "\n");
        if (words[i].find('=') == words[i].size() - 1)
            throw input_error(words[i].substr(0, words[i].size() - 1) + " needs a value" + see_help);
        const CLI::Option* const option = cli.get_option_no_throw(words[i]);
        if (option != nullptr && option->get_items_expected_min() > 0) ++i; // its value
    }
}

/// Reads the options into `s`. Returns how many words, the last ones, follow them.  Err: input_error.
std::size_t read_options(launch_settings& s, std::vector<std::string> words) {
    CLI::App cli;
    cli.set_help_flag();  // see look_ahead()
    cli.prefix_command(); // from the first word on that is no option, all belong to the program
    const auto add = [&](const char* flag, const std::function<void(const std::string&)>& read) {
        return cli.add_option_function<std::string>(flag, read);
    };
    const auto read_ranks = [&](const std::string& text) { s.ranks = number<int>("-n", text, 1, most_ranks); };
    CLI::Option *const n = add("-n", read_ranks), *const np = add("--np", read_ranks);
    add("--hosts", [&](const std::string& list) { s.hosts = read_hosts(list); });
    add("--remote-shell", [&](const std::string& command) { s.remote_shell = checked_shell(command); });
    add("--env", [&](const std::string& text) { s.variables.push_back(read_variable(text)); })->trigger_on_parse();
    add("--network", [&](const std::string& network) { comm::check_network(s.network = network); });
    add("--config", [&](const std::string& file) { s.config = checked_config(file); });
    add("--timeout", [&](const std::string& text) { s.timeout = number<double>("--timeout", text, 0.001, 1e9); });
    CLI::Option *const bind = cli.add_flag_callback("--bind", [&] { s.bind = binding::demanded; }),
                       *const no_bind = cli.add_flag_callback("--no-bind", [&] { s.bind = binding::none; });
    CLI::Option* const label = cli.add_flag_callback("--label", [&] { s.label = true; });
    for (CLI::Option* const flag : {bind, no_bind, label}) flag->multi_option_policy(CLI::MultiOptionPolicy::Throw);

    std::ranges::replace(words, "-np", "--np"); // MPI launchers accept it; for CLI11 it would be -n with the value p
    look_ahead(cli, words);
    std::ranges::reverse(words); // the parser takes them from the back
    try {
        cli.parse(std::move(words));
    } catch (const CLI::ArgumentMismatch& wrong) {
        throw input_error(describe(wrong) + see_help);
    } catch (const CLI::ParseError& wrong) {
        throw input_error(std::string(wrong.what()) + see_help);
    }
    for (const auto& [one, other, both] :
         {std::tuple(n, np, "-n and -np"), std::tuple(bind, no_bind, "--bind and --no-bind")})
        if (one->count() > 0 && other->count() > 0)
            throw input_error(std::string(both) + ": only one of them is given" + see_help);
    const std::vector<std::string> rest = cli.remaining();
    if (!rest.empty() && rest[0].starts_with("-") && rest[0] != "--")
        throw input_error("unknown option '" + rest[0] + "'" + see_help);
    return rest.size();
}

} // namespace

launch_settings parse(int argc, char** argv) {
    launch_settings s;
    s.command.assign(argv + argc - read_options(s, {argv + 1, argv + argc}), argv + argc); // word for word
    if (!s.command.empty() && s.command[0] == "--") s.command.erase(s.command.begin());
    if (!s.remote_shell.empty() && s.hosts.empty())
        throw input_error(
            "--remote-shell: on which hosts? --hosts A:2,B:2 is missing; without it all ranks are on this one");
    if (s.remote_shell.empty()) s.remote_shell = ssh;
    int on_hosts = 0;
    for (const host_share& h : s.hosts) on_hosts += h.ranks;
    if (s.ranks == 0) s.ranks = on_hosts;
    if (s.ranks == 0) throw input_error("how many ranks? halocline-run -n N -- program [arguments...]");
    if (!s.hosts.empty() && s.ranks != on_hosts) {
        throw input_error("-n " + std::to_string(s.ranks) + ", but --hosts has room for " + std::to_string(on_hosts) +
                          " ranks; leave -n out");
    }
    if (s.ranks > most_ranks) throw input_error("at most " + std::to_string(most_ranks) + " ranks");
    if (s.command.empty()) throw input_error("which program? halocline-run -n N -- program [arguments...]");
    return s;
}

} // namespace halocline::app
