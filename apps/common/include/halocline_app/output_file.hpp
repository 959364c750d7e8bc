// SPDX-License-Identifier: Apache-2.0
// Files that a program writes after work that would be lost: checked before the work, and written completely or not at
// all. A link stays: the file that it leads to is written, also if it is not there yet.
#pragma once

#include <halocline_app/main.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace halocline::app {

/// What a run reads and writes, by the flags that name it; the config file that every program reads is among them.
class run_files {
  public:
    run_files();
    /// "" is no file.
    run_files& add(std::string flag, std::string path);
    /// The flag of the file to which `path` leads, whatever it is called there; of several the one that was added first.
    /// nullptr: it is none of them, or that of `except`.  Cost: each file is looked at once, by the first call that
    /// gets to it.
    [[nodiscard]] const std::string* flag_of(const std::string& path, const std::string& except = "") const;

  private:
    struct identity {
        std::string place;                                ///< where it is, or will be
        std::optional<std::array<std::uint64_t, 2>> node; ///< device and inode, if it is there
    };
    struct file {
        std::string flag, path;
        mutable std::optional<identity> known; ///< once flag_of() has looked at it
    };
    [[nodiscard]] static identity identify(const std::string& path);

    std::vector<file> files_;
};

/// Err: input_error if `path` is "-", which elsewhere means standard output; programs print their progress there.
/// `may_be_stream`: would /dev/stdout do?
void refuse_dash(const std::string& flag, const std::string& path, bool may_be_stream);

/// Rank 0 checks that `path`, a file of which ranks write parts, can be written, before hours of computing, and every
/// rank that it sees what rank 0 writes there; nothing is left behind. A part left by a killed run is reported, and
/// stays until it is replaced. "" is no file. Collective.
/// `others`: what else the run reads and writes. Neither the file nor its partial file may take their place.
/// Err: input_error that names the flag, and the process that is writing the same file if there is one, or the rank
/// that can't see the file.
void check_output(const program& p, const std::string& flag, const std::string& path, const run_files& others);

/// check_output() for files of one folder: all but the first are only looked at, without making a file. Collective.
/// Err: as check_output().
void check_outputs(const program& p, const std::string& flag, const std::vector<std::string>& paths,
                   const run_files& others);

/// Every rank checks that its files may have that size (ulimit -f), and rank 0 that the disk of `path` has room for new
/// `files` of it in that folder, written in that order; each takes the place of an older one once it is complete. File
/// systems that do not say how much is free pass. `path` "" is no file. Collective.
/// Err: input_error that names the flag and both numbers.
void check_room(const comm::job& j, const std::string& flag, const std::string& path, std::int64_t bytes,
                const std::vector<std::string>& files);

/// A text that rank 0 writes. A pipe, a device or an open file (/dev/null, /dev/stdout) will do too: it is opened before
/// the work, so that a pipe without a reader is reported then, and appended to at the end. Pre: p.joined(), and p
/// outlives it.
class text_output {
  public:
    /// "" is no file. `others` as for check_output(); this file may be among them. Collective.  Err: input_error that names the
    /// flag.
    text_output(const program& p, const std::string& flag, const std::string& path, const run_files& others);
    ~text_output();
    text_output(const text_output&) = delete;
    text_output& operator=(const text_output&) = delete;

    /// Adds to what was written before. A file is replaced by all of it, and is a lattice::partial_file until it is
    /// complete; a stream gets what is new. A failure is recorded as lost output of the program, once this object is
    /// destroyed if it is that of a file, because a later call that succeeds makes up for it.
    void write(const std::string& text);

  private:
    void open(const run_files& others);

    const program& program_;
    std::string flag_, path_;
    std::string written_; ///< rank 0's, to a file
    std::string lost_;    ///< why the file lacks some of it
    int stream_ = -1;     ///< rank 0's, if it is a pipe, a device or an open file
};

} // namespace halocline::app
