// Going over an iterable. What these return null or false for has set an exception.
#pragma once

#include "eval/state/evaluation.h"

namespace oxy::eval {

bool take_rest(Interpreter& interpreter, PyObject* iterator, const TakeItem& take);
// a fresh list of all its items
Ref drain(Interpreter& interpreter, PyObject* iterable, bool asks_length = false);
// For C code that answers a TypeError of iter() with words of its own, which is a break.
Ref iterator_or_stop(Interpreter& interpreter, PyObject* iterable);
// The same, and a fresh list of all items: what PySequence_Fast() does.
Ref fast_sequence(Interpreter& interpreter, PyObject* iterable);
// Appends the items that `before` names get and, if `after` says how many come behind a starred name, its
// list and those.
bool unpack(Interpreter& interpreter, PyObject* sequence, Py_ssize_t before, std::optional<Py_ssize_t> after,
            std::vector<Ref>* items);

}  // namespace oxy::eval
