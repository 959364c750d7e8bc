// SPDX-License-Identifier: Apache-2.0
// Which field a plan's ghosts are copies of, and whether it has been written since.
#pragma once

#include <cstdint>
#include <vector>

namespace halocline::halo {

class sent_field {
  public:
    /// No field.
    sent_field() = default;
    /// The field with these values, in this version, sent by this exchange; `sum` is the checksum of what was sent, if
    /// required (check_level::normal).
    sent_field(const void* values, std::uint64_t version, std::uint64_t epoch, std::uint64_t sum = 0)
        : values_(values), version_(version), epoch_(epoch), sum_(sum) {}

    /// False for a field without storage, whose values are null.
    [[nodiscard]] bool is_of(const void* values) const noexcept { return values != nullptr && values_ == values; }
    /// The exchange that sent it.
    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
    /// Are the ghosts of exchange `epoch` this field's, and was it not marked as written since? False for one that
    /// can't be marked, whose version is 0.
    [[nodiscard]] bool is_fresh(const void* values, std::uint64_t version, std::uint64_t epoch) const noexcept {
        return is_of(values) && version != 0 && version_ == version && epoch_ == epoch;
    }
    static constexpr const char* unmarked = "was written since, without mark_written()";
    /// Why the ghosts of exchange `epoch` do not match the field as it is now; null if they do. sum() computes the
    /// checksum of what would be sent: it detects a field that was written but not marked.
    template <class Sum>
    [[nodiscard]] const char* why_stale(const void* values, std::uint64_t version, std::uint64_t epoch,
                                        Sum&& sum) const {
        if (!is_of(values) || epoch_ != epoch) return "is not what the last finished exchange sent";
        const bool are_known = version_ != 0 && version != 0;
        if (are_known && version_ != version) return "was marked as written since";
        return sum() == sum_ ? nullptr : unmarked;
    }

  private:
    const void* values_ = nullptr;
    std::uint64_t version_ = 0, epoch_ = 0, sum_ = 0;
};

/// The fields of one exchange, in the order of its messages.
struct sent_fields {
    std::vector<sent_field> fields;
    std::uint64_t packed_by = 0; ///< the packer's number; 0: they were copied
};

} // namespace halocline::halo
