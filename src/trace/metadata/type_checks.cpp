#include "trace/metadata/type_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <unordered_set>

#include "aten/opaque.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/timing.h"
#include "runtime/values/convert.h"
#include "runtime/values/host.h"
#include "torch_api/error_text.h"
#include "trace/metadata/stand_ins.h"
#include "trace/session/values_at_hand.h"
#include "trace/tensors/trace_error.h"
#include "trace/tensors/unheard.h"

namespace oxy::trace {

namespace {

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

// Tensors of one floating point type. Kernels of the host may lack the shortest one.
bool is_of_one_float(std::span<const c10::IValue> call) {
  std::optional<c10::ScalarType> type;
  for (const c10::IValue& value : call) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor& tensor = value.toTensor();
    const c10::ScalarType own = tensor.scalar_type();
    if (!at::isFloatingType(own) || c10::elementSize(own) < 2 || type.value_or(own) != own) return false;
    if (own == at::kHalf && runtime::is_on_host(tensor)) return false;
    type = own;
  }
  return type.has_value();
}

// Whether a device's kernel takes the types of a call that the host's kernel takes: of operators that work on
// each element by itself, or move elements, whatever usual types they are; else of tensors of one floating
// type beside indices and masks. (The host also multiplies matrices of integers, and normalises what has
// another type than its statistics.)
bool host_can_answer(const OperatorInfo& info, std::span<const c10::IValue> call) {
  const ops::Traits& traits = ops::traits_of(*info.schema);
  const bool takes_all = traits.counting != ops::Counting::None || traits.is_cheap ||
                         traits.known_size == ops::KnownSize::WithoutMasks;
  std::optional<c10::ScalarType> type;
  bool is_on_device = false;
  // Whether the tensor leaves the answer to the host.
  const auto fits = [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return true;
    is_on_device = is_on_device || !runtime::is_on_host(tensor);
    const c10::ScalarType own = tensor.scalar_type();
    if (own == at::kLong || own == at::kBool) return true;
    const bool is_short = at::isFloatingType(own) && c10::elementSize(own) < 2;
    if (is_short || own == at::kComplexHalf || at::isBarebonesUnsignedType(own)) return false;
    if (takes_all) return true;
    if (!at::isFloatingType(own) || type.value_or(own) != own) return false;
    type = own;
    return true;
  };
  for (const c10::IValue& value : call) {
    if (value.isTensor() && !fits(value.toTensor())) return false;
    if (value.isTensorList() && !std::ranges::all_of(value.toTensorVector(), fits)) return false;
    if (value.isOptionalTensorList())
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
        if (tensor && !fits(*tensor)) return false;
  }
  return is_on_device && (takes_all || type.has_value());
}

// Whether the kernel refuses the types of such tensors. Nothing if it raises another error, which may come
// from their sizes and elements.
std::optional<bool> refuses_types(const OperatorInfo& info, std::span<const c10::IValue> call, StandIn kind,
                                  const torch_api::Symbols* symbols) {
  try {
    const Unheard unheard;
    from_kernel(info, call, kind, symbols);
    return false;
  } catch (const std::exception& error) {
    const std::string_view text = torch_api::error_text(error);
    const bool is_of_types = dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr ||
                             (dynamic_cast<const c10::IndexError*>(&error) == nullptr &&
                              (text.find("dtype") != text.npos || text.find("type ") != text.npos ||
                               text.find("representable") != text.npos || text.find("must not be") != text.npos ||
                               text.find("implemented") != text.npos || text.find("supported") != text.npos));
    return is_of_types ? std::optional(true) : std::nullopt;
  }
}

constexpr int64_t kMostStandInElements = 1 << 16;

bool is_small_on_host(std::span<const c10::IValue> call, const torch_api::Symbols* symbols) {
  int64_t elements = 0;
  for (const c10::IValue& value : call) {
    if (value.isTensorList() || value.isOptionalTensorList()) return false;
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    if (!runtime::is_on_host(value.toTensor())) return false;
    const Expr count = element_count(runtime::metadata_of(value.toTensor()));
    const std::optional<int64_t> at_hand = symbols ? symbols->environment.hint(count) : count.as_constant();
    if (!at_hand) return false;
    elements += *at_hand;
  }
  return elements <= kMostStandInElements;
}

}  // namespace

void check_types(const OperatorInfo& info, std::span<const c10::IValue> recorded,
                 const torch_api::Symbols* symbols) {
  if (info.schema->is_random || info.schema->is_view()) return;
  // What PyTorch decomposes trusts the sizes of its arguments: a gate for each third of the rows.
  if (ops::traits_of(*info.schema).recording == ops::Recording::Whole || is_our_own(*info.schema)) return;
  const ops::TypeCheck kind = ops::traits_of(*info.schema).type_check;
  if (kind == ops::TypeCheck::Known || (kind == ops::TypeCheck::OneFloat && is_of_one_float(recorded)))
    return;
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
    // A flag may say that negative numbers are refused (leaky_relu_backward of a result).
    if (call[i].isBool()) key = hash_combine(key, call[i].toBool() ? 1 : 0);
    // Unsigned types refuse negative numbers, and kinds of numbers count for type promotion.
    const c10::Scalar number = call[i].toScalar();
    if (!number.isComplex())
      key = hash_combine(key, number.toDouble() >= 0 ? 0 : number.toDouble() < 0 ? 1 : 2);
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
  const Span span("type checks");
  std::optional<bool> is_refused;
  // The first call of a kernel on a device may load it, which takes milliseconds.
  if (!overflows && host_can_answer(info, call) &&
      refuses_types(info, call, StandIn::SingleOnHost, symbols) == false)
    is_refused = false;
  // Kernels do not check the range of a number for a single element.
  if (!is_refused)
    is_refused = refuses_types(info, call, overflows ? StandIn::Zeros : StandIn::Single, symbols);
  // One element may be too few for a window.
  if (!is_refused && is_small_on_host(call, symbols))
    is_refused = refuses_types(info, call, StandIn::Zeros, symbols);
  log(Channel::Timing, "the types of {} took {:.3f} ms", info.schema->name, span.seconds() * 1e3);
  if (is_refused == true)
    throw_cannot_trace(fmt::format("{} is given types that it refuses", info.schema->name));
  const std::scoped_lock lock(mutex);
  accepted.insert(key);
}

}  // namespace oxy::trace
