// SPDX-License-Identifier: Apache-2.0
// The examples of halo/README.md, compiled (docs.readmes compares them).
#include <halocline/halo/plan.hpp>
#include <halocline/halo/shell_plan.hpp>

using namespace halocline;

namespace {

using spinors = lattice::field<double>;
void compute_interior(spinors& y, const spinors& x);
void compute_boundary(spinors& y, const std::byte* ghosts, std::int64_t sites);
void use(const lattice::box& ghosts);

} // namespace

void exchange_faces(const comm::job& job, const lattice::decomposition& cut, spinors& y, spinors& x);
void exchange_inside(const comm::job& job, const lattice::decomposition& cut, const halo::ghost_widths& widths);
void exchange_appended(const comm::job& job, const lattice::decomposition& cut, const lattice::site_order* own_order);

void exchange_faces(const comm::job& job, const lattice::decomposition& cut, spinors& y, spinors& x) {
    halo::plan plan(job, cut, {.name = "spinors", .bytes_per_site = 24 * sizeof(double), .order = x.shared_order()});
    plan.start(x);          // copies the faces of x straight to the neighbours
    compute_interior(y, x); // meanwhile
    plan.finish_or_throw(); // or finish(), which returns a status
    const lattice::face t_high{3, lattice::side::high};
    if (const int m = plan.message_of(t_high); m >= 0) // the face is exchanged
        compute_boundary(y, plan.ghost(t_high), plan.messages()[m].ghost_sites);
}

void exchange_inside(const comm::job& job, const lattice::decomposition& cut, const halo::ghost_widths& widths) {
    const auto order = lattice::site_order::lexicographic(halo::grown(cut.local_box(job.rank()), widths).extents);
    lattice::field<double> u(order, 1, &job.memory()), v(order, 1, &job.memory()); // in the slab: written in place
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

namespace {

void compute_interior(spinors&, const spinors&) {}
void compute_boundary(spinors&, const std::byte*, std::int64_t) {}
void use(const lattice::box&) {}

} // namespace
