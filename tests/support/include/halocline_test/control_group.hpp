// SPDX-License-Identifier: Apache-2.0
// Control groups with real limits, for programs that should notice them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace halocline_test {

/// A control group that vanishes with this object; there() is false where none with these limits can be made.
class control_group {
  public:
    /// A place where groups are made, the files that set the limits there, and what they are set to. `controller`: what
    /// has to be switched on for the groups of that place, if it isn't.
    struct kind {
        std::filesystem::path mount;
        std::vector<std::pair<std::string, std::string>> limits;
        std::string controller = {};
    };
    /// As the first of these that can be made.
    explicit control_group(const std::vector<kind>& kinds) {
        for (const kind& k : kinds)
            if (!there()) make(k);
    }
    ~control_group() {
        std::error_code ignored;
        if (there()) std::filesystem::remove(where_, ignored);
        if (!switched_on_.empty()) write(switch_file(where_.parent_path()), "-" + switched_on_);
    }
    control_group(const control_group&) = delete;
    control_group& operator=(const control_group&) = delete;

    [[nodiscard]] bool there() const { return !where_.empty(); }
    /// The file to which a process that joins writes its number.
    [[nodiscard]] std::string processes() const { return where_ / "cgroup.procs"; }

  private:
    static bool write(const std::filesystem::path& file, const std::string& text) {
        std::ofstream out(file);
        out << text << std::flush;
        return out.good();
    }
    static std::filesystem::path switch_file(const std::filesystem::path& mount) {
        return mount / "cgroup.subtree_control";
    }
    /// False also if that place's own group contains processes, which forbids it.
    static bool switch_on(const std::filesystem::path& mount, const std::string& controller) {
        std::ifstream in(switch_file(mount));
        for (std::string on; in >> on;)
            if (on == controller) return false;
        return write(switch_file(mount), "+" + controller);
    }
    void make(const kind& k) {
        if (!std::filesystem::exists(k.mount / "cgroup.procs")) return;
        const bool switched = !k.controller.empty() && switch_on(k.mount, k.controller);
        std::string name = (k.mount / "halocline-test-XXXXXX").string();
        bool made = ::mkdtemp(name.data()) != nullptr;
        const bool has_folder = made;
        for (const auto& [file, limit] : k.limits)
            made = made && std::filesystem::exists(std::filesystem::path(name) / file) &&
                   write(std::filesystem::path(name) / file, limit);
        if (made) {
            where_ = name;
            if (switched) switched_on_ = k.controller;
            return;
        }
        std::error_code ignored;
        if (has_folder) std::filesystem::remove(name, ignored);
        if (switched) write(switch_file(k.mount), "-" + k.controller);
    }

    std::filesystem::path where_;
    std::string switched_on_; ///< controller
};

} // namespace halocline_test
