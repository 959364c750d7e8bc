// SPDX-License-Identifier: Apache-2.0
#include "cards.hpp"

#include "wire.hpp"

namespace halocline::comm {

void card_box::send(mail* post, int own_rank, int peer, const std::string& key, const std::string& body) {
    if (peer == own_rank) {
        cards_.insert_or_assign({peer, key}, body);
    } else {
        post->send_letter(peer, wire_writer().text(key).text(body).take());
    }
}

void card_box::collect(mail* post) {
    if (post == nullptr) return;
    while (const auto card = post->take_letter()) {
        wire_reader reader(card->text);
        std::string key = reader.text();
        cards_.insert_or_assign({card->from, std::move(key)}, reader.text());
    }
}

const std::string* card_box::find(int peer, const std::string& key) const {
    const auto it = cards_.find({peer, key});
    return it == cards_.end() ? nullptr : &it->second;
}

} // namespace halocline::comm
