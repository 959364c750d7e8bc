// SPDX-License-Identifier: Apache-2.0
#include "node_slab.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/slab_full.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 // Linux 6.1; not yet in every C library
#endif

namespace halocline::comm {
namespace {

constexpr std::size_t granule = 128; // pair of cache lines: no false sharing between blocks
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t commit_step = huge_page;
/// Memory committed at the start of a job, in half a millisecond: the slots of a first plan come out of it.
constexpr std::size_t committed_at_start = std::size_t{8} << 20;
constexpr std::size_t large_block = std::size_t{1} << 20; // placed after that

constexpr std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

/// No process has more addresses; a larger size could wrap to a small one when rounded up.
constexpr std::size_t most_bytes = std::size_t{1} << 47;

std::string mebibytes(std::size_t n) { return std::to_string((n >> 20) + (n % (1 << 20) != 0 ? 1 : 0)) + " MiB"; }
/// In KiB where two numbers of MiB might look alike.
std::string amount(std::size_t n) {
    constexpr std::size_t mebibyte = 1 << 20;
    return n % mebibyte == 0 || n >= 1024 * mebibyte ? mebibytes(n) : std::to_string((n + 1023) >> 10) + " KiB";
}

} // namespace

std::string limit_remedy(const char* limit) {
    return std::string("raise 'ulimit ") + limit +
           "' or choose a smaller slab (job_options::slab_bytes, [comm] slab_gib)";
}

namespace {

/// A file in memory, without a name. Where vm.memfd_noexec is 2 it may only be one that can't be executed, which kernels
/// before 6.3 don't know.
int file_of_slab() {
    constexpr unsigned not_executable = 0x0008; // MFD_NOEXEC_SEAL, not yet in every C library; can be sealed further
    const int fd = memfd_create("halocline-slab", MFD_CLOEXEC | not_executable);
    return fd >= 0 || errno != EINVAL ? fd : memfd_create("halocline-slab", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

std::size_t slab_size(std::size_t bytes) {
    if (bytes > most_bytes) {
        throw input_error("cannot make a slab of " + mebibytes(bytes) + ": a process has " + mebibytes(most_bytes) +
                          " of address space; choose a smaller one (job_options::slab_bytes, [comm] slab_gib)");
    }
    return round_up(bytes, commit_step);
}

} // namespace

slab_mapping::slab_mapping(int fd, std::size_t bytes) : bytes_(bytes) {
    // At a multiple of a huge page, inside a larger reservation: otherwise each page of 4 KiB would be mapped singly.
    static_assert(room_to_align == huge_page);
    const std::size_t room = bytes + room_to_align;
    void* p = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) {
        std::byte* const reserved = static_cast<std::byte*>(p);
        const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(p) % huge_page) % huge_page;
        if (before > 0) munmap(reserved, before);
        munmap(reserved + before + bytes, huge_page - before);
        p = mmap(reserved + before, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
        if (p == MAP_FAILED) munmap(reserved + before, bytes);
    }
    if (p == MAP_FAILED) {
        throw input_error("cannot map a slab of " + mebibytes(bytes) + " address space: " + std::strerror(errno) +
                          "; " + limit_remedy("-v"));
    }
    base_ = static_cast<std::byte*>(p);
    madvise(p, bytes, MADV_DONTDUMP); // both are hints: refusal affects only speed or the size of a core file
    madvise(p, bytes, MADV_HUGEPAGE);
    try {
        child_ = std::make_unique<at_fork>([p, bytes] { mprotect(p, bytes, PROT_READ); });
    } catch (...) {
        munmap(p, bytes);
        throw;
    }
}

slab_mapping::slab_mapping(slab_mapping&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)),
      child_(std::move(other.child_)) {}

slab_mapping& slab_mapping::operator=(slab_mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    std::swap(child_, other.child_);
    return *this;
}

slab_mapping::~slab_mapping() {
    child_.reset(); // first: the place may be another mapping's as soon as it is free
    if (base_ != nullptr) munmap(base_, bytes_);
}

node_slab::node_slab(std::size_t bytes) : bytes_(slab_size(bytes == 0 ? default_bytes : bytes)) {
    fd_ = file_of_slab();
    if (fd_ < 0) throw error(std::string("cannot make a slab: memfd_create: ") + std::strerror(errno));
    try {
        rlimit file{}; // exceeding it would raise SIGXFSZ instead of returning an error
        if (getrlimit(RLIMIT_FSIZE, &file) == 0 && file.rlim_cur < bytes_) {
            throw input_error("cannot make a slab of " + mebibytes(bytes_) + ": files may have " +
                              mebibytes(file.rlim_cur) + "; " + limit_remedy("-f"));
        }
        // Sealed: otherwise a truncation could make a peer that maps it fault.
        if (ftruncate(fd_, static_cast<off_t>(bytes_)) != 0 ||
            fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
            throw error("cannot make a slab of " + mebibytes(bytes_) + ": " + std::strerror(errno));
        }
        mapping_ = slab_mapping(fd_, bytes_);
        const std::size_t header = round_up(sizeof(failure_record), granule);
        commit(std::max(header, std::min(committed_at_start, bytes_)));
        new (base()) failure_record;
        free_.emplace(header, bytes_ - header);
        child_.emplace([this] { // after that of mapping_; if it fails, the child can only read
            void* const copy = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd_, 0);
            if (copy != MAP_FAILED) mremap(copy, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, base());
        });
    } catch (...) {
        close(fd_);
        throw;
    }
}

node_slab::~node_slab() { close(fd_); }

std::size_t node_slab::used() const {
    const std::lock_guard lock(mutex_);
    return used_;
}

std::size_t node_slab::peak() const {
    const std::lock_guard lock(mutex_);
    return peak_;
}

std::size_t node_slab::huge() const {
    const std::lock_guard lock(mutex_);
    return huge_;
}

void node_slab::commit(std::size_t end) {
    if (end <= committed_) return;
    const std::size_t target = std::min(round_up(end, commit_step), bytes_);
    const auto allocate = [&](std::size_t from, std::size_t bytes) {
        int failed;
        do {
            failed = fallocate(fd_, 0, static_cast<off_t>(from), static_cast<off_t>(bytes));
        } while (failed != 0 && errno == EINTR);
        return failed == 0;
    };
    // Huge pages, regardless of the system's setting for shared memory: each begins as one small page, which fixes the
    // NUMA node, and the kernel makes it huge. Where it can't (before Linux 6.1, or for lack of 2 MiB in a row) pages
    // stay small.
    if (can_be_huge_) {
        for (std::size_t page = committed_; page < target; page += huge_page) (void)allocate(page, 4096);
        const bool made = madvise(base() + committed_, target - committed_, MADV_COLLAPSE) == 0;
        if (made) huge_ += target - committed_;
        can_be_huge_ = made || errno != EINVAL;
    }
    // In steps: a signal may make the kernel give up one of them, and begin it anew.
    for (; committed_ < target; committed_ += std::min(commit_step, target - committed_))
        if (!allocate(committed_, std::min(commit_step, target - committed_)))
            throw slab_full("slab: need " + mebibytes(target - committed_) + " more, have " + mebibytes(committed_) +
                            ": " + std::strerror(errno) + "; free memory, or use more nodes or a smaller lattice");
}

void* node_slab::take(std::size_t bytes, std::size_t alignment, std::size_t from) {
    if (bytes > bytes_) return nullptr; // rounded up, the largest numbers would become small
    const std::size_t need = round_up(std::max<std::size_t>(bytes, 1), granule);
    const std::size_t align = std::max(alignment, granule);
    const auto first = reinterpret_cast<std::uintptr_t>(base()); // addresses are aligned, not places in the slab
    for (auto it = free_.begin(); it != free_.end(); ++it) {
        const auto [start, size] = *it;
        const std::size_t at = round_up(first + std::max(start, from), align) - first, end = start + size;
        if (at > end || need > end - at) continue;
        commit(at + need);
        return use(it, at, need);
    }
    return nullptr;
}

void* node_slab::use(pieces::iterator it, std::size_t at, std::size_t need) {
    const auto [start, size] = *it;
    const std::size_t rest = start + size - at - need;
    pieces made; // first, so that nothing has changed if there is no memory for them
    made.emplace(at, need);
    if (rest > 0) made.emplace(at + need, rest);
    taken_.insert(made.extract(at));
    if (at == start) {
        free_.erase(it);
    } else {
        it->second = at - start;
    }
    if (rest > 0) free_.insert(made.extract(at + need));
    used_ += need;
    peak_ = std::max(peak_, used_);
    return base() + at;
}

void* node_slab::reserve(std::size_t bytes, std::size_t alignment) {
    const std::lock_guard lock(mutex_);
    const std::size_t need = bytes > bytes_ ? bytes : round_up(std::max<std::size_t>(bytes, 1), granule);
    const std::size_t align = std::max(alignment, granule);
    const auto first = reinterpret_cast<std::uintptr_t>(base());
    for (auto it = free_.rbegin(); it != free_.rend(); ++it) {
        const auto [start, size] = *it;
        if (need > size) continue;
        const std::uintptr_t at = (first + start + size - need) / align * align;
        if (at >= first + start) return use(std::prev(it.base()), at - first, need);
    }
    throw_full(bytes);
}

void* node_slab::do_allocate(std::size_t bytes, std::size_t alignment) {
    const std::lock_guard lock(mutex_);
    const bool apart = bytes >= large_block && bytes_ >= 16 * committed_at_start; // a small slab has no room to spare
    void* block = apart ? take(bytes, alignment, committed_at_start) : nullptr;
    if (block == nullptr) block = take(bytes, alignment, 0);
    if (block == nullptr) throw_full(bytes);
    return block;
}

void* node_slab::allocate_for_peers(std::size_t bytes, std::size_t alignment) {
    const std::lock_guard lock(mutex_);
    void* const block = take(bytes, alignment, 0);
    if (block == nullptr) throw_full(bytes);
    return block;
}

void node_slab::throw_full(std::size_t bytes) const {
    std::size_t largest = 0;
    for (const auto& [at, size] : free_) largest = std::max(largest, size);
    throw slab_full("slab: need " + amount(bytes) + ", have " + amount(largest) + " in one piece, of " +
                    mebibytes(bytes_) +
                    "; choose a larger slab ([comm] slab_gib, HALOCLINE_COMM_SLAB_GIB, or "
                    "job_options::slab_bytes, which these override)");
}

void node_slab::do_deallocate(void* p, std::size_t, std::size_t) {
    const std::lock_guard lock(mutex_);
    auto block = taken_.extract(offset_of(p));
    if (block.empty()) return; // given back before
    if (is_pinned(block.key(), block.mapped())) {
        deferred_.insert(std::move(block));
    } else {
        give_back(std::move(block));
    }
}

bool node_slab::is_pinned(std::size_t start, std::size_t size) const {
    const auto pin = pins_.lower_bound(start);
    return pin != pins_.end() && pin->first < start + size;
}

void node_slab::pin(const void* p) {
    const std::lock_guard lock(mutex_);
    ++pins_[static_cast<const std::byte*>(p) - base()];
}

void node_slab::unpin(const void* p) noexcept {
    const std::lock_guard lock(mutex_);
    const auto pin = pins_.find(static_cast<std::size_t>(static_cast<const std::byte*>(p) - base()));
    if (--pin->second > 0) return;
    const std::size_t offset = pin->first;
    pins_.erase(pin);
    const auto after = deferred_.upper_bound(offset);
    if (after == deferred_.begin()) return;
    const auto [start, size] = *std::prev(after);
    if (offset >= start + size || is_pinned(start, size)) return;
    give_back(deferred_.extract(start));
}

void node_slab::give_back(pieces::node_type block) noexcept {
    used_ -= block.mapped();
    auto next = free_.lower_bound(block.key());
    if (next != free_.end() && next->first == block.key() + block.mapped()) {
        block.mapped() += next->second;
        next = free_.erase(next);
    }
    if (next != free_.begin()) {
        const auto before = std::prev(next);
        if (before->first + before->second == block.key()) {
            before->second += block.mapped();
            return;
        }
    }
    free_.insert(std::move(block));
}

} // namespace halocline::comm
