// SPDX-License-Identifier: Apache-2.0
// A rank without memory for its fields. Each rank is a thread, and the memory of fields is this program's own.
#include <halocline/amg/solver.hpp>
#include <halocline/comm/out_of_memory.hpp>
#include <halocline/dirac/reference_operator.hpp>
#include <halocline/lattice/huge_pages.hpp>
#include <halocline_test/global_fields.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <new>
#include <string>

namespace {

/// Allocations that this thread still gets before one fails; negative: none fails.
thread_local int left = -1;

class scarce_memory final : public std::pmr::memory_resource {
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        if (left >= 0 && left-- == 0) throw std::bad_alloc();
        return ::operator new (bytes, std::align_val_t{alignment});
    }
    void do_deallocate(void* p, std::size_t, std::size_t alignment) override {
        ::operator delete (p, std::align_val_t{alignment});
    }
    [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

} // namespace

/// Takes the place of the library's.
std::pmr::memory_resource* halocline::lattice::huge_pages() noexcept {
    static scarce_memory memory;
    return &memory;
}

namespace {

using namespace halocline;

/// Lets each allocation of fields by rank 1 fail in turn, until `make` gets all it needs; returns their number.
template <class Make>
int allocations_that_may_fail(const comm::job& j, const Make& make) {
    for (int number = 0;; ++number) {
        left = j.rank() == 1 ? number : -1;
        const std::string said = halocline_test::refusal<comm::out_of_memory>(make);
        left = -1;
        if (said == "accepted") return number;
        EXPECT_NE(said.find("rank 1"), std::string::npos) << said;
        EXPECT_NE(said.find("is out of memory"), std::string::npos) << said;
    }
}

// The others would wait for it until the deadline, and then call it dead.
TEST(OutOfMemory, OfOneRankIsReportedByAllAtOnce) {
    comm::run_threads(2, [](const comm::job& j) {
        const auto cut = lattice::decomposition::even({4, 4, 4, 4}, {1, 1, 1, 2}, {2, 2, 2, 2});
        const dirac::padded_links links(j, cut,
                                        halocline_test::links_near_one(cut.local_box(j.rank()), cut.global(), 0.25));
        amg::solver_options options;
        options.blocks = lattice::coordinate{2, 2, 2, 2};
        options.vectors = options.restart_length = options.coarse_restart_length = 2;

        const int of_solver =
            allocations_that_may_fail(j, [&] { const amg::solver solver(j, cut, links, {.m0 = -0.4}, options); });
        const int of_reference =
            allocations_that_may_fail(j, [&] { const dirac::reference_operator d(j, cut, links, {}); });

        EXPECT_GT(of_solver, 20) << "fields";
        EXPECT_GT(of_reference, 0);
    });
}

} // namespace
