// Symbols between the program and torch: what torch's functions are given and give. A torch.Size of symbolic
// sizes is a torch.Size that has varying numbers among its items.
#pragma once

#include <Python.h>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// What torch gave, with varying numbers in place of torch.SymInt objects, also within tuples and lists, and
// with the truth of a torch.SymBool, guarded.
Ref from_torch(Interpreter& interpreter, Ref result);
// A torch.SymInt, or an int for a number.
Ref to_torch(Interpreter& interpreter, const sym::Expr& expression);

// A torch.Size with the items of the tuple, ints or varying ints.
Ref make_size(PyObject* items);
// The items of such a torch.Size as a tuple.
Ref items_of_size(PyObject* size);
// An operator of sequences (`run`) with operands of which at least one is a torch.Size with varying items.
// Null with an exception set if it raises.
Ref run_on_sizes(Interpreter& interpreter, PyObject* left, PyObject* right, binaryfunc run);
// The number of elements of a tensor of that size.
Ref element_count(Interpreter& interpreter, PyObject* size);

}  // namespace oxy::eval
