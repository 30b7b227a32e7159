#include "eval/state/torch_call_log.h"

#include <fmt/format.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/Size.h>

#include "eval/python/objects.h"
#include "guards/constants.h"
#include "runtime/values/tensor_object.h"
#include "torch_api/symbolic_object.h"

namespace oxy::eval {
namespace {

using cpy::Ref;

// The name under which the tensor class has this function; null if it has not.
Ref method_name(PyObject* callable) {
  if (PyCFunction_Check(callable)) return {};
  const bool is_descriptor =
      Py_TYPE(callable) == &PyMethodDescr_Type || Py_TYPE(callable) == &PyWrapperDescr_Type;
  if (!is_descriptor && !PyFunction_Check(callable)) return {};
  Ref name = Ref::steal(PyObject_GetAttrString(callable, "__name__"));
  if (!name || !PyUnicode_Check(name.get())) {
    PyErr_Clear();
    return {};
  }
  return _PyType_Lookup(runtime::tensor_class(), name.get()) == callable ? name : Ref();
}

bool is_plain_constant(PyObject* object) {
  return guards::is_constant(object) || THPDtype_Check(object) || THPDevice_Check(object) ||
         THPLayout_Check(object) || THPMemoryFormat_Check(object) || PyRange_Check(object);
}

bool has_name(PyObject* callable) {
  Ref name = Ref::steal(PyObject_GetAttrString(callable, "__name__"));
  if (!name) PyErr_Clear();
  return name && PyUnicode_Check(name.get());
}

}  // namespace

void TorchCallLog::refuse(std::string reason) {
  if (problem_.empty()) problem_ = std::move(reason);
}

std::optional<TorchValue> TorchCallLog::find(PyObject* tensor) const {
  if (const auto it = values_.find(tensor); it != values_.end()) return it->second;
  const int32_t input = recorder_.input_index(tensor);
  if (input < 0) return std::nullopt;
  return TorchValue{true, input, {}};
}

TorchArgument TorchCallLog::argument(PyObject* object, std::string& problem) const {
  TorchArgument result;
  if (runtime::is_tensor(object)) {
    result.kind = TorchArgumentKind::Tensor;
    if (auto value = find(object))
      result.tensor = std::move(*value);
    else
      problem = "a tensor that no function or method of torch's made";
    return result;
  }
  if (torch_api::is_symbolic_integer(object)) {
    result.kind = TorchArgumentKind::Integer;
    result.integer = torch_api::expression_of(torch_api::symbolic_integer_of(object));
    return result;
  }
  if (is_plain_constant(object)) {
    result.constant = Ref::borrow(object);
    return result;
  }
  if (PyTuple_CheckExact(object) || PyList_CheckExact(object) || THPSize_Check(object)) {
    result.kind = PyList_Check(object) ? TorchArgumentKind::List : TorchArgumentKind::Tuple;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      result.items.push_back(argument(PySequence_Fast_GET_ITEM(object, i), problem));
    return result;
  }
  if (PyDict_CheckExact(object)) {
    result.kind = TorchArgumentKind::Dict;
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) {
      if (!guards::is_constant(key)) problem = fmt::format("a dict key of type {}", Py_TYPE(key)->tp_name);
      result.keys.push_back(Ref::borrow(key));
      result.items.push_back(argument(value, problem));
    }
    return result;
  }
  if (PySlice_Check(object)) {
    result.kind = TorchArgumentKind::Slice;
    const auto* slice = reinterpret_cast<PySliceObject*>(object);
    for (PyObject* part : {slice->start, slice->stop, slice->step})
      result.items.push_back(argument(part, problem));
    return result;
  }
  problem = fmt::format("an argument of type {}", Py_TYPE(object)->tp_name);
  return result;
}

TorchCallLog::Pending TorchCallLog::begin(PyObject* callable, std::span<const Ref> positional,
                                          std::span<const std::pair<Ref, Ref>> keywords) {
  check_operators();
  Pending pending;
  pending.operators = operators_;
  TorchCall& call = pending.call;
  PyObject* self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
  if (self && runtime::is_tensor(self)) {
    call.is_method = true;
    call.target =
        Ref::steal(PyUnicode_FromString(reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name));
    call.positional.push_back(argument(self, pending.problem));
  } else if (Ref name = method_name(callable); name && !positional.empty()) {
    call.is_method = true;
    call.target = std::move(name);
  } else {
    call.target = Ref::borrow(callable);
    if (!has_name(callable)) pending.problem = "a callable without a name";
  }
  for (const Ref& value : positional) call.positional.push_back(argument(value.get(), pending.problem));
  for (const auto& [name, value] : keywords)
    call.keywords.emplace_back(name, argument(value.get(), pending.problem));
  if (call.is_method && call.positional.front().kind != TorchArgumentKind::Tensor)
    pending.problem = "a method of a tensor's with another object";
  return pending;
}

bool TorchCallLog::has_new_tensor(PyObject* object) const {
  return any_tensor(object, [this](PyObject* tensor) { return !find(tensor); });
}

void TorchCallLog::name_tensors(PyObject* object, const TorchValue& value) {
  const auto inner = [&](Ref key, PyObject* item) {
    TorchValue element = value;
    element.path.push_back(std::move(key));
    name_tensors(item, element);
  };
  if (runtime::is_tensor(object)) {
    values_[object] = value;
    keep_alive_.push_back(Ref::borrow(object));
  } else if (PyTuple_Check(object) || PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      inner(Ref::steal(PyLong_FromSsize_t(i)), PySequence_Fast_GET_ITEM(object, i));
  } else if (PyDict_Check(object)) {
    PyObject *key = nullptr, *item = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &item)) inner(Ref::borrow(key), item);
  }
}

void TorchCallLog::end(Pending pending, PyObject* result) {
  const bool sets_grad_mode = pending.call.target == well_known("torch._C", "_set_grad_enabled");
  if (operators_ == pending.operators && !has_new_tensor(result) && !sets_grad_mode) return;
  noted_ = operators_;
  if (!pending.problem.empty()) {
    Ref text = pending.call.is_method ? pending.call.target : Ref();
    refuse(fmt::format("{} is given {}",
                       text ? PyUnicode_AsUTF8(text.get()) : describe_callable(pending.call.target.get()),
                       pending.problem));
  }
  name_tensors(result, {false, static_cast<int32_t>(program_.calls.size()), {}});
  program_.calls.push_back(std::move(pending.call));
}

void TorchCallLog::check_operators() {
  if (operators_ != noted_)
    refuse("an operator is called by something else than a function or method of torch's");
}

std::optional<TorchProgram> TorchCallLog::finish(std::span<PyObject* const> outputs) {
  check_operators();
  for (PyObject* output : outputs) {
    auto value = find(output);
    if (!value) refuse("a result that no function or method of torch's made");
    program_.outputs.push_back(value ? std::move(*value) : TorchValue());
  }
  if (!problem_.empty()) return std::nullopt;
  return std::move(program_);
}

}  // namespace oxy::eval
