// SPDX-License-Identifier: Apache-2.0
// What tests of packers and unpackers share in addition to the oracle: one rank alone, two on every SIMD target and in
// every site order, and the input of the plain loops.
#pragma once

#include "pack_oracle.hpp"
#include "pack_reference.hpp"
#include "small_job.hpp"

#include <halocline_test/allocation_counter.hpp>
#include <halocline_test/refusal.hpp>
#include <halocline_test/simd_targets.hpp>

#include <algorithm>

namespace halocline_test {

using comm::status;
using halo::block_map;
using halo::message_format;
using halo::packer;
using halo::packer_options;
using lattice::decomposition;
using lattice::face;
using lattice::side;
namespace reference = halo::reference;

inline constexpr int components = spinor_components;
inline const std::complex<double> twist = std::polar(1.0, 0.7);
/// Relative error of a half, and of a half whose value was rounded to a float before.
inline const double half_error = std::ldexp(1, -11), half_error_of_floats = half_error + std::ldexp(1, -22);

/// Makes a packer or unpacker of floats on 3 ranks cut in t, with this edge in t: not every rank has each face, and only
/// those at the edge multiply. Each rank must say the same; "": all accept it.
template <class Packer, class Options>
void expect_the_same_on_all_ranks(const Options& o, lattice::boundary edge, const std::string& said) {
    for (const std::string& text : refusals(3, [&](const comm::job& j) {
             halo::plan_options options{.name = "p", .bytes_per_site = Packer::bytes_per_site(o)};
             options.boundaries[3] = edge;
             const halo::plan plan(j, decomposition::even({4, 4, 4, 6}, {1, 1, 1, 3}), options);
             Packer(plan, o);
         }))
        EXPECT_EQ(text, said.empty() ? "accepted" : said);
}

/// One rank with a box of 4^4.
struct alone {
    decomposition cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    comm::job job = comm::job::single(small_job());
    std::shared_ptr<const lattice::site_order> order = lattice::site_order::lexicographic({4, 4, 4, 4});

    [[nodiscard]] halo::plan plan(std::size_t bytes_per_site, int fields = 1) const {
        return {job, cut, {.name = "p", .bytes_per_site = bytes_per_site, .self_exchange = true, .fields = fields}};
    }
};

/// The largest error returned by error(job, cut, order), over SIMD targets and site orders, on 2 ranks with a cut in t.
template <class Error>
double largest_error(Error&& error) {
    const auto cut = decomposition::even({4, 4, 2, 8}, {1, 1, 1, 2});
    double largest = 0;
    on_each_simd_target([&] {
        for (const int lanes : {0, 1, 2, 4, 8, 16}) {
            std::array<double, 2> errors{};
            run(2, [&](const comm::job& j) {
                errors[j.rank()] = error(j, cut, order_of(cut.local_box(j.rank()), cut.global(), lanes));
            });
            largest = std::max({largest, errors[0], errors[1]});
        }
    });
    return largest;
}

/// `count` fields with different values: those of field f from component first_component + 100 f on.
template <class T>
std::vector<lattice::field<T>> several(int count, const std::shared_ptr<const lattice::site_order>& order,
                                       const lattice::box& local, const coordinate& global, int first_component = 0) {
    std::vector<lattice::field<T>> fields;
    for (int f = 0; f < count; ++f) fields.push_back(filled<T>(order, local, global, first_component + 100 * f));
    return fields;
}

/// The reals of a site, by global coordinate.
inline std::vector<double> site_at(const coordinate& site, const coordinate& global, int first_component = 0) {
    std::vector<double> reals;
    for (int c = 0; c < components; ++c) reals.push_back(value_at(site, global, first_component + c));
    return reals;
}

/// The phase by which the field continues behind f.
inline std::complex<double> phase_behind(const decomposition& cut, int rank, face f,
                                         const std::array<std::complex<double>, dimensions>& phases) {
    const std::complex<double> phase = cut.wraps(rank, f) ? phases[f.mu] : 1;
    return f.end == side::low ? std::conj(phase) : phase;
}

inline const block_map& of_face(const std::array<block_map, lattice::faces>& maps, face f) { return maps[f.index()]; }

/// The error of every member of `what` after it was moved from.
inline std::string moved_from(const std::string& what) {
    return "a " + what + " is used after it was moved from: it can be assigned to or destroyed, nothing else";
}

} // namespace halocline_test
