// SPDX-License-Identifier: Apache-2.0
// Plans with ranks as processes: the body of PlanOnRanks.GhostEqualsNeighbourFace, over shared memory under
// halocline-run, over MPI under an MPI launcher, or over the transport in HALOCLINE_TEST_TRANSPORT.
#include "pack_oracle.hpp"
#include "random_exchanges.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

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

/// A plan over a cut in t whose two faces together are of so many bytes, checked over some exchanges.
struct faces_in_t {
    faces_in_t(const comm::job& job, const coordinate& extents, halo::plan_options options)
        : j(job), cut(lattice::decomposition::even({extents[0], extents[1], extents[2], extents[3] * j.ranks()},
                                                   {1, 1, 1, j.ranks()})),
          order(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents)), p(j, cut, std::move(options)) {}

    [[nodiscard]] std::uint64_t messages() const {
        std::uint64_t sum = 0;
        for (const comm::transport_counts& traffic : p.statistics().by_transport) sum += traffic.messages;
        return sum;
    }
    /// Messages of this rank in an exchange, whose ghosts are checked.
    std::uint64_t exchange(std::uint64_t epoch) {
        const std::uint64_t before = messages();
        const int components = static_cast<int>(p.options().bytes_per_site / sizeof(double));
        lattice::field<double> x(order, components);
        fill_with_oracle(x, cut, j.rank(), epoch);
        const std::vector<const lattice::field<double>*> same(static_cast<std::size_t>(p.options().fields), &x);
        p.start(same);
        EXPECT_EQ(p.finish(), comm::status::ok);
        EXPECT_EQ(wrong_ghosts<double>(p, cut, components, epoch), 0) << "rank " << j.rank();
        for (const halo::plan_message& m : p.messages()) {
            const auto ghosts = p.ghosts<double>(m.where);
            for (int f = 1; f < p.options().fields; ++f)
                EXPECT_TRUE(std::ranges::equal(p.ghosts<double>(m.where, f), ghosts)) << "field " << f;
        }
        return messages() - before;
    }

    const comm::job& j;
    lattice::decomposition cut;
    std::shared_ptr<const lattice::site_order> order;
    halo::plan p;
};

/// Faces of a plan over a cut in t.
std::size_t faces_of_plan(const comm::job& j) { return j.ranks() == 1 ? 0 : 2; }
/// Messages of an exchange of short ones: one where both go to one rank over a network.
std::uint64_t messages_of_short_faces(const comm::job& j) {
    return j.ranks() == 2 && transport() != "shm" ? 1 : faces_of_plan(j);
}

TEST(PlanOfProcesses, ShortFacesOfOneNeighbourTravelAsOneMessage) {
    const comm::job& j = the_job();
    const halo::plan_options plain{.bytes_per_site = 16}, several{.bytes_per_site = 8, .fields = 3},
        sealed{.bytes_per_site = 24, .checksums = true},
        uneven{.widths = {{0, 0, 0, 1}, {0, 0, 0, 2}}, .bytes_per_site = 8},
        one_sided{.widths = {{0, 0, 0, 1}, {0, 0, 0, 0}}, .bytes_per_site = 8};
    for (const halo::plan_options& options : {plain, several, sealed, uneven, one_sided}) {
        faces_in_t faces(j, {3, 1, 3, 2}, options);
        ASSERT_EQ(faces.p.messages().size(), faces_of_plan(j));
        for (std::uint64_t epoch = 1; epoch <= 5; ++epoch)
            EXPECT_EQ(faces.exchange(epoch), messages_of_short_faces(j)) << faces.p.describe();
        const bool told = faces.p.describe().find("in one message with t-low") != std::string::npos;
        EXPECT_EQ(told, messages_of_short_faces(j) == 1) << faces.p.describe();
        const bool sent = faces.p.describe().find("packed, then sent: no shared memory\n") != std::string::npos;
        EXPECT_EQ(sent, transport() != "shm" && j.ranks() > 1) << faces.p.describe();
    }
}

TEST(PlanOfProcesses, LongFacesOfOneNeighbourTravelApart) {
    const comm::job& j = the_job();
    faces_in_t most(j, {8, 8, 8, 1}, {.bytes_per_site = 64}), longer(j, {8, 8, 8, 1}, {.bytes_per_site = 72});
    EXPECT_EQ(most.exchange(1), messages_of_short_faces(j)) << "64 KiB together";
    EXPECT_EQ(longer.exchange(1), faces_of_plan(j)) << "72 KiB together";
}

TEST(PlanOfProcesses, FacesThatTravelTogetherHaveTargetsOfTheirOwnAndComeTogether) {
    const comm::job& j = the_job();
    faces_in_t faces(j, {3, 1, 3, 2}, {.bytes_per_site = 8});
    halo::plan& p = faces.p;
    for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
        lattice::field<double> x(faces.order, 1);
        fill_with_oracle(x, faces.cut, j.rank(), epoch);
        for (const halo::plan_message& m : p.messages())
            for (std::size_t i = 0; i < m.send_sites.size(); ++i)
                std::memcpy(p.target(m.where) + 8 * i, &x.at(m.send_sites[i], 0), 8);
        p.start_filled();
        std::size_t completed = 0;
        while (!p.test()) completed += p.completed().size();
        ASSERT_EQ(p.finish(), comm::status::ok);
        completed += p.completed().size();
        EXPECT_EQ(completed, faces_of_plan(j));
        EXPECT_EQ(wrong_ghosts<double>(p, faces.cut, 1, epoch), 0) << "rank " << j.rank();
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
