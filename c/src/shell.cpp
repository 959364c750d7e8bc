// SPDX-License-Identifier: Apache-2.0
#include "handles.hpp"
#include "shapes.hpp"

#include <halocline/halo/shell_plan.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace halocline;
using c::guarded, c::present, c::with;

namespace {

/// Where the sites of an array are.
class array_sites {
  public:
    /// Pre: 0 <= rank < cut.ranks().  Err: input_error: widths that are negative, or too large for a box.
    array_sites(const lattice::decomposition& cut, int rank, const halo::shell_options& options)
        : padded_(halo::grown(cut.local_box(rank), options.widths)) {
        (void)lattice::site_order::lexicographic(padded_.extents); // throws if there are too many
        if (options.layout == halo::ghost_layout::appended) appended_.emplace(cut, rank, options);
    }
    [[nodiscard]] std::int64_t volume() const { return appended_ ? appended_->volume() : padded_.volume(); }
    [[nodiscard]] std::int64_t number(const lattice::coordinate& x) const {
        if (appended_) return appended_->number(x);
        return padded_.contains(x) ? padded_.index(x) : -1;
    }
    [[nodiscard]] std::shared_ptr<const lattice::site_order> order(const lattice::coordinate& local) const {
        return appended_ ? appended_->order(*lattice::site_order::lexicographic(local))
                         : lattice::site_order::lexicographic(padded_.extents);
    }

  private:
    lattice::box padded_;
    std::optional<halo::appended_sites> appended_;
};

int at_least_one(int given, const char* name) {
    if (given < 0) throw input_error(std::string(name) + " is " + std::to_string(given) + ": 1 or more is expected");
    return given == 0 ? 1 : given;
}

halo::shell_options options_of(const halocline_shell_options& given) {
    halo::shell_options options;
    if (given.name != nullptr) options.name = given.name;
    options.widths = c::widths_of(given);
    for (int mu = 0; mu < lattice::dimensions; ++mu)
        options.boundaries[static_cast<std::size_t>(mu)] =
            c::boundary_of(given.boundary[mu], mu, lattice::boundary::periodic);
    if (given.layout != HALOCLINE_PADDED && given.layout != HALOCLINE_APPENDED)
        throw input_error("layout = " + std::to_string(given.layout) + " is neither 0 nor 1");
    if (given.layout == HALOCLINE_APPENDED) options.layout = halo::ghost_layout::appended;
    if (given.corners != 0) options.shape = halo::shell::box;
    options.parity = c::parity_of(given);
    options.reverse = given.reverse != 0;
    return options;
}

halo::field_view view_of(void* array, halocline_type type, const std::shared_ptr<const lattice::site_order>& order,
                         int components) {
    const auto of = [&](auto* values) { return halo::view(values, order, components); };
    switch (type) {
    case HALOCLINE_INT32: return of(static_cast<std::int32_t*>(array));
    case HALOCLINE_INT64: return of(static_cast<std::int64_t*>(array));
    case HALOCLINE_FLOAT: return of(static_cast<float*>(array));
    case HALOCLINE_DOUBLE: return of(static_cast<double*>(array));
    case HALOCLINE_BYTE: break;
    }
    throw input_error("type = " + std::to_string(static_cast<int>(type)) +
                      ": HALOCLINE_INT32, HALOCLINE_INT64, HALOCLINE_FLOAT or HALOCLINE_DOUBLE is expected");
}

/// The fields of each exchange.  Err: input_error.
std::vector<halo::binding> bindings_of(const halocline_shell_options& given, int count, void* const* arrays,
                                       const std::shared_ptr<const lattice::site_order>& order) {
    const int fields = at_least_one(given.fields, "fields"), components = at_least_one(given.components, "components");
    if (count < 1) throw input_error("count is " + std::to_string(count) + ": 1 or more is expected");
    std::vector<halo::binding> bindings(static_cast<std::size_t>(count));
    std::int64_t next = 0;
    for (halo::binding& b : bindings) {
        for (int f = 0; f < fields; ++f, ++next) {
            if (arrays[next] == nullptr) throw input_error("arrays[" + std::to_string(next) + "] is NULL");
            b.source.push_back(view_of(arrays[next], given.type, order, components));
        }
        b.destination = b.source;
    }
    return bindings;
}

} // namespace

struct halocline_shell {
    halo::shell_plan value;
    array_sites sites;
};

halocline_status halocline_shell_box(halocline_job* job, const halocline_shell_options* options, int first[4],
                                     int extent[4], int64_t* sites) {
    return guarded([&] {
        const comm::job& j = present(job, "job").value;
        const halocline_shell_options& given = present(options, "options");
        present(first, "first");
        present(extent, "extent");
        present(sites, "sites");
        const lattice::decomposition cut = c::cut_of(j, given);
        *sites = array_sites(cut, j.rank(), options_of(given)).volume();
        c::copy_box(cut.local_box(j.rank()), first, extent);
    });
}

halocline_status halocline_shell_create(halocline_job* job, const halocline_shell_options* options, int count,
                                        void* const arrays[], halocline_shell** shell) {
    return guarded([&] {
        if (shell != nullptr) *shell = nullptr;
        const comm::job& j = present(job, "job").value;
        std::optional<lattice::decomposition> cut;
        std::optional<array_sites> sites;
        std::optional<halo::shell_options> choices; // their defaults depend on the environment, and may be refused
        std::vector<halo::binding> bindings;
        j.collectively([&] { // so that no rank waits for one that was given something else
            present(shell, "shell");
            const halocline_shell_options& given = present(options, "options");
            present(arrays, "arrays");
            cut = c::cut_of(j, given);
            choices = options_of(given);
            sites.emplace(*cut, j.rank(), *choices);
            bindings = bindings_of(given, count, arrays, sites->order(cut->local_box(j.rank()).extents));
        });
        *shell =
            new halocline_shell{halo::shell_plan(j, *cut, *std::move(choices), std::move(bindings)), *std::move(sites)};
    });
}

void halocline_shell_free(halocline_shell* shell) { delete shell; }

int64_t halocline_shell_site(const halocline_shell* shell, const int x[4]) {
    return shell->sites.number({x[0], x[1], x[2], x[3]});
}

void halocline_shell_start(halocline_shell* shell, int which) { shell->value.start(which); }
void halocline_shell_start_reverse(halocline_shell* shell, int which) { shell->value.start_reverse(which); }
int halocline_shell_test(halocline_shell* shell) { return shell->value.test() ? 1 : 0; }

halocline_status halocline_shell_finish(halocline_shell* shell) {
    return with(shell, "shell", [](halocline_shell& s) {
        const comm::status told = s.value.finish(); // sticky, so finish_or_throw() provides its text
        return told == comm::status::ok ? HALOCLINE_OK : c::told_by(told, [&] { s.value.finish_or_throw(); });
    });
}

halocline_status halocline_shell_require_fresh(const halocline_shell* shell, int which) {
    return guarded([&] { present(shell, "shell").value.require_fresh(which); });
}

size_t halocline_shell_describe(const halocline_shell* shell, char* text, size_t size) {
    return c::described(text, size, [&] { return present(shell, "shell").value.describe(); });
}
