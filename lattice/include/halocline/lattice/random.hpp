// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers keyed by (seed, stream, global site): each site has its own sequence, the same for every
// decomposition, whatever the order of the sites.  Philox-4x32-10; Ref: [Salmon2011].
#pragma once

#include <array>
#include <cstdint>

namespace halocline::lattice {

/// Four independent 32-bit words for one key and counter.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// A stream of numbers for one site.  Two streams with different (seed, stream, site) are independent.
class site_random {
  public:
    site_random(std::uint64_t seed, std::uint32_t stream, std::uint64_t global_site)
        : seed_(seed), stream_(stream), site_(global_site) {}
    /// Next 32 bits.
    std::uint32_t bits();
    /// Uniform in [0, 1), 53 bits.
    double uniform();
    /// Normal with mean 0 and variance 1 (Box-Muller, both values used).
    double normal();

  private:
    std::uint64_t seed_;
    std::uint32_t stream_;
    std::uint64_t site_;
    std::uint32_t block_ = 0;
    int used_ = 4;
    std::array<std::uint32_t, 4> words_{};
    bool have_normal_ = false;
    double normal_ = 0;
};

} // namespace halocline::lattice
