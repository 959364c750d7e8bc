// SPDX-License-Identifier: Apache-2.0
#include "keyed_letters.hpp"

#include "wire.hpp"

namespace halocline::comm {

void keyed_letters::send(mail* post, int own_rank, int peer, const std::string& key, const std::string& body) {
    if (peer == own_rank) {
        kept_.insert_or_assign({peer, key}, body);
    } else {
        post->send_letter(peer, wire_writer().text(key).text(body).take());
    }
}

void keyed_letters::collect(mail* post) {
    if (post == nullptr) return;
    while (const auto letter = post->take_letter()) {
        wire_reader reader(letter->text);
        std::string key = reader.text();
        kept_.insert_or_assign({letter->from, std::move(key)}, reader.text());
    }
}

const std::string* keyed_letters::find(const name& n) const {
    const auto it = kept_.find(n);
    return it == kept_.end() ? nullptr : &it->second;
}

} // namespace halocline::comm
