// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/block_map.hpp>

#include <halocline/base/error.hpp>

namespace halocline::halo {

block_map adjoint(const block_map& map, int blocks) {
    if (map.empty()) return {};
    block_map result{map.block_reals, std::vector<std::vector<block_map::term>>(static_cast<std::size_t>(blocks))};
    check_map(map, blocks * map.block_reals, "adjoint of a map: ");
    for (std::size_t r = 0; r < map.rows.size(); ++r)
        for (const block_map::term& t : map.rows[r])
            result.rows[t.block].push_back({static_cast<int>(r), std::conj(t.coefficient)});
    return result;
}

block_map with_phase(block_map map, std::complex<double> phase, int reals) {
    if (phase == 1.0) return map;
    if (map.empty()) map = {reals, {{{0, 1}}}};
    for (auto& row : map.rows)
        for (block_map::term& t : row) t.coefficient *= phase;
    return map;
}

void check_map(const block_map& map, int reals, const std::string& who) {
    const auto fail = [&](const std::string& what) { throw input_error(who + what); };
    if (map.block_reals < 1 || reals % map.block_reals != 0)
        fail("blocks of " + std::to_string(map.block_reals) + " reals do not divide a site of " +
             std::to_string(reals));
    for (const auto& row : map.rows)
        for (const block_map::term& t : row) {
            if (t.block < 0 || t.block >= reals / map.block_reals)
                fail("block " + std::to_string(t.block) + " is not one of the " +
                     std::to_string(reals / map.block_reals) + " of a site");
            if (t.coefficient.imag() != 0 && map.block_reals % 2 != 0)
                fail("a complex coefficient needs blocks of pairs (re, im), not of " + std::to_string(map.block_reals) +
                     " reals");
        }
}

} // namespace halocline::halo
