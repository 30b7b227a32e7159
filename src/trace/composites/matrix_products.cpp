// Matrix products of symbolic sizes.

#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/matmul_native.h>

#include <algorithm>

#include "trace/composites/composites.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

using Sizes = c10::SymDimVector;

c10::SymInt product(at::SymIntArrayRef sizes) {
  c10::SymInt result = 1;
  for (const c10::SymInt& size : sizes) result = result * size;
  return result;
}

bool is_certain(const c10::SymBool& condition) {
  return condition.guard_or_false(__FILE__, __LINE__);
}

// Whether all rows of `batches` (3 dimensions or more) lie behind each other with equal distances.
bool is_matrix_of_rows(const at::Tensor& batches) {
  const at::SymIntArrayRef sizes = batches.sym_sizes(), strides = batches.sym_strides();
  for (size_t d = 0; d + 2 < sizes.size(); ++d)
    if (!is_certain(strides[d].sym_eq(strides[d + 1] * sizes[d + 1]))) return false;
  return true;
}

// Whether one product with all rows takes the place of one a batch: eager's rule, by which a gradient for the
// matrix is no sum over batches either.
bool is_one_product(const at::Tensor& a, const at::Tensor& b) {
  const bool is_left_larger = a.dim() >= b.dim();
  const at::Tensor& batches = is_left_larger ? a : b;
  const at::Tensor& matrix = is_left_larger ? b : a;
  if (batches.dim() < 3 || matrix.dim() > 2) return false;
  if (matrix.requires_grad()) return true;
  if (a.dim() == 2) return false;
  if (is_certain(batches.sym_numel().sym_eq(0))) return true;
  return is_matrix_of_rows(is_left_larger ? batches : batches.mT());
}

// `batches` [..., n, m] times `matrix` [m, p] or [m].
at::Tensor product_of_rows(const at::Tensor& batches, const at::Tensor& matrix) {
  Sizes sizes(batches.sym_sizes().begin(), batches.sym_sizes().end());
  const c10::SymInt inner = sizes.back();
  sizes.pop_back();
  const at::Tensor rows = batches.reshape_symint({product(sizes), inner});
  if (matrix.dim() == 1) return at::_unsafe_view_symint(rows.mv(matrix), sizes);
  sizes.push_back(matrix.sym_size(1));
  return at::_unsafe_view_symint(rows.mm(matrix), sizes);
}

Sizes batch_of(const at::Tensor& tensor) {
  const at::SymIntArrayRef sizes = tensor.sym_sizes();
  const auto count = static_cast<size_t>(std::max<int64_t>(tensor.dim() - 2, 0));
  return {sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(count)};
}

at::Tensor in_batches(const at::Tensor& tensor, const Sizes& batch, at::SymIntArrayRef matrix) {
  Sizes expanded(batch), flat = {product(batch)};
  expanded.append(matrix.begin(), matrix.end());
  flat.append(matrix.begin(), matrix.end());
  return tensor.expand_symint(expanded).reshape_symint(flat);
}

at::Tensor symbolic_product(const at::Tensor& a, const at::Tensor& b);

// A batch of one for a gradient that would be a sum over the batches of the other.
std::optional<at::Tensor> product_without_batch(const at::Tensor& a, const at::Tensor& b) {
  if (a.dim() != 3 || b.dim() != 3 || is_certain(a.sym_size(0).sym_eq(b.sym_size(0)))) return std::nullopt;
  if (a.requires_grad() && is_certain(a.sym_size(0).sym_eq(1))) return symbolic_product(a.squeeze(0), b);
  if (b.requires_grad() && is_certain(b.sym_size(0).sym_eq(1))) return symbolic_product(a, b.squeeze(0));
  return std::nullopt;
}

at::Tensor product_of_batches(const at::Tensor& a, const at::Tensor& b) {
  if (std::optional<at::Tensor> result = product_without_batch(a, b)) return std::move(*result);
  const bool is_left_vector = a.dim() == 1, is_right_vector = b.dim() == 1;
  const c10::SymInt rows = is_left_vector ? c10::SymInt(1) : a.sym_size(-2);
  Sizes sizes = at::infer_size_symdimvector(batch_of(a), batch_of(b));
  const at::Tensor left = in_batches(a, sizes, {rows, a.sym_size(-1)});
  at::Tensor result;
  if (is_right_vector) {
    const at::Tensor right = in_batches(b, sizes, {b.sym_size(-1)});
    result = at::bmm(left, right.unsqueeze(2)).squeeze(-1);
  } else {
    result = at::bmm(left, in_batches(b, sizes, {b.sym_size(-2), b.sym_size(-1)}));
  }
  if (!is_left_vector) sizes.push_back(rows);
  if (!is_right_vector) sizes.push_back(b.sym_size(-1));
  return at::_unsafe_view_symint(result, sizes);
}

at::Tensor symbolic_product(const at::Tensor& a, const at::Tensor& b) {
  if (a.dim() == 1 && b.dim() == 1) return a.dot(b);
  if (a.dim() == 2 && b.dim() == 1) return a.mv(b);
  if (a.dim() == 1 && b.dim() == 2) return a.unsqueeze(0).mm(b).squeeze(0);
  if (a.dim() == 2 && b.dim() == 2) return a.mm(b);
  if (!is_one_product(a, b)) return product_of_batches(a, b);
  if (a.dim() >= b.dim()) return product_of_rows(a, b);
  // [m] or [n, m] times [..., m, p]: the same with everything transposed.
  const at::Tensor result = product_of_rows(b.mT(), a.dim() == 2 ? a.t() : a);
  return a.dim() == 2 ? result.mT() : result;
}

at::Tensor matmul(const at::Tensor& a, const at::Tensor& b) {
  const bool is_ours = (is_symbolic(a) || is_symbolic(b)) && a.dim() > 0 && b.dim() > 0;
  return is_ours ? symbolic_product(a, b) : at::native::matmul(a, b);
}

}  // namespace

void add_matrix_products(torch::Library& library) {
  library.impl("matmul", &matmul);
}

}  // namespace oxy::trace
