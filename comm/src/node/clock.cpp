// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/clock.hpp>

#include <thread>

namespace halocline::comm {
namespace {

using steady = std::chrono::steady_clock;

struct reading {
    std::uint64_t ticks = comm::ticks();
    steady::time_point time = steady::now();
};

const reading program_start; // usually long enough ago that the first conversion need not wait

double measure() {
    reading now;
    while (now.time - program_start.time < std::chrono::milliseconds(5)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        now = reading{};
    }
    return std::chrono::duration<double>(now.time - program_start.time).count() /
           static_cast<double>(now.ticks - program_start.ticks);
}

} // namespace

double seconds_per_tick() noexcept {
    static const double value = measure();
    return value;
}

} // namespace halocline::comm
