// What the user has said about a callable of his: the functions of oxyfuel's that mark callables end here.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>

namespace oxy::eval {

enum class TreatmentKind : uint8_t {
  Disabled,  // runs in eager, with all that it calls (the callable itself sees to that)
  Skipped,   // its own frame runs in eager, what it calls may be captured; of a code object
  InGraph,   // called for real on trace tensors: its body is not evaluated
  Constant,  // called once at capture; its result is the same at every run
};

struct Treatment {
  TreatmentKind kind = TreatmentKind::Disabled;
  std::string reason;  // the user's; may be empty
};

// Marks `object`, a callable, or for Skipped the code object of a function; the last mark counts. UserError
// if weak references to it cannot be made. Captures made before are not made anew.
void set_treatment(PyObject* object, Treatment treatment);

// Of the callable, or of its code if it is a Python function; nullptr: nothing was said.
const Treatment* treatment_of(PyObject* callable);

inline bool is_treated_as(PyObject* callable, TreatmentKind kind) {
  const Treatment* treatment = treatment_of(callable);
  return treatment && treatment->kind == kind;
}

}  // namespace oxy::eval
