// multi_dot and kron, whose decompositions take numbers.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "runtime/values/host.h"
#include "trace/composites/composites.h"
#include "trace/session/session.h"

namespace oxy::trace {

namespace {

// The value at hand of a size, which decides nothing but costs.
double estimate(const Session& session, const c10::SymInt& size) {
  if (const auto number = size.maybe_as_int()) return static_cast<double>(*number);
  constexpr int64_t kUsual = 64;
  return static_cast<double>(
      session.symbols->environment.hint(torch_api::expression_of(size)).value_or(kUsual));
}

// Where to cut each chain [first, last] of matrices in two, so that the products take the fewest
// multiplications. Matrix i has sizes[i] rows and sizes[i + 1] columns.
std::vector<std::vector<size_t>> cheapest_cuts(const std::vector<double>& sizes) {
  const size_t count = sizes.size() - 1;
  std::vector<std::vector<double>> cost(count, std::vector<double>(count));
  std::vector<std::vector<size_t>> cut(count, std::vector<size_t>(count));
  for (size_t length = 1; length < count; ++length)
    for (size_t first = 0; first + length < count; ++first) {
      const size_t last = first + length;
      cost[first][last] = std::numeric_limits<double>::infinity();
      for (size_t k = first; k < last; ++k) {
        const double price =
            cost[first][k] + cost[k + 1][last] + sizes[first] * sizes[k + 1] * sizes[last + 1];
        if (!(price < cost[first][last])) continue;
        cost[first][last] = price;
        cut[first][last] = k;
      }
    }
  return cut;
}

at::Tensor product(const std::vector<at::Tensor>& matrices, const std::vector<std::vector<size_t>>& cuts,
                   size_t first, size_t last) {
  if (first == last) return matrices[first];
  const size_t k = cuts[first][last];
  return at::mm(product(matrices, cuts, first, k), product(matrices, cuts, k + 1, last));
}

// The order of the products is that for the sizes at hand. PyTorch's would be another one for other sizes, at
// the cost of a graph for each of them.
void multi_dot(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  std::vector<at::Tensor> matrices = torch::jit::peek(*stack, 0, 1).toTensorVector();
  const Session* session = recording_session();
  const size_t count = matrices.size();
  bool fits = session != nullptr && session->symbols && count > 1;
  for (size_t i = 0; i < count && fits; ++i) {
    const bool is_end = i == 0 || i + 1 == count;
    fits = matrices[i].dim() == 2 || (is_end && matrices[i].dim() == 1);
    fits = fits && matrices[i].scalar_type() == matrices[0].scalar_type() &&
           matrices[i].device() == matrices[0].device();
  }
  if (!fits || std::ranges::none_of(matrices, is_symbolic)) {
    const c10::Device device = count == 0 ? c10::Device(runtime::kHost) : matrices[0].device();
    return decompose(op, device, stack);
  }
  const bool is_row = matrices.front().dim() == 1, is_column = matrices.back().dim() == 1;
  if (is_row) matrices.front() = matrices.front().unsqueeze(0);
  if (is_column) matrices.back() = matrices.back().unsqueeze(-1);
  std::vector<double> sizes = {estimate(*session, matrices[0].sym_size(0))};
  for (const at::Tensor& matrix : matrices) sizes.push_back(estimate(*session, matrix.sym_size(1)));
  at::Tensor result = product(matrices, cheapest_cuts(sizes), 0, count - 1);
  c10::SymDimVector shape;
  if (!is_row) shape.push_back(result.sym_size(0));
  if (!is_column) shape.push_back(result.sym_size(1));
  if (is_row || is_column) result = result.view_symint(shape);
  torch::jit::drop(*stack, 1);
  stack->emplace_back(result);
}

// With a dimension of one element behind each of its own (`behind`) or before it, and with as many pairs of
// dimensions as asked for.
at::Tensor spread(at::Tensor tensor, int64_t pairs, bool behind) {
  while (tensor.dim() < pairs) tensor = tensor.unsqueeze(0);
  for (int64_t d = 0; d < pairs; ++d) tensor = tensor.unsqueeze(2 * d + (behind ? 1 : 0));
  return tensor;
}

void kron(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::Tensor self = torch::jit::peek(*stack, 0, 2).toTensor();
  const at::Tensor other = torch::jit::peek(*stack, 1, 2).toTensor();
  if (!is_symbolic(self) && !is_symbolic(other)) return decompose(op, self.device(), stack);
  const int64_t pairs = std::max(self.dim(), other.dim());
  const at::Tensor left = spread(self, pairs, true), right = spread(other, pairs, false);
  c10::SymDimVector sizes;
  for (int64_t d = 0; d < pairs; ++d) sizes.push_back(left.sym_size(2 * d) * right.sym_size(2 * d + 1));
  torch::jit::drop(*stack, 2);
  stack->emplace_back(at::_unsafe_view_symint(left * right, sizes));
}

}  // namespace

void add_matrix_chains(torch::Library& library) {
  library.impl("kron", torch::CppFunction::makeFromBoxedFunction<&kron>());
  library.impl("linalg_multi_dot", torch::CppFunction::makeFromBoxedFunction<&multi_dot>());
}

}  // namespace oxy::trace
