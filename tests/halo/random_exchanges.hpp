// SPDX-License-Identifier: Apache-2.0
// Random plans (random_case.hpp) at work: up to three at a time, each started and finished in one of the ways that it
// allows, by one thread or a team, in another order on each rank, with test(), completed(), barriers and pauses in
// between. What each rank may change is known to the byte: the whole storage of fields, including padding lanes, and
// memory of the slab on both sides of a plan's is compared with it.
//
// HALOCLINE_TEST_SEED repeats a run, HALOCLINE_TEST_CASE a case; whatever fails prints the latter.
#pragma once

#include "random_case.hpp"
#include "random_features.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline/halo/unpacker.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

namespace halocline_test {

using random_generator = std::mt19937;

/// Calls f(member) on each member of a team; member 0 is this thread.
template <class F>
void as_team(int members, F&& f) {
    std::vector<std::thread> others;
    for (int i = 1; i < members; ++i) others.emplace_back([&f, i, members] { f(halo::team{i, members}); });
    f(halo::team{0, members});
    for (std::thread& t : others) t.join();
}

/// A part of the slab that nobody may write.
class guard {
  public:
    explicit guard(const comm::job& j) : bytes_(256, poison, &j.memory()) {}
    [[nodiscard]] bool is_intact() const {
        return std::all_of(bytes_.begin(), bytes_.end(), [](std::byte b) { return b == poison; });
    }

  private:
    static constexpr std::byte poison{0xA5};
    std::pmr::vector<std::byte> bytes_;
};

/// One plan of a random case, with its fields. Only choose() and repeat() draw what all ranks have in common.
class subject {
  public:
    subject(const comm::job& j, int number, std::string text)
        : job_(j), number_(number), text_(std::move(text)), below_(j) {}
    subject(const subject&) = delete;
    subject& operator=(const subject&) = delete;
    virtual ~subject() = default;

    virtual void choose(random_generator& common) = 0;
    /// Fills the fields and starts the exchange.
    virtual void start(random_generator& own) = 0;
    virtual bool test() = 0;
    /// Looks at what completed() names.
    virtual void look() = 0;
    virtual comm::status finish(random_generator& own) = 0;
    /// Compares everything with what it must be. Holds until the next start().
    virtual void check() = 0;
    /// Exchanges again unless the fields are fresh.
    virtual void repeat(random_generator& common) = 0;
    /// What is done once, after all exchanges.
    virtual void end() {}

    [[nodiscard]] const std::string& text() const { return text_; }

  protected:
    void note(std::string_view name, bool occurred = true) const {
        if (job_.rank() == 0) features_seen().note(name, occurred);
    }
    [[nodiscard]] bool shares_memory() const { return job_.transport() == "shm" || job_.transport() == "self"; }
    /// The size of a team: 1 in five of six cases, and over transports whose calls are one thread's.
    [[nodiscard]] int random_members(random_generator& own) const {
        if (!shares_memory() || !one_in(own, 6)) return 1;
        return drawn(own, 2, job_.ranks() > 4 ? 2 : 4);
    }
    /// Distinct for each plan under way, exchange and field.
    [[nodiscard]] std::uint64_t epoch_of(std::size_t field) const {
        return 1000 * static_cast<std::uint64_t>(number_) + 10 * exchange_ + field;
    }
    void note_place(const lattice::decomposition& cut, const halo::ghost_widths& widths,
                    const std::array<lattice::boundary, dimensions>& boundaries) const {
        if (job_.rank() == 0) features_seen().note_plan();
        note("one rank", cut.ranks() == 1);
        note("8 ranks or more", cut.ranks() >= 8);
        note("shuffled ranks", !cut.rank_order().empty());
        std::array<int, dimensions> least{}, most{};
        for (int mu = 0; mu < dimensions; ++mu) {
            least[mu] = cut.global()[mu];
            for (std::size_t i = 1; i < cut.cuts(mu).size(); ++i) {
                least[mu] = std::min(least[mu], cut.cuts(mu)[i] - cut.cuts(mu)[i - 1]);
                most[mu] = std::max(most[mu], cut.cuts(mu)[i] - cut.cuts(mu)[i - 1]);
            }
        }
        const auto any = [](auto&& is) { return is(0) || is(1) || is(2) || is(3); };
        note("uneven cut", least != most);
        note("box of extent 1", any([&](int mu) { return least[mu] == 1; }));
        note("box of extent 8 or more", any([&](int mu) { return most[mu] >= 8; }));
        note("box of 1000 sites or more", lattice::volume(most) >= 1000);
        note("odd lattice", any([&](int mu) { return cut.global()[mu] % 2 == 1; }));
        const auto any_width = [&](auto&& is) {
            return any([&](int mu) { return is(widths.low[mu], mu) || is(widths.high[mu], mu); });
        };
        note("width 0", any_width([](int w, int) { return w == 0; }));
        note("width 2", any_width([](int w, int) { return w == 2; }));
        note("width 3", any_width([](int w, int) { return w == 3; }));
        note("ghosts as wide as a box", any_width([&](int w, int mu) { return w == least[mu]; }));
        note("widths that differ by side", widths.low != widths.high);
        note("open edge", any([&](int mu) { return boundaries[mu] == lattice::boundary::open; }));
    }
    template <class Case>
    void note_shape(const Case& c, int fields) const {
        note("parity", c.options.parity.has_value());
        note("selection", static_cast<bool>(c.options.select));
        note("even/odd order", c.order == 1);
        note("blocked order", c.order == 2);
        for (const int lanes : {4, 8, 16})
            note(std::to_string(lanes) + " lanes", c.order == 2 && c.lane_width == lanes);
        note("several fields", fields > 1);
        note("components of " + std::to_string(c.component_bytes) + " B");
        note("checks normal", c.options.checks >= check_level::normal);
    }
    void note_message(halo::path p, std::uint64_t bytes) const {
        note("message " + std::string(to_string(p)), bytes > 0);
        note("message of 64 KiB or more", bytes >= 64 * 1024);
        note("joint message of 64 KiB or more", p == halo::path::joint && bytes >= 64 * 1024);
        note("message of 512 KiB or more", bytes >= 512 * 1024);
    }
    void close_guards() { above_.emplace(job_); }
    void expect_guards() const { EXPECT_TRUE(below_.is_intact() && above_->is_intact()) << "memory beside the plan"; }

    comm::job job_;
    int number_;
    std::uint64_t exchange_ = 0;

  private:
    std::string text_;
    guard below_;
    std::optional<guard> above_;
};

/// The site order of a plan whose ghosts are its own.
inline std::shared_ptr<const site_order> order_of(const halo_case& c, int rank) {
    const lattice::box local = c.cut.local_box(rank);
    if (c.order == 0) return site_order::lexicographic(local.extents);
    if (c.order == 1) return site_order::even_odd(local);
    return site_order::blocked(local, c.cut.global(), c.place.block, c.lane_width);
}

/// What plans with ghosts of their own have in common, whoever packs.
template <class T>
class slots_subject : public subject {
  public:
    slots_subject(const comm::job& j, const halo_case& c, int number, std::size_t bytes_per_site)
        : subject(j, number, c.text), c_(c), local_(c_.cut.local_box(j.rank())), order_(order_of(c_, j.rank())) {
        halo::plan_options& o = c_.options;
        o.bytes_per_site = bytes_per_site;
        if (c_.prepared == 1) o.order = order_;
        if (c_.prepared == 2)
            o.order = c_.order == 1 ? site_order::lexicographic(local_.extents) : site_order::even_odd(local_);
        plan_.emplace(j, c_.cut, o);
        close_guards();
        for (int f = 0; f < o.fields; ++f) {
            fields_.emplace_back(order_, c_.components, memory());
            images_.emplace_back(order_, c_.components);
        }
        for (const lattice::field<T>& x : fields_) xs_.push_back(&x);
        for (std::int64_t s = 0; s < local_.volume(); ++s)
            own_.push_back(lattice::lexicographic_index(local_.site(s), c_.cut.global()));
        note("ghosts in the plan");
        for (int i = 0; i < lattice::faces; ++i)
            expected_[i] = halocline_test::expected_ghosts(c_.cut, j.rank(), o, lattice::face_of(i));
        note_place(c_.cut, o.widths, o.boundaries);
        note_shape(c_, o.fields);
        note("self-exchange", o.self_exchange);
        note("checksums", o.checksums);
        note("order the plan was not made for", c_.prepared == 2);
        note("sources in slabs", c_.in_slab);
        for (const halo::plan_message& m : plan_->messages())
            note_message(m.path, m.send_sites.size() * o.bytes_per_site * static_cast<std::size_t>(o.fields));
    }

    bool test() override { return plan_->test(); }
    void look() override {
        for (const lattice::face f : plan_->completed()) {
            ++reported_[f.index()];
            note("ghosts read before finish()", under_way_);
            EXPECT_EQ(wrong_behind(f), 0) << lattice::to_string(f) << ", named by completed()";
        }
    }
    comm::status finish(random_generator& own) override {
        std::atomic<comm::status> bad{comm::status::ok};
        const int members = one_in(own, 2) ? members_ : 1; // one thread may finish for all
        note("finish by a team", members > 1);
        as_team(members, [&](halo::team me) {
            if (const comm::status s = plan_->finish(me); s != comm::status::ok) bad = s;
        });
        under_way_ = false;
        return bad;
    }
    void check() override {
        look(); // at what was not completed before
        for (int i = 0; i < lattice::faces; ++i) {
            const lattice::face f = lattice::face_of(i);
            const int message = plan_->message_of(f);
            EXPECT_EQ(reported_[i], message < 0 ? 0 : 1)
                << "completed() names each face once, " << lattice::to_string(f);
            const auto sites = static_cast<std::int64_t>(expected_[i].size());
            EXPECT_EQ(message < 0 ? 0 : plan_->messages()[message].ghost_sites, sites) << lattice::to_string(f);
            if (message < 0 || testing::Test::HasFailure()) continue;
            EXPECT_EQ(wrong_behind(f), 0) << lattice::to_string(f);
        }
        EXPECT_EQ(plan_->epoch(), exchange_);
        for (std::size_t f = 0; f < fields_.size(); ++f)
            EXPECT_EQ(std::memcmp(fields_[f].data(), images_[f].data(), images_[f].values().size_bytes()), 0)
                << "the source changed, field " << f;
        expect_guards();
    }

  protected:
    /// Where the fields are.
    [[nodiscard]] std::pmr::memory_resource* memory() const {
        return c_.in_slab ? &job_.memory() : std::pmr::get_default_resource();
    }
    /// Number of wrong components behind f.
    [[nodiscard]] virtual std::int64_t wrong_behind(lattice::face f) const = 0;
    /// Of a new exchange; the fields hold what is sent.
    void begin(random_generator& own) {
        ++exchange_;
        reported_.fill(0);
        members_ = random_members(own);
        note("start by a team", members_ > 1);
        under_way_ = true;
    }
    /// What the fields hold now is what they must hold until the next exchange.
    void keep_images() {
        for (std::size_t f = 0; f < fields_.size(); ++f) images_[f].copy_from(fields_[f]);
    }

    halo_case c_;
    lattice::box local_;
    std::shared_ptr<const site_order> order_;
    std::optional<halo::plan> plan_;
    std::vector<lattice::field<T>> fields_, images_;
    std::vector<const lattice::field<T>*> xs_;
    std::vector<std::int64_t> own_; // global index of each owned site
    std::array<std::vector<coordinate>, lattice::faces> expected_;
    std::array<int, lattice::faces> reported_{};
    int members_ = 1;
    bool under_way_ = false;
};

/// Messages that hold fields as they are, packed by the plan, by a function, or by hand.
template <class T>
class copied_subject final : public slots_subject<T> {
    using base = slots_subject<T>;
    using base::c_, base::plan_, base::fields_, base::xs_, base::local_, base::expected_, base::members_,
        base::exchange_;

    enum class way : std::uint8_t { fields, function, filled, bytes };

  public:
    copied_subject(const comm::job& j, const halo_case& c, int number)
        : base(j, c, number, sizeof(T) * static_cast<std::size_t>(c.components)), rows_(base::memory()) {
        for (int i = 0; i < lattice::faces; ++i)
            for (const coordinate& x : expected_[i])
                ghosts_[i].push_back(lattice::lexicographic_index(x, c_.cut.global()));
    }

    void choose(random_generator& common) override { of_fields_everywhere_ = can_send_fields && one_in(common, 2); }

    void start(random_generator& own) override {
        base::begin(own);
        fill();
        way_ = of_fields_everywhere_ ? way::fields : random_way(own);
        this->note("start of fields", way_ == way::fields);
        this->note("start by function", way_ == way::function);
        this->note("start of filled targets", way_ == way::filled);
        this->note("start of bytes", way_ == way::bytes);
        this->note("messages offered to receivers", is_offered());
        if (way_ == way::bytes) fill_rows();
        std::array<std::byte*, lattice::faces> targets{};
        if (way_ == way::filled)
            for (const halo::plan_message& m : plan_->messages()) targets[m.where.index()] = plan_->target(m.where);
        std::atomic<std::int64_t> packed{0};
        as_team(members_, [&](halo::team me) {
            const auto pack = [&](int message, std::int64_t first, std::int64_t last, std::byte* target) {
                packed += last - first;
                write(plan_->messages()[message], first, last, target);
            };
            switch (way_) {
            case way::fields: return start_fields(me);
            case way::function: return plan_->start(pack, me);
            case way::bytes: return start_rows(me);
            case way::filled:
                for (const halo::plan_message& m : plan_->messages()) {
                    const auto sites = static_cast<std::int64_t>(m.send_sites.size());
                    write(m, sites * me.index / me.size, sites * (me.index + 1) / me.size, targets[m.where.index()]);
                }
                return plan_->start_filled(me);
            }
        });
        if (way_ != way::function) return;
        std::int64_t sites = 0;
        for (const halo::plan_message& m : plan_->messages()) sites += std::ssize(m.send_sites);
        EXPECT_EQ(packed, sites) << "each site is packed once";
    }

    void check() override {
        base::check();
        if constexpr (can_send_fields) {
            if (way_ != way::fields) return;
            EXPECT_TRUE(plan_->is_fresh(std::span<const lattice::field<T>* const>(xs_)));
            plan_->require_fresh(std::span<const lattice::field<T>* const>(xs_));
        }
    }

    void end() override { this->note("pieces copied by receivers", plan_->statistics().pieces_helped > 0); }

    void repeat(random_generator& common) override {
        if constexpr (can_send_fields) {
            if (!of_fields_everywhere_) return;
            const std::span<const lattice::field<T>* const> xs(xs_);
            if (one_in(common, 2)) {
                this->note("ensure_halo() of a fresh field");
                EXPECT_EQ(plan_->ensure_halo(xs), comm::status::ok);
                return base::check();
            }
            this->note("ensure_halo() of a marked field");
            ++exchange_;
            this->reported_.fill(0);
            fill();
            fields_[static_cast<std::size_t>(drawn(common, 0, c_.options.fields - 1))].mark_written();
            EXPECT_FALSE(plan_->is_fresh(xs));
            EXPECT_EQ(plan_->ensure_halo(xs), comm::status::ok);
            base::check();
        }
    }

  protected:
    [[nodiscard]] std::int64_t wrong_behind(lattice::face f) const override {
        std::int64_t wrong = 0;
        for (std::size_t k = 0; k < fields_.size(); ++k) {
            const std::byte* ghost = plan_->ghost(f, static_cast<int>(k));
            for (const std::int64_t index : ghosts_[f.index()])
                for (int c = 0; c < c_.components; ++c, ghost += sizeof(T)) {
                    const std::uint64_t hash = oracle_hash(index, c, this->epoch_of(k));
                    wrong += std::memcmp(ghost, &hash, sizeof(T)) != 0;
                }
        }
        return wrong;
    }

  private:
    static constexpr bool can_send_fields = sizeof(T) == 4 || sizeof(T) == 8;

    [[nodiscard]] way random_way(random_generator& own) const {
        switch (drawn(own, can_send_fields ? 0 : 2, c_.options.order ? 3 : 5)) {
        case 0:
        case 1: return way::fields;
        case 2: return way::function;
        case 3: return way::filled;
        default: return way::bytes;
        }
    }
    void start_fields(halo::team me) {
        if constexpr (can_send_fields) {
            if (xs_.size() == 1) return plan_->start(*xs_[0], me);
            plan_->start(std::span<const lattice::field<T>* const>(xs_), me);
        }
    }
    void fill() {
        for (std::size_t k = 0; k < fields_.size(); ++k)
            for (std::int64_t s = 0; s < local_.volume(); ++s)
                for (int c = 0; c < c_.components; ++c) {
                    const std::uint64_t hash =
                        oracle_hash(this->own_[static_cast<std::size_t>(s)], c, this->epoch_of(k));
                    std::memcpy(&fields_[k].at(s, c), &hash, sizeof(T));
                }
        base::keep_images();
    }
    /// The fields as bytes of sites, one field after the other.
    void fill_rows() {
        rows_.clear();
        for (const lattice::field<T>& x : fields_)
            for (std::int64_t s = 0; s < local_.volume(); ++s)
                for (int c = 0; c < c_.components; ++c) rows_.push_back(x.at(s, c));
    }
    void start_rows(halo::team me) {
        const std::size_t row_bytes = rows_.size() / fields_.size() * sizeof(T);
        std::vector<const std::byte*> rows;
        for (std::size_t k = 0; k < fields_.size(); ++k)
            rows.push_back(reinterpret_cast<const std::byte*>(rows_.data()) + k * row_bytes);
        if (rows.size() == 1) return plan_->start_bytes(rows[0], me);
        plan_->start_bytes(rows, me);
    }
    /// May receivers that wait copy what this rank sends? A team's members copy together already.
    [[nodiscard]] bool is_offered() const {
        const bool readable = way_ == way::bytes || (way_ == way::fields && c_.prepared == 1);
        return readable && c_.in_slab && members_ == 1 &&
               std::ranges::any_of(plan_->messages(), [](auto& m) { return m.path == halo::path::joint; });
    }
    /// Writes sites [first, last) of all fields of a message.
    void write(const halo::plan_message& m, std::int64_t first, std::int64_t last, std::byte* target) const {
        for (const lattice::field<T>& x : fields_) {
            std::byte* to = target + static_cast<std::size_t>(first) * c_.options.bytes_per_site;
            for (std::int64_t i = first; i < last; ++i)
                for (int c = 0; c < c_.components; ++c, to += sizeof(T))
                    std::memcpy(to, &x.at(m.send_sites[i], c), sizeof(T));
            target += m.send_sites.size() * c_.options.bytes_per_site;
        }
    }

    std::array<std::vector<std::int64_t>, lattice::faces> ghosts_; // global index of each
    std::pmr::vector<T> rows_;                                     // what start_bytes() sends
    bool of_fields_everywhere_ = false;
    way way_ = way::function;
};

/// coefficient * map applied to the reals of a site; an empty map is the identity.
inline std::vector<double> applied(const halo::block_map& map, std::complex<double> coefficient,
                                   const std::vector<double>& site) {
    const auto scaled = [&](std::complex<double> by, const double* in, int reals, double* out) {
        if (by.imag() == 0)
            for (int i = 0; i < reals; ++i) out[i] += by.real() * in[i];
        else
            for (int i = 0; i < reals; i += 2) {
                const std::complex<double> z = by * std::complex<double>(in[i], in[i + 1]);
                out[i] += z.real();
                out[i + 1] += z.imag();
            }
    };
    const int n = map.block_reals;
    std::vector<double> out(map.empty() ? site.size() : static_cast<std::size_t>(map.reals()));
    if (map.empty()) scaled(coefficient, site.data(), static_cast<int>(site.size()), out.data());
    for (std::size_t r = 0; r < map.rows.size(); ++r)
        for (const halo::block_map::term& t : map.rows[r])
            scaled(coefficient * t.coefficient, &site[static_cast<std::size_t>(t.block * n)], n,
                   &out[r * static_cast<std::size_t>(n)]);
    return out;
}

/// Messages that a packer makes and an unpacker expands and adds; and their transpose.
template <class T>
class packed_subject final : public slots_subject<T> {
    using base = slots_subject<T>;
    using base::c_, base::plan_, base::fields_, base::xs_, base::local_, base::expected_, base::members_, base::order_,
        base::job_;

  public:
    packed_subject(const comm::job& j, const packed_case& c, int number)
        : base(j, c.halo, number, halo::packer<T>::bytes_per_site(c.packing)), packing_(c.packing), blocks_(c.blocks),
          pack_(*plan_, packing_, order_), unpack_(*plan_, halo::expansion_of(packing_), order_) {
        for (std::size_t f = 0; f < fields_.size(); ++f) sums_.emplace_back(order_, c_.components);
        const auto any = [](auto&& range, auto&& is) { return std::any_of(range.begin(), range.end(), is); };
        this->note("ghosts of packed messages");
        this->note("projection", !packing_.projections[0].empty());
        this->note("phases", any(packing_.phases, [](std::complex<double> p) { return p != 1.0; }));
        this->note("format half", packing_.format == halo::message_format::half);
        this->note("format bfloat16", packing_.format == halo::message_format::bfloat16);
    }

    void choose(random_generator&) override {}
    void start(random_generator& own) override {
        base::begin(own);
        for (std::size_t k = 0; k < fields_.size(); ++k)
            for (std::int64_t s = 0; s < local_.volume(); ++s)
                for (int c = 0; c < c_.components; ++c)
                    fields_[k].at(s, c) = static_cast<T>(whole(this->own_[static_cast<std::size_t>(s)], c, k));
        base::keep_images();
        const bool one = xs_.size() == 1 && one_in(own, 2);
        as_team(members_, [&](halo::team me) {
            if (one)
                plan_->start(pack_.of(*xs_[0]), me);
            else
                plan_->start(pack_.of(std::span<const lattice::field<T>* const>(xs_)), me);
        });
    }
    void repeat(random_generator&) override {}
    void check() override {
        base::check();
        if (testing::Test::HasFailure() || added_ == this->exchange_) return;
        added_ = this->exchange_;
        expect_expansion();
    }
    void end() override {
        if (c_.options.select) return;
        halo::plan_options back;
        try {
            back = halo::reversed(c_.options, c_.cut);
        } catch (const input_error&) { // the same on every rank: parities that can't be reversed
            EXPECT_TRUE(c_.options.parity.has_value());
            return;
        }
        this->note("adjoint of packing");
        expect_adjoint(back);
    }

  protected:
    [[nodiscard]] std::int64_t wrong_behind(lattice::face f) const override {
        const auto reals = static_cast<std::size_t>(halo::packer<T>::reals_per_site(packing_));
        std::int64_t wrong = 0;
        std::vector<T> seen(reals * expected_[f.index()].size());
        for (std::size_t k = 0; k < fields_.size(); ++k) {
            pack_.unpack(plan_->ghost(f, static_cast<int>(k)), 0, std::ssize(expected_[f.index()]), seen.data());
            const T* at = seen.data();
            for (const coordinate& x : expected_[f.index()])
                for (const double real : ghost(f, x, k)) wrong += static_cast<double>(*at++) != real;
        }
        return wrong;
    }

  private:
    /// The values that are sent: small whole numbers.
    [[nodiscard]] double whole(std::int64_t index, int component, std::size_t field) const {
        return static_cast<double>(oracle_hash(index, component, this->epoch_of(field)) % 15) - 7;
    }
    /// What the ghost behind f that is a copy of site x must hold.
    [[nodiscard]] std::vector<double> ghost(lattice::face f, const coordinate& x, std::size_t field) const {
        std::vector<double> site;
        const std::int64_t index = lattice::lexicographic_index(x, c_.cut.global());
        for (int c = 0; c < c_.components; ++c) site.push_back(whole(index, c, field));
        std::complex<double> phase = c_.cut.wraps(job_.rank(), f) ? packing_.phases[f.mu] : 1.0;
        if (f.end == lattice::side::low) phase = std::conj(phase);
        return applied(packing_.projections[f.opposite().index()], phase, site);
    }
    /// The owned site to which a ghost is added: as many steps inwards as there are ghost layers.
    [[nodiscard]] std::int64_t inwards(lattice::face f, coordinate x) const {
        const int width = c_.options.widths.behind(f), extent = c_.cut.global()[f.mu];
        x[f.mu] += f.end == lattice::side::low ? width : extent - width;
        x[f.mu] %= extent;
        return local_.index(x);
    }
    /// Adds the ghosts of this exchange to fields of whole numbers.
    void expect_expansion() {
        this->note("expanded and added");
        std::vector<lattice::field<T>*> ys;
        std::vector<std::vector<double>> expected;
        for (std::size_t k = 0; k < sums_.size(); ++k) {
            ys.push_back(&sums_[k]);
            std::vector<double>& sum = expected.emplace_back();
            for (std::int64_t s = 0; s < local_.volume(); ++s)
                for (int c = 0; c < c_.components; ++c) {
                    sum.push_back(whole(this->own_[static_cast<std::size_t>(s)], c + 500, k));
                    sums_[k].at(s, c) = static_cast<T>(sum.back());
                }
            for (const halo::plan_message& m : plan_->messages())
                for (const coordinate& x : expected_[m.where.index()]) {
                    const halo::block_map& map = packing_.projections[m.where.opposite().index()];
                    const auto added = applied(halo::adjoint(map, blocks_), 1, ghost(m.where, x, k));
                    double* to = &sum[static_cast<std::size_t>(inwards(m.where, x) * c_.components)];
                    for (const double real : added) *to++ += real;
                }
        }
        as_team(members_, [&](halo::team me) { unpack_.add(*plan_, std::span<lattice::field<T>* const>(ys), me); });
        std::int64_t wrong = 0;
        for (std::size_t k = 0; k < sums_.size(); ++k)
            for (std::int64_t s = 0, i = 0; s < local_.volume(); ++s)
                for (int c = 0; c < c_.components; ++c, ++i)
                    wrong += static_cast<double>(sums_[k].at(s, c)) != expected[k][static_cast<std::size_t>(i)];
        EXPECT_EQ(wrong, 0) << "sums of expanded ghosts";
    }
    /// <H x, y> = <x, H^T y> for the exchange H of the last fields x, and y in its ghosts. Whole numbers, so exactly.
    void expect_adjoint(const halo::plan_options& options) {
        halo::plan back(job_, c_.cut, options);
        const halo::unpacker<T> add(back, halo::adjoint_of(packing_), order_);
        const auto reals = static_cast<std::size_t>(halo::packer<T>::reals_per_site(packing_));
        double products[2] = {0, 0};
        back.start([&](int message, std::int64_t first, std::int64_t last, std::byte* target) {
            const lattice::face f = back.messages()[message].where;
            const std::vector<coordinate>& ghosts = expected_[f.index()];
            for (std::size_t k = 0; k < fields_.size(); ++k) {
                std::vector<T> y;
                for (const coordinate& x : ghosts) {
                    const std::vector<double> hx = ghost(f, x, k);
                    const std::int64_t index = lattice::lexicographic_index(x, c_.cut.global());
                    for (std::size_t c = 0; c < reals; ++c) {
                        y.push_back(static_cast<T>(whole(index, static_cast<int>(c) + 100 * (f.index() + 1), k)));
                        products[0] += hx[c] * static_cast<double>(y.back());
                    }
                }
                pack_.write(y.data() + static_cast<std::size_t>(first) * reals, first, last,
                            target + k * ghosts.size() * options.bytes_per_site);
            }
        });
        EXPECT_EQ(back.finish(), comm::status::ok);
        std::vector<lattice::field<T>*> ys;
        for (lattice::field<T>& y : sums_) {
            std::fill(y.values().begin(), y.values().end(), T{});
            ys.push_back(&y);
        }
        add.add(back, std::span<lattice::field<T>* const>(ys));
        for (std::size_t k = 0; k < fields_.size(); ++k)
            for (std::int64_t s = 0; s < local_.volume(); ++s)
                for (int c = 0; c < c_.components; ++c)
                    products[1] += static_cast<double>(fields_[k].at(s, c)) * static_cast<double>(sums_[k].at(s, c));
        double sums[2] = {0, 0};
        for (const std::string& of_rank : job_.gather({reinterpret_cast<const char*>(products), sizeof products})) {
            std::memcpy(products, of_rank.data(), sizeof products);
            for (int i = 0; i < 2; ++i) sums[i] += products[i];
        }
        EXPECT_EQ(sums[0], sums[1]) << "<H x, y> and <x, H^T y>";
    }

    halo::packer_options packing_;
    int blocks_;
    halo::packer<T> pack_;
    halo::unpacker<T> unpack_;
    std::vector<lattice::field<T>> sums_;
    std::uint64_t added_ = 0; // the exchange whose ghosts were expanded
};

/// Fields that hold their ghosts themselves, forward and in reverse.
template <class T>
class shell_subject final : public subject {
    struct site {
        std::int64_t index = 0;  // in the field
        std::int64_t source = 0; // global index of the site that it is, or is a copy of
        coordinate at{};         // global, not wrapped
        std::complex<double> phase = 1;
        bool own = false, filled = false;
    };
    struct fields {
        std::vector<lattice::field<T>> source, destination; // the latter empty if it is the former
        std::vector<lattice::field<T>> source_image, destination_image;
    };
    struct contribution { // to a sum: phase * the ghost of a rank at a coordinate
        std::int64_t index = 0;
        int rank = 0;
        coordinate at{};
        std::complex<double> phase = 1;
    };

  public:
    shell_subject(const comm::job& j, const padded_case& c, int number)
        : subject(j, number, c.text), c_(c), largest_(largest_number(c.options)),
          grown_(halo::grown(c_.cut.local_box(j.rank()), c_.options.widths)) {
        const int rank = j.rank();
        const lattice::box local = c_.cut.local_box(rank);
        const auto order = halocline_test::order_of(c_, rank);
        site_at_.assign(static_cast<std::size_t>(grown_.volume()), -1);
        for_each_site(c_.cut, rank, c_.options, [&](const coordinate& x, std::int64_t i) {
            site_at_[static_cast<std::size_t>(grown_.index(x))] = static_cast<std::int32_t>(sites_.size());
            sites_.push_back({i, lattice::lexicographic_index(wrapped(x, c_.cut.global()), c_.cut.global()), x,
                              phase_at(x, c_.cut.global(), twists_of(c_.options)), local.contains(x),
                              halocline_test::is_filled(c_.cut, rank, c_.options, x)});
        });
        if (c_.options.reverse) list_contributions(local);
        const bool in_slab = c_.in_slab == 1 || (c_.in_slab == 2 && rank % 2 == 1);
        std::pmr::memory_resource* const memory = in_slab ? &j.memory() : std::pmr::get_default_resource();
        sets_.resize(static_cast<std::size_t>(c_.bindings));
        std::vector<halo::binding> bindings;
        for (fields& set : sets_) {
            halo::binding& b = bindings.emplace_back();
            for (const int n : c_.components) {
                b.source.push_back(halo::view(set.source.emplace_back(order, n, memory)));
                set.source_image.emplace_back(order, n);
                if (!c_.apart) continue;
                b.destination.push_back(halo::view(set.destination.emplace_back(order, n, memory)));
                set.destination_image.emplace_back(order, n);
            }
            if (!c_.apart) b.destination = b.source;
        }
        make_plan(bindings, number);
        close_guards();
        reported_.resize(plan_->ghosts().size());
        note_case();
    }

    /// In most cases by made-up costs of lines, with which short runs alternate between a slot and the field: even
    /// ranks believe at first that cores are far apart, odd ones that they are near, and half of them are convinced of
    /// the opposite.
    void make_plan(const std::vector<halo::binding>& bindings, int number) {
        const comm::costs measured = comm::measured_costs(job_);
        if (number % 4 != 3) {
            const bool far = job_.rank() % 2 == 0, stays = number % 2 == 0;
            comm::costs c = measured;
            c.flag_seconds = 0;
            c.copy_seconds_per_byte = 0.08e-9;
            c.cached = {0, far ? 20e-9 : 10e-9};
            c.streamed = {0, 12e-9};
            c.scattered_line_seconds = 0;
            c.take_seconds = far == stays ? 1e-12 : 1; // any reading looks far; or none
            comm::assume_costs(job_, c);
        }
        plan_.emplace(job_, c_.cut, c_.options, bindings);
        comm::assume_costs(job_, measured);
        note("by slot or into the field",
             plan_->describe().find("; packed when a line takes more than ") != std::string::npos);
    }

    void choose(random_generator& common) override {
        backward_ = c_.options.reverse && one_in(common, 2);
        same_binding_ = c_.bindings == 1 || one_in(common, 2);
        binding_ = drawn(common, 0, c_.bindings - 1);
    }

    void start(random_generator& own) override {
        const int last = which_;
        which_ = same_binding_ ? binding_ : drawn(own, 0, c_.bindings - 1);
        note("another binding", exchange_ > 0 && which_ != last);
        note("bindings that differ by rank", !same_binding_);
        note("reverse", backward_);
        note("phases in reverse",
             backward_ && std::ranges::any_of(contributions_, [](auto& from) { return from.phase != 1.0; }));
        note("formats in reverse", backward_ && c_.options.format != halo::message_format::as_stored);
        ++exchange_;
        forward_ += backward_ ? 0 : 1;
        std::fill(reported_.begin(), reported_.end(), 0);
        if (backward_)
            fill_backward();
        else
            fill_forward();
        members_ = random_members(own);
        note("start by a team", members_ > 1);
        under_way_ = true;
        as_team(members_, [&](halo::team me) {
            if (backward_)
                plan_->start_reverse(which_, me);
            else
                plan_->start(which_, me);
        });
    }
    bool test() override { return plan_->test(); }
    void look() override {
        for (const int region : plan_->completed()) {
            ++reported_[static_cast<std::size_t>(region)];
            note("ghosts read before finish()", under_way_);
            EXPECT_EQ(wrong_in(plan_->ghosts()[static_cast<std::size_t>(region)].sites), 0)
                << "region " << region << ", named by completed()";
        }
    }
    comm::status finish(random_generator&) override {
        std::atomic<comm::status> bad{comm::status::ok};
        note("finish by a team", members_ > 1);
        as_team(members_, [&](halo::team me) {
            if (const comm::status s = plan_->finish(me); s != comm::status::ok) bad = s;
        });
        under_way_ = false;
        return bad;
    }
    void check() override {
        look(); // at what was not completed before
        const int once = backward_ ? 0 : 1;
        for (std::size_t r = 0; r < reported_.size(); ++r)
            EXPECT_EQ(reported_[r], once) << "completed() names each region once, region " << r;
        EXPECT_EQ(plan_->epoch(), forward_);
        for (std::size_t b = 0; b < sets_.size(); ++b) {
            const std::string where =
                "binding " + std::to_string(b) + (static_cast<int>(b) == which_ ? "" : ", unused");
            expect_images(sets_[b].source, sets_[b].source_image, where + ", source ");
            expect_images(sets_[b].destination, sets_[b].destination_image, where + ", destination ");
        }
        expect_guards();
        if (backward_) return;
        EXPECT_TRUE(plan_->is_fresh(which_));
        plan_->require_fresh(which_);
    }
    void repeat(random_generator& common) override {
        if (backward_ || !same_binding_) return;
        if (one_in(common, 2)) {
            note("ensure_halo() of a fresh field");
            EXPECT_EQ(plan_->ensure_halo(which_), comm::status::ok);
            return check();
        }
        note("ensure_halo() of a marked field");
        ++exchange_;
        ++forward_;
        std::fill(reported_.begin(), reported_.end(), 0);
        fill_forward();
        auto& written = sets_[static_cast<std::size_t>(which_)].source;
        written[static_cast<std::size_t>(drawn(common, 0, static_cast<int>(written.size()) - 1))].mark_written();
        EXPECT_FALSE(plan_->is_fresh(which_));
        EXPECT_EQ(plan_->ensure_halo(which_), comm::status::ok);
        check();
    }
    void end() override {
        note("pieces copied by receivers", plan_->statistics().pieces_helped > 0);
        std::uint64_t messages = 0, bytes = 0;
        for (const comm::transport_counts& traffic : plan_->statistics().by_transport) {
            messages += traffic.messages;
            bytes += traffic.bytes;
        }
        if (messages > 0 && c_.options.path != halo::path::automatic) note_message(c_.options.path, bytes / messages);
        if (!c_.options.reverse || c_.apart) return;
        note("reverse is the adjoint");
        expect_reverse_is_the_adjoint<T>(job_, c_);
    }

  private:
    void note_case() const {
        const shell_options& o = c_.options;
        note_place(c_.cut, o.widths, o.boundaries);
        note_shape(c_, static_cast<int>(c_.components.size()));
        note("padded ghosts", o.layout == halo::ghost_layout::padded);
        note("appended ghosts", o.layout == halo::ghost_layout::appended);
        const bool corners = o.shape == halo::shell::box;
        note("corners at once", corners && plan_->route() == halo::corner_route::at_once);
        note("corners by dimension", corners && plan_->route() == halo::corner_route::by_dimension);
        note("all fields in slabs", c_.in_slab == 1);
        note("only some fields in slabs", c_.in_slab == 2);
        note("destination apart from source", c_.apart);
        const auto any_ghost = [&](auto&& is) {
            return std::ranges::any_of(sites_, [&](const site& s) { return s.filled && is(s.phase); });
        };
        note("ghosts times a phase", any_ghost([](std::complex<double> p) { return p != 1.0; }));
        note("ghosts times a complex phase", any_ghost([](std::complex<double> p) { return p.imag() != 0; }));
        note("ghosts as half", o.format == halo::message_format::half);
        note("ghosts as bfloat16", o.format == halo::message_format::bfloat16);
        note("ghosts scaled", o.scale != 1);
    }
    void list_contributions(const lattice::box& local) {
        for (int r = 0; r < c_.cut.ranks(); ++r)
            for_each_site(halo::grown(c_.cut.local_box(r), c_.options.widths), [&](const coordinate& x, std::int64_t) {
                const coordinate source = wrapped(x, c_.cut.global());
                if (!local.contains(source) || !halocline_test::is_filled(c_.cut, r, c_.options, x)) return;
                const std::int32_t to = site_at_[static_cast<std::size_t>(grown_.index(source))];
                contributions_.push_back({sites_[static_cast<std::size_t>(to)].index, r, x,
                                          std::conj(phase_at(x, c_.cut.global(), twists_of(c_.options)))});
            });
    }
    /// The fields in whose ghosts values arrive, or from whose ghosts they come.
    [[nodiscard]] static auto& with_ghosts(auto& set) { return set.destination.empty() ? set.source : set.destination; }
    [[nodiscard]] static auto& images_with_ghosts(auto& set) {
        return set.destination.empty() ? set.source_image : set.destination_image;
    }
    static void poison(std::vector<lattice::field<T>>& xs) {
        for (lattice::field<T>& x : xs) std::memset(x.data(), 0xA5, x.values().size_bytes());
    }
    void put(lattice::field<T>& x, const site& s, std::size_t f) const {
        for (int c = 0; c < x.components(); ++c)
            x.at(s.index, c) = value_of<T>(s.source, s.phase, largest_, c, epoch_of(f));
    }
    /// Owned sites of the source have values, all else is poisoned; the images also have the ghosts.
    void fill_forward() {
        fields& set = sets_[static_cast<std::size_t>(which_)];
        poison(set.source);
        poison(set.destination);
        for (std::size_t f = 0; f < set.source.size(); ++f) {
            for (const site& s : sites_)
                if (s.own) put(set.source[f], s, f);
            set.source_image[f].copy_from(set.source[f]);
            if (c_.apart) set.destination_image[f].copy_from(set.destination[f]);
            for (const site& s : sites_)
                if (s.filled) put(images_with_ghosts(set)[f], s, f);
        }
    }
    /// All sites have whole numbers; the owned ones of the source images have the sums.
    void fill_backward() {
        fields& set = sets_[static_cast<std::size_t>(which_)];
        poison(set.source);
        poison(set.destination);
        for (std::size_t f = 0; f < set.source.size(); ++f) {
            const int n = set.source[f].components();
            for (const site& s : sites_)
                for (int c = 0; c < n; ++c) {
                    const T value = whole_value<T>(s.at, job_.rank(), c, epoch_of(f));
                    set.source[f].at(s.index, c) = value;
                    with_ghosts(set)[f].at(s.index, c) = value;
                }
            set.source_image[f].copy_from(set.source[f]);
            if (c_.apart) set.destination_image[f].copy_from(set.destination[f]);
            for (const contribution& from : contributions_)
                for (int c = 0; c < n; ++c)
                    set.source_image[f].at(from.index, c) +=
                        times(from.phase, c, [&](int k) { return whole_value<T>(from.at, from.rank, k, epoch_of(f)); });
        }
    }
    /// Number of wrong components in a part of the grown box.
    [[nodiscard]] std::int64_t wrong_in(const lattice::box& part) const {
        const auto& set = sets_[static_cast<std::size_t>(which_)];
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < part.volume(); ++i) {
            const std::int64_t at = lattice::lexicographic_index(part.site(i), grown_.extents);
            const site& s = sites_[static_cast<std::size_t>(site_at_[static_cast<std::size_t>(at)])];
            if (!s.filled) continue;
            for (std::size_t f = 0; f < set.source.size(); ++f)
                for (int c = 0; c < set.source[f].components(); ++c)
                    wrong += std::memcmp(&with_ghosts(set)[f].at(s.index, c),
                                         &images_with_ghosts(set)[f].at(s.index, c), sizeof(T)) != 0;
        }
        return wrong;
    }
    void expect_images(const std::vector<lattice::field<T>>& xs, const std::vector<lattice::field<T>>& images,
                       const std::string& where) const {
        for (std::size_t f = 0; f < xs.size(); ++f) {
            if (std::memcmp(xs[f].data(), images[f].data(), images[f].values().size_bytes()) == 0) continue;
            ADD_FAILURE() << where << f << ": " << wrong_sites(xs[f], images[f]);
        }
    }
    [[nodiscard]] std::string wrong_sites(const lattice::field<T>& x, const lattice::field<T>& image) const {
        int own = 0, filled = 0, others = 0;
        std::string first;
        for (const site& s : sites_)
            for (int c = 0; c < x.components(); ++c) {
                if (std::memcmp(&x.at(s.index, c), &image.at(s.index, c), sizeof(T)) == 0) continue;
                if (first.empty())
                    first = ", the first at " + lattice::to_string(s.at) + " component " + std::to_string(c);
                ++(s.own ? own : s.filled ? filled : others);
            }
        return "wrong components: " + std::to_string(own) + " of owned sites, " + std::to_string(filled) +
               " of ghosts, " + std::to_string(others) + " of ghosts that stay as they are" +
               (first.empty() ? "; padding lanes" : first);
    }

    padded_case c_;
    std::uint64_t largest_; // whole number that is sent; 0: any bits
    lattice::box grown_;
    std::vector<site> sites_;
    std::vector<std::int32_t> site_at_; // by index in the grown box; -1: there is none
    std::vector<contribution> contributions_;
    std::vector<fields> sets_;
    std::optional<shell_plan> plan_;
    std::vector<int> reported_;
    std::uint64_t forward_ = 0;
    bool backward_ = false, same_binding_ = true, under_way_ = false;
    int binding_ = 0, which_ = 0, members_ = 1;
};

/// Which plans a test draws.
enum class kinds : std::uint8_t { all, slots, shells };
constexpr std::string_view to_string(kinds k) {
    return k == kinds::all ? "all" : k == kinds::slots ? "slots" : "shells";
}

inline std::unique_ptr<subject> random_subject(const comm::job& j, random_generator& common, kinds k, int number) {
    const bool shares = j.transport() == "shm" || j.transport() == "self";
    const int kind = k == kinds::slots ? drawn(common, 0, 4) : k == kinds::shells ? 9 : drawn(common, 0, 9);
    if (kind > 4) {
        const padded_case c = random_padded_case(common, j.ranks(), shares);
        if (c.component_bytes == 4) return std::make_unique<shell_subject<float>>(j, c, number);
        return std::make_unique<shell_subject<double>>(j, c, number);
    }
    if (kind > 2) {
        const packed_case c = random_packed_case(common, j.ranks());
        if (c.halo.component_bytes == 4) return std::make_unique<packed_subject<float>>(j, c, number);
        return std::make_unique<packed_subject<double>>(j, c, number);
    }
    const halo_case c = random_case(common, j.ranks());
    if (c.component_bytes == 1) return std::make_unique<copied_subject<std::uint8_t>>(j, c, number);
    if (c.component_bytes == 4) return std::make_unique<copied_subject<float>>(j, c, number);
    return std::make_unique<copied_subject<double>>(j, c, number);
}

inline void pause(random_generator& own) {
    if (one_in(own, 4)) return std::this_thread::yield();
    std::atomic<int> spins{drawn(own, 0, 2000)};
    while (spins-- > 0) continue;
}

/// One exchange of all these plans at once. Each rank starts and finishes them in an order of its own.
inline void exchange_at_once(const comm::job& j, const std::vector<std::unique_ptr<subject>>& subjects,
                             random_generator& common, random_generator& own) {
    const auto note = [&](std::string_view name, bool occurred = true) {
        if (j.rank() == 0) features_seen().note(name, occurred);
    };
    std::vector<subject*> order;
    for (const auto& s : subjects) {
        s->choose(common);
        order.push_back(s.get());
    }
    const bool barrier = one_in(common, 8);
    const auto shuffle = [&] {
        for (std::size_t i = order.size(); i > 1; --i)
            std::swap(order[i - 1], order[static_cast<std::size_t>(drawn(own, 0, static_cast<int>(i) - 1))]);
    };
    shuffle();
    for (subject* const s : order) {
        s->start(own);
        if (one_in(own, 4)) pause(own);
    }
    note("several plans under way", order.size() > 1);
    for (int steps = one_in(own, 3) ? 0 : drawn(own, 1, 8); steps > 0; --steps) {
        subject& s = *order[static_cast<std::size_t>(drawn(own, 0, static_cast<int>(order.size()) - 1))];
        switch (drawn(own, 0, 4)) {
        case 0:
        case 1:
            note("test() between");
            (void)s.test();
            break;
        case 2:
        case 3:
            note("completed() between");
            s.look();
            break;
        default: pause(own);
        }
    }
    if (barrier) {
        note("barrier between");
        j.barrier();
    }
    const std::vector<subject*> started = order;
    shuffle();
    note("finished in another order", order != started);
    if (one_in(own, 4)) {
        note("test() until it is true");
        for (subject* const s : order)
            while (!s->test()) s->look();
    }
    for (subject* const s : order) {
        ASSERT_EQ(s->finish(own), comm::status::ok) << s->text();
        SCOPED_TRACE(s->text());
        s->check();
    }
    if (order.size() == 1) return;
    for (subject* const s : order) { // their ghosts stay, whatever the others did
        SCOPED_TRACE(s->text());
        s->check();
    }
}

/// One case: 1 to 3 plans, and a few exchanges of them.  Returns the number of plans.
inline int exchange_random_case(const comm::job& j, kinds k, unsigned seed) {
    const std::string again = "HALOCLINE_TEST_CASE=" + std::to_string(j.ranks()) + ":" + std::string(to_string(k)) +
                              ":" + std::to_string(seed) + " " + program_invocation_short_name + " --gtest_filter=" +
                              testing::UnitTest::GetInstance()->current_test_info()->test_suite_name() + "." +
                              testing::UnitTest::GetInstance()->current_test_info()->name();
    SCOPED_TRACE("rank " + std::to_string(j.rank()) + "; repeat it by  " + again);
    random_generator common(seed), own(seed + 1 + static_cast<unsigned>(j.rank()));
    std::vector<std::unique_ptr<subject>> subjects;
    try {
        const int draw = drawn(common, 0, 9), plans = draw < 6 ? 1 : draw < 9 ? 2 : 3;
        for (int n = 0; n < plans; ++n) subjects.push_back(random_subject(j, common, k, n));
        for (int exchanges = drawn(common, 2, 3); exchanges > 0 && !testing::Test::HasFailure(); --exchanges) {
            exchange_at_once(j, subjects, common, own);
            if (testing::Test::HasFailure()) break;
            for (const auto& s : subjects) {
                SCOPED_TRACE(s->text());
                s->repeat(common);
            }
        }
        for (const auto& s : subjects) {
            if (testing::Test::HasFailure()) break;
            SCOPED_TRACE(s->text());
            s->end();
        }
    } catch (const std::exception& e) {
        std::string texts;
        for (const auto& s : subjects) texts += "\n" + s->text();
        ADD_FAILURE() << e.what() << texts;
    }
    return static_cast<int>(subjects.size());
}

/// HALOCLINE_TEST_SEED, or a new one: rank 0's.
inline unsigned seed_of_run(const comm::job& j) {
    const char* const given = std::getenv("HALOCLINE_TEST_SEED");
    const unsigned mine =
        given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device()();
    return static_cast<unsigned>(std::stoul(j.broadcast(std::to_string(mine))));
}

/// Random cases on the ranks of j, drawn from `seed`, until they have made `count` plans; or the case that
/// HALOCLINE_TEST_CASE names, where it belongs.
inline void exchange_random_cases(const comm::job& j, kinds k, unsigned seed, int count) {
    if (const char* const named = std::getenv("HALOCLINE_TEST_CASE")) {
        const std::string mine = std::to_string(j.ranks()) + ":" + std::string(to_string(k)) + ":", text = named;
        if (text.starts_with(mine))
            (void)exchange_random_case(j, k, static_cast<unsigned>(std::stoul(text.substr(mine.size()))));
        if (testing::Test::HasFailure()) j.abort("test failed");
        return;
    }
    std::uint64_t state = mixed((std::uint64_t{seed} << 8) + static_cast<std::uint64_t>(j.ranks()));
    while (count > 0) {
        state = mixed(state);
        count -= exchange_random_case(j, k, static_cast<unsigned>(state >> 32));
        if (testing::Test::HasFailure()) return j.abort("test failed");
    }
}

} // namespace halocline_test
