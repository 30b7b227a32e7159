// What the elements of a tensor are, as functions of their coordinates: of tensors that a program makes of
// sizes alone. Masks are often such tensors. Attention without a mask, or with one that hides what comes
// later, has faster kernels.
#pragma once

#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "graph/graph.h"

namespace oxy::ops {

// One for each dimension of a tensor, 0 <= coordinate < size.
using Coordinates = std::vector<Expr>;

// A whole number, or a truth value of few relations. A number type may hold truth values, as
// 0 and 1.
using Element = std::variant<Expr, sym::Condition>;

// The call of an operator for whose first result a rule is asked.
class ElementContext {
 public:
  using ElementOf = std::function<std::optional<Element>(graph::ValueId, const Coordinates&)>;
  using VariableOf = std::function<Expr(const Expr& size)>;

  ElementContext(const graph::Graph& graph, const graph::Node& node, ElementOf element, VariableOf variable)
      : graph_(graph), node_(node), element_(std::move(element)), variable_(std::move(variable)) {}

  const graph::Argument& argument(size_t place) const { return node_.args.at(place); }
  const TensorMeta& meta(graph::ValueId value) const { return graph_.meta(value); }
  const TensorMeta& result() const { return meta(node_.outputs.at(0)); }
  // Null: the argument is no tensor.
  const TensorMeta* tensor(size_t place) const;

  std::optional<Element> element(graph::ValueId value, const Coordinates& at) const {
    return element_(value, at);
  }
  // Of an argument that is a number, or a tensor that is broadcast to the result, in this type.
  std::optional<Element> operand(size_t place, const Coordinates& at, DType dtype) const;
  // The type in which eager computes with the first two arguments; nothing where a setting decides.
  std::optional<DType> common_type() const;
  // Of an argument that is a tensor with as many dimensions as there are coordinates.
  std::optional<Element> of_argument(size_t place, const Coordinates& at) const;
  std::optional<Expr> integer(size_t place) const;      // nothing: it is none
  std::optional<size_t> dimension(size_t place) const;  // of the first argument; nothing: not known
  // A new coordinate of a dimension of that size.
  Expr coordinate(const Expr& size) const { return variable_(size); }

 private:
  const graph::Graph& graph_;
  const graph::Node& node_;
  ElementOf element_;
  VariableOf variable_;
};

// The element of the first result at these coordinates; nothing where it is not known.
using ElementRule = std::optional<Element> (*)(const ElementContext& context, const Coordinates& at);

// The element as this type holds it. Nothing where the type may round it or turn it round.
std::optional<Element> held(DType dtype, const Element& element);

// As a number; nothing for a truth value that is not known.
std::optional<Expr> as_number(const Element& element);
// As a truth value: of a number, whether it is not 0. Nothing for numbers that are neither 0 nor 1, if
// `is_zero_or_one`.
std::optional<sym::Condition> as_truth(const Element& element, bool is_zero_or_one = false);

// Whether an index of this type chooses by its truth values.
inline bool is_mask(DType dtype) {
  return dtype == DType::Bool || dtype == DType::UInt8;
}

namespace elements {

std::optional<Element> zeros(const ElementContext& context, const Coordinates& at);
std::optional<Element> ones(const ElementContext& context, const Coordinates& at);
std::optional<Element> filled(const ElementContext& context, const Coordinates& at);  // full(size, value)
std::optional<Element> filled_alike(const ElementContext& context,
                                    const Coordinates& at);  // (self, size, value)
std::optional<Element> scalar_tensor(const ElementContext& context, const Coordinates& at);  // (value)
std::optional<Element> count_to(const ElementContext& context, const Coordinates& at);       // arange(end)
std::optional<Element> count_from(const ElementContext& context,
                                  const Coordinates& at);                          // (start, end, step)
std::optional<Element> sum(const ElementContext& context, const Coordinates& at);  // (a, b, alpha)
std::optional<Element> difference(const ElementContext& context, const Coordinates& at);  // (a, b, alpha)
std::optional<Element> less(const ElementContext& context, const Coordinates& at);
std::optional<Element> less_equal(const ElementContext& context, const Coordinates& at);
std::optional<Element> greater(const ElementContext& context, const Coordinates& at);
std::optional<Element> greater_equal(const ElementContext& context, const Coordinates& at);
std::optional<Element> equal(const ElementContext& context, const Coordinates& at);
std::optional<Element> not_equal(const ElementContext& context, const Coordinates& at);
std::optional<Element> conjunction(const ElementContext& context, const Coordinates& at);
std::optional<Element> disjunction(const ElementContext& context, const Coordinates& at);
std::optional<Element> negation(const ElementContext& context, const Coordinates& at);
std::optional<Element> chosen(const ElementContext& context,
                              const Coordinates& at);  // where(condition, a, b)
std::optional<Element> lower_triangle(const ElementContext& context, const Coordinates& at);  // (x, diagonal)
std::optional<Element> upper_triangle(const ElementContext& context, const Coordinates& at);
std::optional<Element> joined(const ElementContext& context, const Coordinates& at);   // cat(tensors, dim)
std::optional<Element> indexed(const ElementContext& context, const Coordinates& at);  // (x, indices)
std::optional<Element> running_sum(const ElementContext& context, const Coordinates& at);  // (x, dim)

}  // namespace elements

}  // namespace oxy::ops
