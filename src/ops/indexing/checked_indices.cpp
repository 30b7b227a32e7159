#include "ops/indexing/checked_indices.h"

#include <cstddef>

#include "ops/core/element_rules.h"
#include "ops/core/registry.h"

namespace oxy::ops {
namespace {

using graph::Node;
using graph::ValueId;

ValueId tensor_at(const Node& node, size_t place) {
  const auto* const ref = std::get_if<graph::ValueRef>(&node.args.at(place));
  return ref == nullptr ? graph::kNoValue : ref->id;
}

// The dimension that an argument names, if there is one.
std::optional<size_t> dimension_at(const Node& node, size_t place, int64_t rank) {
  const auto* const named = std::get_if<Expr>(&node.args.at(place));
  if (named == nullptr || !named->is_constant()) return std::nullopt;
  const int64_t dimension = named->constant() < 0 ? named->constant() + rank : named->constant();
  if (dimension < 0 || dimension >= rank) return std::nullopt;
  return static_cast<size_t>(dimension);
}

// Nothing beside a mask: how much there is to index is known behind the call.
std::vector<CheckedIndex> of_lists(const graph::Graph& graph, const Node& node, const TensorMeta& self) {
  std::vector<CheckedIndex> result;
  const auto& indices = std::get<graph::ValueList>(node.args.at(1)).ids;
  Expr elements = 1;
  for (size_t d = 0; d < indices.size() && d < self.sizes.size(); ++d) {
    if (indices[d] == graph::kNoValue) continue;
    const TensorMeta& index = graph.meta(indices[d]);
    if (is_mask(index.dtype)) return {};
    elements = elements * element_count(index);
    result.push_back({.index = indices[d],
                      .size = self.sizes[d],
                      .dimension = static_cast<int64_t>(d),
                      .counts_back = true});
  }
  for (CheckedIndex& checked : result) checked.elements = elements;
  return result;
}

std::vector<CheckedIndex> along(const Node& node, const TensorMeta& self, bool counts_back) {
  const ValueId index = tensor_at(node, 2);
  if (index == graph::kNoValue) return {};
  if (self.sizes.empty()) return {{.index = index, .size = 1, .counts_back = counts_back}};
  const std::optional<size_t> dimension = dimension_at(node, 1, self.rank());
  if (!dimension) return {};
  return {{.index = index,
           .size = self.sizes[*dimension],
           .dimension = static_cast<int64_t>(*dimension),
           .counts_back = counts_back}};
}

std::vector<CheckedIndex> of_classes(const Node& node, const TensorMeta& self) {
  constexpr size_t kTarget = 1, kIgnored = 4;
  const size_t dimension = self.rank() == 1 ? 0 : 1;
  const ValueId target = tensor_at(node, kTarget);
  const auto* const ignored = std::get_if<Expr>(&node.args.at(kIgnored));
  if (target == graph::kNoValue || ignored == nullptr || dimension >= self.sizes.size()) return {};
  return {{.index = target,
           .size = self.sizes[dimension],
           .dimension = static_cast<int64_t>(dimension),
           .ignored = *ignored}};
}

std::vector<CheckedIndex> all_of(const graph::Graph& graph, const Node& node, Indices kind) {
  const ValueId first = tensor_at(node, 0);
  if (first == graph::kNoValue) return {};
  const TensorMeta& self = graph.meta(first);
  switch (kind) {
    case Indices::None:
      return {};
    case Indices::Lists:
      return of_lists(graph, node, self);
    case Indices::Along:
    case Indices::AlongBack:
      return along(node, self, kind == Indices::AlongBack);
    case Indices::Flat:
      return {{.index = tensor_at(node, 1), .size = element_count(self), .counts_back = true}};
    case Indices::Rows:
      return {{.index = tensor_at(node, 1), .size = self.sizes.at(0)}};
    case Indices::Classes:
      return of_classes(node, self);
  }
  return {};
}

}  // namespace

std::vector<CheckedIndex> checked_indices(const graph::Graph& graph, const Node& node) {
  const Indices kind = entry_of(*node.op).indices;
  if (kind == Indices::None || !raises_on_data(graph, node)) return {};
  std::vector<CheckedIndex> result = all_of(graph, node, kind);
  for (CheckedIndex& checked : result)
    checked.elements = checked.elements * element_count(graph.meta(node.outputs.at(0)));
  return result;
}

}  // namespace oxy::ops
