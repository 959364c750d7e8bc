// SPDX-License-Identifier: Apache-2.0
#include "source_file.hpp"

#include <halocline/lattice/random.hpp>
#include <halocline_test/run_command.hpp>

#include <fstream>

namespace coarse_solve_test {

using namespace halocline::lattice;

void write_source(const std::string& path, const coordinate& extents, double factor) {
    field<double> b(site_order::lexicographic(extents), spinor_components);
    for (std::int64_t site = 0; site < b.volume(); ++site) {
        site_random random(3, 1, static_cast<std::uint64_t>(site));
        for (int c = 0; c < spinor_components; ++c) b.at(site, c) = factor * random.normal();
    }
    spinor_writer writer(path, extents, {{"field", "random source"}});
    writer.create();
    writer.finish(writer.write({{0, 0, 0, 0}, extents}, b));
}

void damage_sources(const std::string& source, const std::string& folder) {
    const std::string whole = halocline_test::read_text(source);
    const auto data = static_cast<std::size_t>(open_spinor_file(source).data_offset);
    const auto write = [&](const std::string& name, const std::string& content) {
        std::ofstream(folder + name, std::ios::binary) << content;
    };
    write("truncated.lime", whole.substr(0, data + 1000));

    std::string flipped = whole;
    flipped[data + 5] = static_cast<char>(flipped[data + 5] ^ 1);
    write("flipped.lime", flipped);

    std::string nan = whole.substr(0, data + 256 * 192); // cut before the checksum's record
    const std::size_t site = 1 + 4 * (2 + 4 * 3);
    nan.replace(data + site * 192 + 8, 2, "\x7f\xf8");
    write("nan.lime", nan);

    std::string propagator = whole;
    propagator.replace(propagator.find("<spins>4"), 8, "<spins>1");
    write("propagator.lime", propagator);
}

} // namespace coarse_solve_test
