// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/channel_set.hpp>

#include "job_core.hpp"
#include "mpi_library.hpp"
#include "waiting.hpp"
#include "wire.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <new>
#include <utility>

namespace halocline::comm {
namespace {

/// What a peer says of one of its ends.
struct remote_end {
    std::uint32_t key = 0, peer_key = 0;
    std::uint64_t send_bytes = 0, receive_bytes = 0;
    std::string label;
    std::uint64_t offset = 0; ///< of its receive block in its slab
    int tag = -1;             ///< of MPI, for what is sent to it
    std::string card;         ///< of libfabric
};

/// What a peer says of its ends with this rank.
struct remote_set {
    std::uint32_t plan_id = 0;
    std::string name, shape, transport;
    std::vector<remote_end> ends;
};

std::uint64_t mixed(std::uint64_t x) { // splitmix64
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

std::string rank_text(int r) { return "rank " + std::to_string(r); }

using peer_ends = std::map<int, std::vector<std::size_t>>; // peer -> positions of requests

/// Every rank names the ranks that name it, equally often? Otherwise the exchange of the ends would hang.
/// Each pair adds and subtracts the same number if so, hence the sum over ranks is 0.  Cost: 8 bytes per rank.
void check_symmetry(const job& j, const peer_ends& by_peer, const std::string& name) {
    const auto me = static_cast<std::uint64_t>(j.rank());
    std::uint64_t sum = 0;
    wire_writer list;
    for (const auto& [p, ends] : by_peer) {
        const auto peer = static_cast<std::uint64_t>(p);
        if (peer == me) continue;
        const std::uint64_t h = mixed(mixed(std::min(me, peer)) ^ mixed(~std::max(me, peer)) ^ (ends.size() << 32));
        sum += me < peer ? h : -h;
    }
    std::uint64_t total = 0;
    for (const std::string& part : j.gather(wire_writer().number(sum).take())) {
        total += wire_reader(part).number<std::uint64_t>();
    }
    if (total == 0) return;

    for (const auto& [p, ends] : by_peer) list.number(p).number<std::uint64_t>(ends.size());
    std::map<std::pair<int, int>, std::uint64_t> ends_of; // (rank, peer) -> how many
    const std::vector<std::string> lists = j.gather(list.take());
    for (int r = 0; r < j.ranks(); ++r) {
        for (wire_reader reader(lists[r]); !reader.empty();) {
            const int p = reader.number<int>();
            ends_of[{r, p}] = reader.number<std::uint64_t>();
        }
    }
    for (const auto& [pair, count] : ends_of) {
        const auto back = ends_of.find({pair.second, pair.first});
        const std::uint64_t other = back == ends_of.end() ? 0 : back->second;
        if (other != count) {
            throw input_error("'" + name + "': " + rank_text(pair.first) + " wants " + std::to_string(count) +
                              " channels with " + rank_text(pair.second) + ", which wants " + std::to_string(other));
        }
    }
}

template <class T>
void require_equal(const std::string& name, std::string_view what, int me, const T& mine, int peer, const T& theirs) {
    if (mine == theirs) return;
    const auto text = [](const T& value) {
        if constexpr (std::is_same_v<T, std::string>) {
            return "'" + value + "'";
        } else {
            return std::to_string(value);
        }
    };
    throw input_error("'" + name + "': " + std::string(what) + " differs: " + rank_text(me) + " has " + text(mine) +
                      ", " + rank_text(peer) + " has " + text(theirs));
}

/// The end of `peer` that belongs to `r`, sizes compared.
const remote_end& matching_end(const std::string& name, int me, const channel_request& r, const remote_set& theirs) {
    const auto it = std::find_if(theirs.ends.begin(), theirs.ends.end(),
                                 [&](const remote_end& e) { return e.key == r.peer_key; });
    const std::string mine = rank_text(me) + " '" + r.label + "'";
    if (it == theirs.ends.end() || it->peer_key != r.key) {
        throw input_error("'" + name + "': " + mine + " (key " + std::to_string(r.key) + ") expects key " +
                          std::to_string(r.peer_key) + " of " + rank_text(r.peer) +
                          (it == theirs.ends.end() ? std::string(", which has no such end")
                                                   : ", which expects key " + std::to_string(it->peer_key)));
    }
    const std::string other = rank_text(r.peer) + " '" + it->label + "'";
    if (r.send_bytes != it->receive_bytes) {
        throw input_error("'" + name + "': " + mine + " sends " + std::to_string(r.send_bytes) + " bytes, " + other +
                          " expects " + std::to_string(it->receive_bytes));
    }
    if (r.receive_bytes != it->send_bytes) {
        throw input_error("'" + name + "': " + mine + " expects " + std::to_string(r.receive_bytes) + " bytes, " +
                          other + " sends " + std::to_string(it->send_bytes));
    }
    return *it;
}

} // namespace

channel_set::channel_set(const job& j, std::span<const channel_request> requests, const channel_set_options& options)
    : requests_(requests.begin(), requests.end()), options_(options) {
    job_core& core = j.core();
    const std::uint32_t plan_id = core.next_plan_id++;
    const int me = core.rank;
    core.sweep();

    // Who has to be asked; and where this rank's receive blocks lie.
    peer_ends by_peer;
    std::vector<std::uint64_t> offset(requests_.size(), 0);
    const auto over = [&](const char* transport, const channel_request& r) {
        return core.members[r.peer].transport == transport;
    };
    const auto in_block = [&](const channel_request& r) { // self and shm: one block of the slab for all
        return !over(ofi_channel::transport, r) && !over(mpi_channel::transport, r);
    };
    try {
        j.collectively([&] {
            std::map<std::uint32_t, std::size_t> keys;
            for (std::size_t i = 0; i < requests_.size(); ++i) {
                const channel_request& r = requests_[i];
                if (r.peer < 0 || r.peer >= core.ranks) {
                    throw input_error("'" + options_.name + "': peer " + std::to_string(r.peer) + " of '" + r.label +
                                      "' is not a rank of this job (0 to " + std::to_string(core.ranks - 1) + ")");
                }
                if (!keys.emplace(r.key, i).second) {
                    throw input_error("'" + options_.name + "': " + rank_text(me) + " uses key " + std::to_string(r.key) +
                                      " for '" + requests_[keys[r.key]].label + "' and for '" + r.label + "'");
                }
                by_peer[r.peer].push_back(i);
                if (!in_block(r)) continue;
                offset[i] = block_bytes_;
                block_bytes_ += shm_channel::block_bytes(r.receive_bytes);
            }
            if (block_bytes_ > 0) {
                block_ = static_cast<std::byte*>(core.memory->allocate(block_bytes_, alignof(control_line)));
            }
        });
        for (std::size_t i = 0; i < requests_.size(); ++i) {
            if (in_block(requests_[i])) new (block_ + offset[i]) control_line;
        }
        check_symmetry(j, by_peer, options_.name);

        auto& mpi_lane = std::get<std::vector<mpi_channel>>(lanes_);
        auto& ofi_lane = std::get<std::vector<ofi_channel>>(lanes_);
        std::map<std::size_t, std::size_t> in_mpi_lane, in_ofi_lane; // request -> position
        j.collectively([&] {
            for (std::size_t i = 0; i < requests_.size(); ++i) {
                const channel_request& r = requests_[i];
                if (over(mpi_channel::transport, r)) {
                    in_mpi_lane[i] = mpi_lane.size();
                    mpi_lane.emplace_back(*core.mpi, *core.memory, i, r.peer, plan_id, r.send_bytes, r.receive_bytes);
                } else if (over(ofi_channel::transport, r)) {
                    in_ofi_lane[i] = ofi_lane.size();
                    ofi_lane.emplace_back(*core.ofi, *core.memory, i, r.peer, plan_id, r.send_bytes, r.receive_bytes);
                }
            }
        });

        // One message to each peer: all ends with it.
        std::vector<int> peers;
        std::vector<std::string> out;
        for (const auto& [peer, ends] : by_peer) {
            wire_writer w;
            w.number(plan_id).text(options_.name).text(options_.shape).text(core.members[peer].transport);
            w.number<std::uint64_t>(ends.size());
            for (const std::size_t i : ends) {
                const channel_request& r = requests_[i];
                const std::byte* block = block_ == nullptr ? core.memory->base() : block_ + offset[i];
                const auto in_lane = in_mpi_lane.find(i);
                w.number(r.key).number(r.peer_key).number<std::uint64_t>(r.send_bytes);
                w.number<std::uint64_t>(r.receive_bytes).text(r.label);
                w.number<std::uint64_t>(static_cast<std::uint64_t>(block - core.memory->base()));
                w.number(in_lane == in_mpi_lane.end() ? -1 : mpi_lane[in_lane->second].tag());
                const auto in_ofi = in_ofi_lane.find(i);
                w.text(in_ofi == in_ofi_lane.end() ? "" : ofi_lane[in_ofi->second].card());
            }
            peers.push_back(peer);
            out.push_back(w.take());
        }
        const std::vector<std::string> in = j.exchange(peers, out);

        j.collectively([&] {
            for (std::size_t n = 0; n < peers.size(); ++n) {
                const int peer = peers[n];
                const std::string& transport = core.members[peer].transport;
                remote_set theirs;
                wire_reader reader(in[n]);
                theirs.plan_id = reader.number<std::uint32_t>();
                theirs.name = reader.text();
                theirs.shape = reader.text();
                theirs.transport = reader.text();
                theirs.ends.resize(reader.number<std::uint64_t>());
                for (remote_end& e : theirs.ends) {
                    e.key = reader.number<std::uint32_t>();
                    e.peer_key = reader.number<std::uint32_t>();
                    e.send_bytes = reader.number<std::uint64_t>();
                    e.receive_bytes = reader.number<std::uint64_t>();
                    e.label = reader.text();
                    e.offset = reader.number<std::uint64_t>();
                    e.tag = reader.number<int>();
                    e.card = reader.text();
                }
                require_equal(options_.name, "the name of the plan", me, options_.name, peer, theirs.name);
                require_equal(options_.name, "the number of the plan", me, plan_id, peer, theirs.plan_id);
                require_equal(options_.name, "the transport", me, transport, peer, theirs.transport);
                require_equal(options_.name, "the shape", me, options_.shape, peer, theirs.shape);
                for (const std::size_t i : by_peer[peer]) {
                    const channel_request& r = requests_[i];
                    const remote_end& e = matching_end(options_.name, me, r, theirs);
                    if (transport == mpi_channel::transport) {
                        mpi_lane[in_mpi_lane[i]].connect(e.tag);
                        continue;
                    }
                    if (transport == ofi_channel::transport) {
                        ofi_lane[in_ofi_lane[i]].connect(e.card);
                        continue;
                    }
                    std::byte* const remote = core.peer_base[peer] + e.offset;
                    std::byte* const local = block_ + offset[i];
                    if (peer == me) {
                        std::get<std::vector<self_channel>>(lanes_).emplace_back(i, peer, plan_id, r.send_bytes,
                                                                                 r.receive_bytes, remote, local);
                    } else {
                        std::get<std::vector<shm_channel>>(lanes_).emplace_back(i, peer, plan_id, r.send_bytes,
                                                                                r.receive_bytes, remote, local);
                    }
                }
            }
        });
        // Connections are made by the first write: now, so that an unreachable peer is an error of the set-up.
        if (core.ofi) {
            j.collectively([&] {
                for (ofi_channel& c : ofi_lane) {
                    const std::string operation = "the first write from " + rank_text(c.peer()) + " over ofi";
                    for (waiter waiting(core); !c.connected();) {
                        if (const status s = waiting.again(c.peer()); s != status::ok) core.raise(s, operation);
                    }
                    if (c.trouble().empty()) continue;
                    core.raise(core.lost(c.peer(), "can't be reached: " + c.trouble()), operation);
                }
            });
        }
    } catch (...) {
        // Nobody has sent anything: no farewells are due, unless a rank died half-way; then the job is over anyway.
        if (block_ != nullptr && core.failed() == status::ok) {
            core.memory->deallocate(block_, block_bytes_, alignof(control_line));
        }
        throw;
    }
    core_ = j.share();
}

channel_set::channel_set(channel_set&& other) noexcept { *this = std::move(other); }

channel_set& channel_set::operator=(channel_set&& other) noexcept {
    if (this == &other) return *this;
    close();
    lanes_ = std::exchange(other.lanes_, {});
    requests_ = std::exchange(other.requests_, {});
    options_ = std::exchange(other.options_, {});
    core_ = std::exchange(other.core_, nullptr);
    block_ = std::exchange(other.block_, nullptr);
    block_bytes_ = std::exchange(other.block_bytes_, 0);
    waits_yielded_ = other.waits_yielded_;
    waits_slept_ = other.waits_slept_;
    status_ = other.status_;
    return *this;
}

channel_set::~channel_set() { close(); }

void channel_set::close() noexcept {
    if (core_ == nullptr) return;
    for_each([](auto& c) {
        if constexpr (requires { c.close(); }) c.close();
    });
    std::get<std::vector<ofi_channel>>(lanes_).clear();
    std::get<std::vector<mpi_channel>>(lanes_).clear();
    if (block_ != nullptr) {
        // The receiving ends of these lanes: their senders' farewells free the block.
        parked_block parked{block_, block_bytes_, {}};
        for_each([&](const auto& c) {
            if constexpr (requires { c.line(); }) parked.lines.push_back(c.line());
        });
        core_->parked.push_back(std::move(parked));
        core_->sweep();
    }
    core_ = nullptr;
    block_ = nullptr;
}

status channel_set::wait(std::uint64_t epoch) noexcept {
    if (status_ != status::ok || core_ == nullptr) return status_;
    waiter waiting(*core_);
    std::array<std::size_t, std::tuple_size_v<decltype(lanes_)>> done{}; // channels at the front of each lane
    // All lanes are polled in turn: MPI moves nothing unless it is asked.
    const auto pass = [&](auto& lane, std::size_t& first, int& pending) {
        for (; first < lane.size(); ++first) {
            auto& c = lane[first];
            if (!c.arrived(epoch) || !c.sent(epoch)) {
                pending = c.peer();
                return;
            }
            if (const status s = c.check(epoch); s != status::ok) {
                status_ = s;
                if constexpr (requires { c.trouble(); }) {
                    if (s == status::peer_died) status_ = core_->lost(c.peer(), "can't be reached: " + c.trouble());
                }
                return;
            }
        }
    };
    while (true) {
        int pending = -1;
        std::apply([&](auto&... lane) { std::size_t n = 0; (pass(lane, done[n++], pending), ...); }, lanes_);
        if (status_ != status::ok || pending < 0) break;
        status_ = waiting.again(pending);
        if (status_ != status::ok) break;
    }
    waits_yielded_ += waiting.yielded();
    waits_slept_ += waiting.slept();
    return status_;
}

bool channel_set::test(std::uint64_t epoch) noexcept {
    if (status_ != status::ok) return true;
    bool all = true;
    for_each([&](auto& c) { all = c.arrived(epoch) && c.sent(epoch) && all; });
    return all;
}

std::vector<lane_counts> channel_set::counts(std::uint64_t epochs) const {
    std::vector<lane_counts> result;
    const auto add = [&](const auto& lane) {
        if (lane.empty()) return;
        lane_counts counts{std::remove_cvref_t<decltype(lane.front())>::transport, 0, 0, 0};
        for (const auto& c : lane) {
            counts.messages += epochs;
            counts.bytes += epochs * requests_[c.index()].send_bytes;
            if constexpr (requires { c.writes(); }) counts.writes += c.writes();
        }
        result.push_back(counts);
    };
    std::apply([&](const auto&... lane) { (add(lane), ...); }, lanes_);
    return result;
}

std::size_t channel_set::size() const { return requests_.size(); }

std::string channel_set::pending(std::uint64_t epoch) const {
    std::string first;
    int more = 0;
    const auto look = [&](const auto& c) {
        // MPI's requests change when they are tested; of those the header tells.
        const bool there = c.header(epoch).epoch.load(std::memory_order_acquire) >= epoch;
        if (there) return;
        const channel_request& r = requests_[c.index()];
        if (first.empty()) {
            first = r.label + " from " + rank_text(r.peer) + " over " + std::remove_cvref_t<decltype(c)>::transport;
        } else {
            ++more;
        }
    };
    for_each(look);
    std::string text = "'" + options_.name + "' epoch " + std::to_string(epoch);
    if (!first.empty()) text += ": " + first;
    if (more > 0) text += " and " + std::to_string(more) + " more";
    return text;
}

} // namespace halocline::comm
