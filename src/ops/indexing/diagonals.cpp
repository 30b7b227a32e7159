// Operators that put a tensor on a diagonal of another one, or of zeros. Eager's kernels copy all of the
// storage in which the other one lies, which in a plan is the whole arena.
#include <functional>
#include <utility>
#include <vector>

#include "ops/indexing/lowerings.h"
#include "ops/indexing/parts.h"

namespace oxy::ops::lowerings {

using loop::compute_dtype;

namespace {

// The diagonal of two dimensions of a result. Its elements are the last dimension of what is put there,
// behind the other dimensions of the result.
struct Diagonal {
  size_t row, column;  // dimensions
  int64_t offset;      // the column of an element, less its row

  Value has(BodyBuilder& b, const Index& index) const {
    return b.index(index[column] - index[row]) == b.index(Expr(offset));
  }

  // The index of an element of the diagonal in what is put there.
  Index place(const Index& index) const {
    Index place;
    for (size_t d = 0; d < index.size(); ++d)
      if (d != row && d != column) place.push_back(index[d]);
    place.push_back(offset < 0 ? index[column] : index[row]);
    return place;
  }
};

// From the arguments offset, dim1 and dim2, that begin with number `first`.
Diagonal diagonal_at(LoweringContext& context, const Node& node, size_t first) {
  const auto rank = static_cast<int64_t>(context.output_meta(node).sizes.size());
  return {static_cast<size_t>(dim(node, first + 1, rank)), static_cast<size_t>(dim(node, first + 2, rank)),
          integer(node, first)};
}

// `part` on the diagonal, and `outside` elsewhere.
void put_on_diagonal(LoweringContext& context, const Node& node, const Diagonal& diagonal, const Tensor& part,
                     std::vector<Tensor> read, std::function<Value(BodyBuilder&, const Index&)> outside) {
  const TensorMeta& out = context.output_meta(node);
  read.push_back(part);
  context.set(node.outputs[0], context.generate(
                                   std::move(read), out.sizes, out.dtype,
                                   [diagonal, part, dtype = out.dtype, outside = std::move(outside)](
                                       BodyBuilder& b, const Index& index) {
                                     return b.masked(
                                         diagonal.has(b, index),
                                         [&] { return element_as(b, part, diagonal.place(index), dtype); },
                                         outside(b, index));
                                   },
                                   4));
}

Value zero(BodyBuilder& b, DType dtype) {
  return b.constant(loop::Scalar{}, compute_dtype(dtype));
}

}  // namespace

void diagonal_scatter(LoweringContext& context, const Node& node) {
  Tensor self = context.operand(node, 0);
  put_on_diagonal(
      context, node, diagonal_at(context, node, 2), context.operand(node, 1), {self},
      [self](BodyBuilder& b, const Index& index) { return LoweringContext::element(b, self, index); });
}

void diagonal_backward(LoweringContext& context, const Node& node) {
  Tensor part = context.operand(node, 0);
  put_on_diagonal(context, node, diagonal_at(context, node, 2), part, {},
                  [dtype = part.dtype](BodyBuilder& b, const Index&) { return zero(b, dtype); });
}

void diag_embed(LoweringContext& context, const Node& node) {
  Tensor part = context.operand(node, 0);
  put_on_diagonal(context, node, diagonal_at(context, node, 1), part, {},
                  [dtype = part.dtype](BodyBuilder& b, const Index&) { return zero(b, dtype); });
}

}  // namespace oxy::ops::lowerings
