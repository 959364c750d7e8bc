// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/settings.hpp>

namespace halocline::app {

comm::job_options job_options_of(const settings& s) {
    comm::job_options options;
    options.transports = s.transports;
    options.ofi_provider = s.ofi_provider;
    options.mpi = s.mpi;
    options.verbs = {.device = s.verbs_device,
                     .port = s.verbs_port,
                     .gid_index = s.verbs_gid_index,
                     .mtu = s.verbs_mtu,
                     .largest_write = static_cast<std::size_t>(s.verbs_largest_write),
                     .inline_bytes = s.verbs_inline_bytes};
    options.bootstrap = s.bootstrap;
    options.network = s.network;
    options.link_timeout = s.link_timeout;
    options.deadline = s.deadline;
    options.checksums = s.checksums;
    options.slab_bytes = static_cast<std::size_t>(s.slab_gib * 1073741824.0);
    options.spin_polls = s.spin_polls;
    options.path = s.path;
    return options;
}

comm::job_options job_options_of_environment(const std::string& transport_flag) {
    settings_reader reader;
    reader.read_environment();
    if (!transport_flag.empty()) reader.set("comm.transports", transport_flag, "--transport");
    return job_options_of(reader.values());
}

} // namespace halocline::app
