// Marks of the user's on callables: oxyfuel.disable(), allow_in_graph() and assume_constant_result() set
// them.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>

namespace oxy::eval {

enum class TreatmentKind : uint8_t {
  Disabled,  // it and everything that it calls runs in eager (disable() wraps the callable to that end)
  Skipped,   // its own frame runs in eager, but calls in it may be captured; a mark of a code object
  InGraph,   // it is called for real on trace tensors, and its body is not interpreted
  Constant,  // it is called once, at capture, and its result is taken for constant
};

struct Treatment {
  TreatmentKind kind = TreatmentKind::Disabled;
  std::string reason;  // the user's; may be empty
};

// Marks `object`: a callable, or for Skipped the code object of a function. The last mark counts. Throws
// UserError if the object has no weak references. What is compiled already stays as it is.
void set_treatment(PyObject* object, Treatment treatment);

// The mark of the callable, or of its code if it is a Python function; what asks about the machine is constant
// without one. Null: it has none. Valid until the next set_treatment().
const Treatment* treatment_of(PyObject* callable);

inline bool is_treated_as(PyObject* callable, TreatmentKind kind) {
  const Treatment* treatment = treatment_of(callable);
  return treatment && treatment->kind == kind;
}

}  // namespace oxy::eval
