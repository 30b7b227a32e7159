#include "eval/torch/sized_functions.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>

#include <array>

#include "eval/numbers/number_operands.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "eval/state/arguments.h"
#include "eval/torch/number_tensors.h"
#include "runtime/values/host.h"
#include "runtime/values/tensor_object.h"
#include "torch_api/symbolic_node.h"

namespace oxy::eval {

namespace {

bool is_given(PyObject* argument) {
  return argument != nullptr && argument != Py_None;
}

// Of a size that varies. Nothing: it is another object.
std::optional<c10::SymInt> symbolic_size(Interpreter& interpreter, PyObject* object) {
  if (!is_given(object) || !is_symbolic_integer(interpreter, object)) return std::nullopt;
  return torch_api::to_torch(interpreter.numbers.symbols, *expression_of(interpreter, object));
}

Ref wrapped(const at::Tensor& tensor) {
  return Ref::steal(runtime::wrap_tensor(tensor));
}

// An int or float that a tensor can be made of (number_tensor()).
bool is_plain_number(Interpreter& interpreter, PyObject* object) {
  if (!is_given(object)) return false;
  if (PyFloat_CheckExact(object)) return true;
  if (is_varying_number(object) && varying_class(interpreter, object) == &PyFloat_Type)
    return !depends_on_data(interpreter, object);
  return !PyBool_Check(object) && expression_of(interpreter, object).has_value();
}

// As PyTorch's kernel: from both ends to the middle (aten/src/ATen/native/cpu/RangeFactoriesKernel.cpp).
std::optional<Ref> linspace(Interpreter& interpreter, const Arguments& arguments) {
  const auto given = by_position<5>(arguments, {"start", "end", "steps", "dtype", "device"});
  if (!given) return std::nullopt;
  const auto& [start, end, count, dtype, device] = *given;
  const auto varies = [&](PyObject* object) {
    return is_given(object) && is_varying_float(interpreter, object);
  };
  std::optional<c10::SymInt> steps = symbolic_size(interpreter, count);
  if (!steps && (varies(start) || varies(end)) && is_given(count) && PyLong_CheckExact(count))
    steps = c10::SymInt(PyLong_AsLongLong(count));
  if (!steps || !is_plain_number(interpreter, start) || !is_plain_number(interpreter, end) ||
      (is_given(dtype) && !THPDtype_Check(dtype)) || (is_given(device) && !THPDevice_Check(device)))
    return std::nullopt;
  const auto fits = [&](PyObject* object, at::ScalarType wanted) {
    return !is_float(interpreter, object) || fits_finite(interpreter, object, wanted);
  };
  const at::ScalarType type = is_given(dtype) ? reinterpret_cast<THPDtype*>(dtype)->scalar_type
                                              : c10::get_default_dtype_as_scalartype();
  if (type != at::kFloat && type != at::kDouble) return std::nullopt;
  if (!fits(start, type) || !fits(end, type)) return std::nullopt;
  const c10::Device place =
      is_given(device) ? reinterpret_cast<THPDevice*>(device)->device : c10::Device(runtime::kHost);
  const auto number = [&](PyObject* object) {
    return number_tensor(interpreter, object).to(at::kDouble).to(place, type);
  };
  const at::Tensor first = number(start), last = number(end);
  const at::Tensor index = at::arange(c10::Scalar(*steps), at::TensorOptions(at::kLong).device(place));
  const at::Tensor most = number(count) - 1;
  const at::Tensor step = (last - first) / most.clamp_min(1);
  const at::Tensor forward = first + step * index.to(type), back = last - step * (most - index.to(type));
  // A single step is the start.
  const at::Tensor is_before = index.lt(c10::Scalar(*steps / 2)).logical_or(index.eq(0));
  return wrapped(at::where(is_before, forward, back));
}

// Without the check of the classes: scattering finds those that are out of range, and eager says so.
std::optional<Ref> one_hot(Interpreter& interpreter, const Arguments& arguments) {
  const auto given = by_position<2>(arguments, {"tensor", "num_classes"});
  if (!given || !is_given((*given)[0]) || !runtime::is_tensor((*given)[0])) return std::nullopt;
  const std::optional<c10::SymInt> classes = symbolic_size(interpreter, (*given)[1]);
  const at::Tensor& tensor = runtime::tensor_of((*given)[0]);
  if (!classes || tensor.scalar_type() != at::kLong) return std::nullopt;
  c10::SymDimVector sizes(tensor.sym_sizes().begin(), tensor.sym_sizes().end());
  sizes.push_back(*classes);
  return wrapped(at::zeros_symint(sizes, tensor.options()).scatter(-1, tensor.unsqueeze(-1), 1));
}

}  // namespace

std::optional<Ref> call_with_size(Interpreter& interpreter, PyObject* callable, const Arguments& arguments) {
  if (!interpreter.numbers.symbols) return std::nullopt;
  if (callable == well_known("torch", "linspace")) return linspace(interpreter, arguments);
  if (callable == well_known("torch._C._nn", "one_hot")) return one_hot(interpreter, arguments);
  return std::nullopt;
}

}  // namespace oxy::eval
