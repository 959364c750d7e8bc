// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/flag_count.hpp>
#include <halocline_app/main.hpp>
#include <halocline_app/standard_streams.hpp>
#include <halocline_app/write_all.hpp>

#include <halocline/base/version.h>
#include <halocline/comm/bad_input.hpp>
#include <halocline/comm/option_keys.hpp>
#include <halocline/comm/run_job.hpp>

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

namespace halocline::app {

std::string version() { return HALOCLINE_VERSION; }
namespace {

constexpr std::string_view clear_line = "\r\033[K"; // which shows progress

/// Does somebody look at this stream? Open MPI's mpirun gives its ranks a terminal even if its own output is a file.
bool is_live(int descriptor) { return isatty(descriptor) != 0 && std::getenv("OMPI_COMM_WORLD_RANK") == nullptr; }

/// Thrown by parse() for --help and --version.
struct early_exit {
    int code;
};

/// One write per line: lines of different ranks never interleave. 0, or errno.
int write_line(std::FILE* out, std::string line) {
    line += '\n';
    std::fflush(out);
    return write_all(fileno(out), line);
}

/// The parser's first complaint may be about a word that belongs to an unknown flag, so those are checked before.
void refuse_unknown_flags(const CLI::App& cli, int argc, const char* const* argv, const std::string& help) {
    for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
        const std::string flag = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
        if (flag.starts_with("--") && cli.get_option_no_throw(flag) == nullptr)
            throw input_error("unknown flag '" + flag + "'" + help);
    }
}

/// Rank 0 says it for all; a rank that can't reach the others, for itself.
void say_bad_input(const program& p, const input_error& e, const std::function<void(const std::string&)>& say) {
    const bool is_alone = dynamic_cast<const comm::unshared_input_error*>(&e) != nullptr;
    bool common = p.met() && !is_alone;
    std::string what = e.what();
    try {
        if (!p.met() && !is_alone) comm::share_bad_input(what);
    } catch (const comm::unshared_input_error&) {
    } catch (const input_error& shared) {
        common = true;
        what = shared.what();
    } catch (const std::exception&) {
    }
    if (p.speaks() || !common)
        say("error: " + (p.speaks() ? "" : "rank " + std::to_string(p.rank()) + ": ") + what);
    else
        comm::wait_for_rank_0_to_report();
}

} // namespace

program::program(std::string name) : name_(std::move(name)), rank_(comm::launched_rank()) {}

void program::parse(CLI::App& cli, int argc, const char* const* argv) const {
    cli.set_version_flag("--version", name_ + " " HALOCLINE_VERSION);
    const std::string help = "  (" + name_ + " --help lists the flags)";
    try {
        cli.parse(argc, argv);
    } catch (const CLI::Success& request) { // --help, --version: text for stdout
        std::ostringstream text;
        cli.exit(request, text, text);
        std::string lines = text.str();
        while (!lines.empty() && lines.back() == '\n') lines.pop_back();
        print(lines);
        throw early_exit{exit_success};
    } catch (const CLI::ArgumentMismatch& wrong) {
        throw input_error(describe(wrong) + help);
    } catch (const CLI::ParseError& wrong) {
        refuse_unknown_flags(cli, argc, argv, help);
        throw input_error(std::string(wrong.what()) + help);
    }
}

const comm::job& program::join(const comm::job_options& options) {
    met_ = true;
    job_ = std::make_unique<comm::job>(comm::job::from_environment(options));
    rank_ = job_->rank();
    return *job_;
}

void program::agree_on(int argc, const char* const* argv) const {
    std::string words;
    for (int i = 1; i < argc; ++i) words += (i > 1 ? " " : "") + std::string(argv[i]);
    job_->agree("the command line", words);
}

void program::print(std::string_view line) const {
    // A live progress line is cleared first.
    if (!speaks()) return;
    const int why = write_line(stdout, std::string(on_terminal() ? clear_line : "") + std::string(line));
    if (why != 0 && why != EPIPE) // a reader that left has read enough
        lose_output(std::string("standard output can't be written: ") + std::strerror(why));
}

void program::lose_output(std::string what) const { // each line of a full disk says the same
    if (std::ranges::find(lost_outputs_, what) == lost_outputs_.end()) lost_outputs_.push_back(std::move(what));
}

bool program::on_terminal() { return is_live(STDOUT_FILENO); }

void program::print_progress(std::string_view line) const {
    if (!speaks() || !on_terminal()) return;
    [[maybe_unused]] const int why =
        write_all(STDOUT_FILENO, std::string(clear_line) + std::string(line)); // no result is lost
}

comm::job_options job_options_of_environment(const std::string& transport_flag) {
    config::reader<comm::job_options> reader(comm::option_keys());
    reader.read_file_of_environment();
    reader.read_environment();
    if (!transport_flag.empty()) reader.set("comm.transports", transport_flag, "--transport");
    comm::require_known_transports(reader.values().transports, reader.as_given("comm.transports"));
    comm::job_options options = reader.values();
    options.fixed = true;
    return options;
}

void append_line(std::string& out, const char* format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    std::string line(static_cast<std::size_t>(std::vsnprintf(nullptr, 0, format, arguments)), '\0');
    std::vsnprintf(line.data(), line.size() + 1, format, again);
    va_end(again);
    va_end(arguments);
    out += line + '\n';
}

int run_program(int argc, const char* const* argv,
                const std::function<int(program& p, int argc, const char* const* argv)>& body) {
    keep_standard_streams();
    program p(argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "halocline");
    const auto say = [&](const std::string& what) {
        write_line(stderr, std::string(is_live(STDERR_FILENO) ? clear_line : "") + p.name() + ": " + what);
    };
    // `| head` stops reading, and a file may grow to its limit (ulimit -f); neither must end the job.
    for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
    const auto ended_with = [&](int code) {
        if (p.lost_outputs().empty()) return code;
        if (p.speaks())
            for (const std::string& lost : p.lost_outputs()) say("error: " + lost);
        return code == exit_success ? int{exit_failure} : code;
    };
    try {
        return ended_with(body(p, argc, argv));
    } catch (const early_exit& e) {
        return ended_with(e.code);
    } catch (const input_error& e) {
        say_bad_input(p, e, say);
        return exit_input;
    } catch (...) {
        if (is_live(STDERR_FILENO)) static_cast<void>(write_all(STDERR_FILENO, clear_line));
        return comm::end_by_exception(p.joined() ? &p.job() : nullptr);
    }
}

} // namespace halocline::app
