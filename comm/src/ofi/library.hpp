// SPDX-License-Identifier: Apache-2.0
// The functions of libfabric that are not inline calls through its objects (those are the data path).
#pragma once

#include <rdma/fabric.h>

#include <memory>
#include <string>

namespace halocline::comm {

struct ofi_library {
    decltype(&::fi_getinfo) getinfo = nullptr;
    decltype(&::fi_freeinfo) freeinfo = nullptr;
    decltype(&::fi_dupinfo) dupinfo = nullptr;
    decltype(&::fi_fabric) fabric = nullptr;
    decltype(&::fi_strerror) strerror = nullptr;
    decltype(&::fi_version) version = nullptr;
    std::string why_not; ///< empty if all were found

    /// libfabric.so.1, loaded at the first call and never unloaded: providers leave threads and handlers behind.
    static const ofi_library& loaded();
};

struct ofi_info_deleter {
    void operator()(fi_info* i) const { ofi_library::loaded().freeinfo(i); }
};
using ofi_info_list = std::unique_ptr<fi_info, ofi_info_deleter>;

/// False if libfabric still uses it; then it can be closed again later.
template <class T>
bool close_object(T*& object) noexcept {
    if (object != nullptr && fi_close(&object->fid) != 0) return false;
    object = nullptr;
    return true;
}

} // namespace halocline::comm
