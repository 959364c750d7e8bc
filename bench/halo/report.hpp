// SPDX-License-Identifier: Apache-2.0
// What bench/halo reports about its points: lines of JSON; a table of the best of each kind with ratios; a chart.
//
// Each point and contender, identified by the keys up to "layout", has one line of "bench":"halo": the exchange alone,
// by which targets are judged, in the mode of the machine that most slices of the point saw. Everything else is in
// lines of "bench":"halo_detail": whole steps, and the other mode, as "measure" and "machine" state. A "mode" that ends
// with "-tuned" is an MPI with settings other than those it was installed with. Times are means of batches, of up to
// 20 000 steps each: "us_p95" and "us_min" are of these means, not of single steps, whose extremes are further out. A
// mode of which a contender saw fewer than 3 slices has neither lines nor cells of it (support/rounds.hpp). Points that
// were not measured have a line of "bench":"halo_left_out".
#pragma once

#include "halo/timed_slice.hpp"
#include "support/rounds.hpp"
#include "support/run_facts.hpp"

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace halocline::bench {

/// A contender with what distinguishes it in the report.
struct entry {
    contender who;
    std::string settings{}; ///< for an MPI: "installed" or "tuned"
    int threads = 1;
    bool foreign = false; ///< neither of this program nor an MPI
};

class report {
  public:
    /// transport: of ours.  json, table: destinations, or null.
    report(int ranks, std::string transport, run_facts facts, std::FILE* json, std::FILE* table)
        : ranks_(ranks), transport_(std::move(transport)), facts_(std::move(facts)), json_(json), table_(table) {}

    void add(const point& p, const std::vector<entry>& entries, const std::vector<outcome>& outcomes);
    /// A point that is not measured, and why.
    void leave_out(const point& p, const char* why);
    /// A chart of the medians of a step, in the mode of the machine that most slices saw.
    [[nodiscard]] std::string svg() const;

  private:
    void write_json(const char* bench, const point& p, const entry& e, const outcome& seen, std::size_t measure,
                    outcome::speed speed);
    void write_lines(const point& p, const std::vector<entry>& entries, const std::vector<outcome>& outcomes,
                     outcome::speed most_seen);
    void write_head();
    /// A row for each number of threads. Only that of one thread is compared with the others, who have one, too.
    void write_rows(const point& p, const std::vector<entry>& entries, const std::vector<outcome>& outcomes,
                    std::size_t measure, outcome::speed speed);
    void write_overhead(const point& p, const std::vector<entry>& entries, const std::vector<outcome>& outcomes,
                        outcome::speed speed);

    int ranks_;
    std::string transport_;
    run_facts facts_;
    std::FILE *json_, *table_;
    bool head_written_ = false;
    // By panel and category: medians by name.
    std::map<std::string, std::vector<std::pair<std::string, std::map<std::string, double>>>> chart_;
};

} // namespace halocline::bench
