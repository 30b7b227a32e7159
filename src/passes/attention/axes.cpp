#include "passes/attention/axes.h"

#include <algorithm>
#include <utility>

#include "aten/operators.h"
#include "base/error.h"

namespace oxy::passes {
namespace {

// The source dimension of each dimension of a permutation.
std::optional<std::vector<size_t>> order_of(const Node& node) {
  const auto* const given = std::get_if<std::vector<Expr>>(&node.args.at(1));
  if (given == nullptr) return std::nullopt;
  std::vector<size_t> order;
  for (const Expr& dimension : *given) {
    const auto number = dimension.as_constant();
    if (!number) return std::nullopt;
    const auto rank = static_cast<int64_t>(given->size());
    order.push_back(static_cast<size_t>(*number < 0 ? *number + rank : *number));
  }
  return order;
}

std::vector<size_t> flat(const Placement& placement) {
  std::vector<size_t> axes;
  for (const std::vector<size_t>& dimension : placement)
    axes.insert(axes.end(), dimension.begin(), dimension.end());
  return axes;
}

bool keeps_order(const Node& node) {
  return node.op == op::view() || node.op == op::unsafe_view() || node.op == op::clone() ||
         node.op == op::to_copy();
}

}  // namespace

Placement Axes::placed(Placement dimensions) const {
  for (std::vector<size_t>& dimension : dimensions)
    std::erase_if(dimension, [this](size_t axis) { return is_one(axis); });
  return dimensions;
}

std::optional<Placement> Axes::reshaped(const Placement& placement, const std::vector<Expr>& sizes) const {
  const std::vector<size_t> axes = flat(placement);
  Placement result;
  size_t next = 0;
  for (const Expr& wanted : sizes) {
    std::vector<size_t> dimension;
    for (Expr product = 1; !(product == wanted); product = product * size(dimension.back())) {
      if (next == axes.size()) return std::nullopt;
      dimension.push_back(axes[next++]);
    }
    result.push_back(std::move(dimension));
  }
  return next == axes.size() ? std::optional(std::move(result)) : std::nullopt;
}

std::optional<Placement> Axes::behind(const Graph& graph, const Node& node, const Placement& argument) const {
  if (keeps_order(node)) return reshaped(argument, graph.meta(node.outputs.front()).sizes);
  if (node.op != op::permute()) return std::nullopt;
  const auto order = order_of(node);
  if (!order || order->size() != argument.size()) return std::nullopt;
  Placement result;
  for (const size_t dimension : *order) result.push_back(argument.at(dimension));
  return result;
}

std::optional<Placement> Axes::before(const Graph& graph, const Node& node, const Placement& result) const {
  if (keeps_order(node)) return reshaped(result, graph.meta(tensor_argument(node, 0)).sizes);
  if (node.op != op::permute()) return std::nullopt;
  const auto order = order_of(node);
  if (!order || order->size() != result.size()) return std::nullopt;
  Placement argument(result.size());
  for (size_t i = 0; i < result.size(); ++i) argument.at(order->at(i)) = result[i];
  return argument;
}

ValueRef arranged(ops::Composer& composer, const Axes& axes, ValueRef tensor, const Placement& placement,
                  const std::vector<size_t>& order) {
  const auto viewed = [&](const std::vector<Expr>& sizes) {
    if (composer.meta(tensor).sizes != sizes) tensor = composer.call(op::view(), {tensor, sizes});
  };
  const std::vector<size_t> present = flat(placement);
  std::vector<Expr> sizes, places, all;
  for (const size_t axis : present) sizes.push_back(axes.size(axis));
  for (const size_t axis : order) {
    const auto found = std::ranges::find(present, axis);
    all.push_back(found == present.end() ? Expr(1) : axes.size(axis));
    if (found != present.end()) places.emplace_back(static_cast<int64_t>(found - present.begin()));
  }
  if (places.size() != present.size()) throw Unsupported("dimensions of other axes");
  const auto is_less = [](const Expr& a, const Expr& b) { return a.constant() < b.constant(); };
  if (!std::ranges::is_sorted(places, is_less)) {
    viewed(sizes);
    tensor = composer.call(op::permute(), {tensor, std::move(places)});
  }
  viewed(all);
  return tensor;
}

}  // namespace oxy::passes
