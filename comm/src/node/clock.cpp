// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/clock.hpp>

#include <thread>

namespace halocline::comm {
namespace {

using steady = std::chrono::steady_clock;

/// Both clocks read at once: the quickest of several attempts. A rank that loses its core between the two readings has
/// them milliseconds apart.
struct reading {
    std::uint64_t ticks = 0;
    steady::time_point time;

    reading() {
        std::uint64_t least = ~std::uint64_t{0};
        for (int attempt = 0; attempt < 8; ++attempt) {
            const std::uint64_t before = comm::ticks();
            const steady::time_point now = steady::now();
            const std::uint64_t took = comm::ticks() - before;
            if (took >= least) continue;
            least = took;
            ticks = before + took / 2;
            time = now;
        }
    }
};

const reading program_start; // usually long enough ago that the first conversion need not wait

double measure() {
    // Static objects may be made before that one: they begin here.
    const reading begin = program_start.ticks != 0 ? program_start : reading();
    reading now;
    while (now.time - begin.time < std::chrono::milliseconds(5)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        now = reading{};
    }
    return std::chrono::duration<double>(now.time - begin.time).count() / static_cast<double>(now.ticks - begin.ticks);
}

} // namespace

double seconds_per_tick() noexcept {
    static const double value = measure();
    return value;
}

} // namespace halocline::comm
