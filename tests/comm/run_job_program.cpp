// SPDX-License-Identifier: Apache-2.0
// A program that ends as its first word says (run_job_test.cpp).
#include <halocline/base/error.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/run_job.hpp>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <unistd.h>

int main(int argc, char** argv) {
    using namespace halocline;
    const std::string how = argc > 1 ? argv[1] : "";
    if (how == "returns nothing") return comm::run_job([](const comm::job& j) { j.barrier(); });
    return comm::run_job([&](const comm::job& j) {
        const bool here = j.rank() == 1;
        if (how == "returns") return here ? 7 : 0;
        if (how == "all throw bad input") throw input_error("no grid of " + std::to_string(j.ranks()) + " ranks");
        if (how == "one throws bad input" && here) throw input_error("not here");
        if (how == "one throws" && here) throw std::runtime_error("out of luck");
        if (how == "one throws a number" && here) throw 42;
        if (how == "one dies" && here) _exit(9);
        if (how == "one throws out of a sum" || how == "one throws bad input out of a sum") {
            comm::global_sum sum(j); // says farewell before main() knows of the exception
            double one = 1;
            if (here && how == "one throws out of a sum") throw std::runtime_error("out of luck");
            if (here) throw input_error("not here");
            sum.sum_or_throw({&one, 1});
        }
        if (how == "all are told")
            j.collectively([&] {
                if (here) throw input_error("a missing file");
            });
        if (how == "different calls" && here) comm::global_sum(j, 1);
        j.barrier();
        return 0;
    });
}
