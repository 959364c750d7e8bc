// SPDX-License-Identifier: Apache-2.0
// Numbers, lists and positions of sites in a row of bytes: what the ends of a message tell each other while a plan is
// made.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/halo/detail/position_list.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace halocline::halo {

static_assert(std::has_unique_object_representations_v<position_run>); // thousands of them are sent as raw bytes

/// Writes numbers in a row. The reader below has the same members, so that one function defines the contents of the row
/// and their order for both.
class row_writer {
  public:
    template <class T>
    void number(const T& n) {
        const auto wide = static_cast<std::int64_t>(n);
        bytes_.append(reinterpret_cast<const char*>(&wide), sizeof wide);
    }
    template <class T, class Each>
    void list(const std::vector<T>& all, Each&& each) {
        number(all.size());
        for (const T& one : all) each(one);
    }
    template <class Key, class T>
    void map(const std::map<Key, T>& all) {
        number(all.size());
        for (const auto& [key, value] : all) {
            number(key);
            number(value);
        }
    }
    void positions(const position_list& all) {
        number(all.runs().size());
        bytes_.append(reinterpret_cast<const char*>(all.runs().data()), all.runs().size_bytes());
    }
    [[nodiscard]] std::string take() { return std::move(bytes_); }

  private:
    std::string bytes_;
};

class row_reader {
  public:
    explicit row_reader(std::string_view bytes) : rest_(bytes) {}
    template <class T>
    void number(T& n) {
        std::int64_t next = 0;
        copy(&next, sizeof next);
        n = static_cast<T>(next);
    }
    template <class T, class Each>
    void list(std::vector<T>& all, Each&& each) {
        all.resize(length(sizeof(std::int64_t)));
        for (T& one : all) each(one);
    }
    template <class Key, class T>
    void map(std::map<Key, T>& all) {
        for (std::size_t n = length(sizeof(std::int64_t)); n > 0; --n) {
            Key key{};
            number(key);
            number(all[key]);
        }
    }
    void positions(position_list& all) {
        std::vector<position_run> runs(length(sizeof(position_run)));
        copy(runs.data(), runs.size() * sizeof(position_run));
        all = position_list(std::move(runs));
    }
    void end() const {
        if (!rest_.empty()) refuse();
    }

  private:
    [[noreturn]] static void refuse() {
        throw error("what a peer says of its sites has another length: the ranks run different programs");
    }
    void copy(void* to, std::size_t bytes) {
        if (rest_.size() < bytes) refuse();
        if (bytes > 0) std::memcpy(to, rest_.data(), bytes);
        rest_.remove_prefix(bytes);
    }
    /// The length of a list whose entries take `bytes` or more.
    std::size_t length(std::size_t bytes) {
        std::size_t n = 0;
        number(n);
        if (n > rest_.size() / bytes) refuse();
        return n;
    }

    std::string_view rest_;
};

} // namespace halocline::halo
