// SPDX-License-Identifier: Apache-2.0
#include "support/flag_probe.hpp"

#include "support/core_probe.hpp"
#include "support/machine.hpp"
#include "support/rounds.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace halocline::bench {

namespace {

std::vector<std::vector<int>> usable_of_this_host(const comm::job& j) {
    const std::vector<int>& mine = usable();
    const std::string bytes(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(int));
    const std::vector<std::string> all = j.gather(bytes);
    std::vector<std::vector<int>> lists(all.size());
    for (std::size_t r = 0; r < all.size(); ++r) {
        if (j.members()[r].host != j.members()[j.rank()].host) continue;
        lists[r].resize(all[r].size() / sizeof(int));
        std::memcpy(lists[r].data(), all[r].data(), lists[r].size() * sizeof(int));
    }
    return lists;
}

/// -1 on each rank if some have to share.
int own_processor(const comm::job& j) {
    const int own = comm::one_processor_each(usable_of_this_host(j))[j.rank()];
    return slowest(j, {own < 0 ? 1.0 : 0.0})[0] > 0 ? -1 : own;
}

} // namespace

std::vector<int> own_processors_of(const comm::job& j) {
    const int own = own_processor(j);
    std::vector<int> processors;
    for (const std::string& text : j.gather(std::to_string(own))) processors.push_back(std::stoi(text));
    // On several hosts a number says nothing to a peer, whose ranks may all be on one.
    const bool distinct = std::set<int>(processors.begin(), processors.end()).size() == processors.size();
    return own < 0 || !distinct ? std::vector<int>() : processors;
}

std::vector<int> processors_of(const comm::job& j) {
    std::set<int> together;
    for (const std::vector<int>& list : usable_of_this_host(j)) together.insert(list.begin(), list.end());
    return {together.begin(), together.end()};
}

bool pin_ranks(const comm::job& j) {
    const int own = own_processor(j);
    if (own >= 0) return comm::bind_to({&own, 1});
    const std::vector<comm::rank_info>& all = j.members();
    const auto here = [&](const comm::rank_info& m) { return m.host == all[j.rank()].host; };
    const auto before = std::count_if(all.begin(), all.begin() + j.rank(), here);
    pin_to_shared(static_cast<int>(before), static_cast<int>(std::ranges::count_if(all, here)),
                  comm::order_of_use(processors_of(j)));
    return false;
}

int spins_of(const comm::job& j) { return own_processor(j) >= 0 ? 2000 : 4; }

flag_probe::flag_probe(const comm::job& j) : job_(j), area_(j, lines_at + 64 * lines), spins_(spins_of(j)) {}

machine_pace flag_probe::operator()(double seconds) {
    job_.barrier();
    const double flag = bounce(seconds);
    job_.barrier(); // the odd rank still has to reset its flag
    const double line = transfer();
    // Last, when a core whose clock a contender lowered itself, by wide vectors, has had time to recover.
    const std::vector<double> all = slowest(job_, {flag, line, core_ns()});
    return {all[0], all[1], all[2]};
}

double flag_probe::transfer() {
    const int partner = job_.rank() ^ 1;
    if (partner >= job_.ranks()) return 0;
    const bool fills = job_.rank() % 2 == 0;
    std::byte* const buffer = area_.of(fills ? job_.rank() : partner) + lines_at;
    const auto word = [&](std::size_t i) { return reinterpret_cast<volatile std::uint64_t*>(buffer + 64 * i); };
    std::atomic<std::uint64_t>& mine = flag(job_.rank());
    std::atomic<std::uint64_t>& theirs = flag(partner);
    std::uint64_t least = ~std::uint64_t{0};
    for (int turn = 0; turn < 8; ++turn) {
        const std::uint64_t begin = comm::ticks();
        ++epoch_;
        if (fills) {
            for (std::size_t i = 0; i < lines; ++i) *word(i) = epoch_;
            theirs.store(epoch_, std::memory_order_release);
            await(mine, epoch_, spins_);
            least = std::min(least, comm::ticks() - begin);
        } else {
            await(mine, epoch_, spins_);
            for (std::size_t i = 0; i < lines; ++i) (void)*word(i);
            theirs.store(epoch_, std::memory_order_release);
        }
    }
    return fills ? 1e9 * comm::seconds(least) / lines : 0; // the other end's time is mostly waiting
}

double flag_probe::bounce(double seconds) {
    const int partner = job_.rank() ^ 1;
    if (partner >= job_.ranks()) return 0;
    // The even rank decides when to stop: the last flag has the top bit set.
    constexpr std::uint64_t stop = std::uint64_t{1} << 63;
    std::atomic<std::uint64_t>& mine = flag(job_.rank());
    std::atomic<std::uint64_t>& theirs = flag(partner);
    const std::uint64_t begin = comm::ticks();
    std::uint64_t trips = 0, now = begin;
    if (job_.rank() % 2 == 0) {
        while (comm::seconds(now - begin) < seconds) {
            for (int i = 0; i < 16; ++i, ++trips) {
                theirs.store(++epoch_, std::memory_order_release);
                await(mine, epoch_, spins_);
            }
            now = comm::ticks();
        }
        theirs.store(++epoch_ | stop, std::memory_order_release);
    } else {
        for (;; ++trips) {
            await(mine, epoch_ + 1, spins_);
            const bool over = (mine.load(std::memory_order_acquire) & stop) != 0;
            ++epoch_;
            if (over) break;
            theirs.store(epoch_, std::memory_order_release);
        }
        mine.store(epoch_, std::memory_order_relaxed); // the even rank is no longer waiting
        now = comm::ticks();
    }
    return trips == 0 ? 0 : 1e9 * comm::seconds(now - begin) / (2 * static_cast<double>(trips));
}

} // namespace halocline::bench
