#include "eval/torch/tensor_keys.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "eval/externals/plain.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/varying_number.h"
#include "eval/state/interpreter.h"
#include "eval/torch/torch_call.h"
#include "runtime/values/tensor_object.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::eval {
namespace {

// How many dimensions an item of a key takes. Nothing: that is not known.
std::optional<int64_t> dimensions_taken(Interpreter& interpreter, PyObject* item) {
  if (item == Py_None) return 0;
  if (PySlice_Check(item) || PyLong_CheckExact(item) || is_symbolic_integer(interpreter, item)) return 1;
  if (!trace::is_trace_tensor(item)) return std::nullopt;
  const at::Tensor& tensor = runtime::tensor_of(item);
  return at::isIntegralType(tensor.scalar_type(), true) && tensor.scalar_type() != at::kByte &&
                 tensor.scalar_type() != at::kBool
             ? std::optional<int64_t>(1)
             : std::nullopt;
}

// Whether eager reads the tensor as a number: where a slice ends, or in the place of an index.
bool is_read(PyObject* item, bool is_bound) {
  if (!trace::is_trace_tensor(item)) return false;
  const at::Tensor& tensor = runtime::tensor_of(item);
  if (!at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false)) return false;
  const auto has_one = [](const c10::SymInt& size) { return size.maybe_as_int() == 1; };
  return is_bound ? std::ranges::all_of(tensor.sym_sizes(), has_one)
                  : tensor.dim() == 0 && tensor.scalar_type() != at::kByte;
}

Ref number_of(Interpreter& interpreter, PyObject* item, bool is_bound) {
  return item && is_read(item, is_bound) ? call_method(interpreter, item, "item", {}) : Ref::borrow(item);
}

Ref with_number(Interpreter& interpreter, PyObject* item) {
  if (!PySlice_Check(item)) return number_of(interpreter, item, false);
  const auto* slice = reinterpret_cast<PySliceObject*>(item);
  std::array<Ref, 3> parts;
  bool any = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    PyObject* part = std::array{slice->start, slice->stop, slice->step}[i];
    parts[i] = number_of(interpreter, part, true);
    if (!parts[i]) return {};
    any = any || parts[i] != part;
  }
  return any ? Ref::steal(PySlice_New(parts[0].get(), parts[1].get(), parts[2].get())) : Ref::borrow(item);
}

}  // namespace

Ref with_numbers_of_tensors(Interpreter& interpreter, PyObject* key) {
  if (interpreter.torch_calls) return Ref::borrow(key);
  if (!PyTuple_CheckExact(key)) return with_number(interpreter, key);
  // A tuple that was made before the call stays itself: its items are guarded where it is read as a whole.
  if (interpreter.externals.is_external(key)) return Ref::borrow(key);
  const Ref items = Ref::steal(PyTuple_New(PyTuple_GET_SIZE(key)));
  bool any = false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
    Ref item = with_number(interpreter, PyTuple_GET_ITEM(key, i));
    if (!item) return {};
    any = any || item != PyTuple_GET_ITEM(key, i);
    PyTuple_SET_ITEM(items.get(), i, item.release());
  }
  if (!any) return Ref::borrow(key);
  return items;
}

IndexedTensor without_symbolic_integers(Interpreter& interpreter, PyObject* tensor, PyObject* key) {
  // The graph module of a backend of the user's has calls of the program's alone.
  if (interpreter.torch_calls) return {Ref::borrow(tensor), Ref::borrow(key)};
  std::vector<Ref> items;
  if (PyTuple_Check(key))
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
      items.push_back(Ref::borrow(PyTuple_GET_ITEM(key, i)));
  else
    items.push_back(Ref::borrow(key));
  const auto is_symbolic = [&](const Ref& item) { return is_symbolic_integer(interpreter, item.get()); };
  const auto is_ellipsis = [](const Ref& item) { return item == Py_Ellipsis; };
  const auto is_known = [&](const Ref& item) {
    return is_ellipsis(item) || dimensions_taken(interpreter, item.get()).has_value();
  };
  if (std::ranges::none_of(items, is_symbolic) || !std::ranges::all_of(items, is_known) ||
      std::ranges::count_if(items, is_ellipsis) > 1)
    return {Ref::borrow(tensor), Ref::borrow(key)};

  Ref target = Ref::borrow(tensor);
  const auto select = [&](int64_t dimension, const Ref& item) {
    const Ref index = plain(interpreter, item.get(), "indexing", ShownAs::Symbols);
    target = torch_result(interpreter, [&] {
      return Ref::steal(PyObject_CallMethod(target.get(), "select", "LO", dimension, index.get()));
    });
    return static_cast<bool>(target);
  };
  // Dimensions are counted from the left up to an ellipsis, behind it from the right.
  const auto ellipsis = std::ranges::find_if(items, is_ellipsis);
  std::vector<Ref> left, right;
  int64_t taken = 0;
  for (auto item = items.begin(); item != ellipsis; ++item) {
    if (is_symbolic(*item)) {
      if (!select(taken, *item)) return {};
      continue;
    }
    taken += *dimensions_taken(interpreter, item->get());
    left.push_back(*item);
  }
  taken = 0;
  for (auto item = items.end(); item != ellipsis && --item != ellipsis;) {
    if (is_symbolic(*item)) {
      if (!select(-taken - 1, *item)) return {};
      continue;
    }
    taken += *dimensions_taken(interpreter, item->get());
    right.push_back(*item);
  }
  if (left.empty() && right.empty()) return {std::move(target), {}};
  if (ellipsis != items.end()) left.push_back(Ref::borrow(Py_Ellipsis));
  left.insert(left.end(), right.rbegin(), right.rend());
  const Ref rest = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(left.size())));
  for (size_t i = 0; i < left.size(); ++i)
    PyTuple_SET_ITEM(rest.get(), static_cast<Py_ssize_t>(i), left[i].release());
  return {std::move(target), rest};
}

}  // namespace oxy::eval
