// Methods that compare the items of a list, tuple or deque.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// self.name(*arguments) for the methods that look for an item (`in`, count(), index(), remove()): `==` is
// asked item by item. Nothing: it is another method, or the class has code of its own for items.
std::optional<Ref> search_sequence(Interpreter& interpreter, PyObject* self, std::string_view name,
                                   const Arguments& arguments);
// A fresh list of `items` (a list), sorted as list.sort() does. `key` and `reverse` may be null. If a
// comparison raises, gives the list in the order reached so far, with the exception set. Null if a key
// function raises.
Ref sort_items(Interpreter& interpreter, PyObject* items, PyObject* key, PyObject* reverse);
// list.sort(*arguments).
Ref sort_in_place(Interpreter& interpreter, PyObject* list, const Arguments& arguments);

}  // namespace oxy::eval
