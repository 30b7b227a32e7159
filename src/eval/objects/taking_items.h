// Taking items from iterables, one by one.
#pragma once

#include "eval/state/evaluation.h"

namespace oxy::eval {

// Passes each remaining item of the iterator to `take`, as take_items() does.
bool take_rest(Interpreter& interpreter, PyObject* iterator, const TakeItem& take);
// A fresh list of all items. `asks_length`: as in take_items().
Ref drain(Interpreter& interpreter, PyObject* iterable, bool asks_length = false);
// iter(iterable). Stops if it cannot be iterated over, for C functions that raise a TypeError of their own
// then.
Ref iterator_or_stop(Interpreter& interpreter, PyObject* iterable);
// A fresh list of all items, taken as PySequence_Fast() takes them. Stops as iterator_or_stop() does.
Ref fast_sequence(Interpreter& interpreter, PyObject* iterable);
// Unpacking: appends the items for the `before` names to `items`. If `after` is set, there is a starred name
// with that many names behind it: appends its list and the items for those.
bool unpack(Interpreter& interpreter, PyObject* sequence, Py_ssize_t before, std::optional<Py_ssize_t> after,
            std::vector<Ref>* items);

}  // namespace oxy::eval
