// SPDX-License-Identifier: Apache-2.0
// The control plane: set-up mail between ranks, and who is alive. Apart from the data path, so virtual calls are fine.
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

struct failure_record;

/// A set-up message that its sender does not wait for.
struct letter {
    int from = 0;
    std::string text;
};

/// What ranks of different nodes tell each other of long waits (job/stall_watch.hpp).
enum class far_word : char {
    are_you_awake, ///< to be answered by a rank that waits
    awake,
    told_of, ///< it is said on stderr that a rank is unresponsive
    goes_on, ///< that rank
};

/// Set-up messages of any size. `operation` says what is waited for in a failure.  Err: rank_failure.
class mail {
  public:
    virtual ~mail() = default;
    /// All ranks' bytes, joined in order of rank; the same on every rank.  Pre: join is associative. `first` is the
    /// lowest rank that `upper` is of.
    /// Cost: O(log ranks) messages on each rank, memory of so many values.
    using joiner = std::function<std::string(const std::string& lower, const std::string& upper, int first)>;
    virtual std::string combine(std::string mine, const joiner& join, std::string_view operation) = 0;
    /// Sends out[i] to peers[i], returns what they sent; a peer may appear several times, in order; never the own rank.
    virtual std::vector<std::string> exchange(std::span<const int> peers, std::span<const std::string> out,
                                              std::string_view operation) = 0;
    /// Never waits; order is kept per pair. Letters and the calls above do not see each other. Never to the own rank.
    virtual void send_letter(int peer, std::string_view text) = 0;
    /// A letter that has come, from anybody. Never waits; moves on what send_letter began.
    virtual std::optional<letter> take_letter() = 0;
};

/// Who is alive. Of use to several threads at a time.
class liveness {
  public:
    virtual ~liveness() = default;
    /// Looks for deaths and writes what it finds to the failure records (job_core::publish).
    virtual void look() noexcept = 0;
    /// True if that rank closed its job in good order.
    [[nodiscard]] virtual bool left(int rank) const noexcept = 0;
    /// What becomes readable or hangs up when a peer's process or link ends: for who sleeps until then.
    virtual std::vector<pollfd> ends() const { return {}; }
    /// The job has ended here: tells ranks whose failure records can't be written from this one.
    virtual void tell_far(const failure_record& /*end*/) noexcept {}
    /// To a rank of another node, or to all (-1). A rank is asked again only after it has answered.
    virtual void say_far(int /*rank*/, far_word /*word*/, int /*about*/) noexcept {}
    /// The number of that rank's process as this one sees it; 0: it is of another node or pid namespace, or this one.
    [[nodiscard]] virtual int pid_here(int /*rank*/) const noexcept { return 0; }
};

/// combine and exchange from one primitive: queues of messages between pairs.
class pairwise_mail : public mail {
  public:
    pairwise_mail(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
    std::string combine(std::string mine, const joiner& join, std::string_view operation) override;
    std::vector<std::string> exchange(std::span<const int> peers, std::span<const std::string> out,
                                      std::string_view operation) override;

  protected:
    /// Sends out[i] to `to[i]` and receives one message from each of `from`, in order per pair.
    virtual std::vector<std::string> transfer(std::span<const int> to, std::span<const std::string> out,
                                              std::span<const int> from, std::string_view operation) = 0;
    int rank_, ranks_;
};

} // namespace halocline::comm
