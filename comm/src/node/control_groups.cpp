// SPDX-License-Identifier: Apache-2.0
#include "node/control_groups.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <sys/stat.h>

namespace halocline::comm {
namespace {

/// Is `word` in this list, separated by commas?
bool lists(const std::string& words, std::string_view word) {
    std::istringstream in(words);
    for (std::string w; std::getline(in, w, ',');)
        if (w == word) return true;
    return false;
}

/// Decodes a path in mountinfo, where space, tab, line feed and backslash are written as \040 and so on.
std::string unescaped(const std::string& text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::string digits = text.substr(i + 1, 3);
        if (text[i] != '\\' || digits.size() < 3 || digits.find_first_not_of("01234567") != digits.npos) {
            plain += text[i];
            continue;
        }
        plain += static_cast<char>(std::stoi(digits, nullptr, 8));
        i += 3;
    }
    return plain;
}

/// A mount of control groups: those of one kind are visible at `point`, from the group `root` downwards.
struct mount {
    bool second_version = false;
    std::string root, point;
};

/// Lines such as "31 23 0:28 /root /point rw,relatime shared:1 - cgroup cgroup rw,cpu" that have the controller.
std::vector<mount> mounts_of(const std::string& process, std::string_view controller) {
    std::vector<mount> found;
    std::ifstream file(process + "/mountinfo");
    for (std::string line; std::getline(file, line);) {
        const std::size_t dash = line.find(" - ");
        if (dash == line.npos) continue;
        std::string skipped, root, point, kind, source, options;
        std::istringstream(line) >> skipped >> skipped >> skipped >> root >> point;
        std::istringstream(line.substr(dash + 3)) >> kind >> source >> options;
        if (kind == "cgroup2" || (kind == "cgroup" && lists(options, controller)))
            found.push_back({kind == "cgroup2", unescaped(root), unescaped(point)});
    }
    return found;
}

/// The group that the process is in: from lines "0::/path" of version 2, or "4:cpu,cpuacct:/path" of version 1.
std::string group_of(const std::string& process, bool second_version, std::string_view controller) {
    std::ifstream file(process + "/cgroup");
    for (std::string line; std::getline(file, line);) {
        const std::size_t one = line.find(':'), two = one == line.npos ? one : line.find(':', one + 1);
        if (two == line.npos) continue;
        const std::string controllers = line.substr(one + 1, two - one - 1);
        if (second_version ? controllers.empty() : lists(controllers, controller)) return line.substr(two + 1);
    }
    return "";
}

} // namespace

std::vector<control_group> control_groups(const std::string& process, std::string_view controller) {
    std::vector<control_group> found;
    for (const mount& m : mounts_of(process, controller)) {
        // A root or a group outside of what this process may see begins with "/..": then only the mount itself remains.
        std::string group = group_of(process, m.second_version, controller);
        const std::string root = m.root == "/" ? "" : m.root;
        const bool inside = group == root || group.starts_with(root + "/");
        group = inside ? group.substr(root.size()) : "";
        while (group.ends_with("/")) group.pop_back();
        while (true) {
            const std::string folder = m.point + group;
            struct stat about {};
            if (::stat(folder.c_str(), &about) == 0) {
                const std::string name = std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
                if (std::ranges::find(found, name, &control_group::name) == found.end()) // may be mounted twice
                    found.push_back({name, folder, m.second_version});
            }
            if (group.empty()) break;
            group.resize(group.rfind('/'));
        }
    }
    return found;
}

} // namespace halocline::comm
