// Admission: the first reading of an external object. From then on it has a source, and what is read of it is
// guarded.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// What the program sees for `raw`, which lies at `source`: a trace tensor, which becomes a graph input, for a
// tensor; a varying number for a number that varies; else the object itself. Adds the guard that fits its
// kind: constants by value; types, functions, modules and the like by identity; functions that are made anew
// at each call by code; all others by type alone. Stops at a null `raw` and at tensors that are not supported
// (subclasses, sparse, unknown devices).
Ref admit(Interpreter& interpreter, PyObject* raw, SourceId source);
// Guards that the location holds something, whatever it is.
void admit_presence(Interpreter& interpreter, SourceId source);
// Admits an object that the guards hold themselves: it is the same object at every call, so no read is
// guarded. Constants and fresh functions are given back as they are.
Ref pin(Interpreter& interpreter, PyObject* raw);

}  // namespace oxy::eval
