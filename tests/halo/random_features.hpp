// SPDX-License-Identifier: Apache-2.0
// What random plans have and do, counted, so that a generator that silently stops doing something fails its test.
#pragma once

#include <array>
#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>

namespace halocline_test {

/// At least so often among 10,000 plans (or their exchanges). About a third of what is expected.
struct feature {
    std::string_view name;
    int least;
};

inline constexpr std::array random_features{
    // Where the ranks are.
    feature{"one rank", 300},
    feature{"8 ranks or more", 400},
    feature{"uneven cut", 2000},
    feature{"shuffled ranks", 1200},
    feature{"box of extent 1", 1600},
    feature{"box of extent 8 or more", 1500},
    feature{"box of 1000 sites or more", 350},
    feature{"odd lattice", 2700},
    // What is exchanged.
    feature{"ghosts in the plan", 1600},
    feature{"ghosts of packed messages", 650},
    feature{"padded ghosts", 800},
    feature{"appended ghosts", 800},
    feature{"width 0", 2600},
    feature{"width 2", 1900},
    feature{"width 3", 1300},
    feature{"widths that differ by side", 2400},
    feature{"ghosts as wide as a box", 2000},
    feature{"open edge", 2600},
    feature{"parity", 1100},
    feature{"selection", 550},
    feature{"corners at once", 800},
    feature{"corners by dimension", 250},
    feature{"self-exchange", 550},
    feature{"even/odd order", 1100},
    feature{"blocked order", 1100},
    feature{"4 lanes", 270},
    feature{"8 lanes", 270},
    feature{"16 lanes", 270},
    feature{"several fields", 1600},
    feature{"components of 1 B", 180},
    feature{"components of 4 B", 1600},
    feature{"components of 8 B", 1400},
    feature{"checksums", 400},
    feature{"checks normal", 1300},
    feature{"order the plan was not made for", 550},
    // How the bytes travel.
    feature{"message direct", 1500},
    feature{"message streamed", 500},
    feature{"message joint", 450},
    feature{"message packed", 1000},
    feature{"by slot or into the field", 15},
    feature{"message of 64 KiB or more", 90},
    feature{"joint message of 64 KiB or more", 8},
    feature{"message of 512 KiB or more", 1},
    feature{"sources in slabs", 1200},
    feature{"messages offered to receivers", 120},
    feature{"pieces copied by receivers", 0}, // only counted: it takes one that waits while its sender copies
    feature{"all fields in slabs", 550},
    feature{"only some fields in slabs", 500},
    feature{"another binding", 600},
    feature{"bindings that differ by rank", 1000},
    feature{"destination apart from source", 400},
    feature{"reverse", 500},
    feature{"reverse is the adjoint", 300},
    // What messages hold.
    feature{"projection", 400},
    feature{"phases", 330},
    feature{"ghosts times a phase", 330},
    feature{"ghosts times a complex phase", 90},
    feature{"phases in reverse", 110},
    feature{"ghosts as half", 130},
    feature{"ghosts as bfloat16", 130},
    feature{"ghosts scaled", 130},
    feature{"formats in reverse", 85},
    feature{"format half", 130},
    feature{"format bfloat16", 140},
    feature{"expanded and added", 1600},
    feature{"adjoint of packing", 400},
    // What is called.
    feature{"start of fields", 1500},
    feature{"start by function", 450},
    feature{"start of bytes", 120},
    feature{"start of filled targets", 450},
    feature{"start by a team", 1300},
    feature{"finish by a team", 1000},
    feature{"test() between", 6000},
    feature{"test() until it is true", 1300},
    feature{"completed() between", 6000},
    feature{"ghosts read before finish()", 500},
    feature{"barrier between", 700},
    feature{"several plans under way", 2200},
    feature{"finished in another order", 1300},
    feature{"ensure_halo() of a fresh field", 1800},
    feature{"ensure_halo() of a marked field", 1800},
};

class feature_counts {
  public:
    /// Err: std::logic_error: there is no such feature.
    void note(std::string_view name, bool occurred = true) {
        for (std::size_t i = 0; i < random_features.size(); ++i) {
            if (random_features[i].name != name) continue;
            counts_[i] += occurred ? 1 : 0;
            return;
        }
        throw std::logic_error("random_features has no '" + std::string(name) + "'");
    }
    void note_plan() { ++plans_; }
    [[nodiscard]] int plans() const { return plans_; }
    void print() const {
        std::printf("%d random plans:", plans());
        for (std::size_t i = 0; i < random_features.size(); ++i)
            std::printf("%s %s %d", i == 0 ? "" : ",", std::string(random_features[i].name).c_str(), counts_[i].load());
        std::printf("\n");
    }
    /// The features that occurred too rarely for this number of plans, each with its count; empty if none did.
    [[nodiscard]] std::string rare() const {
        std::string text;
        for (std::size_t i = 0; i < random_features.size(); ++i)
            if (counts_[i] < std::int64_t{random_features[i].least} * plans_ / 10'000)
                text += std::string(random_features[i].name) + ": " + std::to_string(counts_[i]) + "\n";
        return text;
    }

  private:
    std::array<std::atomic<int>, random_features.size()> counts_{};
    std::atomic<int> plans_{0};
};

/// Those of this process; rank 0 counts.
inline feature_counts& features_seen() {
    static feature_counts counts;
    return counts;
}

} // namespace halocline_test
