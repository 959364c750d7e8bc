// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <dlfcn.h>
#include <type_traits>

namespace halocline::comm {
namespace {

verbs_library load() {
    verbs_library l;
    void* const handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        l.why_not = std::string("libibverbs can't be loaded: ") + dlerror();
        return l;
    }
    const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
        if (function == nullptr && l.why_not.empty()) l.why_not = std::string("libibverbs.so.1 has no ") + name;
    };
    find(l.fork_init, "ibv_fork_init");
    find(l.get_device_list, "ibv_get_device_list");
    find(l.free_device_list, "ibv_free_device_list");
    find(l.get_device_name, "ibv_get_device_name");
    find(l.open_device, "ibv_open_device");
    find(l.close_device, "ibv_close_device");
    find(l.query_device, "ibv_query_device");
    find(l.query_port, "ibv_query_port");
    find(l.query_gid_ex, "_ibv_query_gid_ex");
    find(l.alloc_pd, "ibv_alloc_pd");
    find(l.dealloc_pd, "ibv_dealloc_pd");
    find(l.create_cq, "ibv_create_cq");
    find(l.destroy_cq, "ibv_destroy_cq");
    find(l.create_qp, "ibv_create_qp");
    find(l.modify_qp, "ibv_modify_qp");
    find(l.destroy_qp, "ibv_destroy_qp");
    find(l.reg_mr, "ibv_reg_mr");
    find(l.dereg_mr, "ibv_dereg_mr");
    find(l.wc_status_str, "ibv_wc_status_str");
    return l;
}

} // namespace

const verbs_library& verbs_library::loaded() {
    static const verbs_library l = load();
    return l;
}

} // namespace halocline::comm
