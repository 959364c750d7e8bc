// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include "../loaded_functions.hpp"

namespace halocline::comm {
namespace {

ofi_library load() {
    ofi_library l;
    loaded_functions from("libfabric.so.1", l.why_not);
    from.find(l.getinfo, "fi_getinfo");
    from.find(l.freeinfo, "fi_freeinfo");
    from.find(l.dupinfo, "fi_dupinfo");
    from.find(l.fabric, "fi_fabric");
    from.find(l.strerror, "fi_strerror");
    from.find(l.version, "fi_version");
    return l;
}

} // namespace

const ofi_library& ofi_library::loaded() {
    static const ofi_library l = load();
    return l;
}

} // namespace halocline::comm
