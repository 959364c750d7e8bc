// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/field.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <malloc.h>

namespace {

using namespace halocline::lattice;

std::uintptr_t address_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

/// Whether the mapping that holds this address asks for huge pages: VmFlags "hg" in /proc/self/smaps.
bool asks_for_huge_pages(const void* p) {
    std::ifstream smaps("/proc/self/smaps");
    bool here = false;
    for (std::string line; std::getline(smaps, line);) {
        std::uintptr_t first = 0, last = 0;
        char dash = 0;
        if (std::istringstream range(line); range >> std::hex >> first >> dash >> last && dash == '-')
            here = first <= address_of(p) && address_of(p) < last;
        if (here && line.starts_with("VmFlags:")) return (line + ' ').find(" hg ") != std::string::npos;
    }
    return false;
}

TEST(HugePages, LargeAllocationsAskForThemAndStartAtOne) {
    if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) GTEST_SKIP() << "a kernel without them";
    const field<float> large(site_order::lexicographic({16, 16, 16, 16}), 24);

    EXPECT_EQ(address_of(large.data()) % huge_page_bytes, 0U);
    EXPECT_TRUE(asks_for_huge_pages(large.data()));
    EXPECT_TRUE(asks_for_huge_pages(large.data() + large.values().size() / 2));
}

TEST(HugePages, SmallAllocationsStayAsTheyAre) {
    // separate mappings, because the heap may return memory for which an earlier large field has asked
    mallopt(M_MMAP_THRESHOLD, 1 << 16);
    const std::size_t bytes = huge_page_bytes - 1;
    void* const p = huge_pages()->allocate(bytes, field_alignment);

    EXPECT_EQ(address_of(p) % field_alignment, 0U);
    EXPECT_FALSE(asks_for_huge_pages(p));
    huge_pages()->deallocate(p, bytes, field_alignment);
}

TEST(HugePages, EverySizeIsWritableToItsLastByte) {
    for (const std::size_t bytes :
         {std::size_t{1}, huge_page_bytes - 1, huge_page_bytes, huge_page_bytes + 1, 5 * huge_page_bytes / 2}) {
        auto* const p = static_cast<unsigned char*>(huge_pages()->allocate(bytes, field_alignment));

        std::memset(p, 0xa5, bytes);

        EXPECT_EQ(p[0], 0xa5);
        EXPECT_EQ(p[bytes - 1], 0xa5);
        huge_pages()->deallocate(p, bytes, field_alignment);
    }
}

} // namespace
