// Keys that tensors are indexed with.
#pragma once

#include "eval/state/evaluation.h"

namespace oxy::eval {

// A trace tensor and what is left to index it with; no key: it is what was asked for.
struct IndexedTensor {
  Ref tensor;  // null: an exception was raised
  Ref key;
};

// The key with ints for its tensors of one integer: bounds of slices, and tensors without dimensions, which
// eager reads as numbers, too. Null: an exception was raised.
Ref with_numbers_of_tensors(Interpreter& interpreter, PyObject* key);

// Indexing itself takes no torch.SymInt for an integer: such a dimension is selected before.
IndexedTensor without_symbolic_integers(Interpreter& interpreter, PyObject* tensor, PyObject* key);

}  // namespace oxy::eval
