// SPDX-License-Identifier: Apache-2.0
// A file that takes a while to write, or that several ranks write, has a temporary name until it is complete and on
// disk, so that nobody reads half of it. All runs use the same temporary name, and a lock on it shows which run is
// writing. If each run chose its own name, two runs with the same output would not notice each other: the later one's
// results would silently replace the earlier one's, and leftovers of killed runs would pile up.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace halocline::lattice {

/// The file that is written for `path`: where a link leads, whether or not there is a file yet. A link in a circle, or
/// to what is no regular file, stays as it is.
std::string link_target(const std::string& path);
/// The name of `path` until it is complete: link_target(path).partial.
std::string partial_name(const std::string& path);
/// Whoever is writing `path` now, such as "process 17 (coarse_solve)"; "" if nobody is, or the file system has no
/// locks. A partial file without a writer was left by a killed run.  Err: file_error if it can't be opened to see that.
std::string partial_writer(const std::string& path);

/// A file being written. It gets the permissions of the file that it replaces. Its lock belongs to this process, and
/// vanishes with it however it ends.
class partial_file {
  public:
    /// How long create() waits for another run.
    static constexpr std::chrono::milliseconds patience{2000};

    explicit partial_file(const std::string& path);
    partial_file(const partial_file&) = delete;
    partial_file& operator=(const partial_file&) = delete;
    /// Removes the file if it was created and not published.
    ~partial_file();

    [[nodiscard]] const std::string& name() const { return name_; }
    /// Which file name() leads to, in words that are the same on all hosts that see it. On several hosts, or after a
    /// run that was killed, the name may lead to different files.  Err: file_error if it can't be read.
    [[nodiscard]] std::string identity() const;
    /// Makes an empty file called name(), replacing one that a killed run left. Waits up to `patience` for a run that
    /// is writing it.
    /// Err: file_error, among others if that run is still writing, or if nobody can tell because a file of that name
    /// can't be opened; input_error if `path` exists and is not a regular file.
    void create();
    /// Renames it to link_target(path), durably.  Pre: created, and its content is on disk.  Err: file_error.
    void publish();

  private:
    std::string path_, name_;
    int lock_ = -1; ///< open, and locked if the file system can; -1 unless created and not published
};

/// Writes a small file completely or not at all, on one rank.  Err: as create(), and file_error if the disk is full.
void write_text_file(const std::string& path, std::string_view text);

} // namespace halocline::lattice
