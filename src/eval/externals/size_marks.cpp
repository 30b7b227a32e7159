#include "eval/externals/size_marks.h"

#include <algorithm>
#include <optional>

#include "cpy/object_dict.h"
#include "cpy/ref.h"

namespace oxy::eval {

namespace {

using cpy::Ref;

// An attribute in the tensor's own dict (borrowed), or null.
PyObject* own_attribute(PyObject* tensor, const char* name) {
  PyObject* const dict = cpy::materialized_dict(tensor);
  return dict == nullptr ? nullptr : PyDict_GetItemString(dict, name);
}

// Whether the attribute is a set that has the int.
bool has_index(PyObject* tensor, const char* name, int64_t dimension, int64_t rank) {
  PyObject* const indices = own_attribute(tensor, name);
  if (indices == nullptr || !PyAnySet_CheckExact(indices)) return false;
  for (const int64_t index : {dimension, dimension - rank}) {
    const Ref number = Ref::steal(PyLong_FromLongLong(index));
    if (PySet_Contains(indices, number.get()) == 1) return true;
  }
  PyErr_Clear();
  return false;
}

std::optional<int64_t> int_attribute(PyObject* object, const char* name) {
  const Ref value = Ref::steal(PyObject_GetAttrString(object, name));
  int overflow = 0;
  const bool is_int = value && PyLong_CheckExact(value.get());
  const int64_t number = is_int ? PyLong_AsLongLongAndOverflow(value.get(), &overflow) : 0;
  PyErr_Clear();
  return is_int && overflow == 0 ? std::optional(number) : std::nullopt;
}

// Of the objects with `dim`, `min` and `max` in the set, the range of the one for the dimension.
sym::Range range_of_mark(PyObject* tensor, int64_t dimension, int64_t rank) {
  sym::Range range{0, sym::kMaxInt};
  PyObject* const ranges = own_attribute(tensor, "_dynamo_dynamic_range");
  if (ranges == nullptr || !PyAnySet_CheckExact(ranges)) return range;
  const Ref items = Ref::steal(PySequence_List(ranges));
  for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* const item = PyList_GET_ITEM(items.get(), i);
    const std::optional<int64_t> index = int_attribute(item, "dim");
    if (!index || (*index != dimension && *index != dimension - rank)) continue;
    if (const auto low = int_attribute(item, "min")) range.low = std::max(range.low, *low);
    if (const auto high = int_attribute(item, "max")) range.high = std::min(range.high, *high);
  }
  PyErr_Clear();
  return range;
}

}  // namespace

bool has_marks(PyObject* tensor) {
  return own_attribute(tensor, "_dynamo_dynamic_indices") != nullptr ||
         own_attribute(tensor, "_dynamo_weak_dynamic_indices") != nullptr ||
         own_attribute(tensor, "_dynamo_static_indices") != nullptr;
}

sym::Mark mark_of(PyObject* tensor, int64_t dimension, int64_t rank) {
  if (has_index(tensor, "_dynamo_dynamic_indices", dimension, rank))
    return {sym::MarkKind::Dynamic, range_of_mark(tensor, dimension, rank)};
  if (has_index(tensor, "_dynamo_weak_dynamic_indices", dimension, rank)) return {sym::MarkKind::MaybeDynamic};
  if (has_index(tensor, "_dynamo_static_indices", dimension, rank)) return {sym::MarkKind::Static};
  return {};
}

}  // namespace oxy::eval
