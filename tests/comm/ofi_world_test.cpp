// SPDX-License-Identifier: Apache-2.0
// Two worlds of libfabric in one process, where some of the library's functions behave as with other providers: they are
// replaced in the objects of one world, which this file may see because it is compiled without access control.
#include "ofi/endpoint.hpp"
#include "ofi/world.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/detail/ofi_channel.hpp>

#include <gtest/gtest.h>

#include <deque>
#include <memory_resource>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <string>

namespace {

using namespace halocline::comm;

/// The functions of a completion queue, of which one is replaced.
struct changed_queue {
    static inline ssize_t (*read_itself)(fid_cq*, void*, std::size_t) = nullptr;
    fi_ops_cq ops;

    changed_queue(ofi_world& world, ssize_t (*read)(fid_cq*, void*, std::size_t))
        : ops(*world.endpoint_->completions->ops) {
        read_itself = ops.read;
        ops.read = read;
        world.endpoint_->completions->ops = &ops;
    }
};

struct two_worlds {
    ofi_world here, there;

    explicit two_worlds(const char* provider) : here(provider, "127.0.0.1"), there(provider, "127.0.0.1") {
        const std::string addresses[] = {here.address(), there.address()};
        here.connect(addresses, 0);
        there.connect(addresses, 1);
    }
    [[nodiscard]] ofi_channel channel(ofi_world& world) const {
        constexpr std::size_t bytes = 100;
        return {world, *std::pmr::new_delete_resource(), 0, &world == &here ? 1 : 0, 1, bytes, bytes};
    }
    /// Polls both until done(); false if that takes longer than `limit` seconds.
    template <class Done>
    bool until(Done&& done, double limit = 20) {
        for (const std::uint64_t since = ticks(); seconds(ticks() - since) < limit;) {
            here.poll();
            there.poll();
            if (done()) return true;
        }
        return false;
    }
};

/// opx reports this rank's own writes with the flag of arrivals, too, and with data that mean nothing (libfabric 2.1).
ssize_t read_like_opx(fid_cq* queue, void* entries, std::size_t most) {
    const ssize_t n = changed_queue::read_itself(queue, entries, most);
    auto* const entry = static_cast<fi_cq_data_entry*>(entries);
    for (ssize_t i = 0; i < n; ++i)
        if (entry[i].flags & FI_WRITE) {
            entry[i].flags |= FI_REMOTE_CQ_DATA;
            entry[i].data = 0xffff'ffff;
        }
    return n;
}

TEST(OfiWorld, CompletionsOfOwnWritesAreNoArrivalsWhateverDataTheyHave) {
    two_worlds w("net");
    const changed_queue like_opx(w.here, read_like_opx);
    ofi_channel to = w.channel(w.here), from = w.channel(w.there);
    to.connect(from.card());
    from.connect(to.card());

    EXPECT_TRUE(w.until([&] { return to.connected() && from.connected(); })) << to.trouble() << from.trouble();
}

TEST(OfiWorld, TaggedMessagesAreAskedToStayInOrder) {
    const ofi_world world("net,tagged", "127.0.0.1");
    const fi_info& chosen = *world.endpoint_->provider.list;
    EXPECT_TRUE(chosen.tx_attr->msg_order & FI_ORDER_SAS);
    EXPECT_TRUE(chosen.rx_attr->msg_order & FI_ORDER_SAS);
}

/// A provider that takes 16 receives at a time.
struct few_receives {
    static inline decltype(fi_ops_tagged::recv) receive_itself = nullptr;
    static inline int posted = 0;
    fi_ops_tagged ops;
    changed_queue queue;

    explicit few_receives(ofi_world& world)
        : ops(*world.endpoint_->ep->tagged), queue(world, [](fid_cq* q, void* entries, std::size_t most) {
              const ssize_t n = changed_queue::read_itself(q, entries, most);
              for (ssize_t i = 0; i < n; ++i)
                  posted -= (static_cast<fi_cq_data_entry*>(entries)[i].flags & FI_RECV) != 0;
              return n;
          }) {
        posted = 0;
        receive_itself = ops.recv;
        ops.recv = [](fid_ep* ep, void* into, std::size_t bytes, void* descriptor, fi_addr_t from, std::uint64_t tag,
                      std::uint64_t ignore, void* context) -> ssize_t {
            if (posted == 16) return -FI_EAGAIN;
            const ssize_t code = receive_itself(ep, into, bytes, descriptor, from, tag, ignore, context);
            posted += code == 0;
            return code;
        };
        world.endpoint_->ep->tagged = &ops;
    }
};

TEST(OfiWorld, ChannelsForWhichThereAreNoReceivesFailWithTheReason) {
    two_worlds w("net,tagged");
    const few_receives few(w.here);
    std::deque<ofi_channel> mine, theirs;
    constexpr int channels = 12;
    for (int i = 0; i < channels; ++i) {
        mine.push_back(w.channel(w.here));
        theirs.push_back(w.channel(w.there));
    }
    for (int i = 0; i < channels; ++i) {
        mine[i].connect(theirs[i].card());
        theirs[i].connect(mine[i].card());
    }

    ASSERT_TRUE(w.until([&] { return !mine.back().trouble().empty(); }));

    const std::string why = mine.back().trouble();
    EXPECT_NE(why.find("12 channels are open here, each with at least 2 receives"), std::string::npos) << why;
    EXPECT_TRUE(mine.front().connected());
}

} // namespace
