// The operators of frozen graphs: weights in oneDNN's own layout, activation and residual in the same call.
//
//   oxyfuel::packed_linear(Tensor x, Tensor packed, Tensor? bias, str activation, Tensor? residual) -> Tensor
//   oxyfuel::packed_convolution(Tensor x, Tensor packed_weight, Tensor? bias, SymInt[] stride, SymInt[]
//   padding,
//       SymInt[] dilation, int groups, str activation, Tensor? residual) -> Tensor
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "runtime/cpu/handlers.h"
#include "runtime/device/packing.h"

namespace oxy::runtime {

namespace {

// torch registers oneDNN's fused operators but declares them in no header.
using Scalars = c10::List<std::optional<c10::Scalar>>;
using OptionalText = std::optional<std::string_view>;
using LinearUnary = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                               std::string_view, Scalars, OptionalText);
using LinearBinary = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                const std::optional<at::Tensor>&, std::string_view);
using ConvolutionUnary = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                                    at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t,
                                    std::string_view, Scalars, OptionalText);
using ConvolutionBinary = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                     const std::optional<at::Tensor>&, at::IntArrayRef, at::IntArrayRef,
                                     at::IntArrayRef, int64_t, std::string_view, std::optional<at::Scalar>,
                                     OptionalText, Scalars, OptionalText);

template <class Signature>
c10::TypedOperatorHandle<Signature> find(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<Signature>();
}

struct ActivationInfo {
  std::string_view ours;
  std::string_view onednn;
  std::string_view algorithm;
};
constexpr auto kActivations = std::to_array<ActivationInfo>({
    {"none", "none", ""},
    {"relu", "relu", ""},
    {"gelu", "gelu", "none"},
    {"gelu_tanh", "gelu", "tanh"},
    {"hardswish", "hardswish", ""},
    {"hardsigmoid", "hardsigmoid", ""},
    {"silu", "swish", ""},
    {"sigmoid", "sigmoid", ""},
    {"tanh", "tanh", ""},
});

const ActivationInfo& activation_of(const std::string& name) {
  for (const ActivationInfo& info : kActivations)
    if (info.ours == name) return info;
  throw InternalError(fmt::format("no packed operator applies the activation '{}'", name));
}

OptionalText algorithm_of(const ActivationInfo& activation) {
  return activation.algorithm.empty() ? OptionalText() : OptionalText(activation.algorithm);
}

std::optional<at::Tensor> optional(const at::Tensor* tensors, Slot slot) {
  return slot == kNoSlot ? std::nullopt : std::optional(tensors[slot]);
}

}  // namespace

bool has_packed_activation(std::string_view activation, bool with_residual) {
  if (with_residual) return activation == "none" || activation == "relu";
  return std::any_of(kActivations.begin(), kActivations.end(),
                     [&](const ActivationInfo& info) { return info.ours == activation; });
}

Invoke prepare_packed_linear(const CallSite& site) {
  const Slot x = site.tensor(0), weight = site.tensor(1), bias = site.tensor(2), residual = site.tensor(4);
  const ResultSlot where = site.results.at(0);
  check(where.slot != kNoSlot, "a packed operator without a result");
  const TensorSpec* const spec = &site.spec(where.slot);
  const ActivationInfo& activation = activation_of(site.text(3));
  if (residual == kNoSlot) {
    static const auto op = find<LinearUnary>("mkldnn::_linear_pointwise", "");
    return [=](at::Tensor* tensors) {
      deliver(tensors, where, *spec,
              op.call(tensors[x], tensors[weight], optional(tensors, bias), activation.onednn, Scalars(),
                      algorithm_of(activation)),
              true);
    };
  }
  check(activation.ours == "none", "a packed linear adds the residual last");
  static const auto op = find<LinearBinary>("mkldnn::_linear_pointwise", "binary");
  return [=](at::Tensor* tensors) {
    deliver(tensors, where, *spec,
            op.call(tensors[x], tensors[residual], tensors[weight], optional(tensors, bias), "add"), true);
  };
}

Invoke prepare_packed_convolution(const CallSite& site) {
  const Slot x = site.tensor(0), weight = site.tensor(1), bias = site.tensor(2), residual = site.tensor(8);
  const ResultSlot where = site.results.at(0);
  check(where.slot != kNoSlot, "a packed operator without a result");
  const TensorSpec* const spec = &site.spec(where.slot);
  const auto stride = site.integers(3), padding = site.integers(4), dilation = site.integers(5);
  const auto groups = static_cast<int64_t>(site.number(6));
  const ActivationInfo& activation = activation_of(site.text(7));
  if (residual == kNoSlot) {
    static const auto op = find<ConvolutionUnary>("mkldnn::_convolution_pointwise", "");
    return [=](at::Tensor* tensors) {
      deliver(tensors, where, *spec,
              op.call(tensors[x], tensors[weight], optional(tensors, bias), padding, stride, dilation, groups,
                      activation.onednn, Scalars(), algorithm_of(activation)),
              true);
    };
  }
  check(activation.ours == "none" || activation.ours == "relu", "a residual is followed by relu or nothing");
  static const auto op = find<ConvolutionBinary>("mkldnn::_convolution_pointwise", "binary");
  const OptionalText after = activation.ours == "relu" ? OptionalText("relu") : OptionalText();
  return [=](at::Tensor* tensors) {
    deliver(tensors, where, *spec,
            op.call(tensors[x], tensors[residual], tensors[weight], optional(tensors, bias), padding, stride,
                    dilation, groups, "add", at::Scalar(1.0), after, Scalars(), OptionalText()),
            true);
  };
}

}  // namespace oxy::runtime
