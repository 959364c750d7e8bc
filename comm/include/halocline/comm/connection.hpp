// SPDX-License-Identifier: Apache-2.0
// A connection joins this rank with one peer and carries windows (window.hpp). The two ranks make it without the
// others, so an MPI program can be ported piece by piece. Modelled on the connections of pMR [Georg2016].
//
// Make all connections and windows first, then connect() each, in any order on any rank: nothing can deadlock.
#pragma once

#include <halocline/base/checked_pointer.hpp>
#include <halocline/comm/job.hpp>

#include <memory>
#include <string>

namespace halocline::comm {

class connection_core; // private: comm/src/channels/connection_core.hpp

struct connection_options {
    std::string name{};  ///< in error messages and reports, e.g. "x-low"
    int send_tag = 0;    ///< equals the peer's receive_tag; tags distinguish the connections between two ranks
    int receive_tag = 0; ///< equals the peer's send_tag
};

/// A handle; windows keep the connection behind it alive.
class connection {
  public:
    /// Local: nothing is sent yet. Ends with the same peer and tags are joined in the order in which they are made. If
    /// the peer is this rank itself, an end with two different tags needs another end with the tags swapped, and an end
    /// with two equal tags is joined with itself.
    /// Err: input_error: no such rank, or the transport that serves it has no windows.
    connection(const comm::job& j, int peer, connection_options options = {});

    /// Joins the windows made here so far: the n-th send window with the peer's n-th receive window, and vice versa.
    /// Waits until the peer has made its windows, not until it connects.
    /// Pre: the peer calls connect() after making the same windows.
    /// Err: input_error at both ends, with both values, if element types, sizes or numbers of windows differ (an end
    ///      with fewer windows that connects first can't know, and continues), or if ranks wait here in a circle, each
    ///      for a window that the next has not made, because tags differ or windows are made too late; any call after a
    ///      refused one; rank_failure.
    void connect();

    [[nodiscard]] int peer() const;
    [[nodiscard]] const std::string& name() const;
    [[nodiscard]] const comm::job& job() const;
    /// Used by windows.
    [[nodiscard]] const std::shared_ptr<connection_core>& core() const {
        (void)*core_; // throws if this was moved from
        return core_.pointer();
    }

  private:
    checked_pointer<std::shared_ptr<connection_core>> core_;
};

} // namespace halocline::comm
