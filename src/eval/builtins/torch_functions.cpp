// Functions of torch that read a tensor's data without calling an operator, made by those that call one.
#include <ATen/core/grad_mode.h>

#include "eval/builtins/builtin_families.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/torch/torch_call.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {
namespace {

// Without gradients torch computes it at once, into a contiguous result.
Ref max_pool1d(Interpreter& interpreter, Arguments& a) {
  constexpr size_t kReturnIndices = 6;
  PyObject* with_indices = well_known("torch.nn.functional", "max_pool1d_with_indices");
  Ref asked =
      a.positional.size() > kReturnIndices ? a.positional[kReturnIndices] : keyword(a, "return_indices");
  if (!with_indices || (asked && asked != Py_False && asked != Py_True))
    interpreter.stop("calls max_pool1d() with unusual arguments");
  const Ref input = a.positional.empty() ? keyword(a, "input") : a.positional[0];
  if (!input || !trace::is_trace_tensor(input.get()))
    interpreter.stop("calls max_pool1d() with unusual arguments");
  const at::Tensor& tensor = runtime::tensor_of(input.get());
  const bool by_own_kernel = asked != Py_True && !(at::GradMode::is_enabled() && tensor.requires_grad());
  if (by_own_kernel && !tensor.is_floating_point())
    interpreter.stop("calls max_pool1d() of numbers that it refuses");
  Ref both = call_torch(interpreter, with_indices, a);
  if (asked == Py_True) return both;
  if (!PyTuple_Check(both.get())) interpreter.stop("calls max_pool1d() with unusual arguments");
  Ref values = Ref::borrow(PyTuple_GET_ITEM(both.get(), 0));
  if (!by_own_kernel) return values;
  Ref contiguous = Ref::steal(PyObject_GetAttrString(values.get(), "contiguous"));
  return contiguous ? call_torch(interpreter, contiguous.get(), {}) : Ref();
}

// An optimizer's counter as a number. A tensor of its own without dimensions is used as the number would be,
// and in the precision of one.
Ref number_of(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "torch.optim.optimizer._get_value", 1, 1);
  PyObject* value = arg(a, 0);
  if (!trace::is_trace_tensor(value)) return a.positional[0];
  const at::Tensor& tensor = runtime::tensor_of(value);
  if (tensor.dim() != 0 || !tensor.is_floating_point()) interpreter.stop("reads a counter that is no float");
  return call_method(interpreter, call_method(interpreter, value, "detach", {}).get(), "double", {});
}

Ref numbers_of(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "torch.optim.optimizer._stack_if_compiling", 1, 1);
  return a.positional[0];
}

// A condition that holds: what is called otherwise raises in its own words.
Ref check_condition(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "torch._check", 1, 2, true);
  if (arg(a, 0) != Py_True) interpreter.stop("calls torch._check()");
  return none();
}

Ref check_condition_with(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "torch._check_with", 3, 3);
  if (arg(a, 1) != Py_True) interpreter.stop("calls torch._check_with()");
  return none();
}

constexpr BuiltinEntry kTable[] = {
    {"torch", "_check", &check_condition},
    {"torch", "_check_with", &check_condition_with},
    {"torch", "_check_index", &check_condition},
    {"torch", "_check_not_implemented", &check_condition},
    {"torch", "_check_type", &check_condition},
    {"torch", "_check_value", &check_condition},
    {"torch.optim.optimizer", "_get_value", &number_of},
    {"torch.optim.optimizer", "_stack_if_compiling", &numbers_of},
    {"torch", "max_pool1d", &max_pool1d},
    {"torch.nn.functional", "max_pool1d", &max_pool1d},
};

}  // namespace

std::span<const BuiltinEntry> torch_builtins() {
  return kTable;
}

}  // namespace oxy::eval
