#include "passes/products/vector_products.h"

#include "aten/operators.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {
namespace {

constexpr int64_t kFewElements = 32;  // of a sum: a kernel for these is no faster

struct VectorProduct {
  ValueId bias = graph::kNoValue;
  ValueId row, matrix;  // [1, inner], [inner, columns]
};

// Nothing where the node is another one.
std::optional<VectorProduct> vector_product(const Site& site) {
  const Node& node = site.node;
  const bool adds = node.op == op::addmm();
  if (node.op != op::mm() && !adds) return std::nullopt;
  VectorProduct product{.row = tensor_argument(node, adds ? 1 : 0),
                        .matrix = tensor_argument(node, adds ? 2 : 1)};
  if (adds) {
    product.bias = tensor_argument(node, 0);
    if (number_argument(node, 3) != 1.0 || number_argument(node, 4) != 1.0 ||
        site.graph.meta(product.bias).dtype != site.meta().dtype)
      return std::nullopt;
  }
  const TensorMeta& row = site.graph.meta(product.row);
  const TensorMeta& matrix = site.graph.meta(product.matrix);
  const Expr& inner = matrix.sizes[0];
  const bool fits = row.sizes[0] == Expr(1) && matrix.sizes[1] != Expr(1) && inner.is_constant() &&
                    inner.constant() >= kFewElements && matrix.strides[0] == Expr(1) &&
                    matrix.strides[1] == inner && is_contiguous(site.meta());
  return fits ? std::optional(product) : std::nullopt;
}

}  // namespace

graph::Graph generate_vector_products(const graph::Graph& source, const GeneratesVectorProducts& generates) {
  if (!generates) return source;
  return rewrite(source, [&](const Site& site) -> std::optional<std::vector<ValueId>> {
    const auto product = vector_product(site);
    if (!product || !generates(site.meta().dtype)) return std::nullopt;
    const TensorMeta& result = site.meta();
    const ValueId weight = transposed(site, product->matrix);
    const TensorMeta contiguous = contiguous_meta(result.dtype, result.device, result.sizes);
    const ValueId row =
        site.emit(op::vector_product(), {ValueRef{product->row}, ValueRef{weight}}, contiguous);
    if (product->bias == graph::kNoValue) return {{row}};
    return {{site.emit(op::add(), {ValueRef{row}, ValueRef{product->bias}, Expr(1)}, contiguous)}};
  });
}

}  // namespace oxy::passes
