#include "guards/constants.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

namespace oxy::guards {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

bool same_bytes(PyObject* a, PyObject* b) {
  struct View {
    Py_buffer buffer{};
    explicit View(PyObject* object) {
      if (PyObject_GetBuffer(object, &buffer, PyBUF_SIMPLE) < 0) PyErr_Clear();
    }
    ~View() { PyBuffer_Release(&buffer); }
    View(const View&) = delete;
    View& operator=(const View&) = delete;
  };
  const View x(a), y(b);
  return x.buffer.obj && y.buffer.obj && x.buffer.len == y.buffer.len &&
         std::memcmp(x.buffer.buf, y.buffer.buf, static_cast<size_t>(x.buffer.len)) == 0;
}

}  // namespace

bool is_constant(PyObject* object) {
  if (object == Py_None || object == Py_Ellipsis || object == Py_NotImplemented) return true;
  return PyBool_Check(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
         PyComplex_CheckExact(object) || PyUnicode_CheckExact(object) || PyBytes_CheckExact(object);
}

bool is_numpy_scalar(PyObject* object) {
  constexpr std::string_view kModule = "numpy.";
  constexpr std::array<std::string_view, 14> kNames = {"float64", "float32", "float16", "int64",   "int32",
                                                       "int16",   "int8",    "uint64",  "uint32",  "uint16",
                                                       "uint8",   "bool",    "bool_",   "longlong"};
  std::string_view name = Py_TYPE(object)->tp_name;
  if (!name.starts_with(kModule) || PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE)) return false;
  name.remove_prefix(kModule.size());
  return std::ranges::find(kNames, name) != kNames.end();
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
  return is_numpy_scalar(a) && same_bytes(a, b);
}

bool is_nan(PyObject* object) {
  if (PyFloat_CheckExact(object)) return std::isnan(PyFloat_AS_DOUBLE(object));
  if (!PyComplex_CheckExact(object)) return false;
  const Py_complex number = PyComplex_AsCComplex(object);
  return std::isnan(number.real) || std::isnan(number.imag);
}

bool fits_float(PyObject* number) {
  const double value = PyFloat_AS_DOUBLE(number);
  return !std::isfinite(value) || std::abs(value) <= std::numeric_limits<float>::max();
}

bool is_unique(PyObject* constant) {
  constexpr long kSmallest = -5, kLargest = 256;
  if (PyFloat_CheckExact(constant) || PyComplex_CheckExact(constant)) return false;
  if (PyUnicode_CheckExact(constant))
    return PyUnicode_GET_LENGTH(constant) == 0 ||
           (PyUnicode_GET_LENGTH(constant) == 1 && PyUnicode_READ_CHAR(constant, 0) < 256);
  if (PyBytes_CheckExact(constant)) return PyBytes_GET_SIZE(constant) <= 1;
  if (!PyLong_CheckExact(constant)) return true;
  int overflow = 0;
  const long number = PyLong_AsLongAndOverflow(constant, &overflow);
  return overflow == 0 && number >= kSmallest && number <= kLargest;
}

bool is_immutable(PyObject* object, int depth) {
  if (!PyTuple_CheckExact(object))
    return is_constant(object) || is_numpy_scalar(object) || PyCode_Check(object);
  if (depth == 0) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (!is_immutable(PyTuple_GET_ITEM(object, i), depth - 1)) return false;
  return true;
}

}  // namespace oxy::guards
