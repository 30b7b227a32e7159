#include "passes/simplification/recognise_activations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "aten/operators.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {
namespace {

constexpr std::array kPoints = {-6.5, -4.3, -2.1, -1.0, -0.37, -0.01, 0.02, 0.2, 0.9, 1.7, 3.3, 6.0};
using Values = std::array<double, kPoints.size()>;
// Programs write the constants of a formula with nine digits and more.
constexpr double kTolerance = 1e-7;
constexpr int kMostNodes = 16;

double gelu(double x) {
  return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
}

double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

double silu(double x) {
  return x / (1 + std::exp(-x));
}

struct Activation {
  double (*function)(double);
  std::vector<Argument> (*arguments)(ValueId x);
  const OperatorSchema* (*op)();
};

const Activation kActivations[] = {
    {gelu, [](ValueId x) { return std::vector<Argument>{ValueRef{x}, std::string("none")}; }, op::gelu},
    {gelu_tanh, [](ValueId x) { return std::vector<Argument>{ValueRef{x}, std::string("tanh")}; }, op::gelu},
    {silu, [](ValueId x) { return std::vector<Argument>{ValueRef{x}}; }, op::silu},
};

// A formula of one tensor, evaluated at kPoints.
class Formula {
 public:
  Formula(const Graph& graph, const IdVector<ValueId, NodeId>& readers) : graph_(graph), readers_(readers) {}

  // The tensor; none if `root` is no formula of one.
  ValueId variable_of(const Node& root) {
    values_ = evaluate(root);
    return values_ ? variable_ : graph::kNoValue;
  }
  const Values& values() const { return *values_; }

 private:
  using Result = std::optional<Values>;

  template <class Function>
  static Result map(const Result& a, Function function) {
    if (!a) return std::nullopt;
    Values values;
    std::ranges::transform(*a, values.begin(), function);
    return values;
  }

  template <class Function>
  static Result map(const Result& a, const Result& b, Function function) {
    if (!a || !b) return std::nullopt;
    Values values;
    std::ranges::transform(*a, *b, values.begin(), function);
    return values;
  }

  Result argument(const Node& node, size_t index) {
    if (const auto number = number_argument(node, index)) {
      Values values;
      values.fill(*number);
      return values;
    }
    const ValueId value = tensor_argument(node, index);
    if (value == graph::kNoValue) return std::nullopt;
    const NodeId maker = graph_.values[value].node;
    // What is read more than once is the formula's variable: it stays in any case.
    if (maker != graph::kNoNode && readers_[value] != graph::kNoNode) return evaluate(graph_.nodes[maker]);
    if (variable_ != graph::kNoValue && variable_ != value) return std::nullopt;
    variable_ = value;
    return kPoints;
  }

  Result evaluate(const Node& node) {
    if (++nodes_ > kMostNodes) return std::nullopt;
    const OperatorSchema* const op = node.op;
    if (op == op::mul()) return map(argument(node, 0), argument(node, 1), std::multiplies<>());
    if (op == op::div()) return map(argument(node, 0), argument(node, 1), std::divides<>());
    if (op == op::add() && number_argument(node, 2) == 1.0)
      return map(argument(node, 0), argument(node, 1), std::plus<>());
    if (op == op::pow_scalar())
      return map(argument(node, 0), argument(node, 1), [](double x, double y) { return std::pow(x, y); });
    if (op == op::tanh()) return map(argument(node, 0), [](double x) { return std::tanh(x); });
    if (op == op::erf()) return map(argument(node, 0), [](double x) { return std::erf(x); });
    if (op == op::sigmoid()) return map(argument(node, 0), [](double x) { return 1 / (1 + std::exp(-x)); });
    return std::nullopt;
  }

  const Graph& graph_;
  const IdVector<ValueId, NodeId>& readers_;
  ValueId variable_ = graph::kNoValue;
  Result values_;
  int nodes_ = 0;
};

const Activation* activation_of(const Values& values) {
  const auto found = std::ranges::find_if(kActivations, [&](const Activation& activation) {
    for (size_t k = 0; k < kPoints.size(); ++k)
      if (!(std::abs(activation.function(kPoints[k]) - values[k]) <= kTolerance)) return false;
    return true;
  });
  return found == std::end(kActivations) ? nullptr : &*found;
}

}  // namespace

Graph recognise_activations(const Graph& source) {
  const auto readers = only_readers(source);
  Rewriter rewriter(source);
  for (const Node& node : source.nodes) {
    Node renamed = rewriter.renamed(node);
    if (node.op == op::mul() && is_floating(source.meta(node.outputs.front()).dtype)) {
      Formula formula(source, readers);
      const ValueId x = formula.variable_of(node);
      const Activation* const activation = x == graph::kNoValue ? nullptr : activation_of(formula.values());
      const TensorMeta& result = source.meta(node.outputs.front());
      if (activation != nullptr && same_memory_order(source.meta(x), result)) {
        const Site site{rewriter.graph(), source, renamed, node};
        rewriter.set(node.outputs.front(),
                     site.emit(activation->op(), activation->arguments(rewriter.map(x)), result));
        continue;
      }
    }
    rewriter.keep(std::move(renamed));
  }
  return rewriter.finish();
}

}  // namespace oxy::passes
