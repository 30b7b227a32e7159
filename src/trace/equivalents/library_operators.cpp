#include "trace/equivalents/equivalents.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cudnn_batch_norm.h>
#include <ATen/ops/cudnn_batch_norm_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>

#include <optional>
#include <tuple>

#include "trace/tensors/dispatch_key.h"

namespace oxy::trace {

namespace {

using OptionalTensor = std::optional<at::Tensor>;
using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using FourTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// The last result is what cuDNN keeps for its own backward pass.
FourTensors batch_norm(const at::Tensor& input, const at::Tensor& weight, const OptionalTensor& bias,
                       const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training,
                       double momentum, double epsilon) {
  if (!input.key_set().has(kTraceKey)) {
    const c10::impl::ExcludeDispatchKeyGuard below(kTraceKeySet);
    return at::cudnn_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, epsilon);
  }
  auto [result, mean, deviation] =
      at::native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, epsilon);
  // cuDNN knows two formats; the other operator follows whatever order the input's dimensions have.
  return {result.contiguous(input.suggest_memory_format()), mean, deviation,
          at::empty({0}, input.options().dtype(at::kByte))};
}

ThreeTensors batch_norm_backward(const at::Tensor& input, const at::Tensor& gradient,
                                 const at::Tensor& weight, const OptionalTensor& running_mean,
                                 const OptionalTensor& running_var, const OptionalTensor& mean,
                                 const OptionalTensor& deviation, double epsilon, const at::Tensor& reserve) {
  if (!input.key_set().has(kTraceKey) && !gradient.key_set().has(kTraceKey)) {
    const c10::impl::ExcludeDispatchKeyGuard below(kTraceKeySet);
    return at::cudnn_batch_norm_backward(input, gradient, weight, running_mean, running_var, mean, deviation,
                                         epsilon, reserve);
  }
  return at::native_batch_norm_backward(gradient, input, weight, running_mean, running_var, mean, deviation,
                                        /*train=*/true, epsilon, {true, true, true});
}

}  // namespace

void add_library_operators(torch::Library& library) {
  library.impl("cudnn_batch_norm", &batch_norm);
  library.impl("cudnn_batch_norm_backward", &batch_norm_backward);
}

}  // namespace oxy::trace
