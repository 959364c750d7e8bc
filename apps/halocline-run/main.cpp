// SPDX-License-Identifier: Apache-2.0
// Starts N ranks of a program on this host, lets them meet (comm/launch.hpp), and ends when they have ended.
#include <halocline/base/error.hpp>
#include <halocline/comm/launch.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace halocline;
using clock_type = std::chrono::steady_clock;

constexpr const char* usage =
    "usage: halocline-run -n N [options] -- program [arguments...]\n"
    "\n"
    "Runs N ranks of a program as processes of this host.\n"
    "\n"
    "  -n N           number of ranks\n"
    "  --timeout S    end the job after S seconds, exit code 3\n"
    "  --bind         pin rank i to the i-th allowed core if there are enough (default)\n"
    "  --no-bind      don't\n"
    "  --help         this text\n"
    "\n"
    "Rank 0 reads standard input. SIGINT, SIGTERM and SIGHUP go to all ranks. When a rank fails, the others have 2 seconds\n"
    "to say why and end. Exit code: that of the first rank that failed (128 + signal if a signal ended it, but 3 if a\n"
    "rank that outlived it reported the loss); 2 for bad arguments; 0 if all ranks ended well.\n";

constexpr int bad_input = 2, rank_lost = 3;
constexpr int most_ranks = 4096;
constexpr auto grace = std::chrono::seconds(2);

struct settings {
    int ranks = 0;
    double timeout = 0; // seconds, 0 = none
    bool bind = true;
    std::vector<char*> command;
};

template <class T>
T number(std::string_view option, const char* text, T least, T most) {
    T value{};
    const char* end = text + std::strlen(text);
    const auto [rest, bad] = std::from_chars(text, end, value);
    if (bad != std::errc() || rest != end || !(value >= least && value <= most)) {
        throw input_error(std::string(option) + " " + text + ": a number from " + std::to_string(least) + " to " +
                          std::to_string(most) + " is expected");
    }
    return value;
}

settings parse(int argc, char** argv) {
    settings s;
    int i = 1;
    for (; i < argc; ++i) {
        const std::string_view a = argv[i];
        const auto value = [&] {
            if (++i == argc) throw input_error(std::string(a) + " needs a number");
            return argv[i];
        };
        if (a == "--help" || a == "-h") {
            std::fputs(usage, stdout);
            std::exit(0);
        } else if (a == "-n" || a == "--np") {
            s.ranks = number<int>(a, value(), 1, most_ranks);
        } else if (a == "--timeout") {
            s.timeout = number<double>(a, value(), 0.001, 1e9);
        } else if (a == "--bind") {
            s.bind = true;
        } else if (a == "--no-bind") {
            s.bind = false;
        } else if (a == "--") {
            ++i;
            break;
        } else if (a.starts_with("-")) {
            throw input_error("unknown option '" + std::string(a) + "'; see halocline-run --help");
        } else {
            break;
        }
    }
    if (s.ranks == 0) throw input_error("how many ranks? halocline-run -n N -- program [arguments...]");
    for (; i < argc; ++i) s.command.push_back(argv[i]);
    if (s.command.empty()) throw input_error("which program? halocline-run -n N -- program [arguments...]");
    s.command.push_back(nullptr);
    return s;
}

/// One rank, as the launcher sees it.
struct child {
    pid_t pid = -1;
    int socket = -1;
    std::string incoming, outgoing;
    std::optional<std::string> part; // of the gather under way
    bool running = true;
    int how = 0; ///< it ended so, in waitpid's words
};

class launcher {
  public:
    explicit launcher(settings s) : settings_(std::move(s)), ranks_(static_cast<std::size_t>(settings_.ranks)) {}

    int run() {
        sigset_t watched;
        sigemptyset(&watched);
        for (const int n : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&watched, n);
        sigprocmask(SIG_BLOCK, &watched, &before_);
        signals_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
        if (signals_ < 0) throw error(std::string("signalfd: ") + std::strerror(errno));
        std::signal(SIGPIPE, SIG_IGN);
        const auto start = clock_type::now();
        if (settings_.timeout > 0) {
            deadline_ = start + std::chrono::duration_cast<clock_type::duration>(
                                    std::chrono::duration<double>(settings_.timeout));
        }
        make_lifelines();
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            if (!spawn(r)) return exit_code_;
        }
        close_lifelines();
        while (running() > 0) {
            wait();
            reap();
            serve();
            keep_time();
        }
        return exit_code_;
    }

  private:
    [[nodiscard]] long running() const {
        return std::count_if(ranks_.begin(), ranks_.end(), [](const child& c) { return c.running && c.pid > 0; });
    }
    void signal_all(int n) {
        for (const child& c : ranks_) {
            if (c.running && c.pid > 0) kill(c.pid, n);
        }
    }

    /// The cores of rank r: one of its own if there are enough.
    void bind(std::size_t r) const {
        cpu_set_t allowed;
        if (!settings_.bind || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
        if (ranks_.size() > static_cast<std::size_t>(CPU_COUNT(&allowed))) return;
        std::size_t seen = 0;
        for (int core = 0; core < CPU_SETSIZE; ++core) {
            if (!CPU_ISSET(core, &allowed) || seen++ != r) continue;
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            sched_setaffinity(0, sizeof one, &one);
        }
    }

    /// One pipe per rank (launch.hpp).
    void make_lifelines() {
        lifelines_.resize(ranks_.size());
        for (auto& line : lifelines_) {
            if (pipe2(line.data(), O_CLOEXEC) != 0)
                throw error(std::string("no more descriptors for ") + std::to_string(ranks_.size()) +
                            " ranks: " + std::strerror(errno));
        }
    }
    /// In rank r: its own writing end and the others' reading ends stay open in the program, the rest do not.
    void keep_lifelines(std::size_t r) const {
        const std::int32_t pid = getpid();
        std::string list;
        for (std::size_t other = 0; other < lifelines_.size(); ++other) {
            const int kept = lifelines_[other][other == r ? 1 : 0];
            fcntl(kept, F_SETFD, 0);
            list += (other ? "," : "") + std::to_string(kept);
            if (other != r) [[maybe_unused]] const ssize_t n = ::write(lifelines_[r][1], &pid, sizeof pid);
        }
        setenv(comm::launch::lifelines_variable, list.c_str(), 1);
    }
    void close_lifelines() {
        for (const auto& line : lifelines_)
            for (const int end : line) ::close(end);
        lifelines_.clear();
    }

    bool spawn(std::size_t r) {
        std::array<int, 2> pair{}, report{};
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0 || pipe2(report.data(), O_CLOEXEC) != 0) {
            throw error(std::string("no more descriptors for rank ") + std::to_string(r) + ": " + std::strerror(errno));
        }
        const pid_t parent = getpid();
        const pid_t pid = fork();
        if (pid < 0) {
            signal_all(SIGKILL);
            throw error("cannot start rank " + std::to_string(r) + ": " + std::strerror(errno));
        }
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); // nobody outlives the launcher
            if (getppid() != parent) _exit(127);
            bind(r);
            sigprocmask(SIG_SETMASK, &before_, nullptr);
            std::signal(SIGPIPE, SIG_DFL);
            if (r != 0) {
                const int null = open("/dev/null", O_RDONLY);
                dup2(null, STDIN_FILENO);
                ::close(null);
            }
            fcntl(pair[1], F_SETFD, 0);
            setenv(comm::launch::rank_variable, std::to_string(r).c_str(), 1);
            setenv(comm::launch::ranks_variable, std::to_string(ranks_.size()).c_str(), 1);
            setenv(comm::launch::socket_variable, std::to_string(pair[1]).c_str(), 1);
            keep_lifelines(r);
            execvp(settings_.command[0], settings_.command.data());
            const int why = errno;
            [[maybe_unused]] const ssize_t n = ::write(report[1], &why, sizeof why);
            _exit(127);
        }
        ::close(pair[1]);
        ::close(report[1]);
        fcntl(pair[0], F_SETFL, O_NONBLOCK);
        ranks_[r].pid = pid;
        ranks_[r].socket = pair[0];
        int why = 0;
        const bool failed = ::read(report[0], &why, sizeof why) == static_cast<ssize_t>(sizeof why); // closed by exec
        ::close(report[0]);
        if (!failed) return true;
        std::fprintf(stderr, "halocline-run: cannot run '%s': %s\n", settings_.command[0], std::strerror(why));
        signal_all(SIGKILL);
        for (const child& c : ranks_) {
            if (c.pid > 0) waitpid(c.pid, nullptr, 0);
        }
        exit_code_ = bad_input;
        return false;
    }

    void wait() {
        std::vector<pollfd> polled{{signals_, POLLIN, 0}};
        for (const child& c : ranks_) {
            polled.push_back({c.socket, static_cast<short>(POLLIN | (c.outgoing.empty() ? 0 : POLLOUT)), 0});
        }
        int patience = -1;
        for (const auto& end : {deadline_, kill_at_}) {
            if (!end) continue;
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end - clock_type::now()).count();
            const int ms = static_cast<int>(std::clamp<long>(left, 0, 60'000));
            patience = patience < 0 ? ms : std::min(patience, ms);
        }
        poll(polled.data(), polled.size(), patience);
        signalfd_siginfo s{};
        while (::read(signals_, &s, sizeof s) == static_cast<ssize_t>(sizeof s)) {
            if (s.ssi_signo == SIGCHLD) continue;
            signal_all(static_cast<int>(s.ssi_signo));
            if (exit_code_ == 0) exit_code_ = 128 + static_cast<int>(s.ssi_signo);
            start_grace();
        }
    }

    void start_grace() {
        if (!kill_at_) kill_at_ = clock_type::now() + grace;
    }

    void reap() {
        int how = 0;
        for (pid_t pid; (pid = waitpid(-1, &how, WNOHANG)) > 0;) {
            const auto c = std::find_if(ranks_.begin(), ranks_.end(), [&](const child& x) { return x.pid == pid; });
            if (c == ranks_.end()) continue;
            c->running = false;
            c->how = how;
            const auto rank = c - ranks_.begin();
            const int code = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
            if (WIFSIGNALED(how) && !killing_) {
                std::fprintf(stderr, "halocline-run: rank %ld (pid %d) was ended by signal %d (%s)\n",
                             static_cast<long>(rank), static_cast<int>(pid), WTERMSIG(how), strsignal(WTERMSIG(how)));
            }
            if (code != 0) {
                const bool by_signal = exit_code_ > 128 && !interrupted();
                if (exit_code_ == 0 || (by_signal && code == rank_lost)) exit_code_ = code;
                start_grace();
            }
            tell_of_end(static_cast<std::size_t>(rank), how);
        }
    }
    /// Was the job's end asked for, by a signal to the launcher?
    [[nodiscard]] bool interrupted() const { return exit_code_ == 128 + SIGINT || exit_code_ == 128 + SIGTERM; }

    /// Those that wait for a part that will never come.
    void tell_of_end(std::size_t r, int how) {
        take(ranks_[r]); // it may have given its part as its last act
        if (ranks_[r].part || std::none_of(ranks_.begin(), ranks_.end(), [](const child& c) { return c.part.has_value(); })) {
            return;
        }
        const std::string why = WIFSIGNALED(how) ? "died of signal " + std::to_string(WTERMSIG(how))
                                                 : "ended with exit code " + std::to_string(WEXITSTATUS(how));
        std::string answer(1, comm::launch::died);
        for (const std::int32_t n : {static_cast<std::int32_t>(r), static_cast<std::int32_t>(ranks_[r].pid)}) {
            answer.append(reinterpret_cast<const char*>(&n), sizeof n);
        }
        answer += why;
        for (child& c : ranks_) {
            if (c.part) post(c, answer);
            c.part.reset();
        }
    }

    static void frame(std::string& to, std::string_view bytes) {
        const std::uint64_t length = bytes.size();
        to.append(reinterpret_cast<const char*>(&length), sizeof length).append(bytes);
    }
    static void post(child& c, std::string_view bytes) {
        frame(c.outgoing, bytes);
        flush(c);
    }
    static void flush(child& c) {
        while (!c.outgoing.empty()) {
            const ssize_t n = ::send(c.socket, c.outgoing.data(), c.outgoing.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n <= 0) {
                if (n < 0 && errno != EAGAIN && errno != EINTR) c.outgoing.clear();
                return;
            }
            c.outgoing.erase(0, static_cast<std::size_t>(n));
        }
    }
    static void take(child& c) {
        std::array<char, 65536> buffer;
        ssize_t n = 0;
        while (c.socket >= 0 && (n = ::recv(c.socket, buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0) {
            c.incoming.append(buffer.data(), static_cast<std::size_t>(n));
        }
        if (n == 0 && c.socket >= 0) { // closed: the rank, or what it became, needs no more of us
            ::close(c.socket);
            c.socket = -1;
        }
        std::uint64_t length = 0;
        if (c.part || c.incoming.size() < sizeof length) return;
        std::memcpy(&length, c.incoming.data(), sizeof length);
        if (c.incoming.size() - sizeof length < length) return;
        c.part = c.incoming.substr(sizeof length, length);
        c.incoming.erase(0, sizeof length + length);
    }

    /// The gather: when every rank's part is there, everybody gets all.
    void serve() {
        bool all = true, one = false;
        for (child& c : ranks_) {
            flush(c);
            take(c);
            all = all && c.part;
            one = one || c.part;
        }
        if (all) {
            std::string answer(1, comm::launch::gathered);
            for (const child& c : ranks_) frame(answer, *c.part);
            for (child& c : ranks_) {
                c.part.reset();
                post(c, answer);
            }
        } else if (one) {
            for (std::size_t r = 0; r < ranks_.size(); ++r) {
                if (!ranks_[r].running && !ranks_[r].part) tell_of_end(r, ranks_[r].how);
            }
        }
    }

    void keep_time() {
        const auto now = clock_type::now();
        if (deadline_ && now >= *deadline_) {
            std::fprintf(stderr, "halocline-run: not done after %g s (--timeout); ending all ranks\n", settings_.timeout);
            if (exit_code_ == 0) exit_code_ = rank_lost;
            deadline_.reset();
            signal_all(SIGTERM);
            start_grace();
        }
        if (kill_at_ && now >= *kill_at_) {
            killing_ = true;
            kill_at_.reset();
            signal_all(SIGCONT);
            signal_all(SIGKILL);
        }
    }

    settings settings_;
    std::vector<std::array<int, 2>> lifelines_; // reading, writing end; open here only while ranks are started
    std::vector<child> ranks_;
    sigset_t before_{};
    int signals_ = -1;
    int exit_code_ = 0;
    bool killing_ = false;
    std::optional<clock_type::time_point> deadline_, kill_at_;
};

} // namespace

int main(int argc, char** argv) {
    try {
        return launcher(parse(argc, argv)).run();
    } catch (const halocline::input_error& e) {
        std::fprintf(stderr, "halocline-run: %s\n", e.what());
        return bad_input;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "halocline-run: %s\n", e.what());
        return 1;
    }
}
