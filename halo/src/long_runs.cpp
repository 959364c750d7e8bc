// SPDX-License-Identifier: Apache-2.0
#include "long_runs.hpp"

#include <string_view>

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace halocline::halo {
namespace {

bool is_zen5_or_later() {
#ifdef __x86_64__
    unsigned eax = 0, name[3]{}, rest = 0;
    if (__get_cpuid(0, &eax, &name[0], &name[2], &name[1]) == 0 ||
        std::string_view(reinterpret_cast<const char*>(name), sizeof name) != "AuthenticAMD" ||
        __get_cpuid(1, &eax, &rest, &rest, &rest) == 0)
        return false;
    const unsigned family = (eax >> 8 & 0xf) + (eax >> 20 & 0xff);
    constexpr unsigned zen5 = 26;
    return family >= zen5;
#else
    return false;
#endif
}

} // namespace

const std::size_t long_run_bytes = is_zen5_or_later() ? 4096 : 8192;
const bool short_runs_are_gathered = is_zen5_or_later();

} // namespace halocline::halo
