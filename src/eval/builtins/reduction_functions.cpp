// Reductions for whose gradients torch reads data on the host. Where they need gradients, nodes of ours take
// their place (trace/composites/reduction_gradients.h).
#include <ATen/core/grad_mode.h>
#include <torch/csrc/Dtype.h>

#include <algorithm>
#include <array>

#include "eval/builtins/builtin_families.h"
#include "eval/python/objects.h"
#include "eval/state/arguments.h"
#include "eval/torch/torch_call.h"
#include "runtime/device/autocast.h"
#include "runtime/values/tensor_object.h"
#include "trace/composites/reduction_gradients.h"

namespace oxy::eval {
namespace {

// Whether torch would ask data for the gradient of a reduction of the tensor. Under autocast PyTorch may
// choose another type for it.
bool has_gradient(Interpreter& interpreter, PyObject* self) {
  if (interpreter.torch_calls || self == nullptr || !trace::is_trace_tensor(self)) return false;
  const at::Tensor& tensor = runtime::tensor_of(self);
  return at::GradMode::is_enabled() && tensor.requires_grad() && at::isFloatingType(tensor.scalar_type()) &&
         !runtime::autocast_type(tensor.device().type());
}

// A call of torch.prod() or torch.cumprod() whose gradient torch would ask data for.
struct ProductCall {
  at::Tensor self;  // in the type that is asked for
  std::optional<int64_t> dim;
  bool keepdim = false;
};

// Nothing: it is another call.
std::optional<ProductCall> product_call(Interpreter& interpreter, const Arguments& a) {
  constexpr size_t kMostPositional = 3;
  const auto given = by_position<4>(a, {"input", "dim", "keepdim", "dtype"});
  if (!given || a.positional.size() > kMostPositional) return std::nullopt;
  const auto& [input, dim, keepdim, dtype] = *given;
  if (!has_gradient(interpreter, input)) return std::nullopt;
  ProductCall call{.self = runtime::tensor_of(input)};
  const int64_t dimensions = std::max<int64_t>(call.self.dim(), 1);
  const bool is_typed = dtype != nullptr && dtype != Py_None;
  if ((is_typed && !THPDtype_Check(dtype)) || (dim != nullptr && !PyLong_CheckExact(dim)) ||
      (keepdim != nullptr && !PyBool_Check(keepdim)))
    return std::nullopt;
  const at::ScalarType type =
      is_typed ? reinterpret_cast<THPDtype*>(dtype)->scalar_type : call.self.scalar_type();
  if (!at::isFloatingType(type)) return std::nullopt;
  if (dim != nullptr) {
    call.dim = PyLong_AsLong(dim);
    PyErr_Clear();
    if (*call.dim < -dimensions || *call.dim >= dimensions) return std::nullopt;  // the real one raises
  }
  call.keepdim = keepdim == Py_True;
  call.self = call.self.to(type);
  return call;
}

Ref prod(Interpreter& interpreter, Arguments& a) {
  const std::optional<ProductCall> found = product_call(interpreter, a);
  if (!found || (!found->dim && found->keepdim))
    return call_torch(interpreter, well_known("torch", "prod"), a);
  return torch_tensor(interpreter, [&] { return trace::product(found->self, found->dim, found->keepdim); });
}

Ref cumprod(Interpreter& interpreter, Arguments& a) {
  const std::optional<ProductCall> found = product_call(interpreter, a);
  if (!found || !found->dim || found->keepdim)
    return call_torch(interpreter, well_known("torch", "cumprod"), a);
  return torch_tensor(interpreter, [&] { return trace::cumulative_product(found->self, *found->dim); });
}

template <trace::Selection selection>
Ref select_element(Interpreter& interpreter, Arguments& a) {
  constexpr std::array<const char*, 4> kNames = {"max", "min", "median", "nanmedian"};
  const bool is_of_all = a.positional.size() == 1 && a.keywords.empty();
  if (!is_of_all || !has_gradient(interpreter, arg(a, 0)) || runtime::tensor_of(arg(a, 0)).dim() == 0)
    return call_torch(interpreter, well_known("torch", kNames[static_cast<size_t>(selection)]), a);
  return torch_tensor(interpreter, [&] { return trace::selected(runtime::tensor_of(arg(a, 0)), selection); });
}

constexpr BuiltinEntry kTable[] = {
    {"torch", "max", &select_element<trace::Selection::Maximum>},
    {"torch", "Tensor.max", &select_element<trace::Selection::Maximum>},
    {"torch", "min", &select_element<trace::Selection::Minimum>},
    {"torch", "Tensor.min", &select_element<trace::Selection::Minimum>},
    {"torch", "median", &select_element<trace::Selection::Median>},
    {"torch", "Tensor.median", &select_element<trace::Selection::Median>},
    {"torch", "nanmedian", &select_element<trace::Selection::MedianWithoutNan>},
    {"torch", "Tensor.nanmedian", &select_element<trace::Selection::MedianWithoutNan>},
    {"torch", "prod", &prod},
    {"torch", "Tensor.prod", &prod},
    {"torch", "cumprod", &cumprod},
    {"torch", "Tensor.cumprod", &cumprod},
};

}  // namespace

std::span<const BuiltinEntry> reduction_builtins() {
  return kTable;
}

}  // namespace oxy::eval
