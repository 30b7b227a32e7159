// What functions that the interpreter performs ask of their arguments.
#pragma once

#include <fmt/format.h>

#include <initializer_list>

#include "eval/state/interpreter.h"

namespace oxy::eval {

inline Ref none() {
  return Ref::borrow(Py_None);
}

inline Ref boolean(bool value) {
  return Ref::borrow(value ? Py_True : Py_False);
}

inline PyObject* arg(const Arguments& a, size_t i) {
  return a.positional[i].get();
}

// Checks the number of positional arguments as the real function would, or gives up.
inline void expect(Interpreter& interpreter, const Arguments& a, const char* name, size_t low, size_t high,
                   bool keywords = false) {
  if (a.positional.size() < low || a.positional.size() > high || (!keywords && !a.keywords.empty()))
    interpreter.stop(fmt::format("calls {}() with unusual arguments", name));
}

inline Ref keyword(const Arguments& a, const char* name) {
  for (const auto& [key, value] : a.keywords)
    if (PyUnicode_CompareWithASCIIString(key.get(), name) == 0) return value;
  return {};
}

// Stops at a keyword argument that the function refuses.
inline void refuse_keywords(Interpreter& interpreter, const Arguments& a, const char* name,
                            std::initializer_list<const char*> known) {
  for (const auto& [key, value] : a.keywords) {
    bool is_known = false;
    for (const char* word : known)
      is_known = is_known || PyUnicode_CompareWithASCIIString(key.get(), word) == 0;
    if (!is_known) interpreter.stop(fmt::format("calls {}() with a keyword that it does not know", name));
  }
}

}  // namespace oxy::eval
