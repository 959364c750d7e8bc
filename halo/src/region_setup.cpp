// SPDX-License-Identifier: Apache-2.0
#include "region_message.hpp"

#include "path_model.hpp"
#include "position_runs.hpp"
#include "region_transfers.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/slab.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

namespace halocline::halo {
namespace {

/// What one end says of itself to the other, as numbers in a row.
class outline {
  public:
    outline& number(std::int64_t n) {
        numbers_.push_back(n);
        return *this;
    }
    outline& sizes(const std::vector<transfer>& list, const by_tag& tags) {
        number(static_cast<std::int64_t>(tags.size()));
        for (const auto& [tag, i] : tags) number(tag).number(static_cast<std::int64_t>(list[i].sites.size()));
        return *this;
    }
    outline& list(const std::vector<position_run>& runs) {
        number(static_cast<std::int64_t>(runs.size()));
        for (const position_run& r : runs) number(r.first).number(r.stride).number(r.sites).number(r.count);
        return *this;
    }
    [[nodiscard]] std::string text() const {
        return {reinterpret_cast<const char*>(numbers_.data()), numbers_.size() * sizeof(std::int64_t)};
    }

  private:
    std::vector<std::int64_t> numbers_;
};

class outline_reader {
  public:
    explicit outline_reader(const std::string& text) : numbers_(text.size() / sizeof(std::int64_t)) {
        std::memcpy(numbers_.data(), text.data(), numbers_.size() * sizeof(std::int64_t));
    }
    std::int64_t number() { return numbers_.at(next_++); }
    std::map<std::uint32_t, std::int64_t> sizes() {
        std::map<std::uint32_t, std::int64_t> result;
        for (std::int64_t n = number(); n > 0; --n) {
            const auto tag = static_cast<std::uint32_t>(number());
            result[tag] = number();
        }
        return result;
    }
    std::vector<position_run> list() {
        std::vector<position_run> runs(static_cast<std::size_t>(number()));
        for (position_run& r : runs) {
            r.first = number();
            r.stride = number();
            r.sites = static_cast<std::int32_t>(number());
            r.count = static_cast<std::int32_t>(number());
        }
        return runs;
    }

  private:
    std::vector<std::int64_t> numbers_;
    std::size_t next_ = 0;
};

/// Can peers write all destinations in place?
bool in_slab(const comm::job& j, const std::vector<binding>& bindings) {
    for (const binding& b : bindings)
        for (const field_view& f : b.destination)
            if (!j.memory().contains(f.data) || !j.memory().contains(f.data + std::max<std::size_t>(f.bytes(), 1) - 1))
                return false;
    return true;
}

/// What this rank tells a peer, so that it can write the destinations here: where they lie and in which order.
void describe_destinations(outline& o, const comm::job& j, const std::vector<transfer>& receives, const by_tag& tags,
                           const std::vector<binding>& bindings) {
    o.number(static_cast<std::int64_t>(bindings.size()));
    for (const binding& b : bindings)
        for (const field_view& f : b.destination) o.number(f.data - j.memory().base());
    for (const field_view& f : bindings.front().destination)
        o.number(f.order->lane_width()).list(runs_of(positions(receives, tags, *f.order)));
}

/// 0, 1, 2, …: the sites of a message.
std::vector<std::int64_t> in_message(std::int64_t sites) {
    std::vector<std::int64_t> result(static_cast<std::size_t>(sites));
    std::iota(result.begin(), result.end(), std::int64_t{0});
    return result;
}

void make_packed(region_message& m, const std::vector<transfer>& sends, const by_tag& out,
                 const std::vector<transfer>& receives, const by_tag& in, const binding& fields) {
    for (std::size_t f = 0; f < fields.source.size(); ++f) {
        const lattice::site_order &from = *fields.source[f].order, &to = *fields.destination[f].order;
        m.out.emplace_back(positions(sends, out, from), from.lane_width(), in_message(m.send_sites), 1);
        m.in.emplace_back(in_message(m.receive_sites), 1, positions(receives, in, to), to.lane_width());
    }
}

void make_direct(region_message& m, const std::vector<transfer>& sends, const by_tag& out, const binding& fields,
                 outline_reader& reader) {
    m.targets.resize(static_cast<std::size_t>(reader.number()));
    for (std::vector<std::size_t>& offsets : m.targets)
        for (std::size_t f = 0; f < fields.source.size(); ++f)
            offsets.push_back(static_cast<std::size_t>(reader.number()));
    for (const field_view& f : fields.source) {
        const int lanes = static_cast<int>(reader.number());
        const std::vector<position_run> runs = reader.list();
        const std::vector<std::int64_t> places = positions_of(runs);
        if (m.out.empty() && !places.empty()) {
            const std::int64_t place = inner_position(runs);
            m.middle = static_cast<std::size_t>(place / lanes * lanes) * f.shape.bytes() +
                       static_cast<std::size_t>(place % lanes) * f.shape.component_bytes;
        }
        m.out.emplace_back(positions(sends, out, *f.order), f.order->lane_width(), places, lanes);
    }
}

/// The lines that this rank writes of its message: of the peer's first fields, or of the slot.  Pre: they can be streamed.
comm::written_lines lines_of(const region_message& m, const binding& fields) {
    std::size_t message_bytes = 0;
    comm::written_lines lines;
    for (std::size_t f = 0; f < m.out.size(); ++f) {
        const site_shape& shape = fields.source[f].shape;
        const std::size_t offset = m.path == path::direct ? m.targets[0][f] : message_bytes;
        const comm::written_lines of_field = m.out[f].lines(offset, shape);
        lines.whole += of_field.whole;
        lines.part += of_field.part;
        message_bytes += static_cast<std::size_t>(m.send_sites) * shape.bytes();
    }
    return lines;
}

/// Through the cache, with lines claimed or not, or past it?
void choose_stores(region_message& m, path wish, const comm::costs& costs, const binding& fields,
                   const region_plan_options& options) {
    std::size_t bytes = 0;
    bool can = m.send_sites > 0;
    for (std::size_t f = 0; f < m.out.size(); ++f) {
        bytes += static_cast<std::size_t>(m.send_sites) * fields.source[f].shape.bytes();
        can = can && m.out[f].streams();
    }
    if (m.path != path::direct) m.middle = bytes / 2;
    if (options.path == path::streamed) {
        m.streamed = can;
        if (!can) m.why += "; sites too scattered to be streamed";
        return;
    }
    const bool asked = options.path == path::direct;
    const writing w =
        asked || !can ? choose_writing(path::direct, costs, bytes) : choose_writing(wish, costs, lines_of(m, fields));
    m.watch = w.watch;
    m.streamed = w.path == path::streamed;
    m.claimed =
        (!m.streamed || m.watch.watches()) && (m.path != path::direct || (can && claiming_pays(lines_of(m, fields))));
    if (asked || m.send_sites == 0) return;
    m.why += can ? (m.streamed ? "; streamed: " : "; not streamed: ") + w.why : "; sites too scattered to be streamed";
}

/// How the messages come to be: steps in this order, each collective.
class setup {
  public:
    setup(const comm::job& j, const std::vector<transfer>& sends, const std::vector<transfer>& receives,
          const std::vector<binding>& bindings, const region_plan_options& options)
        : j_(j), sends_(sends), receives_(receives), bindings_(bindings), options_(options) {}

    void find_peers();
    void swap_outlines();
    [[nodiscard]] std::vector<region_message> make_messages();

  private:
    [[nodiscard]] std::string obstacle(int peer) const;
    [[nodiscard]] verdict<path> verdict_on(int peer);
    [[nodiscard]] std::string outline_for(int peer, bool offered);
    void compare(int peer, outline_reader& theirs);
    [[nodiscard]] region_message message_with(int peer, const verdict<path>& own, outline_reader& theirs);
    [[nodiscard]] const binding& fields() const { return bindings_.front(); } // all have its shapes and orders
    [[nodiscard]] std::string who() const { return "'" + options_.name + "': " + rank_text(j_.rank()); }

    const comm::job& j_;
    const std::vector<transfer>& sends_;
    const std::vector<transfer>& receives_;
    const std::vector<binding>& bindings_;
    const region_plan_options& options_;
    by_peer out_, in_;
    std::vector<int> peers_;
    const comm::costs* costs_ = nullptr;
    std::vector<verdict<path>> verdicts_; // this rank's, by position in peers_
    std::vector<std::string> theirs_;     // outlines, by position in peers_
};

void setup::find_peers() {
    j_.collectively([&] {
        out_ = sorted_transfers(sends_, "sends to", j_, options_.name);
        in_ = sorted_transfers(receives_, "receives from", j_, options_.name);
        check_transfers(sends_, receives_, bindings_, options_);
        for (const auto& [peer, tags] : out_) peers_.push_back(peer);
        for (const auto& [peer, tags] : in_)
            if (!out_.contains(peer)) peers_.push_back(peer);
        std::sort(peers_.begin(), peers_.end());
    });
    comm::require_mutual(j_, peers_, options_.name);
}

/// Judges what pays with each peer, and tells it: both ends must find that direct pays.
void setup::swap_outlines() {
    costs_ = &comm::measured_costs(j_); // collective: whatever the options say here
    std::vector<std::string> mine;
    for (const int peer : peers_) {
        verdicts_.push_back(verdict_on(peer));
        mine.push_back(outline_for(peer, verdicts_.back().choice == path::direct));
    }
    theirs_ = j_.exchange(peers_, mine);
}

std::vector<region_message> setup::make_messages() {
    std::vector<region_message> messages;
    j_.collectively([&] {
        for (std::size_t p = 0; p < peers_.size(); ++p) {
            outline_reader theirs(theirs_[p]);
            compare(peers_[p], theirs);
            messages.push_back(message_with(peers_[p], verdicts_[p], theirs));
        }
    });
    return messages;
}

/// Why this rank's end can't be direct; empty if it can.
std::string setup::obstacle(int peer) const {
    if (options_.add) return "what is added waits in slots";
    const std::string& transport = j_.members()[peer].transport;
    if (transport != "shm" && transport != "self") return "over " + transport + " no field can be written in place";
    if (!in_slab(j_, bindings_)) return "a field of " + rank_text(j_.rank()) + " is not in its slab";
    return {};
}

verdict<path> setup::verdict_on(int peer) {
    std::string why = obstacle(peer);
    if (!why.empty()) return {path::packed, why};
    if (options_.path == path::streamed) return {path::direct, "asked for"};
    if (options_.path != path::automatic) return {options_.path, "asked for"};
    if (j_.options().path == path::packed) return {path::packed, "the job asks for it"};
    std::size_t bytes = 0;
    const std::int64_t sites = sites_in(sends_, out_[peer]);
    std::int64_t runs = 0;
    for (const field_view& f : fields().source) {
        bytes += static_cast<std::size_t>(sites) * f.shape.bytes();
        runs += site_copy(positions(sends_, out_[peer], *f.order), f.order->lane_width(), in_message(sites), 1).runs();
    }
    return choose_path(*costs_, bytes, runs);
}

/// What compare() and message_with() read there, in their order.
std::string setup::outline_for(int peer, bool offered) {
    outline o;
    o.number(static_cast<std::int64_t>(fields().source.size()));
    for (const field_view& f : fields().source)
        o.number(f.shape.components)
            .number(static_cast<int>(f.shape.component_bytes))
            .number(static_cast<int>(f.shape.kind));
    o.number(static_cast<int>(options_.path)).sizes(sends_, out_[peer]).sizes(receives_, in_[peer]);
    o.number(offered).number(obstacle(peer).empty());
    if (offered) describe_destinations(o, j_, receives_, in_[peer], bindings_);
    return o.text();
}

/// Err: input_error unless both ends have the same fields, path and transfers.
void setup::compare(int peer, outline_reader& theirs) {
    std::string here, there;
    for (const field_view& f : fields().source) here += (here.empty() ? "" : ", ") + text_of(f.shape);
    for (std::int64_t n = theirs.number(); n > 0; --n) {
        site_shape shape;
        shape.components = static_cast<int>(theirs.number());
        shape.component_bytes = static_cast<std::size_t>(theirs.number());
        shape.kind = static_cast<scalar>(theirs.number());
        there += (there.empty() ? "" : ", ") + text_of(shape);
    }
    if (here != there)
        throw input_error(who() + " sends fields of " + here + " per site, " + rank_text(peer) + " of " + there);
    if (const auto other = static_cast<path>(theirs.number()); other != options_.path)
        throw input_error(who() + " asks for path " + std::string(to_string(options_.path)) + ", " + rank_text(peer) +
                          " for " + std::string(to_string(other)));
    const auto their_sends = theirs.sizes(), their_receives = theirs.sizes();
    compare_transfers(sends_, out_[peer], their_receives, j_.rank(), peer, true, options_.name);
    compare_transfers(receives_, in_[peer], their_sends, peer, j_.rank(), false, options_.name);
}

region_message setup::message_with(int peer, const verdict<path>& own, outline_reader& theirs) {
    const bool offered = theirs.number() != 0, able = theirs.number() != 0;
    region_message m;
    m.peer = peer;
    m.send_sites = sites_in(sends_, out_[peer]);
    m.receive_sites = sites_in(receives_, in_[peer]);
    for (const auto& [tag, i] : in_[peer]) m.receives.push_back(static_cast<int>(i));
    m.path = offered ? own.choice : path::packed;
    m.why = own.why;
    if (own.choice == path::direct && !offered)
        m.why = able ? rank_text(peer) + " sends too little for it"
                     : "a field of " + rank_text(peer) + " is not in its slab";
    if (m.path == path::direct) {
        make_direct(m, sends_, out_[peer], fields(), theirs);
    } else if (options_.path == path::direct || options_.path == path::streamed) {
        throw input_error(who() + " can't have path " + std::string(to_string(options_.path)) + " with " +
                          rank_text(peer) + ": " + m.why);
    } else {
        make_packed(m, sends_, out_[peer], receives_, in_[peer], fields());
    }
    if (j_.members()[peer].transport == "shm") choose_stores(m, j_.options().path, *costs_, fields(), options_);
    return m;
}

} // namespace

std::vector<region_message> make_messages(const comm::job& j, const std::vector<transfer>& sends,
                                          const std::vector<transfer>& receives, const std::vector<binding>& bindings,
                                          const region_plan_options& options) {
    setup steps(j, sends, receives, bindings, options);
    steps.find_peers();
    steps.swap_outlines();
    return steps.make_messages();
}

} // namespace halocline::halo
