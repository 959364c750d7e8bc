// SPDX-License-Identifier: Apache-2.0
// Formats of set-up messages, each written once. A struct names its fields in the order in which they travel:
//
//     struct greeting {
//         int rank = 0;
//         std::string name;
//         template <class Self, class Pass>
//         static void fields(Self& g, Pass& pass) {
//             pass(g.rank, g.name);
//         }
//     };
//
// to_wire() writes them, and from_wire() reads them back. A number travels as its bytes, a string as its length and its
// text (wire.hpp), a struct with fields() as its fields. sent_as(), counted() and up_to_end() say how others do. A
// struct of integers without padding needs no fields(): it travels as its bytes.
#pragma once

#include "wire.hpp"

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace halocline::comm {

struct any_pass {
    template <class... Fields>
    void operator()(Fields&&...) const;
};

template <class T>
concept has_fields = requires(T& t, any_pass& pass) {
    T::fields(t, pass);
};

/// By its fields(), or as its bytes, none of which is padding.
template <class T>
concept travels = has_fields<T> || std::has_unique_object_representations_v<T>;

/// A number that travels as a T.
template <class T, class Number>
struct number_sent_as {
    Number& number;
};
template <class T, class Number>
[[nodiscard]] number_sent_as<T, Number> sent_as(Number& n) {
    return {n};
}

/// A vector whose length travels first, as a Count; then `each(pass, element)` passes its elements.
template <class Count, class Vector, class Each>
struct counted_elements {
    Vector& elements;
    Each each;
};
template <class Count, class Vector, class Each>
[[nodiscard]] counted_elements<Count, Vector, Each> counted(Vector& v, Each each) {
    return {v, each};
}
template <class Count, class Vector>
[[nodiscard]] auto counted(Vector& v) {
    return counted<Count>(v, [](auto& pass, auto& element) { pass(element); });
}

/// A vector that ends where the message does.
template <class Vector>
struct elements_up_to_end {
    Vector& elements;
};
template <class Vector>
[[nodiscard]] elements_up_to_end<Vector> up_to_end(Vector& v) {
    return {v};
}

/// Passes fields to a writer.
class field_writer {
  public:
    explicit field_writer(wire_writer& to) : to_(to) {}
    template <class... Fields>
    void operator()(const Fields&... all) {
        (pass(all), ...);
    }

  private:
    template <class T>
    void pass(const T& field) {
        if constexpr (has_fields<T>)
            T::fields(field, *this);
        else if constexpr (std::is_same_v<T, std::string>)
            to_.text(field);
        else
            to_.number(field);
    }
    template <class T, class Number>
    void pass(const number_sent_as<T, Number>& field) {
        to_.number(static_cast<T>(field.number));
    }
    template <class Count, class Vector, class Each>
    void pass(const counted_elements<Count, Vector, Each>& field) {
        to_.number(static_cast<Count>(field.elements.size()));
        for (const auto& element : field.elements) field.each(*this, element);
    }
    template <class Vector>
    void pass(const elements_up_to_end<Vector>& field) {
        for (const auto& element : field.elements) pass(element);
    }

    wire_writer& to_;
};

/// Fills fields from a reader.  Err: error if the bytes end early.
class field_reader {
  public:
    explicit field_reader(wire_reader& from) : from_(from) {}
    template <class... Fields>
    void operator()(Fields&&... all) {
        (pass(all), ...);
    }

  private:
    template <class T>
    void pass(T& field) {
        if constexpr (has_fields<T>)
            T::fields(field, *this);
        else if constexpr (std::is_same_v<T, std::string>)
            field = from_.text();
        else
            field = from_.number<T>();
    }
    template <class T, class Number>
    void pass(number_sent_as<T, Number>& field) {
        field.number = static_cast<Number>(from_.number<T>());
    }
    template <class Count, class Vector, class Each>
    void pass(counted_elements<Count, Vector, Each>& field) {
        field.elements.resize(from_.number<Count>());
        for (auto& element : field.elements) field.each(*this, element);
    }
    template <class Vector>
    void pass(elements_up_to_end<Vector>& field) {
        while (!from_.empty()) pass(field.elements.emplace_back());
    }

    wire_reader& from_;
};

/// Where a struct is a part of a message.
template <travels T>
void write_fields(wire_writer& to, const T& s) {
    field_writer pass(to);
    pass(s);
}
template <travels T>
[[nodiscard]] T read_fields(wire_reader& from) {
    T s{};
    field_reader pass(from);
    pass(s);
    return s;
}

/// Where it is all of a message, or comes first.
template <travels T>
[[nodiscard]] std::string to_wire(const T& s) {
    wire_writer w;
    write_fields(w, s);
    return w.take();
}
template <travels T>
[[nodiscard]] T from_wire(std::string_view bytes) {
    wire_reader r(bytes);
    return read_fields<T>(r);
}

} // namespace halocline::comm
