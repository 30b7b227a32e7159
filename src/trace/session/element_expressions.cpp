#include "trace/session/element_expressions.h"

#include <ATen/ops/broadcast_tensors.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "graph/sizes.h"
#include "ops/core/registry.h"
#include "runtime/execution/interpreter.h"
#include "runtime/values/convert.h"
#include "torch_api/symbolic_node.h"
#include "trace/session/slices.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

constexpr int64_t kMostElements = 4096;  // of each value on the way
// Elements are usually small, and what is calculated of small ones fits in 64 bits.
constexpr int64_t kSmall = int64_t{1} << 19;

using ops::Counting;
using ops::Movement;
using Places = at::Tensor;  // numbers of expressions, as in KnownValues::places
using MaybePlaces = std::optional<Places>;

bool moves(const ops::Traits& traits) {
  switch (traits.movement) {
    case Movement::Keep:
    case Movement::Reshape:
    case Movement::Permute:
    case Movement::Expand:
    case Movement::Split:
    case Movement::Unbind:
    case Movement::Join:
      return true;
    default:
      return traits.counting == Counting::Moves;
  }
}

// The integers that the type holds, as far as expressions reach.
sym::Range range_of(DType dtype) {
  const auto all = []<class Number>(Number) {
    return sym::Range{std::numeric_limits<Number>::min(), std::numeric_limits<Number>::max()};
  };
  switch (dtype) {
    case DType::UInt8:
      return all(uint8_t{});
    case DType::Int8:
      return all(int8_t{});
    case DType::Int16:
      return all(int16_t{});
    case DType::Int32:
      return all(int32_t{});
    default:
      return {sym::kMinInt + 1, sym::kMaxInt - 1};
  }
}

class Evaluator {
 public:
  explicit Evaluator(Session& session)
      : session_(session), known_(session.known), graph_(session.recording.graph) {}

  std::optional<std::vector<Expr>> evaluate(graph::ValueId value, const Slice& slice) {
    for (const graph::NodeId n : slice.nodes) {
      const graph::Node& node = graph_.nodes[n];
      if (known_.places.contains(node.outputs.at(0))) continue;
      const std::optional<std::vector<Places>> results = evaluate(node);
      if (!results) return std::nullopt;
      for (size_t i = 0; i < results->size(); ++i)
        if (node.outputs[i] != graph::kNoValue) known_.places.emplace(node.outputs[i], (*results)[i]);
    }
    const MaybePlaces places = places_of(value);
    if (!places) return std::nullopt;
    const Places dense = places->contiguous();
    std::vector<Expr> result;
    for (int64_t i = 0; i < dense.numel(); ++i)
      result.push_back(expression(dense.const_data_ptr<int64_t>()[i]));
    return result;
  }

 private:
  // Whether the elements of the value may be expressions at all.
  bool counts(graph::ValueId value) const {
    const TensorMeta& meta = graph_.meta(value);
    return is_integral(meta.dtype) && is_on_host(meta.device) &&
           session_.symbols->environment.hint(element_count(meta)).value_or(kMostElements + 1) <=
               kMostElements;
  }

  int64_t number_of(Expr expression) {
    known_.expressions.push_back(session_.symbols->environment.simplify(expression));
    return static_cast<int64_t>(known_.expressions.size()) - 1;
  }

  Expr expression(int64_t number) {
    const auto unread = known_.unread.find(number);
    if (unread != known_.unread.end()) {
      const auto [input, place, value] = unread->second;
      known_.unread.erase(unread);
      const Expr symbol = known_.symbol_of(input, place, value);
      if (-kSmall < value && value < kSmall) {
        decide(sym::less(-kSmall, symbol));
        decide(sym::less(symbol, kSmall));
      }
      known_.expressions.at(static_cast<size_t>(number)) = symbol;
    }
    return known_.expressions.at(static_cast<size_t>(number));
  }

  bool decide(const sym::Condition& condition) {
    return session_.symbols->environment.decide(condition, session_.symbols->where);
  }

  // Whether eager's result of this type is the expression itself.
  bool fits(const Expr& e, DType dtype) {
    const sym::Range range = range_of(dtype);
    return decide(sym::less_equal(range.low, e)) && decide(sym::less_equal(e, range.high));
  }

  Places constants(const at::Tensor& tensor) {
    const at::Tensor values = tensor.to(at::kLong).contiguous();
    Places result = at::empty(values.sizes(), at::kLong);
    std::transform(values.const_data_ptr<int64_t>(), values.const_data_ptr<int64_t>() + values.numel(),
                   result.data_ptr<int64_t>(), [&](int64_t value) { return number_of(value); });
    return result;
  }

  Places symbols_of(graph::ValueId input, const at::Tensor& tensor) {
    const at::Tensor values = tensor.detach().to(at::kLong).contiguous();
    Places result = at::empty(values.sizes(), at::kLong);
    for (int64_t i = 0; i < values.numel(); ++i) {
      const int64_t value = values.const_data_ptr<int64_t>()[i];
      const int64_t number = number_of(0);
      known_.unread.emplace(number, KnownValues::Element{input, i, value});
      result.data_ptr<int64_t>()[i] = number;
    }
    return result;
  }

  MaybePlaces places_of(graph::ValueId value) {
    if (const auto it = known_.places.find(value); it != known_.places.end()) return it->second;
    if (graph_.values[value].node != graph::kNoNode || !counts(value)) return std::nullopt;
    const auto input = known_.varying.find(value);
    const auto candidate = known_.candidates.find(value);
    Places places = input != known_.varying.end()          ? symbols_of(value, input->second)
                    : candidate != known_.candidates.end() ? constants(candidate->second)
                                                           : constants(data_of_constant(session_, value));
    if (candidate != known_.candidates.end()) known_.read.insert(value);
    known_.places.emplace(value, places);
    return places;
  }

  MaybePlaces operand(const graph::Argument& argument) {
    if (const auto* ref = std::get_if<graph::ValueRef>(&argument)) return places_of(ref->id);
    if (const auto* number = std::get_if<Expr>(&argument))
      return at::scalar_tensor(number_of(*number), at::kLong);
    return std::nullopt;
  }

  std::optional<std::vector<Places>> evaluate(const graph::Node& node) {
    const ops::Traits& traits = ops::traits_of(*node.op);
    if (!std::ranges::all_of(
            node.outputs, [&](graph::ValueId output) { return output == graph::kNoValue || counts(output); }))
      return std::nullopt;
    bool has_operands = false, are_known = true;
    graph::for_each_input(node, [&](graph::ValueId input) {
      has_operands = true;
      are_known = are_known && places_of(input);
    });
    if (!are_known) return std::nullopt;
    if (!has_operands) {
      std::vector<Places> results;
      for (const at::Tensor& made : run(node, {})) results.push_back(constants(made));
      return results;
    }
    if (moves(traits)) return run(node, [&](graph::ValueId id) { return *places_of(id); });
    MaybePlaces result = traits.movement == Movement::Convert
                             ? places_of(std::get<graph::ValueRef>(node.args[0]).id)
                             : counted(node, traits.counting);
    if (!result || !fit(*result, graph_.meta(node.outputs[0]).dtype)) return std::nullopt;
    return std::vector<Places>{std::move(*result)};
  }

  bool fit(const Places& places, DType dtype) {
    const Places dense = places.contiguous();
    return std::all_of(dense.const_data_ptr<int64_t>(), dense.const_data_ptr<int64_t>() + dense.numel(),
                       [&](int64_t number) { return fits(expression(number), dtype); });
  }

  std::vector<at::Tensor> run(const graph::Node& node,
                              const std::function<at::Tensor(graph::ValueId)>& tensor) const {
    return runtime::run_node(specialised(session_, node), tensor);
  }

  // By the operator's rule.
  MaybePlaces counted(const graph::Node& node, Counting counting) {
    const std::vector<graph::Argument>& args = node.args;
    switch (counting) {
      case Counting::Add:
      case Counting::Subtract:
      case Counting::SubtractFrom: {
        const auto* const factor = std::get_if<Expr>(&args[2]);
        if (factor == nullptr) return std::nullopt;
        return pointwise(args[0], args[1], [&](const Expr& a, const Expr& b) -> std::optional<Expr> {
          if (counting == Counting::SubtractFrom) return b - a * *factor;
          return counting == Counting::Add ? a + b * *factor : a - b * *factor;
        });
      }
      case Counting::Multiply:
        return pointwise(args[0], args[1],
                         [](const Expr& a, const Expr& b) -> std::optional<Expr> { return a * b; });
      case Counting::Negate:
        return pointwise(args[0], args[0],
                         [](const Expr& a, const Expr&) -> std::optional<Expr> { return -a; });
      case Counting::FloorDivide:
        if (args.size() > 2) {
          const auto* const mode = std::get_if<std::string>(&args[2]);
          if (mode == nullptr || *mode != "floor") return std::nullopt;
        }
        [[fallthrough]];
      case Counting::Remainder:
        return pointwise(args[0], args[1], [&](const Expr& a, const Expr& b) -> std::optional<Expr> {
          if (!decide(sym::not_equal(b, 0))) return std::nullopt;
          return counting == Counting::Remainder ? sym::mod(a, b) : sym::floordiv(a, b);
        });
      case Counting::Maximum:
        return pointwise(args[0], args[1],
                         [](const Expr& a, const Expr& b) -> std::optional<Expr> { return sym::max(a, b); });
      case Counting::Minimum:
        return pointwise(args[0], args[1],
                         [](const Expr& a, const Expr& b) -> std::optional<Expr> { return sym::min(a, b); });
      case Counting::Sum:
      case Counting::LargestOf:
      case Counting::SmallestOf:
        return reduced(node, counting);
      case Counting::RunningSum:
        return running_sum(node);
      case Counting::Pads:
        return padded(node);
      case Counting::Picks:
        return picked(node);
      case Counting::Repeats:
        return repeated(node);
      case Counting::Moves:
      case Counting::None:
        break;
    }
    return std::nullopt;
  }

  template <class Function>
  MaybePlaces pointwise(const graph::Argument& left, const graph::Argument& right, const Function& function) {
    const MaybePlaces a = operand(left), b = operand(right);
    if (!a || !b) return std::nullopt;
    const std::vector<at::Tensor> alike = at::broadcast_tensors({*a, *b});
    const Places first = alike[0].contiguous(), second = alike[1].contiguous();
    Places result = at::empty(first.sizes(), at::kLong);
    for (int64_t i = 0; i < first.numel(); ++i) {
      const Expr x = expression(first.const_data_ptr<int64_t>()[i]);
      const Expr y = expression(second.const_data_ptr<int64_t>()[i]);
      const std::optional<Expr> value = function(x, y);
      if (!value) return std::nullopt;
      result.data_ptr<int64_t>()[i] = number_of(*value);
    }
    return result;
  }

  std::vector<int64_t> sizes_of(graph::ValueId value) const {
    std::vector<int64_t> result;
    for (const Expr& size : graph_.meta(value).sizes)
      result.push_back(session_.symbols->environment.hint(size).value());
    return result;
  }

  MaybePlaces reduced(const graph::Node& node, Counting counting) {
    MaybePlaces places = operand(node.args[0]);
    if (!places || places->numel() == 0) return std::nullopt;
    std::vector<int64_t> dims;
    for (size_t i = 1; i < node.args.size(); ++i) {
      if (node.op->arguments[i].name != "dim") continue;
      if (const auto* list = std::get_if<std::vector<Expr>>(&node.args[i]))
        for (const Expr& dim : *list) dims.push_back(dim.constant());
    }
    if (dims.empty())
      for (int64_t d = 0; d < places->dim(); ++d) dims.push_back(d);
    std::vector<int64_t> order;
    int64_t count = 1;
    for (int64_t& dim : dims) {
      dim = places->dim() == 0 ? 0 : (dim + places->dim()) % places->dim();
      if (places->dim() > 0) count *= places->size(dim);
    }
    for (int64_t d = 0; d < places->dim(); ++d)
      if (std::ranges::find(dims, d) == dims.end()) order.push_back(d);
    if (places->dim() > 0) order.insert(order.end(), dims.begin(), dims.end());
    const Places rows = places->permute(order).reshape({-1, count}).contiguous();
    Places result = at::empty({rows.size(0)}, at::kLong);
    for (int64_t row = 0; row < rows.size(0); ++row) {
      const int64_t* const own = rows.const_data_ptr<int64_t>() + row * count;
      Expr value = expression(own[0]);
      for (int64_t i = 1; i < count; ++i) {
        const Expr next = expression(own[i]);
        value = counting == Counting::Sum         ? value + next
                : counting == Counting::LargestOf ? sym::max(value, next)
                                                  : sym::min(value, next);
      }
      result.data_ptr<int64_t>()[row] = number_of(value);
    }
    return result.reshape(sizes_of(node.outputs[0]));
  }

  MaybePlaces running_sum(const graph::Node& node) {
    const MaybePlaces places = operand(node.args[0]);
    const auto* const dim = std::get_if<Expr>(&node.args[1]);
    if (!places || dim == nullptr || places->dim() == 0) return std::nullopt;
    Places result = places->movedim(dim->constant(), -1).clone(at::MemoryFormat::Contiguous);
    const int64_t count = result.size(-1);
    for (int64_t i = 0; i < result.numel(); ++i) {
      if (i % count == 0) continue;
      int64_t* const own = result.data_ptr<int64_t>() + i;
      *own = number_of(expression(own[-1]) + expression(own[0]));
    }
    return result.movedim(-1, dim->constant());
  }

  MaybePlaces padded(const graph::Node& node) {
    graph::Node own = node;
    const auto* const whole = std::get_if<double>(&node.args[2]);
    const auto* const number = std::get_if<Expr>(&node.args[2]);
    if (number == nullptr && (whole == nullptr || *whole != 0)) return std::nullopt;
    own.args[2] = Expr(number_of(number == nullptr ? Expr(0) : *number));
    return run(own, [&](graph::ValueId id) { return *places_of(id); }).at(0);
  }

  // The elements themselves, on which the recording relies from now on.
  at::Tensor specialised_elements(graph::ValueId value) {
    at::Tensor result = places_of(value)->clone(at::MemoryFormat::Contiguous);
    for (int64_t i = 0; i < result.numel(); ++i) {
      int64_t& own = result.data_ptr<int64_t>()[i];
      own = session_.symbols->environment.specialise(expression(own), session_.symbols->where);
    }
    return result;
  }

  MaybePlaces picked(const graph::Node& node) {
    const auto* const source = std::get_if<graph::ValueRef>(&node.args[0]);
    if (source == nullptr) return std::nullopt;
    std::unordered_map<graph::ValueId, at::Tensor> tensors;
    graph::for_each_input(node, [&](graph::ValueId id) {
      tensors.emplace(id, id == source->id ? *places_of(id) : specialised_elements(id));
    });
    if (tensors.size() < 2) return std::nullopt;  // it picks from itself
    return run(node, [&](graph::ValueId id) { return tensors.at(id); }).at(0);
  }

  MaybePlaces repeated(const graph::Node& node) {
    const auto* const counts = std::get_if<graph::ValueRef>(&node.args[0]);
    if (counts == nullptr) return std::nullopt;
    const at::Tensor numbers = specialised_elements(counts->id);
    return constants(run(node, [&](graph::ValueId) { return numbers; }).at(0));
  }

  Session& session_;
  KnownValues& known_;
  const graph::Graph& graph_;
};

}  // namespace

std::optional<std::vector<Expr>> element_expressions(Session& session, graph::ValueId value) {
  KnownValues& known = session.known;
  if (known.of_varying != VaryingElements::Symbols || !session.symbols || !known.symbol_of)
    return std::nullopt;
  const auto may_read = [&](graph::ValueId input) {
    return known.candidates.contains(input) || known.varying.contains(input);
  };
  const std::optional<Slice> slice = collect_slice(session, value, may_read, SliceSizes::AtHand);
  if (!slice) return std::nullopt;
  const RunsInEager runs_in_eager;
  specialise(session, *slice);
  return Evaluator(session).evaluate(value, *slice);
}

bool answer_from_expressions(Session& session, const OperatorInfo& info, torch::jit::Stack* stack) {
  if (ops::traits_of(*info.schema).recording != ops::Recording::Number) return false;
  const TraceTensor* const trace = trace_tensor(stack->back().toTensor());
  if (trace == nullptr || trace->recording() != session.id) return false;
  const auto elements = element_expressions(session, trace->value());
  if (!elements || elements->size() != 1) return false;
  stack->back() = c10::IValue(c10::Scalar(torch_api::to_torch(session.symbols, elements->front())));
  return true;
}

void give_size(Session& session, const OperatorInfo& info, torch::jit::Stack* stack) {
  if (ops::traits_of(*info.schema).counting != Counting::Repeats) return;
  c10::IValue* const arguments = &*stack->end() - info.schema->arguments.size();
  const TraceTensor* const trace = trace_tensor(arguments[0].toTensor());
  if (trace == nullptr || trace->recording() != session.id) return;
  const auto elements = element_expressions(session, trace->value());
  if (!elements) return;
  Expr size = 0;
  for (const Expr& count : *elements) size = size + count;
  if (session.symbols->environment.decide(sym::less_equal(0, size), session.symbols->where))
    arguments[1] = torch_api::to_torch(session.symbols, size);
}

}  // namespace oxy::trace
