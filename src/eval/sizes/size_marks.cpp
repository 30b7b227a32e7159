#include "eval/sizes/size_marks.h"

#include <algorithm>
#include <array>
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
  PyErr_Clear();
  return exact_int(value.get());
}

// Of the objects with `dim`, `min` and `max` in the set, the range of the one for the dimension.
sym::Range range_of_mark(PyObject* tensor, int64_t dimension, int64_t rank) {
  sym::Range range;
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

// What a dict by dimension has for this one (borrowed), or null.
PyObject* item_of(PyObject* tensor, const char* name, int64_t dimension, int64_t rank) {
  PyObject* const items = own_attribute(tensor, name);
  if (items == nullptr || !PyDict_CheckExact(items)) return nullptr;
  for (const int64_t index : {dimension, dimension - rank}) {
    const Ref number = Ref::steal(PyLong_FromLongLong(index));
    if (PyObject* const item = PyDict_GetItemWithError(items, number.get())) return item;
  }
  PyErr_Clear();
  return nullptr;
}

// A pair of bounds, of which either may be None.
sym::Range range_of_pair(PyObject* pair) {
  sym::Range range;
  if (pair == nullptr || !PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2) return range;
  if (const auto low = exact_int(PyTuple_GET_ITEM(pair, 0))) range.low = *low;
  if (const auto high = exact_int(PyTuple_GET_ITEM(pair, 1))) range.high = std::min(sym::kMaxInt, *high);
  return range;
}

std::string text_of(PyObject* str) {
  const char* const text = str != nullptr && PyUnicode_CheckExact(str) ? PyUnicode_AsUTF8(str) : nullptr;
  PyErr_Clear();
  return text == nullptr ? "" : text;
}

}  // namespace

bool has_marks(PyObject* tensor) {
  return std::ranges::any_of(
      std::array{"_dynamo_dynamic_indices", "_dynamo_weak_dynamic_indices", "_dynamo_static_indices",
                 "_dynamo_unbacked_indices", "_dynamo_strict_unbacked_indices"},
      [&](const char* name) { return own_attribute(tensor, name) != nullptr; });
}

Dimension mark_of(PyObject* tensor, int64_t dimension, int64_t rank) {
  const auto has = [&](const char* name) { return has_index(tensor, name, dimension, rank); };
  if (has("_dynamo_unbacked_indices") || has("_dynamo_strict_unbacked_indices"))
    return {.mark = {sym::MarkKind::Unbacked,
                     range_of_pair(item_of(tensor, "_dynamo_unbacked_bounds", dimension, rank))},
            .name = text_of(item_of(tensor, "_dynamo_shape_ids", dimension, rank))};
  if (has("_dynamo_dynamic_indices"))
    return {.mark = {sym::MarkKind::Dynamic, range_of_mark(tensor, dimension, rank)}};
  if (has("_dynamo_weak_dynamic_indices")) return {.mark = {sym::MarkKind::MaybeDynamic}};
  if (has("_dynamo_static_indices")) return {.mark = {sym::MarkKind::Static}};
  return {};
}

}  // namespace oxy::eval
