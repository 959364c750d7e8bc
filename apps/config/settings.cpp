// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/settings.hpp>

#include <halocline/comm/option_keys.hpp>

namespace halocline::app {

comm::job_options job_options_of(const settings& s) {
    comm::job_options options = s.job;
    options.fixed = true;
    return options;
}

void settings_reader::read_surroundings(const std::string& config, config::other_sections others) {
    try {
        read_file_of_environment();
        if (!config.empty()) read_file(config, others);
        read_environment();
    } catch (const config_error& e) {
        for (const char* other : {".kappa", ".mass", "_KAPPA", "_MASS"})
            if (e.key().ends_with(other)) throw config_error(e.key(), std::string(e.what()) + "; " + mass_convention);
        throw;
    }
}

void settings_reader::check() const {
    const bool tiled = values().tile != lattice::coordinate{1, 1, 1, 1};
    if (tiled && values().gauge.empty())
        throw config_error("lattice.tile", as_given("lattice.tile") + ": repeats a gauge file; without --gauge use "
                                                                      "--grid to repeat the demo configuration");
    const std::string& named_by = origin("lattice.gauge");
    if (values().gauge.empty() && named_by.starts_with("HALOCLINE_")) // as a script's variable that was never set
        throw config_error("lattice.gauge", named_by + " is empty: it names no gauge file; unset it to solve on the "
                                                       "demo configuration");
    comm::require_known_transports(values().job.transports, as_given("comm.transports"));
}

} // namespace halocline::app
