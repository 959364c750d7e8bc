// SPDX-License-Identifier: Apache-2.0
#include "handles.hpp"
#include "shapes.hpp"

#include <halocline/halo/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace halocline;
using c::element_of, c::guarded, c::present, c::with;

struct halocline_plan {
    halo::plan value;
    lattice::box box;
    std::vector<const std::byte*> fields; // of one exchange
    /// `s`: from finish(). It is sticky, so finish_or_throw() provides its text.
    halocline_status finished(comm::status s) noexcept {
        return s == comm::status::ok ? HALOCLINE_OK : c::told_by(s, [this] { value.finish_or_throw(); });
    }
};

namespace {

halo::plan_options options_of(const halocline_plan_options& given) {
    halo::plan_options options;
    if (given.name != nullptr) options.name = given.name;
    options.widths = c::widths_of(given);
    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        if (given.open[mu] != 0) options.boundaries[mu] = lattice::boundary::open;
    }
    options.bytes_per_site = given.bytes_per_site;
    if (given.type != HALOCLINE_BYTE) options.element = element_of(given.type);
    options.parity = c::parity_of(given);
    if (given.fields != 0) options.fields = given.fields;
    options.self_exchange = given.self_exchange != 0;
    return options;
}

} // namespace

halocline_status halocline_plan_create(halocline_job* job, const halocline_plan_options* options,
                                       halocline_plan** plan) {
    return guarded([&] {
        if (plan != nullptr) *plan = nullptr;
        const comm::job& j = present(job, "job").value;
        std::optional<lattice::decomposition> cut;
        std::optional<halo::plan_options> choices; // their defaults depend on the environment, and may be refused
        j.collectively([&] {                       // so that no rank waits for one that was given something else
            present(plan, "plan");
            const halocline_plan_options& given = present(options, "options");
            cut = c::cut_of(j, given);
            choices = options_of(given);
        });
        const auto fields = static_cast<std::size_t>(std::max(choices->fields, 1));
        *plan = new halocline_plan{halo::plan(j, *cut, *std::move(choices)), cut->local_box(j.rank()),
                                   std::vector<const std::byte*>(fields)};
    });
}

void halocline_plan_free(halocline_plan* plan) { delete plan; }

void halocline_plan_box(const halocline_plan* plan, int first[4], int extent[4]) {
    c::copy_box(plan->box, first, extent);
}

int halocline_plan_faces(const halocline_plan* plan) { return static_cast<int>(plan->value.messages().size()); }

halocline_status halocline_plan_face(const halocline_plan* plan, int face, halocline_face* what) {
    return guarded([&] {
        const auto messages = present(plan, "plan").value.messages();
        if (face < 0 || face >= static_cast<int>(messages.size())) {
            throw input_error("face " + std::to_string(face) + " of a plan with " + std::to_string(messages.size()));
        }
        const halo::plan_message& m = messages[face];
        present(what, "what") = {m.where.mu, m.where.end == lattice::side::high ? 1 : 0, m.peer,
                                 static_cast<std::int64_t>(m.send_sites.size()), m.ghost_sites};
    });
}

void halocline_plan_start(halocline_plan* plan, const void* field) {
    if (field == nullptr) return plan->value.refuse_start("halocline_plan_start: 'field' is NULL");
    if (plan->value.options().fields != 1)
        return plan->value.refuse_start("halocline_plan_start sends one field; the plan was made for several");
    plan->value.start_bytes(static_cast<const std::byte*>(field));
}

void halocline_plan_start_fields(halocline_plan* plan, const void* const fields[], int count) {
    halo::plan& p = plan->value;
    if (fields == nullptr) return p.refuse_start("halocline_plan_start_fields: 'fields' is NULL");
    if (count != p.options().fields)
        return p.refuse_start("halocline_plan_start_fields: 'count' is not that of the plan's options");
    for (int k = 0; k < count; ++k) {
        if (fields[k] == nullptr) return p.refuse_start("halocline_plan_start_fields: a field is NULL");
        plan->fields[static_cast<std::size_t>(k)] = static_cast<const std::byte*>(fields[k]);
    }
    p.start_bytes(plan->fields);
}

void halocline_plan_start_packed(halocline_plan* plan, halocline_pack pack, void* context) {
    if (pack == nullptr) return plan->value.refuse_start("halocline_plan_start_packed: 'pack' is NULL");
    if (plan->value.options().fields != 1)
        return plan->value.refuse_start("halocline_plan_start_packed fills messages of one field; "
                                        "the plan was made for several, whose targets halocline_plan_target tells");
    const std::size_t bytes = plan->value.options().bytes_per_site;
    const auto messages = plan->value.messages();
    plan->value.start([=](int message, std::int64_t first, std::int64_t last, std::byte* target) {
        pack(context, message, messages[message].send_sites.data() + first, last - first,
             target + static_cast<std::size_t>(first) * bytes);
    });
}

void* halocline_plan_target(halocline_plan* plan, int face) {
    if (face < 0 || face >= halocline_plan_faces(plan)) return nullptr;
    return plan->value.target(plan->value.messages()[face].where);
}

void halocline_plan_start_filled(halocline_plan* plan) { plan->value.start_filled(); }

int halocline_plan_test(halocline_plan* plan) { return plan->value.test() ? 1 : 0; }
halocline_status halocline_plan_finish(halocline_plan* plan) {
    return with(plan, "plan", [](halocline_plan& p) { return p.finished(p.value.finish()); });
}

int halocline_plan_completed(halocline_plan* plan, int faces[8]) {
    int count = 0;
    for (const lattice::face f : plan->value.completed()) faces[count++] = plan->value.message_of(f);
    return count;
}

size_t halocline_plan_describe(const halocline_plan* plan, char* text, size_t size) {
    return c::described(text, size, [&] { return present(plan, "plan").value.describe(); });
}

const void* halocline_plan_ghost(const halocline_plan* plan, int face) {
    if (face < 0 || face >= halocline_plan_faces(plan)) return nullptr;
    return plan->value.ghost(plan->value.messages()[face].where);
}
