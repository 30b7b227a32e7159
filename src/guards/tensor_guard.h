// The properties of an external tensor that a capture relies on.
#pragma once

#include <ATen/core/Tensor.h>
#include <Python.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/values/host.h"

namespace oxy::guards {

// Whether a tensor has a history in autograd's graph. Unclear: it is a view, made under no_grad, of a tensor
// that requires grad. No gradient comes to it, and it may not be used once that tensor was written to.
enum class History : uint8_t { None, Known, Unclear };
History history_of(const at::Tensor& tensor);

struct TensorGuard {
  PyTypeObject* type = nullptr;  // kept alive by a Type check beside it
  c10::DispatchKeySet keys;
  at::ScalarType dtype = at::ScalarType::Undefined;
  c10::Device device{runtime::kHost};
  bool requires_grad = false;
  History history = History::None;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  std::optional<int64_t> storage_offset;  // in elements; nothing: it does not matter

  static TensorGuard of(const at::Tensor& tensor, PyTypeObject* type);
  bool matches(const at::Tensor& tensor) const;
  // The first difference: "size of dimension 1: was 128, is 64".
  std::string difference(const at::Tensor& tensor) const;
};

// Whether the tensor has hooks that see, change or keep its gradient.
bool has_gradient_hooks(const at::Tensor& tensor);

}  // namespace oxy::guards
