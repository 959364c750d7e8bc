// SPDX-License-Identifier: Apache-2.0
// How programs say what ran: in words, and as JSON. The library of Json is the caller's.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline_app/main.hpp>

#include <string>

namespace halocline::app {

/// "on 2 ranks 1.1.1.2 over shm"
std::string where_it_runs(const comm::job& j, const lattice::decomposition& cut);

/// What every result says of its run. `program` is the program's name, whatever its file is called.
/// Json: nlohmann::json, or its ordered_json.
template <class Json>
Json head_of_result(const char* program, const comm::job& j, const lattice::decomposition& cut) {
    Json head;
    head["program"] = program;
    head["version"] = version();
    head["launcher"] = j.launcher();
    head["ranks"] = j.ranks();
    head["rank_grid"] = cut.rank_grid();
    head["transport"] = j.transport();
    return head;
}

/// On several lines if `indent` is not negative. Names of files need not be UTF-8: what is not gets replaced.
template <class Json>
std::string text_of_result(const Json& result, int indent) {
    return result.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace halocline::app
