// Adding what is iterated over to a list or deque, set or dict. False: an exception is set.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// `on_the_left`: as extendleft() of a deque that the region has made.
bool extend(Interpreter& interpreter, PyObject* sequence, PyObject* iterable, bool on_the_left = false);
bool update_set(Interpreter& interpreter, PyObject* set, PyObject* iterable, bool adds);
bool update_dict(Interpreter& interpreter, PyObject* dict, PyObject* source);
// Methods of a container made by the region that do such things; of dicts, any. Nothing: another method.
std::optional<Ref> merge_into(Interpreter& interpreter, PyObject* self, std::string_view name,
                              const Arguments& arguments);
Ref intersection(Interpreter& interpreter, PyObject* set, PyObject* iterable);

}  // namespace oxy::eval
