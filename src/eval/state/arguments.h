// Helpers for builtins: C functions and classes that the interpreter performs itself. They check and pick the
// arguments of a call.
#pragma once

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <optional>

#include "eval/state/interpreter.h"

namespace oxy::eval {

inline Ref none() {
  return Ref::borrow(Py_None);
}

inline Ref boolean(bool value) {
  return Ref::borrow(value ? Py_True : Py_False);
}

// Positional argument number i, borrowed. Precondition: there are that many (expect()).
inline PyObject* arg(const Arguments& a, size_t i) {
  return a.positional[i].get();
}

// Throws Break unless there are `low` to `high` positional arguments, and keyword arguments only if
// `keywords` allows them. The real function would raise then, in its own words. `name` is for the reason.
inline void expect(Interpreter& interpreter, const Arguments& a, const char* name, size_t low, size_t high,
                   bool keywords = false) {
  if (a.positional.size() < low || a.positional.size() > high || (!keywords && !a.keywords.empty()))
    interpreter.stop(fmt::format("calls {}() with unusual arguments", name));
}

// The value of a keyword argument; null, without an exception, if it was not given.
inline Ref keyword(const Arguments& a, const char* name) {
  for (const auto& [key, value] : a.keywords)
    if (PyUnicode_CompareWithASCIIString(key.get(), name) == 0) return value;
  return {};
}

// Throws Break if a keyword argument is not among the `known` ones.
inline void refuse_keywords(Interpreter& interpreter, const Arguments& a, const char* name,
                            std::initializer_list<const char*> known) {
  for (const auto& [key, value] : a.keywords) {
    bool is_known = false;
    for (const char* word : known)
      is_known = is_known || PyUnicode_CompareWithASCIIString(key.get(), word) == 0;
    if (!is_known) interpreter.stop(fmt::format("calls {}() with a keyword that it does not know", name));
  }
}

// The parameters of a call by position, borrowed; null where none is given. Nothing: others are given.
template <size_t count>
std::optional<std::array<PyObject*, count>> by_position(const Arguments& arguments,
                                                        const std::array<const char*, count>& names) {
  std::array<PyObject*, count> result = {};
  if (arguments.positional.size() > count) return std::nullopt;
  for (size_t i = 0; i < arguments.positional.size(); ++i) result[i] = arguments.positional[i].get();
  for (const auto& [keyword, value] : arguments.keywords) {
    size_t place = 0;
    while (place < count && PyUnicode_CompareWithASCIIString(keyword.get(), names[place]) != 0) ++place;
    if (place == count || result[place] != nullptr) return std::nullopt;
    result[place] = value.get();
  }
  return result;
}

}  // namespace oxy::eval
