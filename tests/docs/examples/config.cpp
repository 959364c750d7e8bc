// SPDX-License-Identifier: Apache-2.0
// What config/README.md shows.
#include <halocline/config/reader.hpp>

#include <vector>

namespace docs_examples {

using namespace halocline;

int settings() {
    struct run {
        int steps = 100;
        double beta = 6.0;
    };
    const std::vector<config::key<run>> keys{
        config::integer_key<run>({"hmc", "steps", "trajectories"}, &run::steps, 1, 1'000'000),
        config::real_key<run>({"hmc", "beta", "coupling"}, &run::beta, 0, 1e3, "a number from 0 to 1000"),
    };
    config::reader<run> reader(keys);
    reader.read_file("run.toml", config::other_sections::left_alone); // [comm] may stand there too: job's
    reader.read_environment();                                        // HALOCLINE_HMC_STEPS=50
    const run r = reader.values();
    return r.steps;
}

} // namespace docs_examples
