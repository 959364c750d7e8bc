// SPDX-License-Identifier: Apache-2.0
// The functions of libibverbs that are not inline calls through a device's context (those are ibv_post_send,
// ibv_post_recv and ibv_poll_cq: the data path).
#pragma once

#include <infiniband/verbs.h>

#include <string>

namespace halocline::comm {

struct verbs_library {
    decltype(&::ibv_fork_init) fork_init = nullptr;
    int (*is_fork_initialized)() = nullptr; ///< returns an ibv_fork_status; nullptr before libibverbs 1.13
    decltype(&::ibv_get_device_list) get_device_list = nullptr;
    decltype(&::ibv_free_device_list) free_device_list = nullptr;
    decltype(&::ibv_get_device_name) get_device_name = nullptr;
    decltype(&::ibv_open_device) open_device = nullptr;
    decltype(&::ibv_close_device) close_device = nullptr;
    decltype(&::ibv_query_device) query_device = nullptr;
    decltype(&::ibv_query_port) query_port = nullptr;
    decltype(&::_ibv_query_gid_ex) query_gid_ex = nullptr;
    decltype(&::ibv_alloc_pd) alloc_pd = nullptr;
    decltype(&::ibv_dealloc_pd) dealloc_pd = nullptr;
    decltype(&::ibv_create_cq) create_cq = nullptr;
    decltype(&::ibv_destroy_cq) destroy_cq = nullptr;
    decltype(&::ibv_create_qp) create_qp = nullptr;
    decltype(&::ibv_modify_qp) modify_qp = nullptr;
    decltype(&::ibv_destroy_qp) destroy_qp = nullptr;
    decltype(&::ibv_reg_mr) reg_mr = nullptr;
    decltype(&::ibv_dereg_mr) dereg_mr = nullptr;
    decltype(&::ibv_wc_status_str) wc_status_str = nullptr;
    std::string why_not; ///< empty if all were found

    /// libibverbs.so.1, loaded at the first call and never unloaded: its drivers stay in use until exit.
    static const verbs_library& loaded();
};

} // namespace halocline::comm
