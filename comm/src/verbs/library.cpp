// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include "network/loaded_functions.hpp"

namespace halocline::comm {
namespace {

verbs_library load() {
    verbs_library l;
    loaded_functions from("libibverbs.so.1", l.why_not);
    from.find(l.fork_init, "ibv_fork_init");
    from.find_if_there(l.is_fork_initialized, "ibv_is_fork_initialized");
    from.find(l.get_device_list, "ibv_get_device_list");
    from.find(l.free_device_list, "ibv_free_device_list");
    from.find(l.get_device_name, "ibv_get_device_name");
    from.find(l.open_device, "ibv_open_device");
    from.find(l.close_device, "ibv_close_device");
    from.find(l.query_device, "ibv_query_device");
    from.find(l.query_port, "ibv_query_port");
    from.find(l.query_gid_ex, "_ibv_query_gid_ex");
    from.find(l.alloc_pd, "ibv_alloc_pd");
    from.find(l.dealloc_pd, "ibv_dealloc_pd");
    from.find(l.create_cq, "ibv_create_cq");
    from.find(l.destroy_cq, "ibv_destroy_cq");
    from.find(l.create_qp, "ibv_create_qp");
    from.find(l.modify_qp, "ibv_modify_qp");
    from.find(l.destroy_qp, "ibv_destroy_qp");
    from.find(l.reg_mr, "ibv_reg_mr");
    from.find(l.dereg_mr, "ibv_dereg_mr");
    from.find(l.wc_status_str, "ibv_wc_status_str");
    return l;
}

} // namespace

const verbs_library& verbs_library::loaded() {
    static const verbs_library l = load();
    return l;
}

} // namespace halocline::comm
