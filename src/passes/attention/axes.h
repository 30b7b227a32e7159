// Following the axes of attention (batches, heads, rows, keys, widths) through views and copies.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "ops/core/composer.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {

// For each dimension of a tensor, the axes that it runs through, the outermost first. An axis of size 1 is in
// no dimension.
using Placement = std::vector<std::vector<size_t>>;

// Axes by number.
class Axes {
 public:
  explicit Axes(std::vector<Expr> sizes) : sizes_(std::move(sizes)) {}

  const Expr& size(size_t axis) const { return sizes_.at(axis); }
  bool is_one(size_t axis) const { return size(axis) == Expr(1); }
  // The placement with one dimension for each of these lists, without axes of size 1.
  Placement placed(Placement dimensions) const;
  // In a tensor of other sizes with the same elements in the same order. Nothing: a dimension would be a part
  // of an axis.
  std::optional<Placement> reshaped(const Placement& placement, const std::vector<Expr>& sizes) const;
  // In the result of a view, permutation, copy or conversion, from that in its first argument, and the other
  // way round. Nothing for other nodes.
  std::optional<Placement> behind(const Graph& graph, const Node& node, const Placement& argument) const;
  std::optional<Placement> before(const Graph& graph, const Node& node, const Placement& result) const;

 private:
  std::vector<Expr> sizes_;
};

// A view of a tensor with this placement that has one dimension for each of `axes`. Axes that the tensor does
// not run through have a dimension of size 1. Unsupported where the tensor runs through others.
ValueRef arranged(ops::Composer& composer, const Axes& axes, ValueRef tensor, const Placement& placement,
                  const std::vector<size_t>& order);

}  // namespace oxy::passes
