// SPDX-License-Identifier: Apache-2.0
// The examples of halo/*.md, and that of several fields in the project's README.md, compiled (docs.readmes compares
// them).
#include <halocline/comm/exact_sum.hpp>
#include <halocline/comm/run_job.hpp>
#include <halocline/halo/box_stencil.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/halo/sequential.hpp>
#include <halocline/halo/shell_plan.hpp>
#include <halocline/halo/stencil.hpp>
#include <halocline/halo/unpacker.hpp>

#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>

#include <omp.h>

using namespace halocline;

namespace {

using spinors = lattice::field<double>;
void compute_interior(spinors& y, const spinors& x);
void compute_boundary(spinors& y, std::span<const double> ghosts);
void use(const lattice::box& ghosts);
void use(std::span<const std::complex<double>> ghosts);
double initial(const lattice::coordinate& global_site);
std::complex<double> link(const lattice::coordinate& global_site, int element);
std::complex<double> source(const lattice::coordinate& global_site, int colour);

} // namespace

void blur(const comm::job& job, const lattice::decomposition& cut, int steps);
void diffuse(const comm::job& job, halo::stencil<double>& heat, lattice::field<double>& u, lattice::field<double>& v,
             double alpha, int steps);
double norm_of_residual(const comm::job& job, halo::stencil<double>& laplace, const lattice::field<double>& u,
                        const lattice::field<double>& rho);
void exchange_faces(const comm::job& job, const lattice::decomposition& cut, spinors& y, spinors& x);
void exchange_two(const comm::job& job, const lattice::decomposition& cut);
void exchange_inside(const comm::job& job, const lattice::decomposition& cut, const halo::ghost_widths& widths);
void exchange_appended(const comm::job& job, const lattice::decomposition& cut, const lattice::site_order* own_order);
void transpose_matrix(const comm::job& job, int rows, int columns, lattice::field<double>& a,
                      lattice::field<double>& transposed);
void exchange_packed(const comm::job& job, const lattice::decomposition& cut,
                     const std::shared_ptr<const lattice::site_order>& order,
                     const std::array<halo::block_map, lattice::faces>& projections,
                     const std::array<const lattice::field<float>, 2>& psi, std::array<lattice::field<float>, 2>& y);

void blur(const comm::job& job, const lattice::decomposition& cut, int steps) {
    halo::box_stencil<double> s(job, cut, {.name = "blur", .fields = 2}); // no ghosts where the lattice has one site
    for (std::int64_t i = 0; i < s.local_box().volume(); ++i) {
        const lattice::coordinate x = s.local_box().site(i);
        s.field(0).at(s.index(x), 0) = initial(x);
    }
    for (int n = 0; n < steps; ++n) {
        double* const next = s.field((n + 1) % 2).data();
        const auto blur = [&](const auto& site) {
            double sum = 0;
            for (int y = -1; y <= 1; ++y)
                for (int x = -1; x <= 1; ++x) sum += site.at({x, y, 0, 0});
            next[site.index()] = sum / 9;
        };
        s.start(n % 2);
        s.for_interior(blur);
        s.finish_or_throw();
        s.for_boundary(blur);
    }
}

void diffuse(const comm::job& job, halo::stencil<double>& heat, lattice::field<double>& u, lattice::field<double>& v,
             double alpha, int steps) {
#pragma omp parallel
    {
        try {
            const halo::team me{omp_get_thread_num(), omp_get_num_threads()};
            for (int n = 0; n < steps; ++n) {
                lattice::field<double>&from = n % 2 == 0 ? u : v, &to = n % 2 == 0 ? v : u;
                const auto euler = [&](const auto& site) {
                    double sum = -8 * site.here();
                    for (int mu = 0; mu < 4; ++mu) sum += site.at(mu, -1) + site.at(mu, +1);
                    to.data()[site.index()] = site.here() + alpha * sum;
                };
                heat.start(from, me); // each packs its part
                heat.for_interior(euler, me);
                if (heat.finish(me) != comm::status::ok) break; // all members leave
                heat.for_boundary(euler, me);
#pragma omp barrier // the next start() sends what all have written
            }
        } catch (...) { // such as that of a check: no exception may leave a parallel region
            std::_Exit(comm::end_by_exception(&job));
        }
    }
}

void smear(const comm::job& job, const lattice::decomposition& cut) {
    using number = std::complex<double>;
    halo::box_stencil<number, 36> links(job, cut, {.name = "links", .fields = 1, .shape = halo::shell::faces});
    halo::box_stencil<number, 3> psi(job, cut, {.name = "psi", .shape = halo::shell::faces});
    for (std::int64_t i = 0; i < psi.local_box().volume(); ++i) {
        const lattice::coordinate x = psi.local_box().site(i);
        for (int k = 0; k < 36; ++k) links.field(0).at(links.index(x), k) = link(x, k); // row-major U_x, U_y, U_z, U_t
        for (int a = 0; a < 3; ++a) psi.field(0).at(psi.index(x), a) = source(x, a);
    }
    links.apply(0, [](const auto&) {}); // once: their ghosts stay
    const number* const u = links.field(0).data();
    number* const next = psi.field(1).data();
    psi.apply(0, [&](const auto& n) {
        for (int a = 0; a < 3; ++a) {
            number sum = 0; // over mu of U_mu(x) psi(x + mu) + U_mu(x - mu)^dagger psi(x - mu)
            for (int mu = 0; mu < 4; ++mu) {
                lattice::coordinate back{};
                back[mu] = -1;
                const number *const here = u + 36 * n.index() + 9 * mu, *const there = u + 36 * n.index(back) + 9 * mu;
                for (int b = 0; b < 3; ++b)
                    sum += here[3 * a + b] * n.at(mu, +1, b) + std::conj(there[3 * b + a]) * n.at(mu, -1, b);
            }
            next[3 * n.index() + a] = 0.5 * n.here(a) + 0.0625 * sum;
        }
    });
}

double norm_of_residual(const comm::job& job, halo::stencil<double>& laplace, const lattice::field<double>& u,
                        const lattice::field<double>& rho) {
    comm::exact_sum residual(job); // once
    const auto add = halo::sequential([&](const auto& site) {
        double r = rho.values()[site.index()] - 8 * site.here();
        for (int mu = 0; mu < 4; ++mu) r += site.at(mu, -1) + site.at(mu, +1);
        residual.add(r * r);
    });
    laplace.start(u);
    laplace.for_interior(add);
    laplace.finish_or_throw();
    laplace.for_boundary(add);
    const double norm = std::sqrt(residual.sum_or_throw()); // over all ranks; then it begins anew
    return norm;
}

void exchange_faces(const comm::job& job, const lattice::decomposition& cut, spinors& y, spinors& x) {
    halo::plan plan(job, cut, halo::options_for(x, {.name = "spinors"})); // its bytes per site and its site order
    plan.start(x);          // copies the faces of x straight to the neighbours
    compute_interior(y, x); // meanwhile
    plan.finish_or_throw(); // or finish(), which returns a status
    const lattice::face t_high{3, lattice::side::high};
    compute_boundary(y, plan.ghosts<double>(t_high)); // empty if t is not cut
}

void exchange_two(const comm::job& job, const lattice::decomposition& cut) {
    const lattice::coordinate local = cut.local_box(job.rank()).extents;
    lattice::field<std::complex<double>> a(local, 3), b(local, 3);
    halo::plan both(job, cut, halo::options_for(a, {.name = "a and b", .fields = 2})); // a site of b is like one of a
    both.start(std::array{&a, &b});
    both.finish_or_throw();
    const auto of_b = both.ghosts<std::complex<double>>({3, lattice::side::high}, 1); // behind t-high, of field 1
    use(of_b); // number c of ghost i is of_b[3 * i + c]; empty if t is not cut
}

void exchange_inside(const comm::job& job, const lattice::decomposition& cut, const halo::ghost_widths& widths) {
    const lattice::coordinate grown = halo::grown(cut.local_box(job.rank()), widths).extents;
    lattice::field<double> u(grown, 1, &job.memory()), v(grown, 1, &job.memory()); // in the slab: written in place
    halo::shell_plan shells(job, cut, {.widths = widths, .shape = halo::shell::box}, {halo::bind(u), halo::bind(v)});
    shells.start(1);                                                      // exchanges v
    for (const int g : shells.completed()) use(shells.ghosts()[g].sites); // ghosts that are here already
    shells.finish_or_throw();
}

void exchange_appended(const comm::job& job, const lattice::decomposition& cut, const lattice::site_order* own_order) {
    const halo::shell_options shape{.layout = halo::ghost_layout::appended, .shape = halo::shell::box, .reverse = true};
    const halo::appended_sites sites(cut, job.rank(), shape); // numbered: own sites, then faces, edges, corners
    lattice::field<float> f(sites.order(*own_order), 24, &job.memory());
    halo::shell_plan plan(job, cut, shape, {halo::bind(f)});
    f.at(sites.ghosts({1, 0, 0, -1})->first, 0) = 1; // the first ghost behind the edge x-high, t-low; component 0
    plan.start_reverse();                            // adds the ghosts to the sites that they are copies of
    plan.finish_or_throw();
}

void transpose_matrix(const comm::job& job, int rows, int columns, lattice::field<double>& a,
                      lattice::field<double>& transposed) {
    const auto begin = [&](int size, int rank) { return size * rank / job.ranks(); };
    const auto part = [&](int size, int rank) { return begin(size, rank + 1) - begin(size, rank); };
    const int me = job.rank(), mine = part(columns, me);
    const lattice::coordinate here{columns, part(rows, me), 1, 1}; // my rows of the matrix
    std::vector<halo::transfer> sends, receives;
    for (int r = 0; r < job.ranks(); ++r) {
        const lattice::box columns_of_r{{begin(columns, r), 0, 0, 0}, {part(columns, r), here[1], 1, 1}};
        sends.push_back({r, 0, {}, {halo::box_in(columns_of_r, here)}});
        // The same order of sites in the transposed matrix: neighbours in a row of the old one are `rows` sites apart.
        receives.push_back({r, 0, {}, {{begin(rows, r), {mine, part(rows, r), 1, 1}, {rows, 1, 0, 0}}}});
    }
    halo::region_plan transpose(job, sends, receives, {{{halo::view(a)}, {halo::view(transposed)}}});
    transpose.start();
    transpose.finish_or_throw();
}

void exchange_packed(const comm::job& job, const lattice::decomposition& cut,
                     const std::shared_ptr<const lattice::site_order>& order,
                     const std::array<halo::block_map, lattice::faces>& projections,
                     const std::array<const lattice::field<float>, 2>& psi, std::array<lattice::field<float>, 2>& y) {
    const halo::packer_options half{.components = 24, .format = halo::message_format::half, .projections = projections};
    const auto bytes = halo::packer<float>::bytes_per_site(half);
    halo::plan plan(job, cut, {.name = "psi", .bytes_per_site = bytes, .fields = 2}); // two right-hand sides a message
    const halo::packer<float> pack(plan, half, order);
    const halo::unpacker<float> unpack(plan, halo::expansion_of(half), order);
    plan.start(pack.of(std::array{&psi[0], &psi[1]}));
    plan.finish_or_throw();
    unpack.add(plan, std::array{&y[0], &y[1]}); // y(x) += (1 - gamma_mu) psi(x + mu), (1 + gamma_mu) psi(x - mu)
}

namespace {

void compute_interior(spinors&, const spinors&) {}
void compute_boundary(spinors&, std::span<const double>) {}
void use(const lattice::box&) {}
void use(std::span<const std::complex<double>>) {}
double initial(const lattice::coordinate& x) { return x[0]; }
std::complex<double> link(const lattice::coordinate&, int element) { return element % 9 % 4 == 0 ? 1 : 0; }
std::complex<double> source(const lattice::coordinate& x, int colour) { return x[0] + colour; }

} // namespace
