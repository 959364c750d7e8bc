// SPDX-License-Identifier: Apache-2.0
// The control plane: set-up mail between ranks, and who is alive. Off the data path, so virtual calls are fine.
#pragma once

#include <halocline/comm/status.hpp>

#include <functional>
#include <optional>
#include <poll.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace halocline::comm {

struct job_end;

/// A set-up message that its sender does not wait for.
struct letter {
    int from = 0;
    std::string text;
};

/// What ranks of different nodes tell each other about long waits (job/stall_watch.hpp).
enum class far_word : char {
    are_you_awake, ///< to be answered by a rank that is waiting
    awake,
    told_of, ///< a rank has been reported on stderr as unresponsive
    goes_on, ///< that rank has continued
};

/// Set-up messages of any size. `operation` says in a failure what was waited for.  Err: rank_failure.
class mail {
  public:
    virtual ~mail() = default;
    /// All ranks' bytes, joined in order of rank; the same on every rank.  Pre: join is associative. `first` is the
    /// lowest rank that contributed to `upper`.
    /// Cost: O(log ranks) messages on each rank, memory for that many values.
    using joiner = std::function<std::string(const std::string& lower, const std::string& upper, int first)>;
    virtual std::string combine(std::string mine, const joiner& join, std::string_view operation) = 0;
    /// Sends out[i] to peers[i], returns what they sent; a peer may appear several times, in order; never this rank.
    virtual std::vector<std::string> exchange(std::span<const int> peers, std::span<const std::string> out,
                                              std::string_view operation) = 0;
    /// Never waits; order is kept per pair. Letters don't mix with the calls above. Never to this rank itself.
    virtual void send_letter(int peer, std::string_view text) = 0;
    /// A letter that has arrived, from any rank. Never waits; continues what send_letter began.
    virtual std::optional<letter> take_letter() = 0;
};

/// Who is alive. Safe for use by several threads at a time.
class liveness {
  public:
    virtual ~liveness() = default;
    /// Looks for deaths and writes what it finds to the failure records (job_core::publish).
    virtual void look() noexcept = 0;
    /// True if that rank closed its job in good order.
    [[nodiscard]] virtual bool left(int rank) const noexcept = 0;
    /// Descriptors that become readable or hang up when a peer's process or link ends, for sleeping until then.
    virtual std::vector<pollfd> ends() const { return {}; }
    /// The job has ended here: reports it to ranks whose failure records can't be written from this one.
    virtual void tell_far(const job_end& /*end*/) noexcept {}
    /// To a rank of another node, or to all (-1). A rank is asked again only after it has answered.
    virtual void say_far(int /*rank*/, far_word /*word*/, int /*about*/) noexcept {}
    /// The pid of that rank as this process sees it; 0 if it is on another node or in another pid namespace, or this
    /// rank.
    [[nodiscard]] virtual int pid_here(int /*rank*/) const noexcept { return 0; }
};

/// combine and exchange, built on one primitive: queues of messages between pairs.
class pairwise_mail : public mail {
  public:
    pairwise_mail(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
    // A binomial tree: when rank r reports to r - step, it speaks for [r, r + step).
    std::string combine(std::string mine, const joiner& join, std::string_view operation) override {
        std::vector<int> below;
        int step = 1;
        for (; step < ranks_ && rank_ % (2 * step) == 0; step *= 2)
            if (rank_ + step < ranks_) below.push_back(rank_ + step);
        for (const int r : below) mine = join(mine, transfer({}, {}, {&r, 1}, operation).front(), r);
        const int above = rank_ - step;
        if (rank_ != 0) mine = transfer({&above, 1}, {&mine, 1}, {&above, 1}, operation).front();
        if (!below.empty()) transfer(below, std::vector<std::string>(below.size(), mine), {}, operation);
        return mine;
    }
    std::vector<std::string> exchange(std::span<const int> peers, std::span<const std::string> out,
                                      std::string_view operation) override {
        return transfer(peers, out, peers, operation);
    }

  protected:
    /// Sends out[i] to `to[i]` and receives one message from each of `from`, in order per pair.
    virtual std::vector<std::string> transfer(std::span<const int> to, std::span<const std::string> out,
                                              std::span<const int> from, std::string_view operation) = 0;
    int rank_, ranks_;
};

} // namespace halocline::comm
