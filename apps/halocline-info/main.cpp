// SPDX-License-Identifier: Apache-2.0
// halocline-info: what this build and this machine can do, why each transport was refused, and the effective settings
// with each value's origin. Under a launcher it joins the job and reports which transport serves which rank.
#include "job/job_core.hpp"
#include "mpi/world.hpp"
#include "ofi/world.hpp"
#include "verbs/world.hpp"

#include <halocline/base/version.h>
#include <halocline/comm/processor_quota.hpp>
#include <halocline/comm/processors.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/dirac/wilson_clover.hpp>
#include <halocline_app/main.hpp>
#include <halocline_app/settings.hpp>
#include <halocline_app/strict_flag.hpp>

#include <CLI/CLI.hpp>
#include <hwy/targets.h>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace halocline::app {
namespace {

std::string cpu_model() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "unknown";
}

std::string memlock_limit() {
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur / 1024) + " KiB";
}

void print_row(const program& p, const std::string& name, const std::string& text) {
    constexpr std::size_t width = 26;
    p.print("  " + name + std::string(width - std::min(width, name.size()), ' ') + " " + text);
}

void print_build(const program& p) {
    std::string modules;
    for (const auto& m : comm::mpi_modules_present()) modules += (modules.empty() ? "" : ", ") + m;
    p.print("build");
    print_row(p, "halocline", HALOCLINE_VERSION " (" HALOCLINE_BUILD_TYPE ", " HALOCLINE_COMPILER ")");
    print_row(p, "transport self", "built in");
    print_row(p, "transport shm", "built in");
    print_row(p, "transport mpi",
              modules.empty() ? "no module found (looked in $HALOCLINE_MODULE_PATH and beside the program)"
                              : "modules: " + modules);
    print_row(p, "transport verbs", comm::verbs_present());
    print_row(p, "transport ofi", comm::ofi_present());
}

void print_machine(const program& p) {
    std::string simd;
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets())
        simd += std::string(simd.empty() ? "" : ", ") + hwy::TargetName(target);
    const auto launch = comm::mpi_launch_from_environment();
    p.print("machine");
    print_row(p, "processor", cpu_model());
    const std::vector<int> usable = comm::usable_processors();
    print_row(p, "processors it may use",
              std::to_string(usable.size()) + (usable.empty() ? "" : ": " + comm::to_text(usable)));
    std::string quotas;
    for (const comm::processor_quota& q : comm::processor_quotas())
        quotas += (quotas.empty() ? "" : ", in a group of ") + comm::in_processors(q.processors);
    print_row(p, "quota of processor time", quotas.empty() ? "none seen" : quotas);
    print_row(p, "SIMD targets, best first", simd);
    print_row(p, "floats in a vector", std::to_string(dirac::vector_lanes()));
    print_row(p, "memlock limit", memlock_limit());
    print_row(p, "MPI launcher above", launch ? launch->title + " (" + launch->evidence + ")" : "none");
}

void print_job(const program& p, const comm::job& j) {
    char slab[96];
    std::snprintf(slab, sizeof slab, "%.1f GiB virtual, %.1f MiB used, %s",
                  static_cast<double>(j.memory().bytes()) / 1073741824.0,
                  static_cast<double>(j.memory().used()) / 1048576.0,
                  j.memory().huge() > 0 ? "in pages of 2 MiB" : "in small pages: the kernel makes none of 2 MiB");
    p.print("job");
    print_row(p, "started by", j.launcher());
    print_row(p, "ranks", std::to_string(j.ranks()));
    print_row(p, "slab of rank 0", slab);
    const std::vector<std::string> usable = j.gather(comm::to_text(comm::usable_processors())),
                                   waits = j.gather(j.core().spin.describe());
    for (const auto& m : j.members())
        print_row(p, "rank " + std::to_string(m.rank),
                  "pid " + std::to_string(m.pid) + " on " + m.host + ", served by " + m.transport +
                      (m.transport == "mpi" ? " " + std::string(comm::to_string(j.options().mpi)) : "") +
                      (m.refused.empty() ? "" : " (" + m.refused + ")") + ", on processors " + usable[m.rank]);
    // Usually all ranks wait in the same way.
    for (std::size_t first = 0, end = 0; first < waits.size(); first = end) {
        for (end = first + 1; end < waits.size() && waits[end] == waits[first];) ++end;
        print_row(p,
                  "in a wait" + (end - first == waits.size()
                                     ? ""
                                     : ", rank " + std::to_string(first) +
                                           (end - first > 1 ? " to " + std::to_string(end - 1) : "")),
                  waits[first]);
    }
}

void print_settings(const program& p, const settings_reader& reader) {
    p.print("settings (command line > environment > file > default)");
    for (const auto& key : setting_keys()) {
        const std::string value = key.show(reader.values());
        print_row(p, key.path(), (value.empty() ? "(none)" : value) + "   [" + reader.origin(key.path()) + "]");
    }
}

int info(program& p, int argc, const char* const* argv) {
    CLI::App cli{"What this build and this machine can do, and the effective settings with each value's origin.\n"
                 "Under a launcher: who serves whom.",
                 p.name()};
    std::string config, transport;
    add_text_flag(cli, "config", config, "FILE", "config file (configs/demo.toml explains every key)");
    add_text_flag(cli, "--transport", transport, "LIST", "in order of preference, like shm,mpi");
    p.parse(cli, argc, argv);

    // First: where no job can be made, they may show why.
    print_build(p);
    print_machine(p);

    settings_reader reader;
    reader.read_surroundings(config, config::other_sections::left_alone);
    if (!transport.empty()) reader.set("comm.transports", transport, "--transport");
    reader.check();
    const comm::job& j = p.join(job_options_of(reader.values()));

    print_job(p, j);
    print_settings(p, reader);
    return exit_success;
}

} // namespace
} // namespace halocline::app

int main(int argc, char** argv) { return halocline::app::run_program(argc, argv, halocline::app::info); }
