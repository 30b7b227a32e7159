// Functions of torch that read a tensor's data without calling an operator, made by those that call one.
#include <ATen/core/grad_mode.h>

#include "eval/builtin_families.h"
#include "eval/objects.h"
#include "eval/torch_call.h"

namespace oxy::eval {
namespace {

// Without gradients torch computes it at once, into a contiguous result.
Ref max_pool1d(Evaluator& e, Arguments& a) {
  constexpr size_t kReturnIndices = 6;
  PyObject* with_indices = well_known("torch.nn.functional", "max_pool1d_with_indices");
  Ref asked =
      a.positional.size() > kReturnIndices ? a.positional[kReturnIndices] : keyword(a, "return_indices");
  if (!with_indices || (asked && asked != Py_False && asked != Py_True))
    e.stop("calls max_pool1d() with unusual arguments");
  Ref both = e.call_torch(with_indices, a);
  if (asked == Py_True) return both;
  if (!PyTuple_Check(both.get())) e.stop("calls max_pool1d() with unusual arguments");
  Ref values = Ref::borrow(PyTuple_GET_ITEM(both.get(), 0));
  if (at::GradMode::is_enabled()) return values;
  Ref contiguous = Ref::steal(PyObject_GetAttrString(values.get(), "contiguous"));
  return contiguous ? e.call_torch(contiguous.get(), {}) : Ref();
}

constexpr BuiltinEntry kTable[] = {
    {"torch", "max_pool1d", &max_pool1d},
    {"torch.nn.functional", "max_pool1d", &max_pool1d},
};

}  // namespace

std::span<const BuiltinEntry> torch_builtins() {
  return kTable;
}

}  // namespace oxy::eval
