// Adding all items of an iterable to a list, deque, set or dict. Each item is added before the next one is
// asked for, as CPython does it. Items that were added stay if the iterable raises.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// sequence.extend(iterable) of a list or deque. `on_the_left`: extendleft() of a fresh deque.
bool extend(Interpreter& interpreter, PyObject* sequence, PyObject* iterable, bool on_the_left = false);
// set.update(iterable), or if not `adds` set.difference_update(iterable).
bool update_set(Interpreter& interpreter, PyObject* set, PyObject* iterable, bool adds);
// dict.update(source): a mapping, or an iterable of pairs.
bool update_dict(Interpreter& interpreter, PyObject* dict, PyObject* source);
// self.name(*arguments) of a fresh container, where the method takes the items of its arguments, and of any
// dict. Nothing: it is another method.
std::optional<Ref> merge_into(Interpreter& interpreter, PyObject* self, std::string_view name,
                              const Arguments& arguments);
// set.intersection(iterable): a new set or frozenset.
Ref intersection(Interpreter& interpreter, PyObject* set, PyObject* iterable);

}  // namespace oxy::eval
