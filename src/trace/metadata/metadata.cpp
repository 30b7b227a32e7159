#include "trace/metadata/metadata.h"

#include <ATen/Parallel.h>
#include <c10/core/DefaultDtype.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <map>

#include "aten/opaque.h"
#include "aten/strides_that_count.h"
#include "base/error.h"
#include "graph/sizes.h"
#include "runtime/device/generators.h"
#include "runtime/values/convert.h"
#include "runtime/values/host.h"
#include "sym/facts/node_count.h"
#include "torch_api/error_text.h"
#include "trace/metadata/stand_ins.h"
#include "trace/metadata/type_checks.h"
#include "trace/session/data_reads.h"
#include "trace/session/values_at_hand.h"
#include "trace/tensors/symbol_questions.h"
#include "trace/tensors/trace_error.h"

namespace oxy::trace {

DType default_dtype() {
  return runtime::dtype_from_torch(c10::get_default_dtype_as_scalartype());
}

Device result_device(std::span<const c10::IValue> call) {
  std::optional<c10::Device> device;
  bool has_dimensions = false;
  const auto consider = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || has_dimensions) return;
    has_dimensions = tensor.dim() > 0;
    // A number on the host is a number beside tensors of other devices.
    if (!device || has_dimensions || device->type() == runtime::kHost) device = tensor.device();
  };
  for (const c10::IValue& value : call) {
    if (value.isDevice()) return runtime::device_from_torch(value.toDevice());
    if (value.isTensor()) consider(value.toTensor());
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector()) consider(tensor);
  }
  return device ? runtime::device_from_torch(*device) : Device{};
}

namespace {

// Asks the shape environment of a recording.
class Questions final : public SymbolQuestions {
 public:
  explicit Questions(Session& session) : SymbolQuestions(*session.symbols), session_(session) {}
  Expr computed_size(const Expr& at_most) const override {
    const Expr size = new_computed_symbol(session_, {0, sym::kMaxInt}, "the shape of a result");
    symbols().environment.assume(sym::less_equal(size, at_most));
    computed_.push_back(size);
    return size;
  }

  // Those that were made, and whose sizes they are.
  std::vector<graph::ComputedSymbol> computed(std::span<const TensorMeta> results) const {
    std::vector<graph::ComputedSymbol> symbols;
    for (const Expr& size : computed_) {
      graph::ComputedSymbol symbol{.variable = size};
      for (size_t r = 0; r < results.size() && symbol.output < 0; ++r)
        for (size_t d = 0; d < results[r].sizes.size() && symbol.output < 0; ++d)
          if (results[r].sizes[d] == size)
            symbol.output = static_cast<int32_t>(r), symbol.dimension = static_cast<int32_t>(d);
      check(symbol.output >= 0, "a shape rule makes a size that no result has");
      symbols.push_back(std::move(symbol));
    }
    return symbols;
  }

 private:
  Session& session_;
  mutable std::vector<Expr> computed_;
};

// Sizes that are known to be equal are written alike.
TensorMeta simplify(const torch_api::Symbols& symbols, TensorMeta meta) {
  return graph::map_expressions(std::move(meta),
                                [&](const Expr& e) { return symbols.environment.simplify(e); });
}

c10::IValue integer_value(const torch_api::SymbolsPointer& symbols, const Expr& value) {
  if (const auto number = value.as_constant()) return *number;
  return torch_api::to_torch(symbols, value);
}

// The metadata from the shape rule. Nothing if the rule does not cover the call.
std::optional<ResultMetadata> from_rule(Session& session, const OperatorInfo& info,
                                        const std::vector<graph::Argument>& args) {
  std::vector<graph::Argument> kept;
  if (info.drops_out_arguments) {
    for (size_t i = 0; i < args.size(); ++i)
      if (const ArgumentInfo& a = info.schema->arguments[i]; !a.is_written || !a.kwarg_only)
        kept.push_back(args[i]);
  }
  std::optional<Questions> questions;
  std::function<const TensorMeta&(graph::ValueId)> meta_of = session.meta_of;
  std::map<graph::ValueId, TensorMeta> simplified;
  if (session.symbols) {
    // What has become known since the values were recorded.
    questions.emplace(session);
    meta_of = [&](graph::ValueId id) -> const TensorMeta& {
      const auto [found, is_new] = simplified.try_emplace(id);
      if (is_new) found->second = simplify(*session.symbols, session.meta_of(id));
      return found->second;
    };
  }
  const ops::ShapeContext context(*info.rule_schema, info.drops_out_arguments ? kept : args, meta_of,
                                  default_dtype(), at::get_num_threads() == 1,
                                  questions ? &*questions : nullptr);
  std::vector<TensorMeta> metas;
  try {
    metas = info.rule->shape(context);
  } catch (const RefusedByEager&) {
    throw;
  } catch (const sym::DataDependence&) {
    throw;
  } catch (const Unsupported&) {
    return std::nullopt;
  } catch (const InternalError&) {
    throw;
  } catch (const std::exception& error) {
    if (is_cannot_trace(error)) throw;
    if (session.strict_shapes)
      throw InternalError(
          fmt::format("the shape rule of {}: {}", info.schema->name, torch_api::error_text(error)));
    return std::nullopt;
  }
  ResultMetadata result;
  if (questions) result.computed = questions->computed(metas);
  result.others.resize(info.schema->returns.size());
  const std::vector<Expr> numbers = info.rule->numbers ? info.rule->numbers(context) : std::vector<Expr>();
  size_t lists = 0, numbers_taken = 0;
  for (size_t r = 0; r < info.schema->returns.size(); ++r) {
    const ArgumentKind kind = info.schema->returns[r].kind;
    if (kind == ArgumentKind::TensorList) ++lists;
    if (kind == ArgumentKind::TensorList || kind == ArgumentKind::Tensor) continue;
    if (numbers_taken == numbers.size()) return std::nullopt;
    result.others[r] = integer_value(session.symbols, numbers[numbers_taken++]);
  }
  const size_t single = info.schema->returns.size() - lists - numbers_taken;
  if (lists > 1 || metas.size() < single ||
      (lists == 0 && metas.size() != single && !info.schema->is_mutating()))
    throw InternalError(
        fmt::format("the shape rule of {} gives {} results", info.schema->name, metas.size()));
  if (lists == 1) result.list_sizes.push_back(metas.size() - single);
  if (info.schema->is_mutating() && lists == 0 && metas.size() > single) metas.resize(single);
  result.tensors.assign(std::make_move_iterator(metas.begin()), std::make_move_iterator(metas.end()));
  if (info.rule->has_result) {
    const std::vector<bool> exists = info.rule->has_result(context);
    for (size_t i = 0; i < exists.size(); ++i)
      if (!exists[i]) result.tensors.at(i).reset();
  }
  return result;
}

// Whether the results that the rule gives fit into the written arguments. These keep their metadata; the rule
// only says whether the call is legal.
bool written_arguments_fit(const OperatorInfo& info, std::span<const c10::IValue> call,
                           const ResultMetadata& result, const torch_api::Symbols* symbols) {
  for (size_t r = 0; r < info.returned_argument.size(); ++r) {
    if (info.returned_argument[r] < 0 || r >= result.tensors.size() || !result.tensors[r]) continue;
    const c10::IValue& written = call[static_cast<size_t>(info.returned_argument[r])];
    const std::vector<Expr>& sizes = result.tensors[r]->sizes;
    const at::Tensor& tensor = written.toTensor();
    const c10::ScalarType computed = runtime::dtype_to_torch(result.tensors[r]->dtype);
    const bool is_out = info.schema->arguments[static_cast<size_t>(info.returned_argument[r])].kwarg_only;
    if (is_out ? computed != tensor.scalar_type() : !c10::canCast(computed, tensor.scalar_type()))
      return false;
    const TensorMeta written_meta = runtime::metadata_of(tensor);
    if (sizes != (symbols ? simplify(*symbols, written_meta) : written_meta).sizes) return false;
  }
  return true;
}

std::string describe(const std::optional<TensorMeta>& meta) {
  if (!meta) return "undefined";
  return fmt::format("{} strides {} offset {} on {}", str(*meta),
                     fmt::join(
                         [&] {
                           std::vector<std::string> texts;
                           for (const Expr& stride : meta->strides) texts.push_back(stride.str());
                           return texts;
                         }(),
                         ","),
                     meta->storage_offset.str(), str(meta->device));
}

// Throws InternalError if the metadata of the shape rule differ from eager's.
void compare_with_eager(const OperatorInfo& info, ResultMetadata rule, std::span<const c10::IValue> call,
                        const torch_api::Symbols* symbols) {
  if (info.schema->is_mutating()) return;
  const bool may_raise = ops::raises_on_data(*info.schema) == ops::Raises::OnAnyElements;
  std::optional<ResultMetadata> answer;
  const auto ask = [&] {
    const c10::Device host(runtime::kHost);
    const runtime::KeepsGenerators generators({&host, 1});
    const bool runs_on_host =
        info.handle.hasKernelForDispatchKey(runtime::kHostKey) ||
        info.handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
    answer = from_kernel(info, call, runs_on_host ? StandIn::Zeros : StandIn::Meta, symbols);
  };
  try {
    ask();
  } catch (const c10::Error&) {
    if (!may_raise) throw;
    return;  // a matrix of zeros has no inverse
  }
  ResultMetadata& eager = *answer;
  if (rule.tensors.size() != eager.tensors.size())
    throw InternalError(fmt::format("the shape rule of {} gives {} results, eager {}", info.schema->name,
                                    rule.tensors.size(), eager.tensors.size()));
  if (symbols != nullptr)
    for (std::vector<std::optional<TensorMeta>>* metas : {&rule.tensors, &eager.tensors})
      for (std::optional<TensorMeta>& meta : *metas)
        if (meta) meta = with_strides_that_count(at_hand(symbols, *meta));
  // Some kernels compute results that an `output_mask` leaves out.
  const bool may_leave_out = info.rule->has_result != nullptr;
  for (size_t i = 0; i < rule.tensors.size(); ++i)
    if (rule.tensors[i] != eager.tensors[i] && (rule.tensors[i] || !may_leave_out))
      throw InternalError(fmt::format("the shape rule of {} gives result {} as {}; eager: {}",
                                      info.schema->name, i, describe(rule.tensors[i]),
                                      describe(eager.tensors[i])));
}

// Meta kernels differ from eager in some strides. So calls with few elements are made for real.
constexpr int64_t kMostStandInElements = 1 << 16;

bool is_small(const OperatorInfo& info, std::span<const c10::IValue> call) {
  int64_t elements = 0;
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined()) elements += tensor.numel();
  };
  for (size_t i = 0; i < call.size(); ++i) {
    if (!info.is_tensor_argument[i]) continue;
    if (call[i].isTensor()) add(call[i].toTensor());
    if (call[i].isTensorList())
      for (const at::Tensor& tensor : call[i].toTensorVector()) add(tensor);
  }
  return elements <= kMostStandInElements;
}

ResultMetadata from_kernels(const OperatorInfo& info, std::span<const c10::IValue> call) {
  ResultMetadata meta = from_kernel(info, call, StandIn::Meta, nullptr);
  const bool is_known = is_of_core(*info.schema);
  if (info.schema->is_mutating() || info.schema->is_random || info.schema->is_view() || !is_known ||
      !info.has_tensor_argument || !is_small(info, call))
    return meta;
  try {
    return from_kernel(info, call, StandIn::Zeros, nullptr);
  } catch (const std::exception&) {
    if (info.rule != nullptr)
      throw_cannot_trace(fmt::format("{} is given what it refuses", info.schema->name));
    return meta;  // the kernel does not accept zeros
  }
}

bool has_symbols(const Session& session, const std::vector<graph::Argument>& args) {
  const auto is_symbolic_value = [&](graph::ValueId id) {
    return id != graph::kNoValue && graph::has_symbols(session.meta_of(id));
  };
  return std::ranges::any_of(args, [&](const graph::Argument& argument) {
    if (const auto* ref = std::get_if<graph::ValueRef>(&argument)) return is_symbolic_value(ref->id);
    if (const auto* list = std::get_if<graph::ValueList>(&argument))
      return std::ranges::any_of(list->ids, is_symbolic_value);
    return graph::has_symbols(argument);
  });
}

void note_meta_kernel(Session& session, const OperatorInfo& info) {
  ++session.recording.meta_fallbacks;
  session.recording.meta_fallback_names.push_back(info.schema->name);
}

// What eager raises for the sizes of now; empty: nothing, or they are not known.
std::string raised_at_hand(Session& session, const OperatorInfo& info,
                           const std::vector<graph::Argument>& args, std::span<const c10::IValue> call) {
  if (!is_at_hand(session.symbols.get(), args, session.meta_of)) return {};
  note_meta_kernel(session, info);
  try {
    from_kernel(info, call, StandIn::Meta, session.symbols.get());
  } catch (const std::exception& error) {
    return torch_api::error_text(error);
  }
  return {};
}

[[noreturn]] void refuse_symbols(Session& session, const OperatorInfo& info,
                                 const std::vector<graph::Argument>& args,
                                 std::span<const c10::IValue> call) {
  const std::string raised = raised_at_hand(session, info, args, call);
  std::string text = raised.empty()
                         ? fmt::format("no rule says what {} gives for symbolic sizes", info.schema->name)
                         : fmt::format("{} raises: {}", info.schema->name, raised);
  // A break names the line of the program. In a backward pass behind it there is none.
  if (torch::autograd::get_current_node() && session.symbols->where)
    if (const std::string line = session.symbols->where(); !line.empty()) text += fmt::format(" ({})", line);
  throw_cannot_trace(text);
}

// Whether all sizes and integers of the call have values before the graph runs.
bool is_call_at_hand(const Session& session, const ResultMetadata& result,
                     const std::vector<graph::Argument>& args) {
  const torch_api::Symbols* symbols = session.symbols.get();
  return is_at_hand(symbols, args, session.meta_of) &&
         std::ranges::all_of(result.tensors, [&](const std::optional<TensorMeta>& meta) {
           return !meta || is_at_hand(symbols, *meta);
         });
}

// A number that data decide is a size from now on, if it is one of a result.
void expect_sizes(torch_api::Symbols& symbols, const ResultMetadata& result) {
  for (const std::optional<TensorMeta>& meta : result.tensors) {
    if (!meta) continue;
    for (const Expr& size : meta->sizes)
      if (!size.is_constant() && !symbols.environment.hint(size))
        symbols.environment.expect_size(size, symbols.where);
  }
}

// Questions about a formula take as long as it is, and a program may make it longer with each operator. From
// so many terms on its value is guarded and takes its place.
constexpr size_t kTermsOfAFormula = 250;

TensorMeta with_short_formulas(torch_api::Symbols& symbols, TensorMeta meta) {
  return graph::map_expressions(std::move(meta), [&](const Expr& e) -> Expr {
    if (sym::node_count(e) <= kTermsOfAFormula || !symbols.environment.hint(e)) return e;
    return symbols.environment.specialise(e, symbols.where);
  });
}

void simplify(torch_api::Symbols& symbols, ResultMetadata& result) {
  for (std::optional<TensorMeta>& meta : result.tensors)
    if (meta) meta = with_short_formulas(symbols, simplify(symbols, *meta));
}

}  // namespace

ResultMetadata result_metadata(Session& session, const OperatorInfo& info,
                               const std::vector<graph::Argument>& args, std::span<const c10::IValue> call) {
  const torch_api::Symbols* symbols = session.symbols.get();
  check_types(info, call, symbols);
  if (info.rule != nullptr) {
    std::optional<ResultMetadata> result = from_rule(session, info, args);
    if (result && symbols != nullptr) simplify(*session.symbols, *result);
    if (result && (!info.schema->is_mutating() || written_arguments_fit(info, call, *result, symbols))) {
      if (session.strict_shapes && !result->tensors.empty() && is_call_at_hand(session, *result, args))
        compare_with_eager(info, *result, call, symbols);
      if (symbols != nullptr) expect_sizes(*session.symbols, *result);
      return std::move(*result);
    }
  }
  if (info.treatment == Treatment::DynamicShape && !has_known_shape(info, call))
    throw_cannot_trace(fmt::format("the shape of the result of {} depends on data", info.schema->name));
  if (symbols != nullptr && has_symbols(session, args)) refuse_symbols(session, info, args, call);
  ResultMetadata result = from_kernels(info, call);
  note_meta_kernel(session, info);
  return result;
}

}  // namespace oxy::trace
