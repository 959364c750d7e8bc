// SPDX-License-Identifier: Apache-2.0
#include "handles.hpp"

#include <halocline/comm/bad_input.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/slab.hpp>

#include <cstdio>
#include <span>
#include <sstream>

using namespace halocline;
using c::guarded, c::present, c::with;

struct halocline_sum {
    comm::global_sum value;
};

namespace {

constexpr std::size_t alignment = 128;

comm::job_options options_of(const halocline_job_options* given) {
    comm::job_options options;
    if (given == nullptr) return options;
    if (given->transports != nullptr) {
        options.transports.clear();
        std::istringstream in(given->transports);
        for (std::string name; std::getline(in, name, ',');) {
            name.erase(0, name.find_first_not_of(' '));
            name.erase(name.find_last_not_of(' ') + 1);
            options.transports.push_back(name);
        }
    }
    if (given->ofi_provider != nullptr) options.ofi_provider = given->ofi_provider;
    if (given->deadline_ms < 0) {
        throw input_error("deadline_ms = " + std::to_string(given->deadline_ms) + "; milliseconds, or 0 for a minute");
    }
    if (given->deadline_ms > 0) options.deadline = std::chrono::milliseconds(given->deadline_ms);
    options.slab_bytes = given->slab_bytes;
    if (given->mpi_mode != nullptr) options.mpi = comm::mpi_mode_of(given->mpi_mode);
    options.fixed = given->fixed != 0;
    return options;
}

/// The options, and a place for a job; `share` tells ranks that were given better ones.
template <class Share>
comm::job_options checked_arguments(const halocline_job_options* options, halocline_job** job, Share&& share) {
    if (job != nullptr) *job = nullptr;
    try {
        present(job, "job");
        return options_of(options);
    } catch (const input_error& e) {
        share(e.what());
        throw;
    }
}

void keep(halocline_job** job, const comm::job& made) { *job = new halocline_job{made, made.transport()}; }

} // namespace

void halocline_say_bad_input(const char* program, const char* what) {
    if (what == nullptr) what = halocline_error();
    const int rank = comm::launched_rank();
    if (rank == 0) {
        std::fprintf(stderr, "%s: %s\n", program, what);
    } else if (c::is_unshared(what)) {
        std::fprintf(stderr, "%s: rank %d: %s\n", program, rank, what);
    } else {
        comm::wait_for_rank_0_to_report();
    }
}

halocline_status halocline_job_from_environment(const halocline_job_options* options, halocline_job** job) {
    return guarded([&] {
        keep(job, comm::job::from_environment(
                      checked_arguments(options, job, [](const char* what) { comm::share_bad_input(what); })));
    });
}

halocline_status halocline_job_from_mpi(const void* communicator, size_t bytes, const halocline_job_options* options,
                                        halocline_job** job) {
    return guarded([&] {
        if (job != nullptr) *job = nullptr;
        if (communicator == nullptr)
            throw input_error("'communicator' is NULL: the address of an MPI_Comm is expected");
        const comm::job_options choices = checked_arguments(
            options, job, [&](const char* what) { comm::share_bad_input(what, communicator, bytes); });
        keep(job, comm::job::from_mpi_handle(communicator, bytes, choices));
    });
}

void halocline_job_free(halocline_job* job) { delete job; }
int halocline_job_rank(const halocline_job* job) { return job->value.rank(); }
int halocline_job_ranks(const halocline_job* job) { return job->value.ranks(); }
const char* halocline_job_transport(const halocline_job* job) { return job->transport.c_str(); }

halocline_status halocline_job_barrier(halocline_job* job) {
    return guarded([&] { present(job, "job").value.barrier(); });
}

void halocline_job_progress(halocline_job* job) { job->value.progress(); }

void halocline_job_abort(halocline_job* job, const char* why) {
    if (job != nullptr) job->value.abort(why != nullptr ? why : "no reason was given");
}

halocline_status halocline_allocate(halocline_job* job, size_t bytes, void** memory) {
    return guarded([&] {
        present(memory, "memory") = nullptr;
        *memory = present(job, "job").value.memory().allocate(bytes, alignment);
    });
}

void halocline_deallocate(halocline_job* job, void* memory, size_t bytes) {
    if (memory != nullptr) guarded([&] { job->value.memory().deallocate(memory, bytes, alignment); });
}

halocline_status halocline_sum_create(halocline_job* job, int max_values, halocline_sum** sum) {
    return guarded([&] {
        if (sum != nullptr) *sum = nullptr;
        const comm::job& j = present(job, "job").value;
        j.collectively([&] { present(sum, "sum"); }); // so that no rank waits for one that has no place for it
        *sum = new halocline_sum{comm::global_sum(j, max_values)};
    });
}

void halocline_sum_free(halocline_sum* sum) { delete sum; }

namespace {

/// Performs one of a sum's calls that return a status.
template <class Call>
halocline_status summed(halocline_sum& sum, Call&& call) noexcept {
    const comm::status s = call(sum.value);
    if (s == comm::status::ok) return HALOCLINE_OK;
    const auto fail = [&] { sum.value.sum_or_throw({}); }; // a bad status is permanent: throws the exception for it
    // Of what ranks don't agree on the exception knows whose mistake it is.
    return s == comm::status::wrong_data ? guarded(fail) : c::told_by(s, fail);
}

/// Sums, or takes the maximum, in one call.
template <class Call>
halocline_status summed_at_once(halocline_sum* sum, double* values, size_t count, Call&& call) noexcept {
    return with(sum, "sum", [&](halocline_sum& s) {
        if (values != nullptr || count == 0)
            return summed(s, [&](comm::global_sum& value) { return call(value, std::span(values, count)); });
        // Takes part without values: ranks that have some learn at once that these differ, instead of waiting.
        (void)call(s.value, std::span<double>());
        return guarded([&] { present(values, "values"); });
    });
}

} // namespace

halocline_status halocline_sum_over_ranks(halocline_sum* sum, double* values, size_t count) {
    return summed_at_once(sum, values, count, [](comm::global_sum& s, std::span<double> v) { return s(v); });
}

halocline_status halocline_maximum_over_ranks(halocline_sum* sum, double* values, size_t count) {
    return summed_at_once(sum, values, count, [](comm::global_sum& s, std::span<double> v) { return s.maximum(v); });
}

void halocline_sum_start(halocline_sum* sum, const double* values, size_t count) {
    sum->value.start({values, values != nullptr ? count : 0}); // otherwise finish() refuses a different number
}

int halocline_sum_test(halocline_sum* sum) { return sum->value.test() ? 1 : 0; }

halocline_status halocline_sum_finish(halocline_sum* sum, double* values, size_t count) {
    return with(sum, "sum", [&](halocline_sum& s) {
        if (values == nullptr && count > 0)
            return guarded([&] { present(values, "values"); }); // it can still be finished
        return summed(s, [&](comm::global_sum& value) { return value.finish({values, count}); });
    });
}
