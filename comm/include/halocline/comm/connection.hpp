// SPDX-License-Identifier: Apache-2.0
// A connection joins this rank with one peer, and carries windows (window.hpp). Made by the two ranks alone, so that an
// MPI program can be ported piece by piece. After pMR's connections [GeorgRichtmannWettig2016].
//
// Make all connections and windows, then connect() each: in any order, on any rank, without deadlock.
#pragma once

#include <halocline/comm/job.hpp>

#include <memory>
#include <string>

namespace halocline::comm {

class connection_core; // private: comm/src/channels/connection_core.hpp

struct connection_options {
    std::string name{};  ///< for messages, e.g. "x-low"
    int send_tag = 0;    ///< this end's receive_tag at the peer: tells the connections of a pair of ranks apart
    int receive_tag = 0; ///< this end's send_tag at the peer
};

/// A handle: its windows keep what is behind it.
class connection {
  public:
    /// Local. Ends with the same tags and peer are joined in the order in which they are made. The peer may be the own
    /// rank: then an end whose tags differ needs another with the tags exchanged, and one whose tags are equal is
    /// joined with itself.
    /// Err: input_error: no such rank, or windows don't go over the transport that serves it.
    connection(const job& j, int peer, connection_options options = {});

    /// Joins the windows made here so far: the n-th send window with the peer's n-th receive window. Waits until the
    /// peer has made them, not until it connects.
    /// Pre: the peer calls this after the same windows.
    /// Err: input_error at both ends naming both values if elements, sizes or numbers of windows differ (an end with
    /// fewer windows that connects first can't know, and goes on); rank_failure.
    void connect();

    [[nodiscard]] int peer() const;
    [[nodiscard]] const std::string& name() const;
    [[nodiscard]] const job& owner() const;
    /// For windows.
    [[nodiscard]] const std::shared_ptr<connection_core>& core() const { return core_; }

  private:
    std::shared_ptr<connection_core> core_;
};

} // namespace halocline::comm
