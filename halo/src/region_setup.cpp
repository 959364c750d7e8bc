// SPDX-License-Identifier: Apache-2.0
#include "region_message.hpp"

#include "path_model.hpp"
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
    outline& list(const position_list& positions) {
        number(std::ssize(positions.runs()));
        for (const position_run& r : positions.runs()) number(r.first).number(r.stride).number(r.sites).number(r.count);
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
    position_list list() {
        std::vector<position_run> runs(static_cast<std::size_t>(number()));
        for (position_run& r : runs) {
            r.first = number();
            r.stride = number();
            r.sites = static_cast<std::int32_t>(number());
            r.count = static_cast<std::int32_t>(number());
        }
        return position_list(std::move(runs));
    }

  private:
    std::vector<std::int64_t> numbers_;
    std::size_t next_ = 0;
};

bool in_slab(const comm::job& j, const field_view& f) {
    return j.memory().contains(f.data) && j.memory().contains(f.data + std::max<std::size_t>(f.bytes(), 1) - 1);
}

/// Can a message of theirs be direct? Of a network also the sources count: its device reads them.
bool all_in_slab(const comm::job& j, const std::vector<binding>& bindings, bool sources) {
    for (const binding& b : bindings) {
        for (const field_view& f : b.destination)
            if (!in_slab(j, f)) return false;
        for (const field_view& f : b.source)
            if (sources && !in_slab(j, f)) return false;
    }
    return true;
}

/// A network's device writes runs of bytes, each a write of its own.
constexpr std::int64_t most_runs = 64;

/// Do the sites of these lists lie in few runs of bytes, in each field?
bool in_few_runs(const std::vector<position_list>& sites, const std::vector<field_view>& fields) {
    std::int64_t runs = 0;
    for (std::size_t f = 0; f < fields.size(); ++f) {
        if (fields[f].order->lane_width() > 1 && sites[f].size() > 0) return false;
        runs += sites[f].count_runs();
    }
    return runs <= most_runs;
}

/// What is in the way of a direct message at one end, as the other is told.
enum class obstacle : std::int64_t { none, added, transport, streaming, outside_slab, scattered, not_registered };

/// This rank's end of its message with one peer.
struct end_of_message {
    int peer = 0;
    bool far = false;                   ///< over a network
    by_tag sends, receives;             ///< in the plan's lists
    std::vector<position_list> out, in; ///< by field: where their sites lie
    obstacle in_the_way = obstacle::none;
    verdict<path> own{path::packed, {}};
};

/// What this rank tells a peer, so that it can write the destinations here: where they lie and in which order.
void describe_destinations(outline& o, const comm::job& j, const end_of_message& mine,
                           const std::vector<binding>& bindings) {
    o.number(std::ssize(bindings));
    for (const binding& b : bindings)
        for (const field_view& f : b.destination) o.number(f.data - j.memory().base());
    for (std::size_t f = 0; f < mine.in.size(); ++f)
        o.number(bindings.front().destination[f].order->lane_width()).list(mine.in[f]);
}

/// Visits the runs of a list one by one.
class run_walk {
  public:
    explicit run_walk(const position_list& list) : runs_(list.runs()) {}
    [[nodiscard]] bool at_end() const { return next_ == runs_.size(); }
    [[nodiscard]] std::int64_t position() const { return runs_[next_].first + at_ * runs_[next_].stride + inside_; }
    [[nodiscard]] std::int64_t left() const { return runs_[next_].sites - inside_; } ///< sites of this run
    void advance(std::int64_t sites) {
        inside_ += sites;
        if (left() > 0) return;
        inside_ = 0;
        if (++at_ < runs_[next_].count) return;
        at_ = 0;
        ++next_;
    }

  private:
    std::span<const position_run> runs_;
    std::size_t next_ = 0;
    std::int64_t at_ = 0, inside_ = 0;
};

/// What the device writes to the peer of these sites of field f: runs that neither end interrupts.
void add_writes(std::vector<comm::direct_write>& writes, std::size_t f, const position_list& from,
                const position_list& to, std::size_t site_bytes) {
    for (run_walk source(from), target(to); !source.at_end();) {
        const std::int64_t sites = std::min(source.left(), target.left());
        writes.push_back({static_cast<std::uint32_t>(f), static_cast<std::size_t>(source.position()) * site_bytes,
                          static_cast<std::size_t>(target.position()) * site_bytes,
                          static_cast<std::size_t>(sites) * site_bytes});
        source.advance(sites);
        target.advance(sites);
    }
}

void make_packed(region_message& m, const end_of_message& mine, const binding& fields) {
    const position_list sent = position_list::counted(m.send_sites), come = position_list::counted(m.receive_sites);
    for (std::size_t f = 0; f < fields.source.size(); ++f) {
        m.out.emplace_back(mine.out[f], fields.source[f].order->lane_width(), sent, 1);
        m.in.emplace_back(come, 1, mine.in[f], fields.destination[f].order->lane_width());
    }
}

void make_direct(region_message& m, const end_of_message& mine, const binding& fields, outline_reader& reader) {
    m.targets.resize(static_cast<std::size_t>(reader.number()));
    for (std::vector<std::size_t>& offsets : m.targets)
        for (std::size_t f = 0; f < fields.source.size(); ++f)
            offsets.push_back(static_cast<std::size_t>(reader.number()));
    for (std::size_t f = 0; f < fields.source.size(); ++f) {
        const int lanes = static_cast<int>(reader.number());
        const position_list theirs = reader.list();
        const field_view& source = fields.source[f];
        if (mine.far) {
            add_writes(m.writes, f, mine.out[f], theirs, source.shape.bytes());
            continue;
        }
        if (m.out.empty() && theirs.size() > 0) {
            const std::int64_t place = theirs.inner();
            m.middle = source.shape.offset(place, lanes);
        }
        m.out.emplace_back(mine.out[f], source.order->lane_width(), theirs, lanes);
    }
}

/// Is the site at a position of a field's storage sent to anybody? Of storage with lanes that is not told.
std::vector<bool> sent_sites(const std::vector<end_of_message>& ends, std::size_t f, const lattice::site_order& order) {
    std::vector<bool> sent;
    if (order.lane_width() > 1) return sent;
    sent.resize(static_cast<std::size_t>(order.volume()));
    for (const end_of_message& end : ends)
        for (const position_run& r : end.out[f].runs())
            for (std::int64_t i = 0; i < r.count; ++i) {
                const auto first = sent.begin() + (r.first + i * r.stride);
                std::fill(first, first + r.sites, true);
            }
    return sent;
}

/// The lines that ghosts share with own sites beside them: sites next to ghosts are sent.
double shared_lines(const position_list& ghosts, const field_view& field, const std::vector<bool>& sent) {
    constexpr std::int64_t line = 64;
    const auto start = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(field.data) % line);
    const auto bytes = static_cast<std::int64_t>(field.shape.bytes()), sites = std::ssize(sent);
    const auto is_sent = [&](std::int64_t site) {
        return site >= 0 && site < sites && sent[static_cast<std::size_t>(site)];
    };
    std::int64_t lines = 0;
    for (const position_run& r : ghosts.runs())
        for (std::int64_t i = 0; i < r.count; ++i) {
            const std::int64_t first = r.first + i * r.stride, last = first + r.sites;
            const std::int64_t begin = start + first * bytes, end = start + last * bytes;
            const bool head = begin % line != 0 && is_sent(first - 1), tail = end % line != 0 && is_sent(last);
            lines += head + (tail && !(head && begin / line == end / line));
        }
    return static_cast<double>(lines);
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
        if (can) m.watch = path_watch::always_streamed();
        if (!can) m.why += "; sites too scattered to be streamed";
        return;
    }
    const bool asked = options.path == path::direct;
    const writing w =
        asked || !can ? choose_writing(path::direct, costs, bytes) : choose_writing(wish, costs, lines_of(m, fields));
    m.watch = w.watch;
    if (m.path == path::direct && !(can && claiming_pays(lines_of(m, fields)))) m.watch.never_claim();
    if (asked || m.send_sites == 0) return;
    m.why += can ? (m.watch.streamed() ? "; streamed: " : "; not streamed: ") + w.why
                 : "; sites too scattered to be streamed";
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
    [[nodiscard]] obstacle obstacle_to(const end_of_message& mine) const;
    [[nodiscard]] std::string reason(obstacle o, int rank, int peer) const;
    [[nodiscard]] verdict<path> verdict_on(const end_of_message& mine) const;
    /// Makes the fields known to the network of that end's peer, once.  False: it can't take them.
    bool register_fields(const end_of_message& end);
    /// Ghosts of that message with own sites of this rank.
    [[nodiscard]] double lines_shared_by(const end_of_message& mine) const;
    [[nodiscard]] std::string outline_of(const end_of_message& mine) const;
    void compare(const end_of_message& mine, outline_reader& theirs) const;
    [[nodiscard]] region_message message_of(const end_of_message& mine, outline_reader& theirs) const;
    [[nodiscard]] const binding& fields() const { return bindings_.front(); } // all have its shapes and orders
    [[nodiscard]] std::string who() const { return "'" + options_.name + "': " + rank_text(j_.rank()); }

    const comm::job& j_;
    const std::vector<transfer>& sends_;
    const std::vector<transfer>& receives_;
    const std::vector<binding>& bindings_;
    const region_plan_options& options_;
    const comm::costs* costs_ = nullptr;
    std::vector<end_of_message> ends_;                                        // by peer
    std::vector<std::vector<bool>> sent_;                                     // by field
    std::vector<std::string> theirs_;                                         // outlines of the other ends
    std::map<std::string, std::shared_ptr<const comm::direct_memory>> known_; // by transport; nullptr: it can't be
    std::string why_not_known_;
};

void setup::find_peers() {
    std::vector<int> peers;
    j_.collectively([&] {
        std::map<int, end_of_message> ends;
        for (auto& [peer, tags] : sorted_transfers(sends_, "sends to", j_, options_.name))
            ends[peer].sends = std::move(tags);
        for (auto& [peer, tags] : sorted_transfers(receives_, "receives from", j_, options_.name))
            ends[peer].receives = std::move(tags);
        check_transfers(sends_, receives_, bindings_, options_);
        for (auto& [peer, end] : ends) {
            peers.push_back(peer);
            end.peer = peer;
            const std::string& transport = j_.members()[static_cast<std::size_t>(peer)].transport;
            end.far = transport != "shm" && transport != "self";
            for (const field_view& f : fields().source) end.out.push_back(positions(sends_, end.sends, *f.order));
            for (const field_view& f : fields().destination)
                end.in.push_back(positions(receives_, end.receives, *f.order));
            ends_.push_back(std::move(end));
        }
    });
    comm::require_mutual(j_, peers, options_.name);
}

/// Judges what pays with each peer, and tells it: both ends must find that direct pays.
void setup::swap_outlines() {
    costs_ = &comm::measured_costs(j_); // collective: whatever the options say here
    for (std::size_t f = 0; f < fields().source.size(); ++f)
        sent_.push_back(sent_sites(ends_, f, *fields().source[f].order));
    std::vector<int> peers;
    std::vector<std::string> mine;
    for (end_of_message& end : ends_) {
        end.in_the_way = obstacle_to(end);
        end.own = verdict_on(end);
        if (end.far && end.own.choice == path::direct && !register_fields(end)) {
            end.in_the_way = obstacle::not_registered;
            end.own = verdict_on(end);
        }
        peers.push_back(end.peer);
        mine.push_back(outline_of(end));
    }
    theirs_ = j_.exchange(peers, mine);
}

std::vector<region_message> setup::make_messages() {
    std::vector<region_message> messages;
    j_.collectively([&] {
        for (std::size_t i = 0; i < ends_.size(); ++i) {
            outline_reader theirs(theirs_[i]);
            compare(ends_[i], theirs);
            messages.push_back(message_of(ends_[i], theirs));
        }
    });
    return messages;
}

/// Why this rank's end can't be direct.
obstacle setup::obstacle_to(const end_of_message& mine) const {
    if (options_.add) return obstacle::added;
    if (!comm::direct_obstacle(j_, mine.peer).empty()) return obstacle::transport;
    if (mine.far && options_.path == path::streamed) return obstacle::streaming;
    if (!all_in_slab(j_, bindings_, mine.far)) return obstacle::outside_slab;
    if (mine.far && !(in_few_runs(mine.out, fields().source) && in_few_runs(mine.in, fields().destination)))
        return obstacle::scattered;
    return obstacle::none;
}

/// Of that rank, in its message with the peer.
std::string setup::reason(obstacle o, int rank, int peer) const {
    const std::string& transport = j_.members()[static_cast<std::size_t>(peer)].transport;
    switch (o) {
    case obstacle::none: return {};
    case obstacle::added: return "what is added waits in slots";
    case obstacle::transport: return comm::direct_obstacle(j_, peer);
    case obstacle::streaming: return "over " + transport + " there are no stores that could bypass a cache";
    case obstacle::outside_slab: return "a field of " + rank_text(rank) + " is not in its slab";
    case obstacle::scattered:
        return "over " + transport + " only sites that lie in at most " + std::to_string(most_runs) +
               " runs can be written in place, those of " + rank_text(rank) + " do not";
    case obstacle::not_registered:
        return "a field of " + rank_text(rank) + " can't be registered" +
               (rank == j_.rank() ? ": " + why_not_known_ : std::string());
    }
    return {};
}

bool setup::register_fields(const end_of_message& end) {
    const std::string& transport = j_.members()[static_cast<std::size_t>(end.peer)].transport;
    const auto [place, fresh] = known_.emplace(transport, nullptr);
    if (!fresh) return place->second != nullptr;
    std::vector<std::span<std::byte>> memory;
    for (const auto which : {&binding::destination, &binding::source})
        for (const binding& b : bindings_)
            for (const field_view& f : b.*which) memory.emplace_back(f.data, std::max<std::size_t>(f.bytes(), 1));
    try {
        place->second = comm::register_fields(j_, transport, memory);
    } catch (const job_error& e) {
        why_not_known_ = e.what();
    }
    return place->second != nullptr;
}

verdict<path> setup::verdict_on(const end_of_message& mine) const {
    if (mine.in_the_way != obstacle::none) return {path::packed, reason(mine.in_the_way, j_.rank(), mine.peer)};
    if (options_.path == path::streamed) return {path::direct, "asked for"};
    if (options_.path != path::automatic) return {options_.path, "asked for"};
    if (j_.options().path == path::packed) return {path::packed, "the job asks for it"};
    std::size_t bytes = 0;
    std::int64_t runs = 0;
    for (std::size_t f = 0; f < mine.out.size(); ++f) {
        const field_view& source = fields().source[f];
        bytes += static_cast<std::size_t>(mine.out[f].size()) * source.shape.bytes();
        runs += source.order->lane_width() == 1 ? mine.out[f].count_runs() : mine.out[f].size();
    }
    return mine.far ? choose_far_path(*costs_, bytes, runs) : choose_path(*costs_, bytes, runs, lines_shared_by(mine));
}

double setup::lines_shared_by(const end_of_message& mine) const {
    const bool dear = costs_->scattered_line_seconds > costs_->cached.line_seconds;
    if (!dear || mine.peer == j_.rank()) return 0; // whatever their number; or between this core and itself
    double lines = 0;
    for (std::size_t f = 0; f < mine.in.size(); ++f) {
        const field_view& field = fields().destination[f];
        if (field.order->lane_width() > 1 || fields().source[f].data != field.data) continue; // no sites among ghosts
        lines += shared_lines(mine.in[f], field, sent_.at(f));
    }
    return lines;
}

/// What compare() and message_of() read there, in their order.
std::string setup::outline_of(const end_of_message& mine) const {
    outline o;
    o.number(std::ssize(fields().source));
    for (const field_view& f : fields().source)
        o.number(f.shape.components)
            .number(static_cast<int>(f.shape.component_bytes))
            .number(static_cast<int>(f.shape.kind));
    const bool offered = mine.own.choice == path::direct;
    o.number(static_cast<int>(options_.path)).sizes(sends_, mine.sends).sizes(receives_, mine.receives);
    o.number(offered).number(static_cast<std::int64_t>(mine.in_the_way));
    if (offered) describe_destinations(o, j_, mine, bindings_);
    return o.text();
}

/// Err: input_error unless both ends have the same fields, path and transfers.
void setup::compare(const end_of_message& mine, outline_reader& theirs) const {
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
        throw input_error(who() + " sends fields of " + here + " per site, " + rank_text(mine.peer) + " of " + there);
    if (const auto other = static_cast<path>(theirs.number()); other != options_.path)
        throw input_error(who() + " asks for path " + std::string(to_string(options_.path)) + ", " +
                          rank_text(mine.peer) + " for " + std::string(to_string(other)));
    const auto their_sends = theirs.sizes(), their_receives = theirs.sizes();
    compare_transfers(sends_, mine.sends, their_receives, j_.rank(), mine.peer, true, options_.name);
    compare_transfers(receives_, mine.receives, their_sends, mine.peer, j_.rank(), false, options_.name);
}

region_message setup::message_of(const end_of_message& mine, outline_reader& theirs) const {
    const bool offered = theirs.number() != 0;
    const auto in_the_way = static_cast<obstacle>(theirs.number());
    region_message m;
    m.peer = mine.peer;
    m.send_sites = mine.out.front().size();
    m.receive_sites = mine.in.front().size();
    for (const auto& [tag, i] : mine.receives) m.receives.push_back(static_cast<int>(i));
    m.path = offered ? mine.own.choice : path::packed;
    m.why = mine.own.why;
    if (mine.own.choice == path::direct && !offered)
        m.why = in_the_way == obstacle::none ? rank_text(m.peer) + " sends too little for it"
                                             : reason(in_the_way, m.peer, m.peer);
    if (m.path == path::direct) {
        make_direct(m, mine, fields(), theirs);
        if (mine.far) m.known = known_.at(j_.members()[static_cast<std::size_t>(m.peer)].transport);
    } else if (options_.path == path::direct || options_.path == path::streamed) {
        throw input_error(who() + " can't have path " + std::string(to_string(options_.path)) + " with " +
                          rank_text(m.peer) + ": " + m.why);
    } else {
        make_packed(m, mine, fields());
    }
    if (j_.members()[m.peer].transport == "shm") choose_stores(m, j_.options().path, *costs_, fields(), options_);
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
