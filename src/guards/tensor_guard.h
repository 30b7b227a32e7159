// What capture relied on of a tensor that it did not make.
#pragma once

#include <ATen/core/Tensor.h>
#include <Python.h>

#include <optional>
#include <string>
#include <vector>

namespace oxy::guards {

struct TensorGuard {
  PyTypeObject* type = nullptr;  // kept alive by a Type check beside it
  c10::DispatchKeySet keys;
  at::ScalarType dtype = at::ScalarType::Undefined;
  c10::Device device = c10::kCPU;
  bool requires_grad = false;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  std::optional<int64_t> storage_offset;  // where it was relied on

  static TensorGuard of(const at::Tensor& tensor, PyTypeObject* type);
  bool matches(const at::Tensor& tensor) const;
  // The first difference: "size of dimension 1: was 128, is 64".
  std::string difference(const at::Tensor& tensor) const;
};

// Whether somebody wants to see or change the gradient that comes to the tensor, a leaf of autograd's graph.
bool has_gradient_hooks(const at::Tensor& leaf);

}  // namespace oxy::guards
