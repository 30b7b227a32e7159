#include "ops/core/elements.h"

#include <algorithm>

#include "aten/dtype.h"
#include "ops/core/registry.h"

namespace oxy::ops {

namespace {

// An element of more relations is taken as unknown: conditions within conditions would double them.
constexpr size_t kMostRelations = 16;
constexpr int kMostSteps = 256;                         // of all ways from a value to what it is computed of
constexpr int64_t kFirstCoordinate = int64_t{1} << 50;  // symbols and loops have smaller ids
constexpr int64_t kFirstOfRules = kFirstCoordinate + 64;
constexpr int64_t kMostElements = int64_t{1} << 48;  // of a dimension: no memory holds more

Expr coordinate(const Expr& size, int64_t id) {
  if (size == Expr(1)) return 0;
  const int64_t last = std::min(size.range().high, kMostElements) - 1;
  return Expr::variable("c", id, {0, std::max<int64_t>(last, 0)}, size);
}

// How often `step` goes into `offset`, as far as the terms tell.
Expr quotient(const Expr& offset, const Expr& step) {
  if (offset.kind() != sym::Kind::Sum) return sym::floordiv(offset, step);
  Expr result = 0, rest = 0;
  for (const Expr& term : offset.operands()) {
    if (sym::known_divisible(term, step))
      result = result + sym::floordiv(term, step);
    else
      rest = rest + term;
  }
  const bool is_rest = sym::known_less_equal(0, rest) && sym::known_less(rest, step);
  return is_rest ? result : sym::floordiv(offset, step);
}

// The coordinates of the element that lies `offset` behind the first one, of a tensor that has an element
// there. Nothing where they are not known.
std::optional<Coordinates> at_offset(const std::vector<Expr>& sizes, const std::vector<Expr>& strides,
                                     Expr offset) {
  Coordinates at(sizes.size(), Expr(0));
  std::vector<size_t> open;
  Expr last = 0;  // the offset of the last element of the open dimensions
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == Expr(1) || strides[d] == Expr(0)) continue;
    open.push_back(d);
    last = last + (sizes[d] - 1) * strides[d];
  }
  while (!open.empty()) {
    auto widest = open.begin();
    for (auto it = open.begin(); it != open.end(); ++it)
      if (sym::known_less(strides[*widest], strides[*it])) widest = it;
    const size_t d = *widest;
    last = last - (sizes[d] - 1) * strides[d];
    at[d] = quotient(offset, strides[d]);
    offset = offset - at[d] * strides[d];
    const bool is_digit = sym::known_less_equal(0, offset) && sym::known_less(offset, strides[d]);
    if (!is_digit || !sym::known_less(last, strides[d])) return std::nullopt;
    open.erase(widest);
  }
  return at;
}

struct Strided {
  const std::vector<Expr>& sizes;
  const std::vector<Expr>& strides;
};

// The coordinates in `from` of an element of `to`, whose first one lies `offset` behind that of `from`.
std::optional<Coordinates> located(const Strided& from, const Strided& to, Expr offset,
                                   const Coordinates& at) {
  Coordinates own(from.sizes.size(), Expr(0));
  bool is_dimension_each = offset == Expr(0);
  for (size_t d = 0; d < at.size(); ++d) {
    if (at[d] == Expr(0) || to.strides[d] == Expr(0)) continue;
    offset = offset + at[d] * to.strides[d];
    size_t same = 0;
    while (same < own.size() && (from.sizes[same] == Expr(1) || !(from.strides[same] == to.strides[d])))
      ++same;
    is_dimension_each = is_dimension_each && same < own.size() && sym::known_less(at[d], from.sizes[same]) &&
                        sym::known_less_equal(0, at[d]) && own[same] == Expr(0);
    if (is_dimension_each) own[same] = at[d];
  }
  return is_dimension_each ? own : at_offset(from.sizes, from.strides, offset);
}

// The coordinates in the argument of an operator that moves elements, of the element at `at` in its result.
std::optional<Coordinates> source_of(const OperatorSchema& op, const Traits& traits, const TensorMeta& from,
                                     const TensorMeta& to, const Coordinates& at) {
  const Movement movement = traits.movement;
  const bool is_alike = from.sizes == to.sizes;
  if (is_alike && (movement == Movement::Keep || movement == Movement::Convert)) return at;
  if (movement == Movement::Reshape)
    return located({from.sizes, contiguous_strides(from.sizes)}, {to.sizes, contiguous_strides(to.sizes)}, 0,
                   at);
  const bool is_one_of_memory = movement == Movement::Keep || movement == Movement::Permute ||
                                movement == Movement::Expand || movement == Movement::Split ||
                                movement == Movement::Unbind || traits.counting == Counting::Moves;
  if (!is_one_of_memory || !op.is_view()) return std::nullopt;
  return located({from.sizes, from.strides}, {to.sizes, to.strides}, graph::offset_between(from, to), at);
}

size_t relations_of(const sym::Condition& condition) {
  size_t count = condition.kind() == sym::ConditionKind::Relation ? 1 : 0;
  for (const sym::Condition& part : condition.parts()) count += relations_of(part);
  return count;
}

size_t relations_of(const Element& element) {
  const auto* condition = std::get_if<sym::Condition>(&element);
  return condition == nullptr ? 0 : relations_of(*condition);
}

class Search {
 public:
  Search(const graph::Graph& graph, std::unordered_set<graph::ValueId>* read) : graph_(graph), read_(read) {}

  std::optional<Element> of(graph::ValueId value, const Coordinates& at) {
    const graph::NodeId producer = graph_.values[value].node;
    if (producer == graph::kNoNode || ++steps_ > kMostSteps) return std::nullopt;
    if (read_ != nullptr) read_->insert(value);
    const graph::Node& node = graph_.nodes[producer];
    const OperatorEntry& entry = entry_of(*node.op);
    const std::optional<Element> element =
        entry.element != nullptr ? by_rule(node, entry.element, value, at) : moved(node, entry, value, at);
    if (!element || relations_of(*element) > kMostRelations) return std::nullopt;
    return held(graph_.meta(value).dtype, *element);
  }

 private:
  std::optional<Element> by_rule(const graph::Node& node, ElementRule rule, graph::ValueId value,
                                 const Coordinates& at) {
    if (node.outputs.at(0) != value) return std::nullopt;
    const ElementContext context(
        graph_, node,
        [this](graph::ValueId of_value, const Coordinates& where) { return of(of_value, where); },
        [this](const Expr& size) { return coordinate(size, next_++); });
    return rule(context, at);
  }

  std::optional<Element> moved(const graph::Node& node, const OperatorEntry& entry, graph::ValueId value,
                               const Coordinates& at) {
    const auto* ref = node.args.empty() ? nullptr : std::get_if<graph::ValueRef>(&node.args[0]);
    if (ref == nullptr) return std::nullopt;
    const std::optional<Coordinates> source =
        source_of(*node.op, entry.traits, graph_.meta(ref->id), graph_.meta(value), at);
    return source ? of(ref->id, *source) : std::nullopt;
  }

  const graph::Graph& graph_;
  std::unordered_set<graph::ValueId>* read_;
  int steps_ = 0;
  int64_t next_ = kFirstOfRules;
};

}  // namespace

Coordinates coordinates_of(const std::vector<Expr>& sizes) {
  Coordinates result;
  for (size_t d = 0; d < sizes.size(); ++d)
    result.push_back(coordinate(sizes[d], kFirstCoordinate + static_cast<int64_t>(d)));
  return result;
}

std::optional<Element> element_at(const graph::Graph& graph, graph::ValueId value, const Coordinates& at,
                                  std::unordered_set<graph::ValueId>* read) {
  try {
    return Search(graph, read).of(value, at);
  } catch (const sym::ArithmeticError&) {
    return std::nullopt;
  }
}

bool indices_lie_within(const graph::Graph& graph, const graph::Node& node) {
  if (traits_of(*node.op).known_size != KnownSize::WithoutMasks) return false;
  const std::vector<Expr>& sizes = graph.meta(std::get<graph::ValueRef>(node.args.at(0)).id).sizes;
  const std::vector<graph::ValueId>& indices = std::get<graph::ValueList>(node.args.at(1)).ids;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (indices[d] == graph::kNoValue) continue;
    const TensorMeta& index = graph.meta(indices[d]);
    const std::optional<Element> element = is_mask(index.dtype) || d >= sizes.size()
                                               ? std::nullopt
                                               : element_at(graph, indices[d], coordinates_of(index.sizes));
    const std::optional<Expr> position = element ? as_number(*element) : std::nullopt;
    if (!position || !sym::known_less_equal(-sizes[d], *position) || !sym::known_less(*position, sizes[d]))
      return false;
  }
  return true;
}

}  // namespace oxy::ops
