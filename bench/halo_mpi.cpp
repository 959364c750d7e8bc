// SPDX-License-Identifier: Apache-2.0
// How long does an exchange of bench/halo take with plain MPI, as written by an expert?
//   echo "in-place appended 8 8 8 8 96 1 1 1 2 0.5" | mpirun -n 2 bench_halo_openmpi
//
// Compiled once per MPI; driven by bench_halo --peer. Each line of standard input is an order: mode, layout, extents of
// the local box, bytes per site, rank grid (of a single rank 1 where it exchanges with itself, else 0), seconds. The
// answer is one line: microseconds of the slowest rank for each
// batch, by measure, separated by ';'. Between orders every rank sleeps, so that others can use its cores. Modes:
//   packed          persistent requests; faces copied into messages, and out of them if padded
//   in-place        persistent requests, straight from the field: bytes if the face is contiguous, else a datatype
//   neighbour       MPI_Neighbor_alltoallw of these datatypes
//   neighbour-init  the same, persistent (MPI 4)

#include "halo/exchange_order.hpp"
#include "halo/timed_slice.hpp"
#include "support/huge_pages.hpp"
#include "support/mpi_peer.hpp"

#include <cstdio>
#include <deque>
#include <optional>
#include <string>

namespace {

using namespace halocline;
using namespace halocline::bench;

/// Gives up if the line is not an order for `ranks` ranks.
exchange_order order_of(const std::string& line, int ranks) {
    const std::optional<exchange_order> o = exchange_order::parse(line, ranks);
    const bool known = o && (o->mode == "packed" || o->mode == "in-place" || o->mode == "neighbour" ||
                             (o->mode == "neighbour-init" && MPI_VERSION >= 4));
    if (!known)
        give_up("'" + line +
                "' is no order 'packed|in-place|neighbour|neighbour-init (from MPI 4 on) appended|padded Lx Ly Lz Lt "
                "bytes gx gy gz gt seconds' with extents from 2 on, a multiple of 8 bytes, and faces to exchange for " +
                std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks"));
    return *o;
}

/// A region as MPI sends it: bytes if it is contiguous, else one item of a datatype.
class field_type {
  public:
    explicit field_type(const region& r) {
        const strided_copy shape(r, r);
        if (shape.contiguous()) {
            count_ = static_cast<int>(shape.run_bytes());
            return;
        }
        MPI_Type_contiguous(static_cast<int>(shape.run_bytes()), MPI_BYTE, &type_);
        for (const strided_copy::loop& l : shape.loops()) {
            if (l.count == 1) continue;
            MPI_Datatype inner = type_;
            MPI_Type_create_hvector(static_cast<int>(l.count), 1, static_cast<MPI_Aint>(l.from), inner, &type_);
            MPI_Type_free(&inner);
        }
        MPI_Type_commit(&type_);
    }
    ~field_type() {
        if (type_ != MPI_BYTE) MPI_Type_free(&type_);
    }
    field_type(const field_type&) = delete;
    field_type& operator=(const field_type&) = delete;
    [[nodiscard]] MPI_Datatype type() const { return type_; }
    [[nodiscard]] int count() const { return count_; }

  private:
    MPI_Datatype type_ = MPI_BYTE;
    int count_ = 1;
};

/// What all modes have in common: the field, where ghosts arrive, the datatypes of both.
class exchange_base {
  public:
    exchange_base(const point& p, int rank) : box_(p, rank), field_(memory_.take(box_.bytes())), source_(box_, field_) {
        // As in one_copy.hpp: else source and target of a copy would lie at the same place in their pages, which would
        // make loads wait for stores.
        (void)memory_.take(1024);
        for (const box_face& f : box_.faces) {
            sent_.emplace_back(f.send);
            arriving_.emplace_back(f.ghosts);
            if (!p.padded) appended_.push_back(memory_.take(f.ghosts.bytes()));
        }
    }
    exchange_base(const exchange_base&) = delete;
    exchange_base& operator=(const exchange_base&) = delete;

    tracked_field& source() { return source_; }
    const std::byte* ghosts(std::size_t f) { return base(f); }

  protected:
    [[nodiscard]] std::byte* base(std::size_t f) { return box_.of.padded ? field_ : appended_[f]; }
    [[nodiscard]] std::size_t faces() const { return box_.faces.size(); }

    local_box box_;
    huge_memory memory_; ///< of everything below: pages as ours and the limit's
    std::byte* field_;
    tracked_field source_;
    std::vector<std::byte*> appended_; ///< ghosts, by face
    std::deque<field_type> sent_, arriving_;
};

/// Persistent requests. What leaves at face f has tag f and arrives behind the opposite face.
class persistent : public exchange_base {
  public:
    persistent(const point& p, int rank, bool packed)
        : exchange_base(p, rank), packed_(packed), requests_(2 * faces()) {
        for (std::size_t f = 0; f < faces(); ++f) {
            const box_face& face = box_.faces[f];
            const region message = region_of({{}, face.send.extents}, face.send.extents, p.bytes_per_site);
            const auto bytes = static_cast<int>(message.bytes());
            const int tag = static_cast<int>(f), tag_there = static_cast<int>(local_box::opposite(f));
            const bool unpacked = packed && p.padded;
            if (packed) {
                pack_.emplace_back(face.send, message);
                outgoing_.push_back(memory_.take(message.bytes()));
                MPI_Send_init(outgoing_[f], bytes, MPI_BYTE, face.peer, tag, MPI_COMM_WORLD, &requests_[faces() + f]);
            } else {
                MPI_Send_init(field_ + face.send.offset, sent_[f].count(), sent_[f].type(), face.peer, tag,
                              MPI_COMM_WORLD, &requests_[faces() + f]);
            }
            if (unpacked) {
                unpack_.emplace_back(message, face.ghosts);
                incoming_.push_back(memory_.take(message.bytes()));
                MPI_Recv_init(incoming_[f], bytes, MPI_BYTE, face.peer, tag_there, MPI_COMM_WORLD, &requests_[f]);
            } else {
                MPI_Recv_init(base(f) + face.ghosts.offset, arriving_[f].count(), arriving_[f].type(), face.peer,
                              tag_there, MPI_COMM_WORLD, &requests_[f]);
            }
        }
    }
    ~persistent() {
        for (MPI_Request& r : requests_) MPI_Request_free(&r);
    }
    void exchange() {
        const int n = static_cast<int>(faces());
        MPI_Startall(n, requests_.data());
        for (std::size_t f = 0; f < pack_.size(); ++f) { // a message is sent while the next is packed
            pack_[f](outgoing_[f], field_);
            MPI_Start(&requests_[faces() + f]);
        }
        if (!packed_) MPI_Startall(n, requests_.data() + n);
        MPI_Waitall(n, requests_.data(), MPI_STATUSES_IGNORE);
        for (std::size_t f = 0; f < unpack_.size(); ++f) unpack_[f](field_, incoming_[f]);
        MPI_Waitall(n, requests_.data() + n, MPI_STATUSES_IGNORE);
    }

  private:
    bool packed_;
    std::vector<MPI_Request> requests_; ///< receives, then sends
    std::vector<strided_copy> pack_, unpack_;
    std::vector<std::byte*> outgoing_, incoming_;
};

/// A collective over a graph of neighbours. Two faces may have the same neighbour, whose messages to us then match in
/// the order in which both sides list them: the opposite faces, in the order of ours.
class neighbour : public exchange_base {
  public:
    neighbour(const point& p, int rank, [[maybe_unused]] bool init) : exchange_base(p, rank) {
        std::vector<int> sources, destinations;
        for (std::size_t f = 0; f < faces(); ++f) {
            destinations.push_back(box_.faces[f].peer);
            sources.push_back(box_.faces[local_box::opposite(f)].peer);
            const std::size_t behind = local_box::opposite(f);
            send_types_.push_back(sent_[f].type());
            send_counts_.push_back(sent_[f].count());
            send_offsets_.push_back(static_cast<MPI_Aint>(box_.faces[f].send.offset));
            receive_types_.push_back(arriving_[behind].type());
            receive_counts_.push_back(arriving_[behind].count());
            MPI_Aint arrives = 0; // from MPI_BOTTOM: ghosts may lie in several buffers
            MPI_Get_address(base(behind) + box_.faces[behind].ghosts.offset, &arrives);
            receive_offsets_.push_back(arrives);
        }
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(faces()), sources.data(), MPI_UNWEIGHTED,
                                       static_cast<int>(faces()), destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                       &graph_);
#if MPI_VERSION >= 4
        if (init)
            MPI_Neighbor_alltoallw_init(field_, send_counts_.data(), send_offsets_.data(), send_types_.data(),
                                        MPI_BOTTOM, receive_counts_.data(), receive_offsets_.data(),
                                        receive_types_.data(), graph_, MPI_INFO_NULL, &request_);
#endif
    }
    ~neighbour() {
        if (request_ != MPI_REQUEST_NULL) MPI_Request_free(&request_);
        MPI_Comm_free(&graph_);
    }
    void exchange() {
        if (request_ == MPI_REQUEST_NULL) {
            MPI_Neighbor_alltoallw(field_, send_counts_.data(), send_offsets_.data(), send_types_.data(), MPI_BOTTOM,
                                   receive_counts_.data(), receive_offsets_.data(), receive_types_.data(), graph_);
            return;
        }
        MPI_Start(&request_);
        MPI_Wait(&request_, MPI_STATUS_IGNORE);
    }

  private:
    std::vector<int> send_counts_, receive_counts_;
    std::vector<MPI_Datatype> send_types_, receive_types_;
    std::vector<MPI_Aint> send_offsets_, receive_offsets_;
    MPI_Comm graph_ = MPI_COMM_NULL;
    MPI_Request request_ = MPI_REQUEST_NULL;
};
static_assert(exchanger<persistent> && exchanger<neighbour>);

template <exchanger E>
void measure(E&& e, double seconds, int rank) {
    const auto greatest = [](double x) {
        MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return x;
    };
    std::vector<double> us = timed_slice(e, seconds, greatest);
    if (!verified(e)) give_up("wrong ghosts on rank " + std::to_string(rank));
    MPI_Allreduce(MPI_IN_PLACE, us.data(), static_cast<int>(us.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank != 0) return;
    for (std::size_t i = 0; i < us.size(); ++i)
        std::printf("%s%.4f", i == 0 ? "" : i % batches == 0 ? ";" : " ", us[i]);
    std::printf("\n");
    std::fflush(stdout);
}

void serve(orders& from) {
    const auto read = [&](const std::string& line) { return order_of(line, from.ranks()); };
    for (std::string line; !(line = from.next(read)).empty();) {
        const exchange_order o = read(line);
        if (o.mode.starts_with("neighbour"))
            measure(neighbour(o.where, from.rank(), o.mode == "neighbour-init"), o.seconds, from.rank());
        else
            measure(persistent(o.where, from.rank(), o.mode == "packed"), o.seconds, from.rank());
    }
}

} // namespace

int main(int argc, char** argv) { return run_peer(argc, argv, serve); }
