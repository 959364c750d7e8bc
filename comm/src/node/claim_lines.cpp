// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/detail/claim_lines.hpp>
#include <halocline/comm/detail/line_pairs.hpp>

#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace halocline::comm {
namespace {

bool is_made_by_intel() {
#if defined(__x86_64__)
    unsigned most = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0, &most, &b, &c, &d) != 0 && b == signature_INTEL_ebx && c == signature_INTEL_ecx &&
           d == signature_INTEL_edx;
#else
    return false;
#endif
}

} // namespace

const bool detail::claims_by_prefetch = is_made_by_intel();
const bool lines_come_in_pairs = is_made_by_intel();

std::size_t largest_claimed() {
    const long told = sysconf(_SC_LEVEL2_CACHE_SIZE); // 0 if the machine doesn't say
    const std::size_t cache_bytes = told > 0 ? static_cast<std::size_t>(told) : std::size_t{1} << 20;
    return cache_bytes / 2;
}

} // namespace halocline::comm
