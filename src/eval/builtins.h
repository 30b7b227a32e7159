// Functions that the evaluator performs itself: one entry each in the tables of builtins_*.cpp.
#pragma once

#include <Python.h>

#include "eval/evaluator.h"

namespace oxy::eval {

using BuiltinHandler = Ref (*)(Evaluator& evaluator, Arguments& arguments);

// The handler for this very function or class, or nullptr.
BuiltinHandler find_builtin(PyObject* callable);

// C functions that compute from constants alone (math, operator ...): run for real on plain arguments.
bool is_pure_builtin(PyObject* function);
// Classes of C that are made from plain arguments alone (range, slice, torch.Size, torch.device ...).
bool is_pure_type(PyTypeObject* type);
bool is_enum_class(PyObject* object);

// Why a Python function is not evaluated but called as it is; nullptr if it is inlined.
const char* refusal_to_inline(PyObject* function);
// A function that a call evaluates as any other: nothing is known of it but its code.
bool is_inlined(PyObject* callable);
// What torch has wrapped to keep torch.compile out of it, where that was for that compiler's sake, and what
// torch.compile itself has replaced: borrowed; null for other functions.
PyObject* behind_torch_compile(PyObject* function);

}  // namespace oxy::eval
