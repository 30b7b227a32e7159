// The families of builtins, and what their handlers share. A family is a table at the end of its file.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <span>

#include "eval/builtins.h"

namespace oxy::eval {

struct BuiltinEntry {
  const char* module;
  const char* name;
  BuiltinHandler handler;
};

std::span<const BuiltinEntry> object_builtins();
std::span<const BuiltinEntry> container_builtins();
std::span<const BuiltinEntry> iterator_builtins();
std::span<const BuiltinEntry> operator_builtins();
std::span<const BuiltinEntry> torch_builtins();
std::span<const BuiltinEntry> autograd_builtins();
std::span<const BuiltinEntry> autocast_builtins();
std::span<const BuiltinEntry> function_builtins();
std::span<const BuiltinEntry> checkpoint_builtins();
std::span<const BuiltinEntry> hook_builtins();

// What apply() of a torch.autograd.Function does; the class is the first argument.
Ref apply_function(Evaluator& evaluator, Arguments& arguments);

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
inline void expect(Evaluator& e, const Arguments& a, const char* name, size_t low, size_t high,
                   bool keywords = false) {
  if (a.positional.size() < low || a.positional.size() > high || (!keywords && !a.keywords.empty()))
    e.stop(fmt::format("calls {}() with unusual arguments", name));
}

// The frame that calls a function which looks at it.
inline Frame& calling_frame(Evaluator& e, const char* name) {
  if (!e.frame()) e.stop(fmt::format("calls {}() outside of a frame", name));
  return *e.frame();
}

inline Ref keyword(const Arguments& a, const char* name) {
  for (const auto& [key, value] : a.keywords)
    if (PyUnicode_CompareWithASCIIString(key.get(), name) == 0) return value;
  return {};
}

// Stops at a keyword argument that the function refuses.
inline void refuse_keywords(Evaluator& e, const Arguments& a, const char* name,
                            std::initializer_list<const char*> known) {
  for (const auto& [key, value] : a.keywords) {
    bool is_known = false;
    for (const char* word : known)
      is_known = is_known || PyUnicode_CompareWithASCIIString(key.get(), word) == 0;
    if (!is_known) e.stop(fmt::format("calls {}() with a keyword that it does not know", name));
  }
}

}  // namespace oxy::eval
