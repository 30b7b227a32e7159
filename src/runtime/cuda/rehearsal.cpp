#include "runtime/cuda/rehearsal.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/ranges.h>

#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "aten/operators.h"
#include "backend/cuda/load/relaxed_captures.h"
#include "base/background.h"
#include "base/log.h"
#include "runtime/cuda/thread_context.h"
#include "runtime/device/device.h"
#include "runtime/values/convert.h"
#include "runtime/values/tensors.h"
#include "sym/hints.h"
#include "torch_api/error_text.h"

namespace oxy::runtime {

namespace {

using backend::cuda::Driver;

constexpr int64_t kMostBytes = int64_t{128} << 20;  // of one call's operands and results

struct Operand {
  size_t argument = 0;
  TensorSpec spec;
};

// A call whose tensors are yet to be made.
struct Rehearsal {
  c10::OperatorHandle op;
  std::vector<c10::IValue> arguments;
  std::vector<Operand> operands;
};

std::optional<std::vector<int64_t>> at_hand(const std::vector<sym::Expr>& expressions) {
  std::vector<int64_t> result;
  for (const sym::Expr& e : expressions) {
    const std::optional<int64_t> number = sym::at_hand(e);
    if (!number) return std::nullopt;
    result.push_back(*number);
  }
  return result;
}

// With the sizes at hand. Nothing: they are not known.
std::optional<TensorSpec> spec_of(const TensorMeta& meta) {
  const auto sizes = at_hand(meta.sizes), strides = at_hand(meta.strides);
  if (!sizes || !strides) return std::nullopt;
  return TensorSpec{dtype_to_torch(meta.dtype), *sizes, *strides, 0};
}

// An argument without its tensors. Nothing: a symbol in it has no value at hand.
std::optional<c10::IValue> plain(const graph::Argument& argument, const ArgumentInfo& info) {
  const auto with_numbers = [](const auto& value) -> std::optional<graph::Argument> {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, graph::ValueRef> || std::is_same_v<T, graph::ValueList>) {
      return graph::None{};
    } else if constexpr (std::is_same_v<T, sym::Expr>) {
      const std::optional<int64_t> number = sym::at_hand(value);
      return number ? std::optional<graph::Argument>(sym::Expr(*number)) : std::nullopt;
    } else if constexpr (std::is_same_v<T, std::vector<sym::Expr>>) {
      const std::optional<std::vector<int64_t>> numbers = at_hand(value);
      if (!numbers) return std::nullopt;
      return std::vector<sym::Expr>(numbers->begin(), numbers->end());
    } else {
      return value;
    }
  };
  const std::optional<graph::Argument> known = std::visit(with_numbers, argument);
  if (!known) return std::nullopt;
  return ivalue_from_argument(*known, info, [](graph::ValueId) { return at::Tensor(); });
}

// Nothing: it cannot be rehearsed, or would need much memory.
std::optional<Rehearsal> rehearsal_of(const graph::Graph& graph, const graph::Node& node, Device device) {
  Rehearsal result{handle_of(*node.op), {}, {}};
  int64_t bytes = 0;
  for (size_t i = 0; i < node.args.size(); ++i) {
    if (const auto* ref = std::get_if<graph::ValueRef>(&node.args[i])) {
      const TensorMeta& meta = graph.meta(ref->id);
      std::optional<TensorSpec> spec = spec_of(meta);
      if (!spec || !(meta.device == device)) return std::nullopt;
      bytes += bytes_of(*spec);
      result.operands.push_back({i, *std::move(spec)});
    }
    std::optional<c10::IValue> argument = plain(node.args[i], node.op->arguments[i]);
    if (!argument) return std::nullopt;
    result.arguments.push_back(*std::move(argument));
  }
  for (const graph::ValueId output : node.outputs) {
    if (output == graph::kNoValue) continue;  // a gradient that nobody wants
    const std::optional<TensorSpec> spec = spec_of(graph.meta(output));
    if (!spec) return std::nullopt;
    bytes += bytes_of(*spec);
  }
  return bytes <= kMostBytes ? std::optional(std::move(result)) : std::nullopt;
}

std::string name_of(const Rehearsal& rehearsal) {
  std::ostringstream name;
  name << rehearsal.op.schema().name();
  for (const c10::IValue& argument : rehearsal.arguments) name << ' ' << argument;
  for (const Operand& operand : rehearsal.operands)
    name << fmt::format(" {} {} {}", static_cast<int>(operand.spec.dtype), operand.spec.sizes,
                        operand.spec.strides);
  return name.str();
}

void perform(const Rehearsal& rehearsal, c10::Device device) {
  std::vector<c10::IValue> stack = rehearsal.arguments;
  for (const Operand& operand : rehearsal.operands)
    stack[operand.argument] = empty_tensor(operand.spec, device);
  rehearsal.op.callBoxed(stack);
}

// What threads have yet to perform, the last one first: a program begins with the first one itself.
struct Queue {
  std::mutex mutex;
  std::vector<Rehearsal> waiting;

  std::optional<Rehearsal> take() {
    const std::scoped_lock lock(mutex);
    if (waiting.empty()) return std::nullopt;
    Rehearsal last = std::move(waiting.back());
    waiting.pop_back();
    return last;
  }
};

void perform_all(const Driver& driver, c10::Device device, Queue& queue) {
  const c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                                 c10::autocast_dispatch_keyset);
  const at::NoGradGuard no_grad;
  try {
    const c10::DeviceGuard guard(device);
    ensure_context(driver);
    const backend::cuda::RelaxedCaptures relaxed(driver);
    while (!background::is_ending()) {
      const std::optional<Rehearsal> next = queue.take();
      if (!next) return;
      const background::Piece piece;  // it takes locks of PyTorch's
      perform(*next, device);
    }
  } catch (const std::exception& error) {  // the graph meets it, or has enough memory
    log(Channel::Timing, "a rehearsal of convolutions has ended: {}", torch_api::error_text(error));
  }
}

}  // namespace

// A failure must not fail the compilation: the graph meets it where it runs the node.
void Rehearsals::add(const graph::Graph& graph, c10::DeviceIndex index) noexcept {
  try {
    begin(graph, index);
  } catch (const std::exception& error) {
    log(Channel::Timing, "convolutions are not rehearsed: {}", torch_api::error_text(error));
  }
}

void Rehearsals::begin(const graph::Graph& graph, c10::DeviceIndex index) {
  if (!at::globalContext().userEnabledCuDNN() || at::globalContext().benchmarkCuDNN()) return;
  const c10::Device device(c10::DeviceType::CUDA, index);
  const auto queue = std::make_shared<Queue>();
  for (const graph::Node& node : graph.nodes) {
    if (node.op != op::convolution() && node.op != op::convolution_backward()) continue;
    std::optional<Rehearsal> rehearsal = rehearsal_of(graph, node, device_from_torch(device));
    if (!rehearsal) continue;
    const std::scoped_lock lock(mutex_);
    if (begun_.insert(name_of(*rehearsal)).second) queue->waiting.push_back(*std::move(rehearsal));
  }
  if (queue->waiting.empty()) return;
  log(Channel::Timing, "{} convolutions are rehearsed", queue->waiting.size());
  for (const background::Lane lane : {background::Lane::Libraries, background::Lane::MoreLibraries})
    background::submit([&driver = driver_, device, queue] { perform_all(driver, device, *queue); }, lane);
}

}  // namespace oxy::runtime
