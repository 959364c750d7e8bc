// SPDX-License-Identifier: Apache-2.0
// For what another job of halocline-run on this machine may hold for a while: processors (processor_claims.hpp).
#pragma once

#include <chrono>
#include <thread>

namespace halocline_test {

/// The first answer of `ask` that is as expected; the last, if none is within about a minute.
template <class Ask, class Answer>
Answer eventually(Ask ask, const Answer& expected) {
    Answer answer = ask();
    for (int more = 240; more > 0 && !(answer == expected); --more) {
        std::this_thread::sleep_for(std::chrono::milliseconds(250));
        answer = ask();
    }
    return answer;
}

} // namespace halocline_test
