#include "passes/simplification/simplify_arithmetic.h"

#include <algorithm>
#include <cmath>

#include "aten/operators.h"
#include "ops/core/registry.h"
#include "passes/rewriting/rewrite.h"
#include "passes/rewriting/storage_reads.h"

namespace oxy::passes {
namespace {

using Replacement = std::optional<std::vector<ValueId>>;

// Argument `index` in the place of the only output, if it is a tensor with the output's metadata.
Replacement argument(const Site& site, size_t index) {
  ValueId x = tensor_argument(site.node, index);
  if (x == graph::kNoValue) return std::nullopt;
  const TensorMeta& from = site.graph.meta(x);
  const TensorMeta& to = site.meta();
  bool same = from.dtype == to.dtype && from.device == to.device && from.sizes == to.sizes &&
              from.strides == to.strides;
  if (!same) return std::nullopt;
  return std::vector<ValueId>{x};
}

bool is_number(const Site& site, size_t index, double wanted) {
  return number_argument(site.node, index) == wanted;
}

Replacement simplify_sum(const Site& site, bool subtract) {
  auto added = number_argument(site.node, 1);
  auto alpha = number_argument(site.node, 2);
  if (!added || !alpha || *added != 0.0 || !std::isfinite(*alpha)) {
    // 0 + x of integers
    bool zero_first = !subtract && is_number(site, 0, 0.0) && is_number(site, 2, 1.0);
    return zero_first && !is_floating(site.meta().dtype) && !is_complex(site.meta().dtype) ? argument(site, 1)
                                                                                           : std::nullopt;
  }
  double term = (subtract ? -*added : *added) * *alpha;
  bool exact = is_integral(site.meta().dtype) || std::signbit(term);
  return exact ? argument(site, 0) : std::nullopt;
}

Replacement simplify_mul(const Site& site) {
  if (is_number(site, 1, 1.0)) return argument(site, 0);
  if (is_number(site, 0, 1.0)) return argument(site, 1);
  return std::nullopt;
}

Replacement one_on_the_right(const Site& site) {
  return is_number(site, 1, 1.0) ? argument(site, 0) : std::nullopt;
}

Replacement empty_padding(const Site& site) {
  const auto* pad = std::get_if<std::vector<Expr>>(&site.node.args[1]);
  bool nothing =
      pad != nullptr && std::all_of(pad->begin(), pad->end(), [](const Expr& e) { return e == Expr(0); });
  return nothing ? argument(site, 0) : std::nullopt;
}

// An operator that acts only where a flag is set. Dropout also gives the mask of what it kept.
Replacement without_action(const Site& site, size_t flag) {
  const bool* acts = std::get_if<bool>(&site.node.args[flag]);
  Replacement kept = acts != nullptr && !*acts ? argument(site, 0) : std::nullopt;
  if (!kept || site.node.outputs.size() == 1) return kept;
  if (site.node.op != op::native_dropout()) return std::nullopt;
  if (site.node.outputs[1] == graph::kNoValue) return std::vector<ValueId>{kept->front(), graph::kNoValue};
  TensorMeta mask = site.meta(1);
  kept->push_back(
      site.emit(op::full(), {mask.sizes, true, mask.dtype, graph::None{}, mask.device, graph::None{}}, mask));
  return kept;
}

Replacement idempotent(const Site& site) {
  const Node* before = producer(site.graph, tensor_argument(site.node, 0));
  return before != nullptr && before->op == site.node.op ? argument(site, 0) : std::nullopt;
}

bool is_zeros(const Graph& graph, ValueId id) {
  const Node* made = producer(graph, id);
  if (made == nullptr || made->op != op::full()) return false;
  const auto number = number_argument(*made, 1);
  return number == 0.0 && !std::signbit(*number);
}

// A sum over what scatter has put among zeros, one element a row, is that element; 0 is added since -0.0
// among zeros adds up to 0.0.
Replacement sum_of_one_element(const Site& site) {
  const ValueId summed = tensor_argument(site.node, 0);
  const Node* scattered = producer(site.graph, summed);
  if (scattered == nullptr || scattered->op != op::scatter()) return std::nullopt;
  const auto* dims = std::get_if<std::vector<Expr>>(&site.node.args[1]);
  const auto scatter_dim = integer_argument(*scattered, 1);
  if (dims == nullptr || dims->size() != 1 || !dims->front().is_constant() || !scatter_dim)
    return std::nullopt;
  const TensorMeta &whole = site.graph.meta(summed), &result = site.meta();
  const auto from_front = [&](int64_t d) { return d < 0 ? d + whole.rank() : d; };
  const int64_t d = from_front(*scatter_dim);
  const ValueId index = tensor_argument(*scattered, 2), src = tensor_argument(*scattered, 3);
  std::vector<Expr> rows = whole.sizes;
  if (d != from_front(dims->front().constant()) || rows.empty()) return std::nullopt;
  rows[static_cast<size_t>(d)] = 1;
  const bool is_one_a_row = site.graph.meta(index).sizes == rows && site.graph.meta(src).sizes == rows &&
                            is_zeros(site.graph, tensor_argument(*scattered, 0));
  if (!is_one_a_row || !is_floating(whole.dtype) || result.dtype != whole.dtype) return std::nullopt;
  const TensorMeta row_meta = contiguous_meta(whole.dtype, whole.device, rows);
  const ValueId element = site.emit(op::add(), {ValueRef{src}, 0.0, Expr(1)}, row_meta);
  if (rows == result.sizes) return std::vector<ValueId>{element};
  return std::vector<ValueId>{site.emit(op::view(), {ValueRef{element}, result.sizes}, result)};
}

Replacement simplify(const Site& site) {
  if (site.node.op == op::sum_over()) return sum_of_one_element(site);
  if (site.node.op == op::constant_pad()) return empty_padding(site);
  const ops::Traits& traits = ops::traits_of(*site.node.op);
  if (traits.is_idempotent) return idempotent(site);
  if (traits.acts_if >= 0) return without_action(site, static_cast<size_t>(traits.acts_if));
  switch (traits.neutral) {
    case ops::Neutral::None:
      return std::nullopt;
    case ops::Neutral::Zero:
      return simplify_sum(site, false);
    case ops::Neutral::ZeroSecond:
      return simplify_sum(site, true);
    case ops::Neutral::One:
      return simplify_mul(site);
    case ops::Neutral::OneSecond:
      return one_on_the_right(site);
  }
  return std::nullopt;
}

}  // namespace

Graph simplify_arithmetic(const Graph& source) {
  const auto read_as_storage = values_read_as_storage(source);
  const auto are_behind_results = values_behind_results(source);
  return rewrite(source, [&](const Site& site) -> Replacement {
    for (const ValueId id : site.node.outputs)
      if (id != graph::kNoValue && read_as_storage[id]) return std::nullopt;
    Replacement replaced = simplify(site);
    if (replaced && moves_results(site, *replaced, are_behind_results)) return std::nullopt;
    return replaced;
  });
}

}  // namespace oxy::passes
