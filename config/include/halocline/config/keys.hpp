// SPDX-License-Identifier: Apache-2.0
// Tables of keys: each defines once where a setting belongs, what it means, and how it is read and shown. One table
// serves the config file, the environment, the command line and reports.
#pragma once

#include <halocline/config/value_text.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace halocline::config {

/// Where a key belongs and what it means.
struct key_name {
    std::string section, name, description;
    std::string short_variable{}; ///< one more variable for it, which environment() overrides; "": none

    /// "comm.transports", "level.0.blocks".
    [[nodiscard]] std::string path() const { return section + "." + name; }
    /// HALOCLINE_COMM_TRANSPORTS, HALOCLINE_LEVEL_0_BLOCKS.
    [[nodiscard]] std::string environment() const;
};

/// A key of a structure of settings.
template <class Settings>
struct key : key_name {
    std::function<void(Settings&, const std::string&)> read; ///< Err: std::invalid_argument with what would be right
    std::function<std::string(const Settings&)> show;        ///< in the form that read() accepts
    bool of_host = false;                                    ///< may ranks differ? For the device or network of a host
    bool of_list = false;                                    ///< in a file it may be an array
};

/// The key `one`, allowing its value in a file to be an array.
template <class Settings>
key<Settings> allow_array(key<Settings> one) {
    one.of_list = true;
    return one;
}

/// May the value of a key differ between the ranks of a job?
enum class may_differ : bool { no, between_hosts };

// The kinds of keys. `member` locates the value: a member of Settings, or a function from Settings to a reference.

/// A key whose value is read from text by `read`, and shown by `show`.
template <class Settings, class Member, class Read, class Show>
key<Settings> make_key(key_name name, Member member, Read read, Show show, may_differ m = may_differ::no) {
    return {std::move(name), [=](Settings& s, const std::string& text) { std::invoke(member, s) = read(text); },
            [=](const Settings& s) { return show(std::invoke(member, s)); }, m == may_differ::between_hosts};
}

/// Any text.
template <class Settings, class Member>
key<Settings> text_key(key_name name, Member member, may_differ m = may_differ::no) {
    return make_key<Settings>(std::move(name), member, std::identity{}, std::identity{}, m);
}

/// A whole number in [lowest, highest].
template <class Settings, class Int, class Member>
key<Settings> integer_key(key_name name, Member member, Int lowest, Int highest, may_differ m = may_differ::no) {
    return make_key<Settings>(
        std::move(name), member, [=](const std::string& text) { return read_integer<Int>(text, lowest, highest); },
        [](Int value) { return std::to_string(value); }, m);
}

/// A real number; `range` describes [lowest, highest] in words.
template <class Settings, class Member>
key<Settings> real_key(key_name name, Member member, double lowest, double highest, const std::string& range) {
    return make_key<Settings>(
        std::move(name), member, [=](const std::string& text) { return read_real(text, lowest, highest, range); },
        show_real);
}

/// A time in milliseconds, in [lowest, highest].
template <class Settings, class Member>
key<Settings> milliseconds_key(key_name name, Member member, int lowest, int highest) {
    return make_key<Settings>(
        std::move(name), member,
        [=](const std::string& text) { return std::chrono::milliseconds(read_integer<int>(text, lowest, highest)); },
        [](std::chrono::milliseconds value) { return std::to_string(value.count()); });
}

/// One of a few named values.
template <class Settings, class Value, class Member>
key<Settings> choice_key(key_name name, Member member, std::vector<choice<Value>> choices,
                         may_differ m = may_differ::no) {
    return make_key<Settings>(
        std::move(name), member, [=](const std::string& text) { return read_choice(text, choices); },
        [=](Value value) { return show_choice(value, choices); }, m);
}

/// true or false.
template <class Settings, class Member>
key<Settings> switch_key(key_name name, Member member, may_differ m = may_differ::no) {
    return choice_key<Settings, bool>(std::move(name), member, {{"true", true}, {"false", false}}, m);
}

} // namespace halocline::config
