#include "guards/constants.h"

#include <cstring>

namespace oxy::guards {
namespace {

bool same_bits(double a, double b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

bool is_constant(PyObject* object) {
  if (object == Py_None || object == Py_Ellipsis || object == Py_NotImplemented) return true;
  return PyBool_Check(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
         PyComplex_CheckExact(object) || PyUnicode_CheckExact(object) || PyBytes_CheckExact(object);
}

bool same_constant(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (!a || !b || Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) return same_bits(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (PyComplex_CheckExact(a)) {
    const Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
    return same_bits(x.real, y.real) && same_bits(x.imag, y.imag);
  }
  if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyBytes_CheckExact(a))
    return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
  return false;
}

}  // namespace oxy::guards
