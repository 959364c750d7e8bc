// SPDX-License-Identifier: Apache-2.0
// halocline-run: starts the ranks of a program on this host or on several; as --agent, on another host on behalf of the
// launcher.
#include "agent.hpp"
#include "command_line.hpp"
#include "launcher.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/detail/launch.hpp>
#include <halocline_app/standard_streams.hpp>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

int main(int argc, char** argv) {
    using namespace halocline;
    app::keep_standard_streams();
    std::signal(SIGXFSZ, SIG_IGN); // a file may grow to its limit (ulimit -f): the write that fails is reported
    try {
        if (argc == 2 && std::strcmp(argv[1], "--agent") == 0) return app::run_agent();
        return app::launcher(app::parse(argc, argv)).run();
    } catch (const input_error& e) {
        std::fprintf(stderr, "halocline-run: %s\n", e.what());
        return comm::launch::bad_input;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "halocline-run: %s\n", e.what());
        return comm::launch::failed;
    }
}
