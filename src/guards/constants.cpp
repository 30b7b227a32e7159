#include "guards/constants.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/Size.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>

#include "cpy/ref.h"
#include "cpy/set.h"

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

std::span<PyObject* const> items_of(PyObject* tuple) {
  return {reinterpret_cast<PyTupleObject*>(tuple)->ob_item, static_cast<size_t>(PyTuple_GET_SIZE(tuple))};
}

// Of two sets, in order.
bool same_items(PyObject* a, PyObject* b) {
  if (PySet_GET_SIZE(a) != PySet_GET_SIZE(b)) return false;
  const cpy::SetItems x(a), y(b);
  auto other = y.begin();
  for (PyObject* item : x) {
    if (!same_constant(item, *other)) return false;
    ++other;
  }
  return true;
}

// Ranges are equal if their numbers are; what they were made of counts, too.
bool same_range(PyObject* a, PyObject* b) {
  for (const char* name : {"start", "stop", "step"}) {
    const cpy::Ref x = cpy::Ref::steal(PyObject_GetAttrString(a, name));
    const cpy::Ref y = cpy::Ref::steal(PyObject_GetAttrString(b, name));
    if (!x || !y || !same_constant(x.get(), y.get())) return false;
  }
  return true;
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

bool is_value(PyObject* object) {
  if (PyRange_Check(object) || THPDevice_Check(object)) return true;
  if (THPSize_Check(object))
    return std::ranges::all_of(items_of(object), [](PyObject* item) { return PyLong_CheckExact(item); });
  if (!PyFrozenSet_CheckExact(object)) return false;
  for (PyObject* item : cpy::SetItems(object))
    if (!is_constant(item) || is_nan(item)) return false;
  return true;
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
  if (is_numpy_scalar(a)) return same_bytes(a, b);
  if (THPSize_Check(a)) return std::ranges::equal(items_of(a), items_of(b), &same_constant);
  if (PyFrozenSet_CheckExact(a)) return same_items(a, b);
  if (THPDevice_Check(a)) return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
  return PyRange_Check(a) && same_range(a, b);
}

bool is_nan(PyObject* object) {
  if (PyFloat_CheckExact(object)) return std::isnan(PyFloat_AS_DOUBLE(object));
  if (!PyComplex_CheckExact(object)) return false;
  const Py_complex number = PyComplex_AsCComplex(object);
  return std::isnan(number.real) || std::isnan(number.imag);
}

double largest_of(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Half:
      return static_cast<double>(std::numeric_limits<c10::Half>::max());
    case c10::ScalarType::BFloat16:
      return static_cast<double>(std::numeric_limits<c10::BFloat16>::max());
    case c10::ScalarType::Float:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

bool fits_type(PyObject* number, c10::ScalarType type) {
  const double value = PyFloat_AS_DOUBLE(number);
  return !std::isfinite(value) || std::abs(value) <= largest_of(type);
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
    return is_constant(object) || is_numpy_scalar(object) || PyCode_Check(object) || is_value(object);
  if (depth == 0) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (!is_immutable(PyTuple_GET_ITEM(object, i), depth - 1)) return false;
  return true;
}

}  // namespace oxy::guards
