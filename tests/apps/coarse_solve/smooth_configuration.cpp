// SPDX-License-Identifier: Apache-2.0
#include "smooth_configuration.hpp"

#include <halocline/lattice/random.hpp>

#include <array>
#include <complex>

namespace coarse_solve_test {

void write_smooth(const std::string& path, const halocline::lattice::coordinate& extents) {
    using namespace halocline::lattice;
    using complex = std::complex<double>;
    using matrix = std::array<complex, 9>;
    const auto product = [](const matrix& a, const matrix& b) {
        matrix c{};
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j)
                for (int k = 0; k < 3; ++k)
                    c[std::size_t(3 * i + j)] += a[std::size_t(3 * i + k)] * b[std::size_t(3 * k + j)];
        return c;
    };
    gauge_field links(site_order::lexicographic(extents), gauge_components);
    for (std::int64_t site = 0; site < links.volume(); ++site)
        for (int mu = 0; mu < 4; ++mu) {
            site_random random(77, static_cast<std::uint32_t>(mu), static_cast<std::uint64_t>(site));
            matrix h{};
            for (int i = 0; i < 3; ++i)
                for (int k = i + 1; k < 3; ++k) {
                    h[std::size_t(3 * i + k)] = 0.2 * complex(random.normal(), random.normal());
                    h[std::size_t(3 * k + i)] = -std::conj(h[std::size_t(3 * i + k)]);
                }
            const double a = 0.2 * random.normal(), b = 0.2 * random.normal();
            h[0] = complex(0, a);
            h[4] = complex(0, b);
            h[8] = complex(0, -a - b);
            matrix u{1, 0, 0, 0, 1, 0, 0, 0, 1}, term = u;
            for (int n = 1; n < 30; ++n) {
                term = product(term, h);
                for (auto& z : term) z /= n;
                for (std::size_t k = 0; k < 9; ++k) u[k] += term[k];
            }
            for (int k = 0; k < 9; ++k) {
                links.at(site, 18 * mu + 2 * k) = u[std::size_t(k)].real();
                links.at(site, 18 * mu + 2 * k + 1) = u[std::size_t(k)].imag();
            }
        }
    const box local{{0, 0, 0, 0}, extents};
    gauge_writer writer(path, gauge_format::ildg, extents);
    writer.create();
    const auto totals = writer.write(local, links);
    // ILDG records no plaquette, so any value will do here.
    writer.finish(totals, 0);
}

} // namespace coarse_solve_test
