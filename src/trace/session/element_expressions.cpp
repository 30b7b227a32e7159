#include "trace/session/element_expressions.h"

#include <ATen/ops/broadcast_tensors.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/sizes.h"
#include "ops/core/registry.h"
#include "runtime/execution/interpreter.h"
#include "torch_api/symbolic_node.h"
#include "trace/session/data_reads.h"
#include "trace/session/slices.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

constexpr int64_t kMostElements = 4096;  // of each value on the way

using ops::Counting;
using ops::Movement;
using Places = at::Tensor;  // of elements, as ElementTable::places
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

bool counts_as_integer(DType dtype) {
  return is_integral(dtype) || dtype == DType::Bool;
}

class Evaluator {
 public:
  explicit Evaluator(Session& session)
      : session_(session), table_(session.elements), known_(session.known), graph_(session.recording.graph) {}

  std::optional<std::vector<Expr>> evaluate(graph::ValueId value, const Slice& slice) {
    if (!counts_as_integer(graph_.meta(value).dtype)) return std::nullopt;
    for (const graph::NodeId n : slice.nodes) {
      const graph::Node& node = graph_.nodes[n];
      if (table_.places.contains(node.outputs.at(0))) continue;
      const std::optional<std::vector<Places>> results = evaluate(node);
      if (!results) return std::nullopt;
      for (size_t i = 0; i < results->size(); ++i)
        if (node.outputs[i] != graph::kNoValue) table_.places.emplace(node.outputs[i], (*results)[i]);
    }
    const MaybePlaces places = places_of(value);
    if (!places) return std::nullopt;
    const Places dense = places->contiguous();
    std::vector<Expr> result;
    for (int64_t i = 0; i < dense.numel(); ++i)
      result.push_back(element(dense.const_data_ptr<int64_t>()[i]).top);
    return result;
  }

 private:
  // Whether the elements of the value may be expressions at all.
  bool counts(graph::ValueId value) const {
    const TensorMeta& meta = graph_.meta(value);
    const bool is_number =
        counts_as_integer(meta.dtype) || meta.dtype == DType::Float32 || meta.dtype == DType::Float64;
    return is_number && is_on_host(meta.device) &&
           session_.symbols->environment.hint(element_count(meta)).value_or(kMostElements + 1) <=
               kMostElements;
  }

  int64_t place_of(Element element) {
    element.top = session_.symbols->environment.simplify(element.top);
    table_.elements.push_back(std::move(element));
    return static_cast<int64_t>(table_.elements.size()) - 1;
  }

  Element element(int64_t place) {
    const auto unread = table_.unread.find(place);
    if (unread != table_.unread.end()) {
      const auto [input, index, value] = unread->second;
      table_.unread.erase(unread);
      const Expr symbol = table_.symbol_of(input, index, value);
      if (-kSmallElement < value && value < kSmallElement)
        lies_within(symbol, kSmallElement, *session_.symbols);
      table_.elements.at(static_cast<size_t>(place)).top = symbol;
    }
    return table_.elements.at(static_cast<size_t>(place));
  }

  // Nothing if some are no whole numbers.
  MaybePlaces constants(const at::Tensor& tensor) {
    const at::Tensor values = tensor.to(at::kLong).contiguous();
    if (!values.equal(tensor)) return std::nullopt;
    Places result = at::empty(values.sizes(), at::kLong);
    std::transform(values.const_data_ptr<int64_t>(), values.const_data_ptr<int64_t>() + values.numel(),
                   result.data_ptr<int64_t>(), [&](int64_t value) { return place_of({value}); });
    return result;
  }

  Places symbols_of(graph::ValueId input, const at::Tensor& tensor) {
    const at::Tensor values = tensor.detach().to(at::kLong).contiguous();
    Places result = at::empty(values.sizes(), at::kLong);
    for (int64_t i = 0; i < values.numel(); ++i) {
      const int64_t value = values.const_data_ptr<int64_t>()[i];
      const int64_t place = place_of({0});
      table_.unread.emplace(place, ElementTable::Unread{input, i, value});
      result.data_ptr<int64_t>()[i] = place;
    }
    return result;
  }

  MaybePlaces places_of(graph::ValueId value) {
    if (const auto it = table_.places.find(value); it != table_.places.end()) return it->second;
    if (graph_.values[value].node != graph::kNoNode || !counts(value)) return std::nullopt;
    MaybePlaces places;
    if (const auto number = table_.numbers.find(value); number != table_.numbers.end()) {
      places = at::scalar_tensor(place_of({number->second}), at::kLong);
    } else if (const auto input = known_.varying.find(value); input != known_.varying.end()) {
      places = symbols_of(value, input->second);
    } else if (const auto known = known_.candidates.find(value); known != known_.candidates.end()) {
      known_.read.insert(value);
      places = constants(known->second);
    } else {
      places = constants(data_of_constant(session_, value));
    }
    if (places) table_.places.emplace(value, *places);
    return places;
  }

  MaybePlaces operand(const graph::Argument& argument) {
    if (const auto* ref = std::get_if<graph::ValueRef>(&argument)) return places_of(ref->id);
    if (const auto* number = std::get_if<Expr>(&argument))
      return at::scalar_tensor(place_of({*number}), at::kLong);
    const auto* const whole = std::get_if<double>(&argument);
    if (whole == nullptr || *whole != std::floor(*whole) || std::abs(*whole) >= kSmallElement)
      return std::nullopt;
    return at::scalar_tensor(place_of({static_cast<int64_t>(*whole)}), at::kLong);
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
    if (!has_operands && traits.counting == Counting::Moves) return filled(node);
    if (!has_operands) {
      const bool has_numbers =
          std::ranges::any_of(node.args, [](const auto& a) { return graph::has_symbols(a); });
      if (has_numbers && known_.of_varying != VaryingElements::Symbols) return std::nullopt;
      std::vector<Places> results;
      for (const at::Tensor& made : run(node, {})) {
        MaybePlaces places = constants(made);
        if (!places) return std::nullopt;
        results.push_back(std::move(*places));
      }
      return results;
    }
    if (moves(traits)) return run(node, [&](graph::ValueId id) { return *places_of(id); });
    const DType dtype = graph_.meta(node.outputs.at(0)).dtype;
    is_exact_ = counts_as_integer(dtype);
    MaybePlaces result = traits.movement == Movement::Convert ? converted_elements(node, dtype)
                                                              : counted(node, traits.counting);
    if (!result || !fit(*result, dtype)) return std::nullopt;
    return std::vector<Places>{std::move(*result)};
  }

  bool fit(const Places& places, DType dtype) {
    const Places dense = places.contiguous();
    return std::all_of(dense.const_data_ptr<int64_t>(), dense.const_data_ptr<int64_t>() + dense.numel(),
                       [&](int64_t place) { return fits(element(place), dtype, *session_.symbols); });
  }

  MaybePlaces converted_elements(const graph::Node& node, DType dtype) {
    return pointwise(node.args[0], [&](const Element& a) { return converted(a, dtype, *session_.symbols); });
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
        return pointwise(args[0], args[1], [&](const Element& a, const Element& b) {
          if (counting == Counting::SubtractFrom) return sum(b, a, -*factor);
          return sum(a, b, counting == Counting::Add ? *factor : -*factor);
        });
      }
      case Counting::Multiply:
        return pointwise(args[0], args[1], product);
      case Counting::Negate:
        return pointwise(args[0], [](const Element& a) { return Element{-a.top, a.bottom, a.roundings}; });
      case Counting::Divide:
        return pointwise(args[0], args[1], quotient);
      case Counting::FloorDivide:
      case Counting::Remainder:
      case Counting::Maximum:
      case Counting::Minimum:
        return whole_results(node, counting);
      case Counting::Floor:
        return pointwise(args[0], floor);
      case Counting::Ceil:
        return pointwise(args[0], ceil);
      case Counting::Less:
      case Counting::LessEqual:
      case Counting::Greater:
      case Counting::GreaterEqual:
      case Counting::Equal:
      case Counting::NotEqual:
        return pointwise(args[0], args[1], [&](const Element& a, const Element& b) {
          return comparison(counting, a, b, *session_.symbols);
        });
      case Counting::Sum:
      case Counting::Product:
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

  MaybePlaces whole_results(const graph::Node& node, Counting counting) {
    bool truncates = false;
    if (counting == Counting::FloorDivide && node.args.size() > 2) {
      const auto* const mode = std::get_if<std::string>(&node.args[2]);
      if (mode == nullptr) return std::nullopt;
      truncates = *mode == "trunc";
    }
    return pointwise(node.args[0], node.args[1], [&](const Element& a, const Element& b) {
      return whole_result(counting, a, b, truncates, *session_.symbols);
    });
  }

  template <class Function>
  MaybePlaces pointwise(const graph::Argument& left, const graph::Argument& right, const Function& function) {
    const MaybePlaces a = operand(left), b = operand(right);
    if (!a || !b) return std::nullopt;
    const std::vector<at::Tensor> alike = at::broadcast_tensors({*a, *b});
    const Places first = alike[0].contiguous(), second = alike[1].contiguous();
    Places result = at::empty(first.sizes(), at::kLong);
    for (int64_t i = 0; i < first.numel(); ++i) {
      std::optional<Element> value =
          function(element(first.const_data_ptr<int64_t>()[i]), element(second.const_data_ptr<int64_t>()[i]));
      if (!value) return std::nullopt;
      if (is_exact_) value->roundings = 0;
      result.data_ptr<int64_t>()[i] = place_of(std::move(*value));
    }
    return result;
  }

  template <class Function>
  MaybePlaces pointwise(const graph::Argument& argument, const Function& function) {
    return pointwise(argument, argument, [&](const Element& a, const Element&) { return function(a); });
  }

  std::vector<int64_t> sizes_of(graph::ValueId value) const {
    std::vector<int64_t> result;
    for (const Expr& size : graph_.meta(value).sizes)
      result.push_back(session_.symbols->environment.hint(size).value());
    return result;
  }

  MaybePlaces reduced(const graph::Node& node, Counting counting) {
    const MaybePlaces places = operand(node.args[0]);
    if (!places || places->numel() == 0 || !counts_as_integer(graph_.meta(node.outputs[0]).dtype))
      return std::nullopt;
    // Of integers any() asks whether one is not zero.
    const DType of = graph_.meta(std::get<graph::ValueRef>(node.args[0]).id).dtype;
    if (graph_.meta(node.outputs[0]).dtype == DType::Bool && of != DType::Bool) return std::nullopt;
    std::vector<int64_t> dims;
    for (size_t i = 1; i < node.args.size(); ++i) {
      if (node.op->arguments[i].name != "dim") continue;
      if (const auto* dim = std::get_if<Expr>(&node.args[i])) dims.push_back(dim->constant());
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
      Expr value = element(own[0]).top;
      for (int64_t i = 1; i < count; ++i) value = reduction_step(counting, value, element(own[i]).top);
      result.data_ptr<int64_t>()[row] = place_of({value});
    }
    return result.reshape(sizes_of(node.outputs[0]));
  }

  MaybePlaces running_sum(const graph::Node& node) {
    const MaybePlaces places = operand(node.args[0]);
    const auto* const dim = std::get_if<Expr>(&node.args[1]);
    const bool counts = is_integral(graph_.meta(node.outputs[0]).dtype);
    if (!places || dim == nullptr || places->dim() == 0 || !counts) return std::nullopt;
    Places result = places->movedim(dim->constant(), -1).clone(at::MemoryFormat::Contiguous);
    const int64_t count = result.size(-1);
    for (int64_t i = 0; i < result.numel(); ++i) {
      if (i % count == 0) continue;
      int64_t* const own = result.data_ptr<int64_t>() + i;
      *own = place_of({element(own[-1]).top + element(own[0]).top});
    }
    return result.movedim(-1, dim->constant());
  }

  std::optional<std::vector<Places>> filled(const graph::Node& node) {
    const bool has_sizes = node.op->arguments[0].kind == ArgumentKind::IntList;
    const MaybePlaces filling = operand(node.args[has_sizes ? 1 : 0]);
    if (!filling || !fit(*filling, graph_.meta(node.outputs.at(0)).dtype)) return std::nullopt;
    return std::vector<Places>{filling->expand(sizes_of(node.outputs[0]))};
  }

  MaybePlaces padded(const graph::Node& node) {
    const MaybePlaces filling = operand(node.args[2]);
    if (!filling) return std::nullopt;
    graph::Node own = node;
    own.args.edit()[2] = Expr(filling->item<int64_t>());
    return run(own, [&](graph::ValueId id) { return *places_of(id); }).at(0);
  }

  // The elements themselves, on which the recording relies from now on.
  at::Tensor specialised_elements(graph::ValueId value) {
    at::Tensor result = places_of(value)->clone(at::MemoryFormat::Contiguous);
    for (int64_t i = 0; i < result.numel(); ++i) {
      int64_t& own = result.data_ptr<int64_t>()[i];
      own = session_.symbols->environment.specialise(element(own).top, session_.symbols->where);
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
    at::Tensor numbers = specialised_elements(counts->id);
    if (numbers.lt(0).any().item<bool>()) return std::nullopt;  // eager refuses
    return constants(run(node, [&](graph::ValueId) { return numbers; }).at(0));
  }

  Session& session_;
  ElementTable& table_;
  KnownValues& known_;
  const graph::Graph& graph_;
  bool is_exact_ = false;  // the result of the node under way
};

}  // namespace

std::optional<std::vector<Expr>> element_expressions(Session& session, graph::ValueId value) {
  const KnownValues& known = session.known;
  if (!session.symbols || !session.elements.symbol_of) return std::nullopt;
  const bool has_symbols = known.of_varying == VaryingElements::Symbols;
  const auto may_read = [&](graph::ValueId input) {
    return known.candidates.contains(input) || session.elements.numbers.contains(input) ||
           (has_symbols && known.varying.contains(input));
  };
  const std::optional<Slice> slice = collect_slice(
      session, value, may_read, has_symbols ? SymbolsInSlice::Anywhere : SymbolsInSlice::InArguments);
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
  if (session.recording.graph.meta(trace->value()).dtype == DType::Bool) {
    if (!elements->front().is_constant()) return false;
    stack->back() = c10::IValue(c10::Scalar(elements->front().constant() != 0));
    return true;
  }
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
