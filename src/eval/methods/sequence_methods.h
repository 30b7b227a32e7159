// Methods that compare the items of a list, tuple or deque.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Methods that compare the items of a list, tuple or deque. Nothing: another method.
std::optional<Ref> search_sequence(Interpreter& interpreter, PyObject* self, std::string_view name,
                                   const Arguments& arguments);
// A fresh list of the items of one, as list.sort() puts them; `key` and `reverse` may be null. If comparing
// them raises, in the order that it came to, with the exception set; null if a key function raises.
Ref sort_items(Interpreter& interpreter, PyObject* items, PyObject* key, PyObject* reverse);
// list.sort()
Ref sort_in_place(Interpreter& interpreter, PyObject* list, const Arguments& arguments);

}  // namespace oxy::eval
