// SPDX-License-Identifier: Apache-2.0
// Plans with ranks as processes: the body of PlanOnRanks.GhostEqualsNeighbourFace, over shared memory under
// halocline-run, over MPI under an MPI launcher, or over the transport in HALOCLINE_TEST_TRANSPORT.
#include "pack_oracle.hpp"
#include "random_exchanges.hpp"

#include <chrono>
#include <cstdlib>
#include <thread>

using namespace halocline_test;

namespace {
std::string transport() {
    if (const char* named = std::getenv("HALOCLINE_TEST_TRANSPORT")) return named;
    const bool under_mpi = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMI_SIZE") != nullptr;
    return under_mpi ? "mpi" : "shm";
}

/// One job for the whole program, because a launcher can be joined only once.
const comm::job& the_job() {
    static const comm::job j = [] {
        comm::job_options options;
        options.transports = {transport()};
        return comm::job::from_environment(options);
    }();
    return j;
}

/// The ghosts of each message, field by field, as numbers: copied, because the next exchange overwrites them.
std::vector<std::vector<float>> unpacked_ghosts(const halo::plan& p, const halo::packer<float>& pack, int reals) {
    std::vector<std::vector<float>> ghosts;
    for (const halo::plan_message& m : p.messages()) {
        const auto of_field = static_cast<std::size_t>(reals * m.ghost_sites);
        ghosts.emplace_back(static_cast<std::size_t>(p.options().fields) * of_field);
        for (int f = 0; f < p.options().fields; ++f)
            pack.unpack(p.ghost(m.where, f), 0, m.ghost_sites,
                        ghosts.back().data() + static_cast<std::size_t>(f) * of_field);
    }
    return ghosts;
}

using spinor = std::array<float, spinor_components>;

/// Adds to a site what comes back to it through one face: adjoint(P) P x, twice the projector.
void add_adjoint_of_projection(const halo::block_map& projection, const lattice::field<float>& x, std::int64_t site,
                               spinor& y) {
    for (const auto& row : projection.rows)
        for (const auto& to : row)
            for (const auto& from : row)
                for (int c = 0; c < 3; ++c) {
                    const std::complex<double> in(x.at(site, 6 * from.block + 2 * c),
                                                  x.at(site, 6 * from.block + 2 * c + 1)),
                        out = std::conj(to.coefficient) * from.coefficient * in;
                    const auto re = static_cast<std::size_t>(6 * to.block + 2 * c);
                    y[re] += static_cast<float>(out.real());
                    y[re + 1] += static_cast<float>(out.imag());
                }
}
} // namespace

TEST(PlanOfProcesses, UsesTheTransportOfItsLauncher) {
    const comm::job& j = the_job();
    if (j.ranks() == 1) {
        EXPECT_EQ(j.transport(), "self");
    } else {
        EXPECT_EQ(j.transport(), transport()) << j.launcher();
    }
}

/// The same cases each time, and half as many new ones.
void exchange_old_and_new_cases(kinds k, unsigned same_each_time) {
    const comm::job& j = the_job();
    const unsigned seed = seed_of_run(j);
    if (j.rank() == 0) std::printf("HALOCLINE_TEST_SEED=%u\n", seed);
    exchange_random_cases(j, k, same_each_time, 60);
    if (!testing::Test::HasFailure()) exchange_random_cases(j, k, seed, 30);
}

TEST(PlanOfProcesses, GhostEqualsNeighbourFace) { exchange_old_and_new_cases(kinds::slots, 1964); }

TEST(PlanOfProcesses, PaddedGhostsAreCopiesAndAllElseStays) { exchange_old_and_new_cases(kinds::shells, 1931); }

// Two fields of half-spinors per message, there and back again. Whole numbers, so that sums are exact.
TEST(PlanOfProcesses, PackedNeighboursComeBackToTheirSites) {
    const comm::job& j = the_job();
    const auto cut = lattice::decomposition::even({4, 4, 2, 4 * j.ranks()}, {1, 1, 1, j.ranks()});
    const lattice::box local = cut.local_box(j.rank());
    for (const int lanes : {0, 1, 4, 16})
        for (const auto format : {halo::message_format::as_stored, halo::message_format::half}) {
            const halo::packer_options o{.components = spinor_components,
                                         .format = format,
                                         .projections = half_spinors(),
                                         .phases = {1, 1, 1, -1}};
            const auto order = order_of(local, cut.global(), lanes);
            halo::plan p(
                j, cut, {.bytes_per_site = halo::packer<float>::bytes_per_site(o), .self_exchange = true, .fields = 2});
            const halo::packer<float> pack(p, o, order);
            const halo::unpacker<float> unpack(p, adjoint_of(o), order);
            std::vector<lattice::field<float>> x, y;
            for (int f = 0; f < 2; ++f) {
                x.emplace_back(order, spinor_components);
                y.emplace_back(order, spinor_components);
                for (std::int64_t s = 0; s < local.volume(); ++s)
                    for (int c = 0; c < spinor_components; ++c)
                        x.back().at(s, c) =
                            static_cast<float>(static_cast<int>((s + 7 * c + 31 * f + j.rank()) % 17) - 8);
            }
            p.start(pack.of(std::array<const lattice::field<float>*, 2>{&x[0], &x[1]}));
            ASSERT_EQ(p.finish(), comm::status::ok);
            start_with(p, pack, unpacked_ghosts(p, pack, halo::packer<float>::reals_per_site(o)));
            ASSERT_EQ(p.finish(), comm::status::ok);
            unpack.add(p, std::array<lattice::field<float>*, 2>{&y[0], &y[1]});

            // adjoint(H) H x: a contribution from each face through which a site leaves.
            for (std::size_t f = 0; f < 2; ++f)
                for (std::int64_t s = 0; s < local.volume(); ++s) {
                    const coordinate at = lattice::lexicographic_coordinate(s, local.extents);
                    spinor expected{};
                    for (const halo::plan_message& m : p.messages()) {
                        const int mu = m.where.mu;
                        if (at[mu] == (m.where.end == lattice::side::low ? 0 : local.extents[mu] - 1))
                            add_adjoint_of_projection(o.projections[m.where.index()], x[f], s, expected);
                    }
                    for (int c = 0; c < spinor_components; ++c)
                        ASSERT_EQ(y[f].at(s, c), expected[c])
                            << "rank " << j.rank() << " lanes " << lanes << " site " << s << " component " << c;
                }
        }
}

TEST(PlanOfProcesses, GhostsStayRightOverManyExchanges) {
    const comm::job& j = the_job();
    const auto cut = lattice::decomposition::even({2, 2, 3, 2 * j.ranks() + 1}, {1, 1, 1, j.ranks()});
    const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
    halo::plan p(j, cut, {.bytes_per_site = 16, .self_exchange = true, .order = order});
    lattice::field<double> x(order, 2);

    for (std::uint64_t epoch = 1; epoch <= 1000; ++epoch) {
        fill_with_oracle(x, cut, j.rank(), epoch);
        p.start(x);
        ASSERT_EQ(p.finish(), comm::status::ok);
        ASSERT_EQ(wrong_ghosts<double>(p, cut, 2, epoch), 0) << "rank " << j.rank() << " epoch " << epoch;
    }
}

/// Ranks of one thread wait for exchange b, and those of two for a, for longer than it takes to be looked at; then the
/// second threads start b. Only ranks of two threads know that. Networks are for one thread at a time.
TEST(PlanOfProcesses, ThreadsThatStartLateStopNoJob) {
    const comm::job& j = the_job();
    ASSERT_EQ(transport(), "shm");
    const auto cut = lattice::decomposition::even({2, 2, 2, 2 * j.ranks()}, {1, 1, 1, j.ranks()});
    const lattice::field<double> x(cut.local_box(j.rank()).extents, 2);
    halo::plan a(j, cut, {.name = "a", .bytes_per_site = 16}), b(j, cut, {.name = "b", .bytes_per_site = 16});
    const auto exchange = [&](halo::plan& p) {
        p.start(x);
        EXPECT_EQ(p.finish(), comm::status::ok) << p.options().name << ", rank " << j.rank();
    };
    if (j.rank() % 2 == 0) {
        exchange(b);
        exchange(a);
    } else {
        std::jthread late([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            exchange(b);
        });
        exchange(a);
    }
}
