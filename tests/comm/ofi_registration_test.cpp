// SPDX-License-Identifier: Apache-2.0
// What each mode of registration requires, using a domain that records the calls: no device is needed.
#include "ofi/registration.hpp"
#include "ofi/world.hpp"

#include <halocline_test/counted_memory.hpp>

#include <gtest/gtest.h>

#include <rdma/fi_errno.h>
#include <string>

namespace {

using namespace halocline::comm;
using halocline_test::counted_memory;

/// A domain with one region. Its provider returns key 4711 if it chooses keys itself, and none before the region is
/// enabled if regions belong to endpoints.
struct recording_domain {
    static inline recording_domain* now = nullptr;
    std::string calls;
    int modes = 0, bind_result = 0, enable_result = 0;
    std::uint64_t asked_access = 0;
    fid* bound_to = nullptr;
    int descriptor = 0;
    fid_mr region{};
    fid_ep ep{};
    fi_ops region_ops{};
    fi_ops_mr ops{};
    fid_domain domain{};

    explicit recording_domain(int mr_modes) : modes(mr_modes) {
        now = this;
        region_ops.size = sizeof region_ops;
        region_ops.close = [](fid*) { return now->calls += "close ", 0; };
        region_ops.bind = [](fid*, fid* to, std::uint64_t) {
            now->bound_to = to;
            return now->calls += "bind ", now->bind_result;
        };
        region_ops.control = [](fid*, int command, void*) {
            now->calls += command == FI_ENABLE ? "enable " : "other ";
            if (now->enable_result == 0 && (now->modes & FI_MR_PROV_KEY)) now->region.key = 4711;
            return now->enable_result;
        };
        ops.size = sizeof ops;
        ops.reg = [](fid*, const void*, std::size_t, std::uint64_t access, std::uint64_t, std::uint64_t key,
                     std::uint64_t, fid_mr** made, void*) {
            now->calls += "reg ";
            now->asked_access = access;
            const bool own = (now->modes & FI_MR_PROV_KEY) != 0;
            now->region.key = !own ? key : (now->modes & FI_MR_ENDPOINT) ? FI_KEY_NOTAVAIL : 4711;
            *made = &now->region;
            return key == 0 || !own ? 0 : -FI_EINVAL; // requesting a key is an error if the provider chooses keys
        };
        region.fid.ops = &region_ops;
        region.mem_desc = &descriptor;
        domain.mr = &ops;
    }
    ofi_registration reg(void* start, std::size_t bytes) {
        return register_memory(&domain, &ep, modes, FI_WRITE | FI_REMOTE_WRITE, start, bytes, 7);
    }
};

TEST(OfiRegistration, EveryCombinationOfModesGetsWhatItAsksFor) {
    std::byte memory[256];
    for (const int local : {0, FI_MR_LOCAL}) {
        for (const int address : {0, FI_MR_VIRT_ADDR}) {
            for (const int own_key : {0, FI_MR_PROV_KEY}) {
                for (const int endpoint : {0, FI_MR_ENDPOINT}) {
                    recording_domain d(local | address | own_key | endpoint | FI_MR_ALLOCATED);
                    const ofi_registration r = d.reg(memory, sizeof memory);

                    ASSERT_EQ(r.error, 0) << d.modes;
                    EXPECT_EQ(d.calls, endpoint ? "reg bind enable " : "reg ") << d.modes;
                    EXPECT_EQ(d.bound_to, endpoint ? &d.ep.fid : nullptr) << d.modes;
                    EXPECT_EQ(r.key, own_key ? 4711u : 7u) << d.modes;
                    EXPECT_EQ(r.base, address ? reinterpret_cast<std::uintptr_t>(memory) : 0u) << d.modes;
                    EXPECT_EQ(r.descriptor, local ? &d.descriptor : nullptr) << d.modes;
                    EXPECT_EQ(d.asked_access, std::uint64_t{FI_WRITE | FI_REMOTE_WRITE}) << d.modes;
                }
            }
        }
    }
}

TEST(OfiRegistration, WhatFailsIsNamedAndLeavesNothing) {
    std::byte memory[64];
    recording_domain d(FI_MR_ENDPOINT | FI_MR_PROV_KEY);
    d.bind_result = -FI_EINVAL;
    ofi_registration r = d.reg(memory, sizeof memory);
    EXPECT_EQ(r.error, -FI_EINVAL);
    EXPECT_STREQ(r.call, "fi_mr_bind");
    EXPECT_EQ(r.region, nullptr);
    EXPECT_EQ(d.calls, "reg bind close ");

    recording_domain e(FI_MR_ENDPOINT | FI_MR_PROV_KEY);
    e.enable_result = -FI_ENOMEM;
    r = e.reg(memory, sizeof memory);
    EXPECT_EQ(r.error, -FI_ENOMEM);
    EXPECT_STREQ(r.call, "fi_mr_enable");
    EXPECT_EQ(e.calls, "reg bind enable close ");
}

TEST(OfiRegistration, AnEndThatNobodyConnectsGivesItsMemoryBackOnceLibfabricHasLetGoOfIt) {
    counted_memory memory;
    ofi_world world("tcp;ofi_rxm", "127.0.0.1");
    ofi_end& end = world.open(memory, 0, 1, 1000, 1000);
    fi_ops* const ops = end.region->fid.ops;
    fi_ops busy = *ops;
    busy.close = [](fid*) { return -FI_EBUSY; };
    end.region->fid.ops = &busy;

    world.release(end);
    world.sweep();
    EXPECT_GT(memory.taken, 0u) << "the peer may connect";
    end.refused = true;
    world.sweep();
    EXPECT_GT(memory.taken, 0u) << "it is still registered";
    end.region->fid.ops = ops;
    world.sweep();
    EXPECT_EQ(memory.taken, 0u);
}

} // namespace
