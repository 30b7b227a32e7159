// Python constants: immutable objects that are compared by value, not by identity. No function here runs
// Python code or sets an exception.
#pragma once

#include <Python.h>
#include <c10/core/ScalarType.h>

namespace oxy::guards {

// None, Ellipsis, NotImplemented, and exact bool, int, float, complex, str, bytes.
bool is_constant(PyObject* object);
// Constants, and objects that consist of constants alone: NumPy scalars, code, values (is_value()), and
// tuples of such. The program cannot notice their end. `depth`: of nested tuples; false for deeper ones.
bool is_immutable(PyObject* object, int depth = 4);
// A NumPy scalar: exactly numpy.float64, numpy.int64, numpy.bool ...
bool is_numpy_scalar(PyObject* object);
// Values: immutable objects of C types that consist of constants, and that many programs make anew at each
// call: torch.Size, torch.device, range, and frozensets without a NaN. They are guarded by value, as
// constants are. `is` may tell two of them apart.
bool is_value(PyObject* object);
// Whether two constants, values or NumPy scalars have the same type and the same value. Floats are compared
// by their bits (0.0 is not -0.0, and a NaN is equal to itself), frozensets with their order.
bool same_constant(PyObject* a, PyObject* b);
// A float or complex that is not equal to itself. Containers find such an object by identity.
bool is_nan(PyObject* object);
// The largest finite number of a floating-point type of at most 64 bits.
double largest_of(c10::ScalarType type);
// `number`: a float. Whether it is within the range of the floating-point type, or not finite.
bool fits_type(PyObject* number, c10::ScalarType type);
// A constant for whose value CPython has only one object: None, True, small ints, texts of at most one
// letter.
bool is_unique(PyObject* constant);

}  // namespace oxy::guards
