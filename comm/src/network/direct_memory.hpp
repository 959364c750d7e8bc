// SPDX-License-Identifier: Apache-2.0
// Registered fields (see the public header), as the ends of direct channels use them.
#pragma once

#include "bulk_link.hpp"
#include "node/node_slab.hpp"

#include <halocline/comm/detail/direct_memory.hpp>

#include <vector>

namespace halocline::comm {

class direct_memory {
  public:
    struct field {
        std::byte* start = nullptr;
        std::shared_ptr<const exposed_memory> registered;
    };
    explicit direct_memory(std::shared_ptr<node_slab> slab) : slab_(std::move(slab)) {}
    ~direct_memory() {
        for (field& f : fields_) f.registered = nullptr; // before the memory may be reused
        for (const field& f : fields_) slab_->unpin(f.start);
    }
    direct_memory(const direct_memory&) = delete;
    direct_memory& operator=(const direct_memory&) = delete;

    void add(std::byte* start, std::shared_ptr<const exposed_memory> registered) {
        fields_.push_back({start, std::move(registered)});
        slab_->pin(start);
    }
    [[nodiscard]] const std::vector<field>& fields() const { return fields_; }

  private:
    std::shared_ptr<node_slab> slab_;
    std::vector<field> fields_;
};

} // namespace halocline::comm
