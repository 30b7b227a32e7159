#include "passes/attention/written_attention.h"

#include <algorithm>
#include <utility>

#include "aten/operators.h"

namespace oxy::passes {
namespace {

constexpr int kMostNodes = 64;  // looked at between a softmax and the product of its scores

// A number, or one that a tensor repeats.
std::optional<double> number_of(const Graph& graph, const Node& node, size_t index) {
  if (const auto number = number_argument(node, index)) return number;
  const Node* const maker = producer(graph, tensor_argument(node, index));
  return maker != nullptr && maker->op == op::full() ? number_argument(*maker, 1) : std::nullopt;
}

// The same, if its type rounds it no more than the scores need.
std::optional<double> factor_of(const Graph& graph, const Node& node, size_t index) {
  const ValueId tensor = tensor_argument(node, index);
  const bool is_exact = tensor == graph::kNoValue || graph.meta(tensor).dtype == DType::Float32 ||
                        graph.meta(tensor).dtype == DType::Float64;
  return is_exact ? number_of(graph, node, index) : std::nullopt;
}

bool converts_floats(const Graph& graph, const Node& node) {
  if (node.op != op::to_copy()) return false;
  const TensorMeta& from = graph.meta(tensor_argument(node, 0));
  const TensorMeta& to = graph.meta(node.outputs.front());
  return is_floating(from.dtype) && is_floating(to.dtype) && from.device == to.device;
}

bool moves(const Graph& graph, const Node& node) {
  return node.op == op::view() || node.op == op::unsafe_view() || node.op == op::permute() ||
         node.op == op::clone() || converts_floats(graph, node);
}

// The place of an argument by whose factor the other one is multiplied, and the factor.
std::optional<std::pair<size_t, double>> scaled_argument(const Graph& graph, const Node& node) {
  if (node.op == op::div() || node.op == op::div_by_number()) {
    const auto divisor = factor_of(graph, node, 1);
    if (divisor) return std::pair(size_t{0}, 1 / *divisor);
  } else if (node.op == op::mul() || node.op == op::mul_by_number()) {
    for (const size_t other : {1, 0})
      if (const auto factor = factor_of(graph, node, other)) return std::pair(1 - other, *factor);
  }
  return std::nullopt;
}

// A way of scores through a node.
struct Passage {
  const Node* node = nullptr;
  size_t argument = 0;
  std::optional<ScoreStep> step;  // none: elements only move
};

ScoreStep fill(double number, ValueId condition, bool where) {
  return {.kind = ScoreStep::Kind::Fill, .number = number, .tensor = condition, .where = where};
}

ScoreStep addition(ValueId tensor, double factor) {
  return {.kind = ScoreStep::Kind::Add, .number = factor, .tensor = tensor};
}

// Of a sum either operand may be the scores.
std::vector<Passage> passages(const Graph& graph, const Node& node) {
  if (moves(graph, node)) return {{&node, 0, std::nullopt}};
  std::vector<Passage> found;
  if (const auto scaled = scaled_argument(graph, node)) {
    found.push_back({&node, scaled->first, ScoreStep{.number = scaled->second}});
  } else if (node.op == op::add() || node.op == op::sub()) {
    const auto alpha = number_argument(node, 2);
    const ValueId first = tensor_argument(node, 0), second = tensor_argument(node, 1);
    if (!alpha || first == graph::kNoValue || second == graph::kNoValue) return {};
    found.push_back({&node, 0, addition(second, node.op == op::add() ? *alpha : -*alpha)});
    if (node.op == op::add() && *alpha == 1) found.push_back({&node, 1, addition(first, 1)});
  } else if (node.op == op::masked_fill() || node.op == op::masked_fill_with_tensor()) {
    if (const auto number = number_of(graph, node, 2))
      found.push_back({&node, 0, fill(*number, tensor_argument(node, 1), true)});
  } else if (node.op == op::where()) {
    for (const bool is_first : {true, false})
      if (const auto number = number_of(graph, node, is_first ? 1 : 2))
        found.push_back({&node, is_first ? size_t{2} : 1, fill(*number, tensor_argument(node, 0), is_first)});
  }
  return found;
}

// The way of the scores from a product, which it returns, to `value`, which one node reads: the last passage
// first.
const Node* find_product(const Graph& graph, const IdVector<ValueId, NodeId>& readers, ValueId value,
                         std::vector<Passage>& way, int& nodes) {
  const Node* const maker = producer(graph, value);
  if (maker == nullptr || readers[value] == graph::kNoNode || ++nodes > kMostNodes) return nullptr;
  if (maker->op == op::bmm()) return maker;
  for (Passage& passage : passages(graph, *maker)) {
    const ValueId scores = tensor_argument(*maker, passage.argument);
    if (scores == graph::kNoValue) continue;
    if (passage.step && graph.meta(scores).sizes != graph.meta(value).sizes) continue;
    way.push_back(std::move(passage));
    if (const Node* const product = find_product(graph, readers, scores, way, nodes)) return product;
    way.pop_back();
  }
  return nullptr;
}

// Batches and heads are told apart where scores have a dimension of each.
std::optional<Axes> axes_of(const Graph& graph, const Node& product, const std::vector<Passage>& way) {
  const TensorMeta& query = graph.meta(tensor_argument(product, 0));
  const TensorMeta& all = graph.meta(product.outputs.front());
  std::vector<Expr> batch;
  const auto look_at = [&](const TensorMeta& scores) {
    const size_t rank = scores.sizes.size();
    if (rank < 3 || scores.sizes[rank - 2] != all.sizes[1] || scores.sizes[rank - 1] != all.sizes[2]) return;
    std::vector<Expr> sizes(scores.sizes.begin(), scores.sizes.end() - 2);
    std::erase(sizes, Expr(1));
    if (sizes.size() > batch.size()) batch = std::move(sizes);
  };
  look_at(all);
  for (const Passage& passage : way) look_at(graph.meta(passage.node->outputs.front()));
  if (batch.size() > 2 || sym::product(batch) != all.sizes[0]) return std::nullopt;
  if (all.sizes[2] == Expr(1) || query.sizes[2] == Expr(1)) return std::nullopt;
  return Axes({batch.size() == 2 ? batch.front() : Expr(1), batch.empty() ? Expr(1) : batch.back(),
               all.sizes[1], all.sizes[2], query.sizes[2]});
}

// Steps with their placements, and the placement of what the softmax is given.
std::optional<Placement> follow(const Graph& graph, const Axes& axes, const std::vector<Passage>& way,
                                std::vector<ScoreStep>& steps) {
  std::optional<Placement> placement = axes.placed({{kBatches, kHeads}, {kRows}, {kKeys}});
  for (auto passage = way.rbegin(); passage != way.rend(); ++passage) {
    if (!passage->step) {
      placement = axes.behind(graph, *passage->node, *placement);
      if (!placement) return std::nullopt;
      continue;
    }
    steps.push_back(*passage->step);
    steps.back().scores = tensor_argument(*passage->node, passage->argument);
    steps.back().placement = *placement;
  }
  return placement;
}

// The product behind a softmax, if nothing else reads probabilities. What moves them on the way is appended.
NodeId product_behind(const Graph& graph, const IdVector<ValueId, NodeId>& readers, ValueId probabilities,
                      std::vector<const Node*>& way) {
  for (;;) {
    const NodeId reader = readers[probabilities];
    if (reader == graph::kNoNode) return graph::kNoNode;
    const Node& node = graph.nodes[reader];
    if (node.op == op::bmm()) return tensor_argument(node, 0) == probabilities ? reader : graph::kNoNode;
    if (!moves(graph, node)) return graph::kNoNode;
    way.push_back(&node);
    probabilities = node.outputs.front();
  }
}

// Where an operand of a product comes from: what it was before it was copied, widened from `dtype` or
// multiplied by a number, if that is allowed. Nothing: it is of another type.
std::optional<AttentionOperand> source_of(const Graph& graph, const Axes& axes, AttentionOperand operand,
                                          DType dtype, bool may_be_scaled) {
  AttentionOperand source = operand;
  while (const Node* const maker = producer(graph, operand.tensor)) {
    if (const auto scaled = scaled_argument(graph, *maker); scaled && may_be_scaled) {
      const ValueId tensor = tensor_argument(*maker, scaled->first);
      if (tensor == graph::kNoValue || graph.meta(tensor).sizes != graph.meta(operand.tensor).sizes ||
          graph.meta(tensor).dtype != graph.meta(operand.tensor).dtype)
        break;
      operand.tensor = tensor;
      operand.scale *= scaled->second;
    } else if (moves(graph, *maker)) {
      const ValueId tensor = tensor_argument(*maker, 0);
      const bool is_narrowed =
          item_size(graph.meta(tensor).dtype) >= item_size(graph.meta(operand.tensor).dtype);
      if (maker->op == op::to_copy() && (is_narrowed || graph.meta(operand.tensor).dtype == dtype)) break;
      const auto placement = axes.before(graph, *maker, operand.placement);
      if (!placement) break;
      operand.tensor = tensor;
      operand.placement = *placement;
    } else {
      break;
    }
    const bool is_view = maker->op == op::view() || maker->op == op::permute();
    if (!is_view && graph.meta(operand.tensor).dtype == dtype) source = operand;
  }
  return graph.meta(source.tensor).dtype == dtype ? std::optional(std::move(source)) : std::nullopt;
}

}  // namespace

std::optional<WrittenAttention> written_attention(const Graph& graph,
                                                  const IdVector<ValueId, NodeId>& readers,
                                                  const Node& softmax) {
  const ValueId scores = tensor_argument(softmax, 0), probabilities = softmax.outputs.front();
  const int64_t rank = graph.meta(scores).rank();
  const auto dimension = integer_argument(softmax, 1);
  if (rank < 3 || !dimension || (*dimension != rank - 1 && *dimension != -1)) return std::nullopt;
  std::vector<const Node*> way_back;
  const NodeId result = product_behind(graph, readers, probabilities, way_back);
  if (result == graph::kNoNode) return std::nullopt;
  std::vector<Passage> way;
  int nodes = 0;
  const Node* const product = find_product(graph, readers, scores, way, nodes);
  if (product == nullptr) return std::nullopt;

  const ValueId values = tensor_argument(graph.nodes[result], 1);
  const std::optional<Axes> axes = axes_of(graph, *product, way);
  if (!axes || graph.meta(values).sizes[2] != axes->size(kWidth)) return std::nullopt;
  const auto placed = [&](size_t row, size_t column) {
    return axes->placed({{kBatches, kHeads}, {row}, {column}});
  };
  std::vector<ScoreStep> steps;
  std::optional<Placement> placement = follow(graph, *axes, way, steps);
  if (!placement || placement->back() != std::vector<size_t>{kKeys}) return std::nullopt;
  for (const Node* const node : way_back)
    if (placement) placement = axes->behind(graph, *node, *placement);
  if (placement != placed(kRows, kKeys)) return std::nullopt;

  const auto operand = [&](const Node& node, size_t argument, size_t row, size_t column) {
    return source_of(graph, *axes, {tensor_argument(node, argument), placed(row, column)},
                     graph.meta(values).dtype, &node == product);
  };
  const auto query = operand(*product, 0, kRows, kWidth);
  const auto keys = operand(*product, 1, kWidth, kKeys);
  const auto value = operand(graph.nodes[result], 1, kKeys, kWidth);
  if (!query || !keys || !value) return std::nullopt;
  return WrittenAttention{*axes, *query, *keys, *value, std::move(steps), result};
}

}  // namespace oxy::passes
