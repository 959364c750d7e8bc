// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/processors.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <sched.h>
#include <tuple>

namespace halocline::comm {
namespace {

/// A set of processors in the kernel's format, of any size.
class processor_set {
  public:
    explicit processor_set(int most)
        : bytes_(CPU_ALLOC_SIZE(static_cast<std::size_t>(most))), bits_(bytes_ / sizeof(unsigned long)) {}
    [[nodiscard]] cpu_set_t* data() { return reinterpret_cast<cpu_set_t*>(bits_.data()); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] bool has(int p) { return CPU_ISSET_S(static_cast<std::size_t>(p), bytes_, data()) != 0; }
    void add(int p) { CPU_SET_S(static_cast<std::size_t>(p), bytes_, data()); }

  private:
    std::size_t bytes_;
    std::vector<unsigned long> bits_;
};

constexpr int most_processors = 1 << 16;

/// The number at the start of a file, such as the first of "4-7" or "4,68"; `otherwise` if there is none.
int number_in(const std::string& path, int otherwise) {
    int n = otherwise;
    if (std::ifstream file(path); file >> n) return n;
    return otherwise;
}

/// A processor's folder contains a link "node3" to its memory node.
int node_of(const std::string& folder) {
    std::error_code failed; // by ++ of a range's loop it would be thrown
    for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
         entry.increment(failed)) {
        const std::string name = entry->path().filename().string();
        if (name.starts_with("node") && name.size() > 4 && name.find_first_not_of("0123456789", 4) == name.npos)
            return std::stoi(name.substr(4));
    }
    return 0;
}

} // namespace

std::vector<int> usable_processors() {
    // The kernel refuses a set that is too small for all of its processors.
    for (int most = CPU_SETSIZE; most <= most_processors; most *= 4) {
        processor_set set(most);
        if (sched_getaffinity(0, set.bytes(), set.data()) != 0) {
            if (errno == EINVAL) continue;
            break;
        }
        std::vector<int> usable;
        for (int p = 0; p < most; ++p)
            if (set.has(p)) usable.push_back(p);
        return order_of_use(std::move(usable));
    }
    return {};
}

std::vector<int> order_of_use(std::vector<int> processors, const std::string& system) {
    std::ranges::sort(processors);
    if (processors.size() < 2) return processors;
    std::map<int, int> of_core; // core -> number of its processors seen so far
    std::map<int, std::tuple<int, int, int, int, int>> place;
    for (const int p : processors) {
        const std::string folder = system + "/cpu" + std::to_string(p), topology = folder + "/topology/";
        const int core = number_in(topology + "core_cpus_list", number_in(topology + "thread_siblings_list", p));
        const int package = number_in(topology + "physical_package_id", 0);
        const int cache = number_in(folder + "/cache/index3/shared_cpu_list", 0);
        place[p] = {of_core[core]++, package, node_of(folder), cache, core};
    }
    std::ranges::stable_sort(processors, {}, [&](int p) { return place[p]; });
    return processors;
}

namespace {

/// Augmenting paths: a rank that finds all of its processors taken asks their ranks to take others.
class assignment {
  public:
    explicit assignment(const std::vector<std::vector<int>>& usable) : usable_(usable), shares_(usable.size()) {
        int most = 0;
        for (const auto& list : usable)
            for (const int p : list) most = std::max(most, p + 1);
        rank_.assign(static_cast<std::size_t>(most), nobody);
        asked_.assign(static_cast<std::size_t>(most), never);
    }

    std::vector<int> operator()() {
        for (int r = 0; r < static_cast<int>(usable_.size()); ++r) {
            turn_ = r;
            if (!place(r)) share(r);
        }
        std::vector<int> given(usable_.size(), -1);
        for (std::size_t p = 0; p < rank_.size(); ++p)
            if (rank_[p] != nobody && !shares_[rank_[p]]) given[rank_[p]] = static_cast<int>(p);
        return given;
    }

  private:
    static constexpr int nobody = -1, never = -1, in_vain = -2;

    bool place(int r) {
        const std::vector<int>& mine = usable_[r];
        for (const int p : mine)
            if (rank_[p] == nobody) return rank_[p] = r, true;
        for (const int p : mine) {
            if (asked_[p] == turn_ || asked_[p] == in_vain) continue;
            asked_[p] = turn_;
            if (place(rank_[p])) return rank_[p] = r, true;
        }
        return false;
    }

    /// The ranks that were asked in vain have no other choice than these processors: there is one rank too many.
    void share(int r) {
        shares_[r] = true;
        for (std::size_t p = 0; p < rank_.size(); ++p) {
            if (asked_[p] != turn_) continue;
            asked_[p] = in_vain;
            shares_[rank_[p]] = true;
        }
    }

    const std::vector<std::vector<int>>& usable_;
    std::vector<char> shares_; // by rank
    std::vector<int> rank_;    // by processor
    std::vector<int> asked_;   // by processor: the turn in which it was asked
    int turn_ = 0;
};

} // namespace

std::vector<int> one_processor_each(const std::vector<std::vector<int>>& usable) { return assignment(usable)(); }

bool bind_to(std::span<const int> processors) {
    if (processors.empty()) return false;
    processor_set set(std::max(CPU_SETSIZE, std::ranges::max(processors) + 1));
    for (const int p : processors) set.add(p);
    return sched_setaffinity(0, set.bytes(), set.data()) == 0;
}

std::string to_text(std::vector<int> processors) {
    std::ranges::sort(processors);
    std::string text;
    for (std::size_t i = 0, end = 0; i < processors.size(); i = end) {
        for (end = i + 1; end < processors.size() && processors[end] == processors[end - 1] + 1;) ++end;
        text += (text.empty() ? "" : ",") + std::to_string(processors[i]);
        if (end - i > 1) text += "-" + std::to_string(processors[end - 1]);
    }
    return text;
}

} // namespace halocline::comm
