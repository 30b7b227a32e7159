#include "passes/weights/convolution_to_linear.h"

#include <algorithm>

#include "aten/operators.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {
namespace {

bool is_contiguous_in_memory(const TensorMeta& meta) {
  return same_memory_order(meta, contiguous_meta(meta.dtype, meta.device, meta.sizes));
}

// All sizes from the third on are 1.
bool has_one_position(const TensorMeta& meta) {
  return meta.rank() > 2 &&
         std::all_of(meta.sizes.begin() + 2, meta.sizes.end(), [](const Expr& e) { return e == Expr(1); });
}

bool is_linear(const Site& site) {
  if (site.node.op != op::convolution() || std::get<bool>(site.node.args[6])) return false;
  const ValueId x = tensor_argument(site.node, 0), weight = tensor_argument(site.node, 1);
  const TensorMeta &input = site.graph.meta(x), &kernel = site.graph.meta(weight);
  // Of images without channels PyTorch returns as many channels: none.
  if (!sym::known_less(0, input.sizes.at(1))) return false;
  return is_floating(input.dtype) && integer_argument(site.node, 8) == 1 && has_one_position(input) &&
         has_one_position(kernel) && has_one_position(site.meta()) && is_contiguous_in_memory(input) &&
         is_contiguous_in_memory(kernel) && is_contiguous_in_memory(site.meta());
}

ValueId as_matrix(const Site& site, ValueId x) {
  const TensorMeta& meta = site.graph.meta(x);
  TensorMeta matrix = contiguous_meta(meta.dtype, meta.device, {meta.sizes[0], meta.sizes[1]});
  return site.emit(op::view(), {ValueRef{x}, matrix.sizes}, matrix);
}

}  // namespace

graph::Graph convolution_to_linear(const graph::Graph& source) {
  return rewrite(source, [](const Site& site) -> std::optional<std::vector<ValueId>> {
    if (!is_linear(site)) return std::nullopt;
    const ValueId bias = tensor_argument(site.node, 2);
    const ValueId x = as_matrix(site, tensor_argument(site.node, 0));
    const ValueId by_row = as_matrix(site, tensor_argument(site.node, 1));
    const ValueId by_column = transposed(site, by_row);  // [out, in] -> [in, out]
    const TensorMeta& out = site.meta();
    const TensorMeta matrix = contiguous_meta(out.dtype, out.device, {out.sizes[0], out.sizes[1]});
    const ValueId product =
        bias == graph::kNoValue
            ? site.emit(op::mm(), {ValueRef{x}, ValueRef{by_column}}, matrix)
            : site.emit(op::addmm(), {ValueRef{bias}, ValueRef{x}, ValueRef{by_column}, Expr(1), Expr(1)},
                        matrix);
    return {{site.emit(op::view(), {ValueRef{product}, out.sizes}, out)}};
  });
}

}  // namespace oxy::passes
