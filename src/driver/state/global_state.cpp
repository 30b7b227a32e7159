#include "driver/state/global_state.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/functorch/DynamicLayer.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include "cpy/digits.h"
#include "eval/rebuild/default_device.h"
#include "runtime/device/current.h"

namespace oxy::driver {

namespace {

GpuPrecision gpu_precision_now(at::Context& context) {
  const auto of_floats = [&](at::Float32Op op) {
    return static_cast<int32_t>(context.float32Precision(at::Float32Backend::CUDA, op));
  };
  return {.of_floats = {of_floats(at::Float32Op::MATMUL), of_floats(at::Float32Op::CONV)},
          .half_sums = {static_cast<int32_t>(context.allowFP16ReductionCuBLAS()),
                        static_cast<int32_t>(context.allowBF16ReductionCuBLAS()),
                        static_cast<int32_t>(context.allowFP16AccumulationCuBLAS())},
          .library = static_cast<int32_t>(context.blasPreferredBackend())};
}

// Without a GPU in use, nothing depends on it, and asking takes as long as some guards.
GpuPrecision precision_of_gpus(at::Context& context) {
  static const GpuPrecision first = gpu_precision_now(context);
  return runtime::is_accelerator_in_use() ? gpu_precision_now(context) : first;
}

}  // namespace

GlobalState GlobalState::current() {
  auto& context = at::globalContext();
  GlobalState state;
  unsigned bit = 0;
  auto flag = [&](bool value) { state.flags |= static_cast<uint64_t>(value) << bit++; };
  flag(at::GradMode::is_enabled());
  flag(c10::InferenceMode::is_enabled());
  flag(at::autocast::is_autocast_cache_enabled());
  flag(context.deterministicAlgorithms());
  flag(context.deterministicFillUninitializedMemory());
  flag(context.userEnabledMkldnn());
  flag(context.userEnabledMathSDP());
  flag(context.userEnabledFlashSDP());
  flag(context.userEnabledMemEfficientSDP());
  flag(context.userEnabledCuDNNSDP());
  flag(context.userEnabledCuDNN());
  flag(context.benchmarkCuDNN());
  flag(context.deterministicCuDNN());
  flag(context.deterministicAlgorithmsWarnOnly());
  flag(at::impl::PythonTorchFunctionTLS::get_disabled_state() ==
       at::impl::TorchFunctionDisabledState::ENABLED);
  state.default_dtype = static_cast<int32_t>(c10::get_default_dtype_as_scalartype());
  state.no_autocast =
      (c10::impl::tls_local_dispatch_key_set().excluded_ & c10::autocast_dispatch_keyset).raw_repr();
  for (size_t i = 0; i < state.autocast_types.size(); ++i)
    state.autocast_types[i] = at::autocast::get_autocast_dtype(runtime::kAutocastDevices[i]);
  // Other functions that ask for it may throw, depending on how the program has set it.
  state.product_precision =
      static_cast<int32_t>(context.float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL));
  state.gpu_precision = precision_of_gpus(context);
  state.threads = at::get_num_threads();
  state.device = runtime::current_device_index();
  state.digits = cpy::most_digits();
  if (at::impl::PythonTorchFunctionTLS::stack_len() > 0) {
    const auto modes = eval::FunctionModes::current();
    state.default_device = modes.device;
    state.device_contexts = modes.contexts;
    state.torch_function_modes = modes.others;
  }
  state.dispatch_modes = static_cast<int32_t>(c10::impl::TorchDispatchModeTLS::stack_len());
  state.functorch_level = static_cast<int32_t>(at::functorch::getDynamicLayerStack().size());
  state.saved_tensor_hooks = at::SavedTensorDefaultHooks::get_hooks().has_value();
  state.anomaly_mode = torch::autograd::AnomalyMode::is_enabled();
  state.forward_gradients = torch::autograd::ForwardADLevel::try_get_by_idx(0) != nullptr;
  state.jit_tracing = torch::jit::tracer::isTracing();
  return state;
}

const char* GlobalState::why_eager() const {
  if (torch_function_modes) return "a mode of __torch_function__ is active";
  if (dispatch_modes) return "a mode of __torch_dispatch__ is active";
  if (functorch_level) return "a transformation of torch.func is active";
  if (saved_tensor_hooks) return "hooks of saved tensors are active";
  if (anomaly_mode) return "anomaly detection is on";
  if (forward_gradients) return "forward-mode differentiation is active";
  if (jit_tracing) return "torch.jit.trace() is active";
  return nullptr;
}

std::string GlobalState::difference(const GlobalState& other) const {
  static constexpr const char* kFlags[] = {"grad mode",
                                           "inference mode",
                                           "the autocast cache",
                                           "deterministic algorithms",
                                           "filling of uninitialised memory",
                                           "mkldnn",
                                           "math attention",
                                           "flash attention",
                                           "memory-efficient attention",
                                           "cuDNN attention",
                                           "cuDNN",
                                           "benchmarks of cuDNN",
                                           "deterministic cuDNN",
                                           "warnings of deterministic algorithms",
                                           "__torch_function__"};
  for (unsigned i = 0; i < std::size(kFlags); ++i)
    if (((flags ^ other.flags) >> i) & 1) return kFlags[i];
  if (default_dtype != other.default_dtype) return "the default dtype";
  if (no_autocast != other.no_autocast) return "autocast";
  if (autocast_types != other.autocast_types) return "the autocast dtype";
  if (product_precision != other.product_precision) return "the precision of float32 matrix products";
  if (gpu_precision.of_floats != other.gpu_precision.of_floats)
    return "the precision of float32 matrix products or convolutions on GPUs (allow_tf32)";
  if (gpu_precision != other.gpu_precision) return "the precision of matrix products in cuBLAS";
  if (threads != other.threads) return "the number of threads";
  if (device != other.device) return "the current device";
  if (default_device != other.default_device || device_contexts != other.device_contexts)
    return "the default device";
  if (digits != other.digits) return "sys.get_int_max_str_digits()";
  if (!(*this == other)) return "the stack of torch modes";
  return "";
}

}  // namespace oxy::driver
