// SPDX-License-Identifier: Apache-2.0
// What do lanes cost when a face is packed or unpacked?   scripts/bench.sh lane_copy [--seconds S]
// Faces of an L^4 box of 4^4 blocks, 24 floats per site, stored [outer][component][W]: halo::site_copy compared with a
// loop that moves word by word and with memcpy of the same number of bytes. Slices alternate, medians count; the source
// is written before each step, untimed. One JSON line per point; GB/s are of payload.
#include "support/command_line.hpp"
#include "support/json_line.hpp"
#include "support/run_facts.hpp"
#include "support/statistics.hpp"

#include <halocline/halo/detail/site_copy.hpp>
#include <halocline/lattice/field.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>

namespace {

using namespace halocline;

constexpr int components = 24;

/// Packing as one writes it by hand, with the lane width known to the compiler.
template <int W>
void pack_words(const std::vector<std::int32_t>& positions, const float* from, float* to) {
    for (const std::int32_t p : positions) {
        const float* x = from + p / W * W * components + p % W;
        for (int c = 0; c < components; ++c) *to++ = x[c * W];
    }
}
template <int W>
void unpack_words(const std::vector<std::int32_t>& positions, const float* from, float* to) {
    for (const std::int32_t p : positions) {
        float* x = to + p / W * W * components + p % W;
        for (int c = 0; c < components; ++c) x[c * W] = *from++;
    }
}

double nanoseconds(const std::function<void()>& step, lattice::field<float>& x, std::vector<float>& message,
                   int steps) {
    double sum = 0;
    for (int i = 0; i < steps; ++i) {
        for (float& v : x.values()) v += 1;
        for (float& v : message) v += 1;
        const auto begin = std::chrono::steady_clock::now();
        step();
        sum += std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
    }
    return sum / steps;
}

template <int W>
int compare(int extent, int mu, double seconds) {
    const lattice::coordinate e{extent, extent, extent, extent};
    const auto order = lattice::site_order::blocked({{}, e}, e, {4, 4, 4, 4}, W);
    std::vector<std::int64_t> from;
    for (std::int64_t s = 0; s < order->volume(); ++s)
        if (lattice::lexicographic_coordinate(s, e)[mu] == 0) from.push_back(order->position(s));
    std::vector<std::int64_t> to(from.size());
    std::iota(to.begin(), to.end(), 0);
    const std::vector<std::int32_t> positions(from.begin(), from.end());
    const halo::site_copy pack(from, W, to, 1), unpack(to, 1, from, W);
    const halo::site_shape shape{components, sizeof(float), halo::scalar::float32};
    const auto bytes = [](auto* p) {
        return reinterpret_cast<
            std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(p)>>, const std::byte*, std::byte*>>(p);
    };

    lattice::field<float> x(order, components), y(order, components);
    for (std::size_t i = 0; i < x.values().size(); ++i) x.values()[i] = static_cast<float>(i);
    std::vector<float> message(from.size() * components), other(message.size()), source(message.size());
    pack_words<W>(positions, x.data(), other.data());
    pack.copy(bytes(x.data()), bytes(message.data()), shape);
    const bool same = message == other;
    unpack.copy(bytes(std::as_const(message).data()), bytes(y.data()), shape);
    pack_words<W>(positions, y.data(), other.data());
    if (!same || message != other) {
        std::fprintf(stderr, "site_copy and the loop differ at L = %d, dimension %d, W = %d\n", extent, mu, W);
        return 1;
    }

    const std::array<std::function<void()>, 5> steps{
        [&] { pack_words<W>(positions, x.data(), message.data()); },
        [&] { pack.copy(bytes(x.data()), bytes(message.data()), shape); },
        [&] { unpack_words<W>(positions, message.data(), x.data()); },
        [&] { unpack.copy(bytes(std::as_const(message).data()), bytes(x.data()), shape); },
        [&] { std::memcpy(message.data(), x.data(), message.size() * sizeof(float)); }};
    constexpr int rounds = 15;
    const double share = seconds * 1e9 / (steps.size() * rounds * 2) / 4;
    const int repetitions = static_cast<int>(std::clamp(share / nanoseconds(steps[0], x, message, 3), 1.0, 1e9));
    std::array<std::vector<double>, 5> times;
    for (int r = 0; r < rounds; ++r)
        for (std::size_t k = 0; k < steps.size(); ++k)
            times[k].push_back(nanoseconds(steps[k], x, message, repetitions));
    const auto ns = [&](std::size_t k) { return bench::median(times[k]); };
    const double size = static_cast<double>(message.size() * sizeof(float));
    bench::json_line line;
    line.add("bench", "lane_copy")
        .add("L", extent)
        .add("face", std::string(1, lattice::dimension_name[mu]))
        .add("W", W);
    line.add("kB", size / 1000).add("pack_words_GBs", size / ns(0)).add("pack_GBs", size / ns(1));
    line.add("unpack_words_GBs", size / ns(2)).add("unpack_GBs", size / ns(3)).add("memcpy_GBs", size / ns(4));
    line.add("pack_speedup", ns(0) / ns(1)).add("unpack_speedup", ns(2) / ns(3)).add("pack_over_memcpy", ns(1) / ns(4));
    std::puts(line.add(bench::facts_of_process().line()).text().c_str());
    return 0;
}

int measure_all(app::program& program, int argc, const char* const* argv) {
    CLI::App cli("What do lanes cost when a face is packed or unpacked?");
    double seconds = 12;
    bench::add_seconds(cli, seconds, "of the whole run, about");
    program.parse(cli, argc, argv);
    int failures = 0;
    for (const int extent : {8, 16})
        for (const int mu : {0, 3})
            failures += compare<4>(extent, mu, seconds / 12) + compare<8>(extent, mu, seconds / 12) +
                        compare<16>(extent, mu, seconds / 12);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int main(int argc, char** argv) { return bench::run_bench(argc, argv, measure_all); }
