#include "trace/metadata/stand_ins.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/values/convert.h"
#include "runtime/values/host.h"
#include "trace/metadata/metadata.h"
#include "trace/session/values_at_hand.h"
#include "trace/tensors/dispatch_key.h"
#include "trace/tensors/trace_error.h"

namespace oxy::trace {

namespace {

bool has_sizes(const at::Tensor& tensor, const std::vector<Expr>& sizes) {
  return std::ranges::equal(tensor.sizes(), sizes, [](int64_t a, const Expr& b) { return Expr(a) == b; });
}

at::Tensor stand_in(const at::Tensor& tensor, StandIn kind, const torch_api::Symbols* symbols) {
  if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number()) return tensor;
  if (kind == StandIn::Single || kind == StandIn::SingleOnHost) {
    const at::TensorOptions options = at::dtype(tensor.scalar_type());
    return at::zeros(std::vector<int64_t>(static_cast<size_t>(tensor.dim()), 1),
                     kind == StandIn::Single ? options.device(tensor.device()) : options);
  }
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
  if (names_device && kind == StandIn::Meta) return c10::Device(c10::kMeta);
  if (value.isDevice() && kind == StandIn::SingleOnHost) return c10::Device(runtime::kHost);
  return at_hand(symbols, value);
}

}  // namespace

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

}  // namespace oxy::trace
