#include "eval/varying_float.h"

#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sub.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "eval/evaluator.h"
#include "eval/objects.h"
#include "eval/torch_call.h"
#include "guards/constants.h"
#include "trace/trace_error.h"

namespace oxy::eval {

using bytecode::BinaryKind;
using guards::CheckKind;

namespace {

// With an error that the program's own handlers leave alone.
PyObject* refuse(PyObject*) {
  PyErr_SetString(trace::trace_error(), "the value of an oxyfuel.VaryingFloat is looked at");
  return nullptr;
}

PyObject* refuse_comparison(PyObject* self, PyObject*, int) {
  return refuse(self);
}

int refuse_truth(PyObject* self) {
  refuse(self);
  return -1;
}

Py_hash_t refuse_hash(PyObject* self) {
  refuse(self);
  return -1;
}

PyTypeObject* varying_type() {
  static PyObject* const type = [] {
    static PyType_Slot slots[] = {{Py_tp_repr, reinterpret_cast<void*>(&refuse)},
                                  {Py_tp_str, reinterpret_cast<void*>(&refuse)},
                                  {Py_tp_richcompare, reinterpret_cast<void*>(&refuse_comparison)},
                                  {Py_tp_hash, reinterpret_cast<void*>(&refuse_hash)},
                                  {Py_nb_bool, reinterpret_cast<void*>(&refuse_truth)},
                                  {0, nullptr}};
    static PyType_Spec spec = {"oxyfuel.VaryingFloat", sizeof(PyObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    return PyType_FromSpec(&spec);
  }();
  return reinterpret_cast<PyTypeObject*>(type);
}

bool has_arithmetic(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble;
}

// Methods whose operands and factors may be tensors where the program gives numbers.
constexpr std::array<std::string_view, 14> kTakesTensors = {
    "add",  "add_", "sub",   "sub_",    "mul",      "mul_",    "div",
    "div_", "lerp", "lerp_", "addcdiv", "addcdiv_", "addcmul", "addcmul_"};

}  // namespace

bool is_varying_float(PyObject* object) {
  return object != nullptr && Py_TYPE(object) == varying_type();
}

Ref Evaluator::admit_varying(PyObject* number, SourceId source) {
  guards().require(source, CheckKind::Type, reinterpret_cast<PyObject*>(&PyFloat_Type));
  const double value = PyFloat_AS_DOUBLE(number);
  Ref real;
  {
    const trace::Recorder::Pause pause;
    real = Ref::steal(THPVariable_Wrap(at::scalar_tensor(value, at::kDouble)));
  }
  Ref tensor = Ref::steal(recorder_.add_input(real.get()));
  if (!tensor) stop("a float that cannot be traced");
  keep_alive_.push_back(real);
  capture_->inputs.push_back(source);
  return make_varying({THPVariable_Unpack(tensor.get()), value, {{source, value}}});
}

Ref Evaluator::make_varying(VaryingFloat number) {
  Ref object = Ref::steal(PyObject_New(PyObject, varying_type()));
  keep_alive_.push_back(object);
  varying_floats_.emplace(object.get(), std::move(number));
  return object;
}

Ref Evaluator::constant_of(PyObject* object) {
  if (!is_varying_float(object)) return Ref::borrow(object);
  const VaryingFloat& number = varying_floats_.at(object);
  for (const auto& [source, value] : number.sources)
    guards().require(source, CheckKind::Equal, Ref::steal(PyFloat_FromDouble(value)).get());
  return Ref::steal(PyFloat_FromDouble(number.value));
}

Ref Evaluator::as_tensor(PyObject* varying, at::ScalarType type) {
  return Ref::steal(THPVariable_Wrap(varying_floats_.at(varying).tensor.to(type)));
}

std::optional<Ref> Evaluator::varying_arithmetic(BinaryKind kind, bool in_place, PyObject* left,
                                                 PyObject* right) {
  const bool is_division = kind == BinaryKind::TrueDivide;
  if (kind != BinaryKind::Add && kind != BinaryKind::Subtract && kind != BinaryKind::Multiply && !is_division)
    return std::nullopt;
  for (PyObject* other : {left, right}) {
    if (!trace::is_trace_tensor(other)) continue;
    const at::Tensor& tensor = THPVariable_Unpack(other);
    if (!has_arithmetic(tensor)) return std::nullopt;
    const auto shown = [&](PyObject* operand) {
      return operand == other ? Ref::borrow(operand) : as_tensor(operand, tensor.scalar_type());
    };
    const Ref a = shown(left), b = shown(right);
    return binary(kind, in_place && left == other, a.get(), b.get());
  }
  const auto number = [&](PyObject* operand) -> std::optional<VaryingFloat> {
    if (is_varying_float(operand)) return varying_floats_.at(operand);
    double value = 0;
    if (PyFloat_CheckExact(operand)) {
      value = PyFloat_AS_DOUBLE(operand);
    } else if (PyLong_CheckExact(operand)) {
      value = PyLong_AsDouble(operand);
      if (PyErr_Occurred() || std::abs(value) >= 0x1p53) {
        PyErr_Clear();
        return std::nullopt;
      }
    } else {
      return std::nullopt;
    }
    return VaryingFloat{at::Tensor(), value, {}};
  };
  const std::optional<VaryingFloat> a = number(left), b = number(right);
  // A varying divisor may become zero, which raises.
  if (!a || !b || (is_division && (b->tensor.defined() || b->value == 0))) return std::nullopt;
  const auto operand = [](const VaryingFloat& x) {
    return x.tensor.defined() ? x.tensor : at::scalar_tensor(x.value, at::kDouble);
  };
  VaryingFloat result;
  switch (kind) {
    case BinaryKind::Add:
      result = {at::add(operand(*a), operand(*b)), a->value + b->value, {}};
      break;
    case BinaryKind::Subtract:
      result = {at::sub(operand(*a), operand(*b)), a->value - b->value, {}};
      break;
    case BinaryKind::Multiply:
      result = {at::mul(operand(*a), operand(*b)), a->value * b->value, {}};
      break;
    default:
      result = {at::div(operand(*a), operand(*b)), a->value / b->value, {}};
  }
  result.sources = a->sources;
  result.sources.insert(b->sources.begin(), b->sources.end());
  return make_varying(std::move(result));
}

Ref Evaluator::negated(PyObject* varying) {
  VaryingFloat number = varying_floats_.at(varying);
  number.tensor = at::neg(number.tensor);
  number.value = -number.value;
  return make_varying(std::move(number));
}

std::optional<Arguments> Evaluator::tensors_for_varying(PyObject* callable, std::string_view method,
                                                        const Arguments& arguments) {
  const auto varies = [](const Ref& value) { return is_varying_float(value.get()); };
  const bool has_some =
      std::ranges::any_of(arguments.positional, varies) ||
      std::ranges::any_of(arguments.keywords, [&](const auto& k) { return varies(k.second); });
  if (!has_some || std::ranges::find(kTakesTensors, method) == kTakesTensors.end()) return std::nullopt;
  PyObject* self = PyCFunction_Check(callable)    ? PyCFunction_GET_SELF(callable)
                   : arguments.positional.empty() ? nullptr
                                                  : arguments.positional[0].get();
  if (!trace::is_trace_tensor(self) || !has_arithmetic(THPVariable_Unpack(self))) return std::nullopt;
  const at::ScalarType type = THPVariable_Unpack(self).scalar_type();
  Arguments tensors = arguments;
  for (Ref& value : tensors.positional)
    if (varies(value)) value = as_tensor(value.get(), type);
  for (auto& [name, value] : tensors.keywords)
    if (varies(value)) value = as_tensor(value.get(), type);
  return tensors;
}

}  // namespace oxy::eval
