// SPDX-License-Identifier: Apache-2.0
// heat4d in plain MPI, for comparison with diffuse.cpp: persistent requests over derived datatypes, ghosts in the
// array.
// usage: mpirun -n N heat4d_mpi X Y Z T STEPS ALPHA     (N must cut the lattice evenly)
#include <mpi.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <numbers>
#include <string>
#include <vector>

using coordinate = std::array<int, 4>;

template <class Initial>
std::vector<double> diffuse(MPI_Comm grid, const coordinate& local, const coordinate& origin, double alpha, int steps,
                            const Initial& initial) {
    coordinate padded; // one ghost layer on each side; x runs fastest
    std::array<std::int64_t, 4> stride;
    std::int64_t volume = 1;
    for (int mu = 0; mu < 4; ++mu) {
        padded[mu] = local[mu] + 2;
        stride[mu] = volume;
        volume *= padded[mu];
    }
    std::vector<double> u(volume), next(volume);
    const auto for_box = [&](const coordinate& first, const coordinate& last, const auto& visit) {
        for (int t = first[3]; t < last[3]; ++t)
            for (int z = first[2]; z < last[2]; ++z)
                for (int y = first[1]; y < last[1]; ++y)
                    for (int x = first[0]; x < last[0]; ++x) visit(coordinate{x, y, z, t});
    };
    const auto index = [&](const coordinate& x) { // ghosts at -1 and local[mu]
        std::int64_t i = 0;
        for (int mu = 0; mu < 4; ++mu) i += (x[mu] + 1) * stride[mu];
        return i;
    };
    for_box({0, 0, 0, 0}, local, [&](const coordinate& x) {
        u[index(x)] = initial({x[0] + origin[0], x[1] + origin[1], x[2] + origin[2], x[3] + origin[3]});
    });

    // Two arrays take turns, so there are two sets of 16 persistent requests.
    std::array<std::array<MPI_Request, 16>, 2> requests;
    for (int turn = 0; turn < 2; ++turn) {
        double* array = turn == 0 ? u.data() : next.data();
        for (int mu = 0; mu < 4; ++mu) {
            int low, high;
            MPI_Cart_shift(grid, mu, 1, &low, &high);
            const auto layer = [&](int position) { // of thickness one; MPI's C order has the last dimension fastest
                std::array<int, 4> sizes, subsizes, starts;
                for (int nu = 0; nu < 4; ++nu) {
                    sizes[3 - nu] = padded[nu];
                    subsizes[3 - nu] = nu == mu ? 1 : local[nu];
                    starts[3 - nu] = nu == mu ? position + 1 : 1;
                }
                MPI_Datatype type;
                MPI_Type_create_subarray(4, sizes.data(), subsizes.data(), starts.data(), MPI_ORDER_C, MPI_DOUBLE,
                                         &type);
                MPI_Type_commit(&type);
                return type;
            };
            MPI_Datatype types[] = {layer(0), layer(local[mu] - 1), layer(-1), layer(local[mu])};
            MPI_Request* r = &requests[turn][4 * mu];
            MPI_Send_init(array, 1, types[0], low, 2 * mu, grid, &r[0]);
            MPI_Send_init(array, 1, types[1], high, 2 * mu + 1, grid, &r[1]);
            MPI_Recv_init(array, 1, types[2], low, 2 * mu + 1, grid, &r[2]);
            MPI_Recv_init(array, 1, types[3], high, 2 * mu, grid, &r[3]);
            for (MPI_Datatype& type : types) MPI_Type_free(&type);
        }
    }

    double *from = u.data(), *to = next.data();
    const auto euler = [&](const coordinate& x) {
        const std::int64_t i = index(x);
        double sum = -8 * from[i];
        for (int mu = 0; mu < 4; ++mu) sum += from[i - stride[mu]] + from[i + stride[mu]];
        to[i] = from[i] + alpha * sum;
    };
    for (int n = 0; n < steps; ++n) {
        MPI_Startall(16, requests[n % 2].data());
        coordinate first{1, 1, 1, 1}, last{local[0] - 1, local[1] - 1, local[2] - 1, local[3] - 1};
        for_box(first, last, euler); // the interior
        MPI_Waitall(16, requests[n % 2].data(), MPI_STATUSES_IGNORE);
        for (int mu = 3; mu >= 0; --mu) { // the boundary: two slabs per dimension, each site once
            first[mu] = 0;
            last[mu] = 1;
            for_box(first, last, euler);
            first[mu] = std::max(1, local[mu] - 1);
            last[mu] = local[mu];
            for_box(first, last, euler);
            first[mu] = 0;
        }
        std::swap(from, to);
    }
    for (auto& set : requests)
        for (MPI_Request& r : set) MPI_Request_free(&r);

    std::vector<double> result;
    for_box({0, 0, 0, 0}, local, [&](const coordinate& x) { result.push_back(from[index(x)]); });
    return result;
}

/// Is the whole text a number?
template <class Number>
bool read_number(const char* text, Number& value) {
    const char* const end = text + std::strlen(text);
    const auto [rest, failure] = std::from_chars(text, end, value);
    return failure == std::errc{} && rest == end;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const auto end_with = [&](int code, const std::string& text) {
        if (rank == 0) std::fprintf(code == 0 ? stdout : stderr, "%s\n", text.c_str());
        MPI_Finalize();
        return code;
    };
    const auto refuse = [&](const std::string& why) { return end_with(2, "heat4d_mpi: error: " + why); };
    const std::string usage = "usage: heat4d_mpi X Y Z T STEPS ALPHA";
    if (argc == 2 && std::string(argv[1]) == "--help")
        return end_with(0, usage + "\nDiffusion on a torus of X x Y x Z x T sites in plain MPI, for comparison with "
                                   "heat4d. ALPHA is stable up to 1/8.");
    if (argc != 7) return refuse(std::to_string(argc - 1) + " arguments; " + usage);
    coordinate global, dims{}, periods{1, 1, 1, 1}, position, local, origin;
    MPI_Dims_create(ranks, 4, dims.data());
    constexpr int most_extent = 1'000'000;
    constexpr double most_sites = 1e12; // of a rank
    double sites = 1;
    for (int mu = 0; mu < 4; ++mu) {
        if (!read_number(argv[1 + mu], global[mu]) || global[mu] < 1 || global[mu] > most_extent)
            return refuse("extent '" + std::string(argv[1 + mu]) + "': expected a whole number from 1 to " +
                          std::to_string(most_extent));
        if (global[mu] % dims[mu] != 0) return refuse("the lattice is not a multiple of MPI_Dims_create's grid");
        sites *= global[mu] / dims[mu];
    }
    if (sites > most_sites) return refuse("the lattice is too large: more than 1e12 sites on each rank");
    int steps;
    if (!read_number(argv[5], steps) || steps < 0)
        return refuse("STEPS '" + std::string(argv[5]) + "': expected a whole number >= 0");
    double alpha;
    if (!read_number(argv[6], alpha) || !(alpha >= 0 && alpha <= 0.125))
        return refuse("ALPHA '" + std::string(argv[6]) +
                      "': expected a number from 0 to 0.125, beyond which no step is stable");
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 4, dims.data(), periods.data(), 0, &grid);
    MPI_Cart_coords(grid, rank, 4, position.data());
    for (int mu = 0; mu < 4; ++mu) {
        local[mu] = global[mu] / dims[mu];
        origin[mu] = position[mu] * local[mu];
    }
    const auto mode = [&](const coordinate& x) {
        double phase = 0;
        for (int mu = 0; mu < 4; ++mu) phase += static_cast<double>(x[mu]) / global[mu];
        return std::cos(2 * std::numbers::pi * phase);
    };
    std::vector<double> u;
    try {
        u = diffuse(grid, local, origin, alpha, steps, mode);
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "heat4d_mpi: rank %d: out of memory; take more ranks or a smaller lattice\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }

    std::uint64_t checksum = 0, mine = 0; // like heat4d's: bits of u(x) times an odd number of x, modulo 2^64
    double amplitude[2], sums[2] = {0, 0};
    std::size_t i = 0;
    for (int t = origin[3]; t < origin[3] + local[3]; ++t)
        for (int z = origin[2]; z < origin[2] + local[2]; ++z)
            for (int y = origin[1]; y < origin[1] + local[1]; ++y)
                for (int x = origin[0]; x < origin[0] + local[0]; ++x, ++i) {
                    const std::uint64_t site =
                        x +
                        std::uint64_t(global[0]) * (y + std::uint64_t(global[1]) * (z + std::uint64_t(global[2]) * t));
                    mine += std::bit_cast<std::uint64_t>(u[i]) * (2 * site + 1);
                    sums[0] += u[i] * mode({x, y, z, t});
                    sums[1] += mode({x, y, z, t}) * mode({x, y, z, t});
                }
    MPI_Reduce(&mine, &checksum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(sums, amplitude, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        std::printf("{\"amplitude\":%.17g,\"checksum\":\"%016llx\"}\n", amplitude[0] / amplitude[1],
                    static_cast<unsigned long long>(checksum));
    MPI_Finalize();
    return 0;
}
