// Tensors made directly over memory, without the dispatcher.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "sym/expr.h"

namespace oxy::runtime {

// The shape of a tensor over a buffer, every size known. Strides and offset in elements.
struct TensorSpec {
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;

  int64_t element_count() const;
  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
};

// Of the dispatch keys of strided tensors on a kind of device.
c10::BackendComponent backend_component(c10::DeviceType type);

// The key under which autograd sees tensors on a kind of device.
c10::DispatchKey autograd_key(c10::DeviceType type);

// Values of the symbols in a graph's sizes: element i is that of the variable with the id i. Empty: the graph
// has no symbols.
using SymbolValues = std::span<const int64_t>;

// InternalError if a symbol has no value.
int64_t number_of(const sym::Expr& value, SymbolValues symbols);
std::vector<int64_t> numbers_of(const std::vector<sym::Expr>& values, SymbolValues symbols);
// InternalError unless each is known.
std::vector<int64_t> constants_of(const std::vector<sym::Expr>& values);
// A tensor on `storage`, and on its device, whose first element is `first + spec.offset` elements into it.
at::Tensor tensor_over(c10::Storage storage, const TensorSpec& spec, int64_t first = 0);
// A tensor that shares the storage of `base`; spec.offset counts from the first element of base.
at::Tensor view_of(const at::Tensor& base, const TensorSpec& spec);
// Whether the tensor requires grad, and is a view, as autograd knows views, of a tensor that does not. After
// a write to their memory autograd takes the histories of its views from that tensor: gradients of them go
// nowhere then.
bool loses_history_when_written(const at::Tensor& tensor);
// Whether it is a view of a tensor that came to require grad by a write after the view was made, and nothing
// has asked for the view's history since. Until then a write to it is an error, as to a leaf. Does not ask.
bool is_unrecorded_view(const at::Tensor& tensor);
// What eager would have returned for a view of `base`, as autograd knows views: made by public operators in
// the caller's grad mode, and never `base` itself. Strides and offset count elements of spec.dtype, the
// offset from the first element of base.
at::Tensor alias_of(const at::Tensor& base, const TensorSpec& spec);
// The tensor, or one that shares its memory and that autograd does not know: for views of it that are given
// their histories later.
at::Tensor without_history(const at::Tensor& tensor);
// A tensor of the same elements for an operator that asks for a mutable pointer but only reads: over
// copy-on-write storage it borrows the memory, so that the storage stays shared. Valid while `tensor` is.
at::Tensor for_reading(const at::Tensor& tensor);
// A tensor of the same elements, without a history. It shares the memory until either is written to: a write
// through torch moves what is written to other memory first. The other holders of the storage of `tensor`
// must be known to write through torch only. Where torch cannot share the memory so, it is copied.
at::Tensor shared_copy(const at::Tensor& tensor);
// Of the memory from the first to the last element.
int64_t bytes_of(const TensorSpec& spec);
// True if the tensor has these sizes, and these strides wherever they matter.
bool has_layout(const at::Tensor& tensor, const TensorSpec& spec);

}  // namespace oxy::runtime
