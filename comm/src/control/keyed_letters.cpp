// SPDX-License-Identifier: Apache-2.0
#include "keyed_letters.hpp"

#include "wire.hpp"

namespace halocline::comm {
namespace {

enum class beginning : char { key = 'k', hint = 'h' }; // of a letter: what it has

} // namespace

void keyed_letters::send(mail* post, int own_rank, int peer, const std::string& key, const std::string& body) {
    ++sent_[peer];
    if (peer == own_rank) {
        ++seen_[peer];
        kept_.insert_or_assign({peer, key}, body);
    } else {
        post->send_letter(peer, wire_writer().number(beginning::key).text(key).text(body).take());
    }
}

void keyed_letters::send_hint(mail* post, int own_rank, int peer, const std::string& body) {
    if (peer == own_rank)
        hints_.push_back({peer, body});
    else
        post->send_letter(peer, wire_writer().number(beginning::hint).text(body).take());
}

void keyed_letters::collect(mail* post) {
    if (post == nullptr) return;
    while (const auto letter = post->take_letter()) {
        wire_reader reader(letter->text);
        if (reader.number<beginning>() == beginning::hint) {
            hints_.push_back({letter->from, reader.text()});
            continue;
        }
        ++seen_[letter->from];
        std::string key = reader.text();
        kept_.insert_or_assign({letter->from, std::move(key)}, reader.text());
    }
}

std::optional<letter> keyed_letters::take_hint() {
    if (hints_.empty()) return std::nullopt;
    std::optional<letter> oldest = std::move(hints_.front());
    hints_.pop_front();
    return oldest;
}

const std::string* keyed_letters::find(const name& n) const {
    const auto it = kept_.find(n);
    return it == kept_.end() ? nullptr : &it->second;
}

} // namespace halocline::comm
