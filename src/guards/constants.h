// Python constants: immutable values that are compared by what they are, not by which object they are.
#pragma once

#include <Python.h>

namespace oxy::guards {

// None, Ellipsis, NotImplemented, and exact bool, int, float, complex, str, bytes.
bool is_constant(PyObject* object);
// Constants and what is made of them alone, so that nobody sees its end: numpy's numbers, code, values, and
// tuples of such. False of tuples that nest deep.
bool is_immutable(PyObject* object, int depth = 4);
// A number of numpy's: numpy.float64, numpy.int64, numpy.bool ... exactly.
bool is_numpy_scalar(PyObject* object);
// Immutable objects of C types, made of constants alone, that many programs make anew at each call:
// torch.Size, torch.device, range, and frozensets (in which no NaN is). Guarded by what they are, as
// constants are; `is` may tell two of them apart.
bool is_value(PyObject* object);
// Both constants, values or scalars of numpy: same type and same value; floats by their bits (0.0 is not
// -0.0, a NaN is itself), frozensets with their order. Runs no Python code.
bool same_constant(PyObject* a, PyObject* b);
// A float or complex that is not equal to itself, so that containers find it by which object it is.
bool is_nan(PyObject* object);
// The float is in float32's range, or is not finite.
bool fits_float(PyObject* number);
// A constant whose value the interpreter has one object for: None, True, small ints, texts of up to a letter.
bool is_unique(PyObject* constant);

}  // namespace oxy::guards
