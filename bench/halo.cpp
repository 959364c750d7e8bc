// SPDX-License-Identifier: Apache-2.0
// How close is an exchange to one hand-written copy, and how far from MPI?  scripts/bench.sh halo
//   (halocline-run -n 2 -- bench_halo [--peer 'NAME=COMMAND'], ours over MPI: mpirun … bench_halo --transport mpi)
//
// Contenders: "limit" (halo/one_copy.hpp), ours by each path and with the choice left to the plan ("automatic"), "mock"
// (ours without the wire), and peers: programs of one MPI each (halo_mpi.cpp) that receive orders through a pipe. All
// take turns in short slices (support/rounds.hpp); payloads are verified after each slice. What is timed:
// halo/timed_slice.hpp. A single rank exchanges faces with itself.

#include "halo/exchange_order.hpp"
#include "halo/one_copy.hpp"
#include "halo/ours.hpp"
#include "halo/points.hpp"
#include "halo/report.hpp"
#include "support/command_line.hpp"
#include "support/json_line.hpp"
#include "support/machine.hpp"
#include "support/making_times.hpp"
#include "support/output_file.hpp"
#include "support/peer_names.hpp"
#include "support/peer_program.hpp"
#include "support/probed_facts.hpp"
#include "support/statistics.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline/comm/detail/pause.hpp>

#include <memory>
#include <optional>
#include <unistd.h>

namespace {

using namespace halocline;
using namespace halocline::bench;

struct options {
    double seconds = 300;
    int rounds = 5;
    point_choice points;
    std::vector<int> threads{1};
    std::vector<std::string> peers;
    double late_us = 0;
    std::string transport = "shm", provider, json, svg, git = measured_git();
    bool table = false;
};

/// What a peer is asked for if --peer names no modes.
const std::vector<std::string> default_modes{"packed", "in-place"};

/// The exchanges of `e`, each begun so many microseconds late, after the clock was read: a rank that computes longer.
template <exchanger E>
class late {
  public:
    late(E& e, double us) : e_(e), ticks_(static_cast<std::uint64_t>(1e-6 * us / comm::seconds_per_tick())) {}
    [[nodiscard]] tracked_field& source() { return e_.source(); }
    [[nodiscard]] const std::byte* ghosts(std::size_t f) const { return e_.ghosts(f); }
    void exchange() {
        if (ticks_ > 0)
            for (const std::uint64_t begin = comm::ticks(); comm::ticks() - begin < ticks_;) comm::pause();
        e_.exchange();
    }

  private:
    E& e_;
    std::uint64_t ticks_;
};

/// A contender of this program: its slices are timed and verified; the slowest rank's time counts.
template <exchanger E>
contender own(const comm::job& j, std::string who, std::string mode, std::string transport, std::shared_ptr<E> e,
              double late_us = 0) {
    const bool moves = transport != "mock";
    const auto slice = [j, who, e, moves, late_us](double seconds) {
        const auto greatest = [&](double x) { return slowest(j, {x})[0]; };
        late<E> exchange(*e, j.rank() % 2 == 1 ? late_us : 0);
        std::optional<thread_team::work> work; // threads of ours sleep in the slices of others
        if constexpr (requires { e->team(); }) work.emplace(e->team());
        const std::vector<double> us = slowest(j, timed_slice(exchange, seconds, greatest));
        work.reset();
        j.collectively([&] {
            if (moves && !verified(*e)) throw error(who + ": wrong ghosts on rank " + std::to_string(j.rank()));
        });
        return slice_times{{us.begin(), us.begin() + batches}, {us.begin() + batches, us.end()}};
    };
    return {std::move(who), std::move(mode), std::move(transport), slice};
}

/// Exchanges of `e` in a row, which move no bytes: the cost of start() and finish(). They have no measure "step".
contender batched(const comm::job& j, std::shared_ptr<ours_empty> e) {
    const auto slice = [j, e](double seconds) { return slice_times{{}, slowest(j, timed_in_a_row(*e, seconds))}; };
    return {"mock", "empty-batched", "mock", slice};
}

/// One mode of a program of --peer.
entry of_peer(const comm::job& j, peer_program& program, const std::string& mode, const point& p) {
    const local_box box(p, 0);
    const bool contiguous = std::all_of(box.faces.begin(), box.faces.end(),
                                        [](const box_face& f) { return strided_copy(f.send, f.send).contiguous(); });
    const auto slice = [&j, &program, mode, p](double seconds) {
        return program.ask(j, exchange_order{mode, p, seconds}.text(j.ranks()), measures.size());
    };
    const std::string& name = program.name();
    const std::string tuned(tuned_mpi(name));
    const bool mpi = is_mpi(name) || !tuned.empty();
    return {.who = {tuned.empty() ? name : tuned, mode == "in-place" && !contiguous ? "datatype" : mode,
                    transport_of_peer(name), slice},
            .settings = !mpi            ? ""
                        : tuned.empty() ? "installed"
                                        : "tuned",
            .foreign = !mpi};
}

std::vector<entry> contenders_of(const comm::job& j, const options& o, const point& p, peer_set& peers) {
    std::vector<entry> all;
    const auto add = [&](const char* who, halo::path mode, const std::string& over, auto e, int threads) {
        all.push_back(
            {.who = own(j, who, std::string(to_string(mode)), over, std::move(e), o.late_us), .threads = threads});
    };
    const std::string transport = j.transport();
    const bool direct = transport == "shm" || transport == "self";
    if (transport == "shm")
        all.push_back({.who = own(j, "limit", "one-copy", "shm", std::make_shared<one_copy>(j, p), o.late_us)});
    std::vector<halo::path> ways;
    if (p.padded || !direct) ways.push_back(halo::path::packed);
    if (direct) ways.push_back(halo::path::direct);
    if (transport == "shm") ways.insert(ways.end(), {halo::path::streamed, halo::path::joint, halo::path::automatic});
    for (const int threads : o.threads)
        for (const halo::path way : ways) {
            if (p.padded)
                add("ours", way, transport, std::make_shared<ours_padded>(j, p, way, threads), threads);
            else // its messages are packed by whoever sends them, unless they are written in place
                add("ours", way, transport,
                    std::make_shared<ours_appended>(j, p, direct ? way : halo::path::automatic, threads), threads);
        }
    static const comm::job mock = comm::job::single({.transports = {"mock"}});
    if (p.padded) {
        add("mock", halo::path::packed, "mock", std::make_shared<ours_padded>(mock, alone(p), halo::path::packed, 1),
            1);
    } else {
        add("mock", halo::path::packed, "mock",
            std::make_shared<ours_appended>(mock, alone(p), halo::path::automatic, 1), 1);
        const auto empty = std::make_shared<ours_empty>(mock, alone(p));
        all.push_back({.who = own(j, "mock", "empty", "mock", empty)});
        all.push_back({.who = batched(j, empty)});
    }
    for (peer_program& program : peers.all())
        for (const std::string& mode : program.modes().empty() ? default_modes : program.modes())
            all.push_back(of_peer(j, program, mode, p));
    return all;
}

/// What making a plan costs.
struct plan_cost {
    std::size_t faces = 0;
    std::vector<double> ms;         ///< on the slowest rank, each time
    double memory_over_ghosts = 0;  ///< in the slab
    double staging_over_ghosts = 0; ///< outside it, for messages that callers pack
};

plan_cost cost_of_plan(const comm::job& j, const point& p) {
    const local_box box(p, j.rank());
    plan_cost cost{.faces = box.faces.size(), .ms = {}};
    double ghost_bytes = 0;
    for (const box_face& f : box.faces) ghost_bytes += static_cast<double>(f.ghosts.bytes());
    const auto order = lattice::site_order::lexicographic(box.storage);
    std::size_t before = 0;
    const auto make = [&] {
        before = j.memory().used();
        return halo::plan(j, p.decomposition(),
                          {.name = "cost",
                           .widths = widths_of(p),
                           .bytes_per_site = static_cast<std::size_t>(p.bytes_per_site),
                           .self_exchange = j.ranks() == 1,
                           .order = order});
    };
    cost.ms = making_times(j, 7, make, [&](const halo::plan& plan) {
        const double bytes = static_cast<double>(j.memory().used()) - static_cast<double>(before);
        if (cost.memory_over_ghosts == 0) cost.memory_over_ghosts = bytes / ghost_bytes; // later plans reuse it
        cost.staging_over_ghosts = static_cast<double>(plan.staging_bytes()) / ghost_bytes;
    });
    return cost;
}

/// Reports milliseconds and slab memory, and the costs by which paths were chosen.
void report_plan(const comm::job& j, const point& p, const machine_pace& pace, const run_facts& facts, std::FILE* json,
                 std::FILE* table) {
    const plan_cost cost = cost_of_plan(j, p);
    const comm::costs& costs = comm::measured_costs(j);
    if (table && costs.cached.line_seconds > 0)
        std::fprintf(
            table,
            "by this job's measurement a cache line costs %.1f ns through the cache, %.1f ns past it, %.1f ns "
            "scattered and written by both; a message %.0f and %.0f ns; an exchange of next to nothing %.2f us; lines "
            "claimed before they are filled take %.2f of the time of others\n",
            1e9 * costs.cached.line_seconds, 1e9 * costs.streamed.line_seconds, 1e9 * costs.scattered_line_seconds,
            1e9 * costs.cached.message_seconds, 1e9 * costs.streamed.message_seconds, 1e6 * costs.flag_seconds,
            costs.claimed_ratio);
    if (table && costs.joint_seconds > 0)
        std::fprintf(table, "256 KiB take %.1f us, with both ends copying %.1f us\n", 1e6 * costs.alone_seconds,
                     1e6 * costs.joint_seconds);
    if (table)
        std::fprintf(table,
                     "plan of %zu faces, %s, %d B/site: made in %.2f ms (first: %.2f), memory %.2f x ghost bytes, "
                     "%.2f x for staging\n",
                     cost.faces, lattice::to_string(p.extents).c_str(), p.bytes_per_site, median(cost.ms), cost.ms[0],
                     cost.memory_over_ghosts, cost.staging_over_ghosts);
    if (!json) return;
    json_line line;
    line.add("bench", "halo_plan").add("who", "ours").add("transport", j.transport()).add("ranks", j.ranks());
    line.add("L", p.extents).add("bytes_per_site", p.bytes_per_site).add("cut", p.grid);
    line.add("faces", static_cast<int>(cost.faces)).add("ms_median", median(cost.ms)).add("ms_first", cost.ms[0]);
    line.add("memory_over_ghosts", cost.memory_over_ghosts).add("staging_over_ghosts", cost.staging_over_ghosts);
    line.add("cached_line_ns", 1e9 * costs.cached.line_seconds);
    line.add("run_line_ns", 1e9 * costs.run_line_seconds);
    line.add("pulled_line_ns", 1e9 * costs.pulled_line_seconds);
    line.add("streamed_line_ns", 1e9 * costs.streamed.line_seconds);
    line.add("scattered_line_ns", 1e9 * costs.scattered_line_seconds);
    line.add("claimed_ratio", costs.claimed_ratio);
    line.add("take_line_ns", 1e9 * costs.take_seconds);
    line.add("alone_us", 1e6 * costs.alone_seconds).add("joint_us", 1e6 * costs.joint_seconds);
    line.add("flag_ns", pace.flag_ns).add("transfer_ns", pace.transfer_ns).add("core_ns", pace.core_ns);
    line.add(facts.line());
    std::fprintf(json, "%s\n", line.text().c_str());
}

/// Warns about threads that share cores: their times mostly show the scheduler.
void warn_of_shared_cores(const comm::job& j, int threads) {
    const int all = threads * j.ranks();
    const std::size_t there = usable().size();
    if (j.rank() != 0 || threads == 1 || static_cast<std::size_t>(all) <= there) return;
    std::fprintf(stderr,
                 "bench_halo: --threads %d: %d threads share %zu processors and are not bound to them "
                 "(halocline-run --no-bind leaves a rank all that there are)\n",
                 threads, all, there);
}

/// The point at which making a plan is timed: 16^4 sites per rank, cut in t, or exchanged with itself on all sides.
point plan_point(int ranks) {
    point p{.extents = {16, 16, 16, 16}};
    if (ranks == 1)
        p.self.fill(true);
    else
        p.grid[3] = ranks;
    return p;
}

/// Where results go; only rank 0 writes them.
struct outputs {
    output_file json_file, svg_file;
    std::FILE *json = nullptr, *table = nullptr;
};

/// Collective.  Err: input_error: a file that can't be written.
outputs open_outputs(const comm::job& j, const options& o) {
    outputs out;
    j.collectively([&] {
        if (j.rank() != 0) return;
        out.json_file = output_file("--json", o.json);
        out.svg_file = output_file("--svg", o.svg);
        out.table = o.table || isatty(STDOUT_FILENO) != 0 ? stdout : nullptr;
        out.json = out.json_file.stream() != nullptr ? out.json_file.stream() : out.table != nullptr ? nullptr : stdout;
    });
    return out;
}

/// Collective: measures and reports all points, as far as the time allows. Each gets slices long enough to say
/// something; then there is no time for the last ones.
void measure_points(const comm::job& j, const options& o, const std::vector<point>& points, peer_set& peers,
                    flag_probe& probe, report& all, outputs& out) {
    const std::uint64_t begin = comm::ticks();
    for (std::size_t i = 0; i < points.size(); ++i) {
        const double left = o.seconds - slowest(j, {comm::seconds(comm::ticks() - begin)})[0];
        if (left <= 0) {
            if (j.rank() == 0) all.leave_out(points[i], "the time is over");
            continue;
        }
        const std::vector<entry> entries = contenders_of(j, o, points[i], peers);
        std::vector<contender> contenders;
        for (const entry& e : entries) contenders.push_back(e.who);
        round_options rounds{.seconds = left / static_cast<double>(points.size() - i), .rounds = o.rounds};
        rounds.seconds = std::max(rounds.seconds, rounds.least_seconds(contenders.size()));
        const std::vector<outcome> outcomes = take_turns(j, probe, contenders, rounds);
        if (j.rank() == 0) all.add(points[i], entries, outcomes);
        out.json_file.flush();
        std::fflush(stdout);
    }
}

void run(app::program& program, const options& o) {
    comm::job_options job_options;
    job_options.transports = {o.transport};
    job_options.ofi_provider = o.provider;
    const comm::job& j = program.join(job_options);
    if (j.ranks() > 1) require_transport(j, o.transport); // a single rank has "self"
    const std::vector<point> points = points_of(o.points, j.ranks());
    warn_of_shared_cores(j, *std::ranges::max_element(o.threads));
    peer_set peers(j, o.peers, true);
    flag_probe probe(j);
    run_facts facts = facts_of(j);
    facts.git = o.git;
    outputs out = open_outputs(j, o);
    report all(j.ranks(), j.transport(), facts, out.json, out.table);
    report_plan(j, plan_point(j.ranks()), probe(5e-3), facts, out.json, out.table);
    measure_points(j, o, points, peers, probe, all, out);
    if (std::FILE* const svg = out.svg_file.stream()) std::fputs(all.svg().c_str(), svg);
    out.json_file.close(program);
    out.svg_file.close(program);
    peers.leave();
}

constexpr const char* about_lines =
    "Lines of JSON: one of \"bench\":\"halo\" for each point and contender, told apart by who, mode (\"-tuned\": an "
    "MPI "
    "with other settings than installed), transport, ranks, threads, L, bytes_per_site, cut (of one rank: 1 where it "
    "exchanges with itself) and layout: microseconds of the exchange alone, us_median and us_p95 (over batches, each "
    "the "
    "mean of many exchanges), in the mode of the "
    "machine that the point saw most (flag_ns). \"bench\":\"halo_detail\" has what else was seen of the same, by "
    "\"measure\" (bare: the exchange alone; step: the source written, the exchange, the ghosts read) and \"machine\" "
    "(fast, slow; mixed: noisy, of any mode). \"bench\":\"halo_plan\": what making a plan costs. "
    "\"bench\":\"halo_left_out\": a point for which "
    "there was no time.";

int measure(app::program& program, int argc, const char* const* argv) {
    options o;
    CLI::App cli("How close is an exchange to one hand-written copy, and how far from MPI?");
    add_seconds(cli, o.seconds, "of the whole run; points for which there is no time are left out");
    add_rounds(cli, o.rounds, "at least so many slices of each contender");
    cli.add_option("--L", o.points.extents, "local boxes, such as 8 or 24.12.12.12")->delimiter(',');
    cli.add_option("--bytes", o.points.bytes, "per site; 96,192 if neither these nor vectors are named")
        ->delimiter(',');
    cli.add_option("--vectors", o.points.vectors, "of coarse lattices: boxes of 2^4 and 4^4 sites, 24 B per vector")
        ->delimiter(',');
    cli.add_option("--cut", o.points.cuts, "dimensions that are cut, such as t or xt")->delimiter(',');
    cli.add_option("--layout", o.points.layouts, "appended, padded")->delimiter(',');
    cli.add_option("--threads", o.threads,
                   "numbers of threads that share a rank's exchange, such as 1,2,4; bound to cores "
                   "of their own where all ranks together have as many")
        ->delimiter(',')
        ->check(CLI::Range(1, 256));
    cli.add_option("--late", o.late_us,
                   "microseconds by which odd ranks begin each exchange late, as if they computed longer; part of the "
                   "times; not with --peer")
        ->check(CLI::Range(0.0, 1e6));
    cli.add_option("--transport", o.transport, "of ours");
    cli.add_option("--provider", o.provider, "of libfabric, for --transport ofi");
    cli.add_option("--peer", o.peers,
                   "NAME[:MODE,MODE]=COMMAND, a program that takes turns: an MPI if NAME is openmpi, mpich or one of "
                   "these with -tuned behind it, which targets are about")
        ->take_all()
        ->excludes("--late");
    cli.add_option("--json", o.json, "file of JSON lines")->check(not_empty);
    cli.add_option("--svg", o.svg, "file of a chart")->check(not_empty);
    cli.add_option("--git", o.git, "what is measured (default: $HALOCLINE_BENCH_GIT)");
    cli.add_flag("--table", o.table, "a table also where the output is no terminal");
    later_replaces_earlier(cli);
    cli.footer(about_lines);
    program.parse(cli, argc, argv);
    require_ofi_for_provider(o.transport, o.provider);
    require_distinct("--threads", o.threads);
    run(program, o);
    return 0;
}

} // namespace

int main(int argc, char** argv) { return run_bench(argc, argv, measure); }
