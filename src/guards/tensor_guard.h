// The properties of an external tensor that a capture relies on.
#pragma once

#include <ATen/core/Tensor.h>
#include <Python.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/values/host.h"

namespace oxy::guards {

// Whether a tensor has a history in autograd's graph.
enum class History : uint8_t {
  None,
  Unrecorded,  // a view made before its tensor required grad: a leaf until its history is asked for
  Known,
  Unclear,  // a view, made under no_grad, of a tensor that requires grad. No gradient comes to it, and it may
            // not be used once that tensor was written to.
};
// It does not ask for the history of an unrecorded view.
History history_of(const at::Tensor& tensor);

// A size or stride that may be any number.
inline constexpr int64_t kAnyInteger = -1;

struct TensorGuard {
  PyTypeObject* type = nullptr;  // kept alive by a Type check beside it
  c10::DispatchKeySet keys;
  at::ScalarType dtype = at::ScalarType::Undefined;
  c10::Device device{runtime::kHost};
  bool requires_grad = false;
  History history = History::None;
  bool loses_history_when_written = false;  // runtime's
  std::vector<int64_t> sizes;               // kAnyInteger: symbols
  std::vector<int64_t> strides;             // kAnyInteger: symbols, or those of `dense_order`
  // Dimensions from the innermost one on, if the elements fill a block of memory in that order. The strides
  // follow from the sizes then. Empty: they do not.
  std::vector<int32_t> dense_order;
  bool has_symbols = false;               // some size or stride is not a number
  std::optional<int64_t> storage_offset;  // in elements; nothing: it does not matter

  static TensorGuard of(const at::Tensor& tensor, PyTypeObject* type);
  // Size or stride of the dimension is a symbol.
  void open_size(int64_t dimension);
  void open_stride(int64_t dimension);
  // All strides follow from the sizes, in this order.
  void make_dense(std::vector<int32_t> order);
  bool matches(const at::Tensor& tensor) const;
  // Asks for the memory that matches() will read.
  static void prefetch(const at::Tensor& tensor);
  // The first difference: "size of dimension 1: was 128, is 64".
  std::string difference(const at::Tensor& tensor) const;
  // Whether sizes and strides are all that differs.
  bool differs_in_layout_alone(const at::Tensor& tensor) const;

 private:
  bool has_layout(c10::IntArrayRef sizes, c10::IntArrayRef strides) const;
  bool has_kind(const at::Tensor& tensor) const;  // all but sizes and strides
};

// Whether the strides are those of elements that fill a block of memory in that order, the innermost
// dimension first: each is the product of the sizes before it, where 0 counts as 1.
bool is_dense_in(const std::vector<int32_t>& order, c10::IntArrayRef sizes, c10::IntArrayRef strides);

// Whether the tensor has hooks that see, change or keep its gradient.
bool has_gradient_hooks(const at::Tensor& tensor);

}  // namespace oxy::guards
