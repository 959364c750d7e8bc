// SPDX-License-Identifier: Apache-2.0
// Small calls on neighbours (active messages): a function from a table and an argument of plain bytes go into a ring,
// and the neighbour runs them in progress(). Calls between two ranks run in order. There is no return value; the
// function itself may send something back.
#pragma once

#include <halocline/base/checked_pointer.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace halocline::comm {

class rma_segment; // private: comm/src/one_sided/rma_segment.hpp

inline constexpr std::size_t largest_remote_argument = 96; ///< bytes

/// A function of the table, and the type of its argument.
template <class Argument>
requires std::is_trivially_copyable_v<Argument> &&(sizeof(Argument) <= largest_remote_argument) struct remote_function {
    std::uint32_t number = 0;
};

/// What neighbours may call: the same functions in the same order on every rank.
class remote_functions {
  public:
    static constexpr std::size_t largest_argument = largest_remote_argument;

    /// work(from, argument) runs in progress() of the called rank; `from` is a position in its list of neighbours.
    template <class Argument, class Work>
    remote_function<Argument> add(const std::string& name, Work work) {
        table_.push_back([work = std::move(work)](std::size_t from, const std::byte* bytes) mutable {
            Argument argument;
            std::memcpy(&argument, bytes, sizeof argument);
            work(from, std::as_const(argument));
        });
        shape_ += name + "(" + std::to_string(sizeof(Argument)) + " bytes) ";
        return {static_cast<std::uint32_t>(table_.size() - 1)};
    }

  private:
    friend class remote_calls;
    std::vector<std::function<void(std::size_t, const std::byte*)>> table_;
    std::string shape_;
};

class remote_calls {
  public:
    /// `room`: calls to one neighbour that may be queued. Collective over the job.
    /// Err: input_error: ranks with different functions; neighbours that don't name each other, or are named twice;
    /// slab_full; job_error.
    remote_calls(const job& j, std::span<const int> neighbours, remote_functions functions, std::size_t room = 64,
                 const std::string& name = "remote calls");
    remote_calls(remote_calls&&) noexcept;
    remote_calls& operator=(remote_calls&&) noexcept;
    ~remote_calls();

    /// Puts a call into neighbour n's ring; false if there is no room now (the neighbour's progress() makes some), or
    /// no such neighbour. Never waits, allocates or locks.
    template <class Argument>
    [[nodiscard]] bool try_call(std::size_t n, remote_function<Argument> f, const Argument& argument) noexcept {
        return put(n, f.number, &argument, sizeof argument);
    }
    /// try_call() that waits for room, and meanwhile runs the calls that arrive here. ok: it is on its way; a neighbour
    /// that ends its object before it has come does not run it.
    /// Pre: not called from a function of the table.
    /// Err: misused: no such neighbour; aborted: it has ended its object; what the functions throw.
    template <class Argument>
    [[nodiscard]] status call(std::size_t n, remote_function<Argument> f, const Argument& argument) {
        return call_bytes(n, f.number, &argument, sizeof argument);
    }
    /// Runs the calls that have arrived, and returns their number. Where ranks share a core, a call that finds nothing
    /// yields it, so that this may be called in a loop. Such a loop does not learn that a rank has died: the watchdog
    /// then ends the process. progress_until() reports it.
    /// Err: what a function throws, and input_error: a function that this table does not have; the call counts as run.
    std::size_t progress();
    /// Runs the calls that arrive until done() is true, and reports who has died.  Err: as progress().
    [[nodiscard]] status progress_until(const std::function<bool()>& done);

  private:
    struct slot;
    std::size_t run();
    /// Runs the calls that arrive until done() is true. What it waits for is up to that neighbour, or to any; the
    /// deadline limits how long none of its calls arrives.
    template <class Done>
    status wait_until(std::optional<std::size_t> of, Done&& done);
    bool put(std::size_t n, std::uint32_t function, const void* argument, std::size_t bytes) noexcept;
    status call_bytes(std::size_t n, std::uint32_t function, const void* argument, std::size_t bytes);

    remote_functions functions_;
    std::size_t room_ = 0;
    checked_pointer<std::unique_ptr<rma_segment>> segment_;
    std::vector<std::uint64_t> sent_, done_; // calls, per neighbour
    std::uint64_t fruitless_tests_ = 0;
};

} // namespace halocline::comm
