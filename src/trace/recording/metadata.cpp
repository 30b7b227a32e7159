#include "trace/recording/metadata.h"
#include "aten/strides_that_count.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DefaultDtype.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_set>

#include "aten/opaque.h"
#include "base/error.h"
#include "base/hash.h"
#include "graph/sizes.h"
#include "runtime/device/generators.h"
#include "runtime/values/convert.h"
#include "runtime/values/host.h"
#include "trace/recording/data_reads.h"
#include "trace/recording/values_at_hand.h"
#include "trace/tensors/dispatch_key.h"
#include "trace/tensors/trace_error.h"
#include "trace/tensors/unheard.h"

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

// The kinds of tensors that take the place of trace tensors in a call that finds out metadata.
enum class StandIn : uint8_t {
  Meta,    // on PyTorch's meta device
  Zeros,   // real ones on the CPU; 32-bit integers are ones
  Single,  // real ones of the same rank and device, with one element
};

bool has_sizes(const at::Tensor& tensor, const std::vector<Expr>& sizes) {
  return std::ranges::equal(tensor.sizes(), sizes, [](int64_t a, const Expr& b) { return Expr(a) == b; });
}

at::Tensor stand_in(const at::Tensor& tensor, StandIn kind, const torch_api::Symbols* symbols) {
  if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number()) return tensor;
  if (kind == StandIn::Single)
    return at::zeros(std::vector<int64_t>(static_cast<size_t>(tensor.dim()), 1),
                     at::dtype(tensor.scalar_type()).device(tensor.device()));
  const TensorMeta meta = at_hand(symbols, runtime::metadata_of(tensor));
  if (kind == StandIn::Meta) return runtime::meta_tensor(meta);
  at::Tensor storage = runtime::meta_tensor(meta);  // of the right extent
  const auto bytes = static_cast<int64_t>(storage.storage().nbytes());
  const auto item = static_cast<int64_t>(tensor.itemsize());
  at::Tensor data = at::empty({bytes / item}, at::dtype(tensor.scalar_type()));
  std::memset(data.mutable_data_ptr(), 0, static_cast<size_t>(bytes));
  // LAPACK's pivots count from one. It swaps the rows that they name without a check of their numbers.
  if (tensor.scalar_type() == at::kInt)
    std::fill_n(static_cast<int32_t*>(data.mutable_data_ptr()), bytes / item, 1);
  data.unsafeGetTensorImpl()->set_sizes_and_strides(storage.sizes(), storage.strides(),
                                                    storage.storage_offset());
  return data;
}

c10::IValue stand_in(const c10::IValue& value, const c10::Argument& argument, bool is_tensor, StandIn kind,
                     const torch_api::Symbols* symbols) {
  if (is_tensor) {
    if (value.isTensor()) return stand_in(value.toTensor(), kind, symbols);
    if (value.isTensorList()) {
      std::vector<at::Tensor> list = value.toTensorVector();
      for (at::Tensor& tensor : list) tensor = stand_in(tensor, kind, symbols);
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
        list.push_back(tensor ? std::optional<at::Tensor>(stand_in(*tensor, kind, symbols)) : std::nullopt);
      return list;
    }
    return value;
  }
  const bool names_device = value.isDevice() || (value.isNone() && argument.name() == "device");
  return names_device && kind == StandIn::Meta ? c10::IValue(c10::Device(c10::kMeta))
                                               : at_hand(symbols, value);
}

// Of the sizes at hand, where there are symbols.
ResultMetadata from_kernel(const OperatorInfo& info, std::span<const c10::IValue> call, StandIn kind,
                           const torch_api::Symbols* symbols) {
  const std::vector<c10::Argument>& arguments = info.handle.schema().arguments();
  torch::jit::Stack stack;
  stack.reserve(call.size());
  const c10::impl::ExcludeDispatchKeyGuard below(kKeysOfTracing);
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < call.size(); ++i)
    stack.push_back(stand_in(call[i], arguments[i], info.is_tensor_argument[i], kind, symbols));
  const torch::jit::Stack inputs = stack;
  try {
    info.handle.callBoxed(stack);
  } catch (const c10::NotImplementedError&) {
    if (kind != StandIn::Meta) throw;
    throw_cannot_trace(fmt::format("no rule says what {} gives", info.schema->name));
  } catch (const c10::Error&) {
    throw;
  } catch (const std::exception& error) {
    // A meta kernel in Python does not cover the call. Other errors are those of the program.
    const std::string_view text = error.what();
    if (kind != StandIn::Meta || !text.starts_with("NotImplementedError")) throw;
    throw_cannot_trace(fmt::format("no rule says what {} gives for these arguments", info.schema->name));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!info.schema->arguments[i].is_written || !call[i].isTensor()) continue;
    if (!has_sizes(inputs[i].toTensor(), at_hand(symbols, runtime::metadata_of(call[i].toTensor())).sizes))
      throw_cannot_trace(fmt::format("{} resizes its out= argument", info.schema->name));
  }
  const Device device = result_device(call);
  return metadata_of_returned(stack, [&](const at::Tensor& tensor, size_t) {
    TensorMeta meta = runtime::metadata_of(tensor);
    meta.device = device;
    return meta;
  });
}

// Asks the shape environment of a recording.
class Questions final : public ops::SizeQuestions {
 public:
  explicit Questions(Session& session) : session_(session), symbols_(*session.symbols) {}
  bool decide(const sym::Condition& question) const override {
    return symbols_.environment.expect(question, symbols_.where);
  }
  bool require(const sym::Condition& condition) const override {
    return symbols_.environment.check(condition, symbols_.where) != sym::Checked::Fails;
  }
  std::optional<bool> generally(const sym::Condition& question) const override {
    return sym::certain(symbols_.environment.answer(question, sym::Assume::LargeSizes));
  }
  std::optional<bool> at_hand(const sym::Condition& question) const override {
    return symbols_.environment.hint(question);
  }
  int64_t specialise(const Expr& e) const override {
    return symbols_.environment.specialise(e, symbols_.where);
  }
  Expr computed_size(const Expr& at_most) const override {
    const Expr size = new_computed_symbol(session_, {0, sym::kMaxInt}, "the shape of a result");
    symbols_.environment.assume(sym::less_equal(size, at_most));
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
  torch_api::Symbols& symbols_;
};

// Sizes that are known to be equal are written alike.
TensorMeta simplify(const torch_api::Symbols& symbols, TensorMeta meta) {
  for (Expr& size : meta.sizes) size = symbols.environment.simplify(size);
  for (Expr& stride : meta.strides) stride = symbols.environment.simplify(stride);
  meta.storage_offset = symbols.environment.simplify(meta.storage_offset);
  return meta;
}

// The metadata from the shape rule. Nothing if the rule does not cover the call.
c10::IValue integer_value(const torch_api::SymbolsPointer& symbols, const Expr& value) {
  if (const auto number = value.as_constant()) return *number;
  return torch_api::to_torch(symbols, value);
}

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
      throw InternalError(fmt::format("the shape rule of {}: {}", info.schema->name, error.what()));
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

template <class To>
bool is_too_short(const c10::Scalar& number) {
  if (number.isFloatingPoint()) return c10::overflows<To, double>(number.toDouble());
  return number.isIntegral(false) && c10::overflows<To, int64_t>(number.toLong());
}

struct ShortType {
  at::ScalarType type;
  bool (*cannot_hold)(const c10::Scalar& number);
};

constexpr std::array kShortTypes = {
    ShortType{at::kByte, &is_too_short<uint8_t>},           ShortType{at::kChar, &is_too_short<int8_t>},
    ShortType{at::kShort, &is_too_short<int16_t>},          ShortType{at::kInt, &is_too_short<int32_t>},
    ShortType{at::kLong, &is_too_short<int64_t>},           ShortType{at::kHalf, &is_too_short<c10::Half>},
    ShortType{at::kBFloat16, &is_too_short<c10::BFloat16>}, ShortType{at::kFloat, &is_too_short<float>}};

// The dtypes that cannot hold the number, as a set: a bit for each of kShortTypes.
uint64_t types_too_short(const c10::Scalar& number) {
  uint64_t bits = 0;
  for (size_t i = 0; i < kShortTypes.size(); ++i)
    bits |= static_cast<uint64_t>(kShortTypes[i].cannot_hold(number)) << i;
  return bits;
}

// The type as an element of such a set; 0 for types that hold all numbers.
uint64_t bit_of(at::ScalarType type) {
  const auto* found = std::ranges::find(kShortTypes, type, &ShortType::type);
  return found == kShortTypes.end() ? 0 : uint64_t{1} << (found - kShortTypes.begin());
}

// The types of the tensors among the arguments, and those that arguments name, as such a set.
uint64_t types_of(const OperatorInfo& info, std::span<const c10::IValue> call) {
  uint64_t types = 0;
  for (size_t i = 0; i < call.size(); ++i) {
    if (call[i].isTensor() && call[i].toTensor().defined()) types |= bit_of(call[i].toTensor().scalar_type());
    if (info.schema->arguments[i].kind == ArgumentKind::DType && call[i].isInt())
      types |= bit_of(call[i].toScalarType());
  }
  return types;
}

// Whether a number among the arguments does not fit the type of a tensor among them.
bool overflows_tensors(std::span<const c10::IValue> call) {
  uint64_t types = 0, too_short = 0;
  for (const c10::IValue& value : call) {
    if (value.isScalar()) too_short |= types_too_short(value.toScalar());
    if (value.isTensor() && value.toTensor().defined()) types |= bit_of(value.toTensor().scalar_type());
  }
  return (types & too_short) != 0;
}

// The call with numbers at hand in place of symbolic ones. The number is guarded if some of those that the
// symbol may stand for do not fit the types of the call.
std::vector<c10::IValue> with_known_numbers(const OperatorInfo& info, std::span<const c10::IValue> call,
                                            const torch_api::Symbols* symbols) {
  std::vector<c10::IValue> result(call.begin(), call.end());
  if (symbols == nullptr) return result;
  for (c10::IValue& value : result) {
    if (!value.isSymInt()) continue;
    const sym::Range range = symbols->environment.range(torch_api::expression_of(value.toSymInt()));
    const uint64_t too_short = types_too_short(range.low) | types_too_short(range.high);
    if ((too_short & types_of(info, call)) != 0)
      value = value.toSymInt().guard_int(__FILE__, __LINE__);
    else
      value = symbols->environment.hint(torch_api::expression_of(value.toSymInt())).value_or(1);
  }
  return result;
}

// Shape rules and meta kernels know dtypes by promotion alone. This asks eager's kernel, once for each
// operator and dtypes, on tensors of one element. Throws CannotTrace if the kernel refuses them. Only for
// operators with a shape rule: some others trust the sizes among their arguments and would read beyond the
// one element.
void check_types(const OperatorInfo& info, std::span<const c10::IValue> recorded,
                 const torch_api::Symbols* symbols) {
  if (info.schema->is_random || info.schema->is_view()) return;
  const std::vector<c10::IValue> call = with_known_numbers(info, recorded, symbols);
  const bool overflows = overflows_tensors(call);
  if (info.rule == nullptr && !(overflows && info.schema->is_mutating())) return;
  uint64_t key = hash_combine(0, reinterpret_cast<uintptr_t>(info.schema));
  const auto add = [&](const at::Tensor& tensor) {
    key = hash_combine(key, !tensor.defined() ? 0
                            : tensor.unsafeGetTensorImpl()->is_wrapped_number()
                                ? 64 + static_cast<uint64_t>(tensor.scalar_type())
                                : 1 + static_cast<uint64_t>(tensor.scalar_type()));
    if (tensor.defined()) key = hash_combine(key, static_cast<uint64_t>(tensor.device().type()));
    if (overflows && tensor.defined())
      key = hash_combine(key, element_count(at_hand(symbols, runtime::metadata_of(tensor))).hash());
  };
  bool fits_all = true;
  for (size_t i = 0; i < call.size(); ++i) {
    if (call[i].isTensor()) add(call[i].toTensor());
    if (call[i].isTensorList())
      for (const at::Tensor& tensor : call[i].toTensorVector()) add(tensor);
    if (call[i].isOptionalTensorList())
      for (const std::optional<at::Tensor>& tensor : call[i].toOptionalTensorVector())
        add(tensor.value_or(at::Tensor()));
    if (!call[i].isScalar()) continue;
    const uint64_t too_short = types_too_short(call[i].toScalar());
    fits_all = fits_all && too_short == 0;
    key = hash_combine(key, i);
    key = hash_combine(key, 128 + (call[i].isInt() ? 1 : call[i].isDouble() ? 2 : call[i].isBool() ? 3 : 4));
    key = hash_combine(key, too_short);
    // Unsigned types refuse negative numbers, and kinds of numbers count for type promotion.
    const c10::Scalar number = call[i].toScalar();
    if (!number.isComplex()) key = hash_combine(key, number.toDouble() < 0 ? 1 : 0);
    if (info.schema->arguments[i].kind == ArgumentKind::DType)
      key = hash_combine(key, static_cast<uint64_t>(number.toLong()));
  }
  // Without tensors, only numbers can be refused, and only if a dtype is given.
  if (!info.has_tensor_argument) {
    if (fits_all) return;
    for (const c10::IValue& value : call)
      if (value.isInt()) key = hash_combine(key, static_cast<uint64_t>(value.toInt()));
  }
  static std::mutex mutex;
  static std::unordered_set<uint64_t> accepted;
  {
    const std::scoped_lock lock(mutex);
    if (accepted.contains(key)) return;
  }
  try {
    const Unheard unheard;
    // Kernels do not check the range of a number for a single element.
    from_kernel(info, call, overflows ? StandIn::Zeros : StandIn::Single, symbols);
  } catch (const std::exception& error) {
    // Any other error may come from the sizes and elements of the stand-ins.
    const std::string_view text = error.what();
    const bool is_of_types = dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr ||
                             (dynamic_cast<const c10::IndexError*>(&error) == nullptr &&
                              (text.find("dtype") != text.npos || text.find("type ") != text.npos ||
                               text.find("representable") != text.npos ||
                               text.find("implemented") != text.npos || text.find("supported") != text.npos));
    if (is_of_types) throw_cannot_trace(fmt::format("{} is given types that it refuses", info.schema->name));
  }
  const std::scoped_lock lock(mutex);
  accepted.insert(key);
}

}  // namespace

namespace {

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

// The line of the last operator that computed a tensor of the call: in a backward pass, where the program is
// at no line, that of the forward operator. Empty: unknown.
std::string line_of_operands(const Session& session, const std::vector<graph::Argument>& args) {
  const graph::Graph& graph = session.recording.graph;
  graph::NodeId last = graph::kNoNode;
  // What a gradient was computed of is at no line, either.
  constexpr size_t kMostValues = 64;
  std::vector<graph::ValueId> behind;
  const auto see = [&](graph::ValueId id) {
    if (id == graph::kNoValue) return;
    const graph::NodeId node = graph.values.at(id).node;
    if (node == graph::kNoNode) return;
    if (graph.nodes[node].location == graph::kNoLocation)
      behind.push_back(id);
    else if (last == graph::kNoNode || last < node)
      last = node;
  };
  for (const graph::Argument& argument : args) {
    if (const auto* ref = std::get_if<graph::ValueRef>(&argument)) see(ref->id);
    if (const auto* list = std::get_if<graph::ValueList>(&argument))
      for (const graph::ValueId id : list->ids) see(id);
  }
  for (size_t i = 0; i < behind.size() && i < kMostValues && last == graph::kNoNode; ++i)
    graph::for_each_input(graph.nodes[graph.values.at(behind[i]).node], see);
  return last == graph::kNoNode ? "" : graph.locations.at(graph.nodes[last].location).text;
}

[[noreturn]] void refuse_symbols(const Session& session, const OperatorInfo& info,
                                 const std::vector<graph::Argument>& args) {
  std::string text = fmt::format("no rule says what {} gives for symbolic sizes", info.schema->name);
  const bool is_at_a_line = session.symbols->where && !session.symbols->where().empty();
  if (const std::string line = is_at_a_line ? "" : line_of_operands(session, args); !line.empty())
    text += fmt::format(", in a gradient of {}", line);
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

void simplify(const torch_api::Symbols& symbols, ResultMetadata& result) {
  for (std::optional<TensorMeta>& meta : result.tensors) {
    if (meta) meta = simplify(symbols, *meta);
  }
}

}  // namespace

ResultMetadata result_metadata(Session& session, const OperatorInfo& info,
                               const std::vector<graph::Argument>& args, std::span<const c10::IValue> call) {
  const torch_api::Symbols* symbols = session.symbols.get();
  check_types(info, call, symbols);
  if (info.rule != nullptr) {
    std::optional<ResultMetadata> result = from_rule(session, info, args);
    if (result && symbols != nullptr) simplify(*symbols, *result);
    if (result && (!info.schema->is_mutating() || written_arguments_fit(info, call, *result, symbols))) {
      if (session.strict_shapes && !result->tensors.empty() && is_call_at_hand(session, *result, args))
        compare_with_eager(info, *result, call, symbols);
      if (symbols != nullptr) expect_sizes(*session.symbols, *result);
      return std::move(*result);
    }
  }
  if (info.treatment == Treatment::DynamicShape && !has_known_shape(info, call))
    throw_cannot_trace(fmt::format("the shape of the result of {} depends on data", info.schema->name));
  if (symbols != nullptr && has_symbols(session, args)) refuse_symbols(session, info, args);
  ResultMetadata result = from_kernels(info, call);
  ++session.recording.meta_fallbacks;
  session.recording.meta_fallback_names.push_back(info.schema->name);
  return result;
}

}  // namespace oxy::trace
