#include "ops/views/inverses.h"

#include <numeric>
#include <utility>

#include "aten/operators.h"

namespace oxy::ops::inverses {

namespace {

using graph::ValueRef;

graph::ValueId scatter_piece(ViewWrite& w, const Expr& start, const Expr& length, size_t dim) {
  return w.add(op::slice_scatter(), {ValueRef{w.base}, ValueRef{w.written}, Expr(w.dimension(dim)), start,
                                     start + length, Expr(1)});
}

}  // namespace

graph::ValueId slice(ViewWrite& w) {
  return w.add(op::slice_scatter(),
               {ValueRef{w.base}, ValueRef{w.written}, w.arg(1), w.arg(2), w.arg(3), w.arg(4)});
}

graph::ValueId select(ViewWrite& w) {
  return w.add(op::select_scatter(), {ValueRef{w.base}, ValueRef{w.written}, w.arg(1), w.arg(2)});
}

graph::ValueId unbind(ViewWrite& w) {
  return w.add(op::select_scatter(),
               {ValueRef{w.base}, ValueRef{w.written}, w.arg(1), Expr(static_cast<int64_t>(w.output))});
}

graph::ValueId split(ViewWrite& w) {
  const auto dim = static_cast<size_t>(w.dimension(2));
  const Expr start = std::get<Expr>(w.arg(1)) * Expr(static_cast<int64_t>(w.output));
  return scatter_piece(w, start, w.recorded.meta(w.view.outputs[w.output]).sizes.at(dim), 2);
}

graph::ValueId split_with_sizes(ViewWrite& w) {
  const auto& sizes = std::get<std::vector<Expr>>(w.arg(1));
  const auto at = sizes.begin() + static_cast<std::ptrdiff_t>(w.output);
  return scatter_piece(w, std::accumulate(sizes.begin(), at, Expr(0)), *at, 2);
}

graph::ValueId diagonal(ViewWrite& w) {
  return w.add(op::diagonal_scatter(), {ValueRef{w.base}, ValueRef{w.written}, w.arg(1), w.arg(2), w.arg(3)});
}

graph::ValueId as_strided(ViewWrite& w) {
  // Offsets count from the start of the storage: the base's new value begins where `graph` says, not where
  // the recorded one did.
  const Expr offset = w.recorded.meta(w.view.outputs[0]).storage_offset - w.base_meta().storage_offset +
                      w.graph.meta(w.base).storage_offset;
  return w.add(op::as_strided_scatter(), {ValueRef{w.base}, ValueRef{w.written}, w.arg(1), w.arg(2), offset});
}

graph::ValueId view(ViewWrite& w) {
  return w.add(op::view(), {ValueRef{w.written}, w.base_meta().sizes});
}

graph::ValueId transpose(ViewWrite& w) {
  return w.add(op::transpose(), {ValueRef{w.written}, w.arg(1), w.arg(2)});
}

graph::ValueId t(ViewWrite& w) {
  if (w.base_meta().rank() < 2) return view(w);
  return w.add(op::transpose(), {ValueRef{w.written}, Expr(0), Expr(1)});
}

graph::ValueId permute(ViewWrite& w) {
  const auto& dims = std::get<std::vector<Expr>>(w.arg(1));
  const auto rank = static_cast<int64_t>(dims.size());
  std::vector<Expr> inverse(dims.size());
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t dim = dims[static_cast<size_t>(i)].constant();
    inverse.at(static_cast<size_t>(dim < 0 ? dim + rank : dim)) = i;
  }
  return w.add(op::permute(), {ValueRef{w.written}, std::move(inverse)});
}

graph::ValueId view_as_real(ViewWrite& w) {
  return w.add(op::view_as_complex(), {ValueRef{w.written}});
}

graph::ValueId view_as_complex(ViewWrite& w) {
  return w.add(op::view_as_real(), {ValueRef{w.written}});
}

graph::ValueId view_dtype(ViewWrite& w) {
  return w.add(op::view_dtype(), {ValueRef{w.written}, w.base_meta().dtype});
}

}  // namespace oxy::ops::inverses
