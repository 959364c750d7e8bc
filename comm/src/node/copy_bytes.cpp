// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/detail/copy_bytes.hpp>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace halocline::comm {
namespace {

bool is_zen5_or_later() noexcept {
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(0, &a, &b, &c, &d) == 0 || b != signature_AMD_ebx || c != signature_AMD_ecx ||
        d != signature_AMD_edx || __get_cpuid(1, &a, &b, &c, &d) == 0)
        return false;
    const unsigned family = (a >> 8 & 0xf) + (a >> 20 & 0xff);
    constexpr unsigned zen5 = 26;
    return family >= zen5;
#else
    return false;
#endif
}

} // namespace

bool moves_skip_waits() noexcept {
    static const bool known = is_zen5_or_later();
    return known;
}

} // namespace halocline::comm
