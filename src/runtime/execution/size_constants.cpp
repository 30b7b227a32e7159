#include "runtime/execution/size_constants.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "graph/sizes.h"
#include "runtime/device/device.h"
#include "runtime/execution/interpreter.h"
#include "runtime/values/convert.h"
#include "runtime/values/host.h"

namespace oxy::runtime {

namespace {

constexpr int64_t kInterpretedSets = 3;

std::vector<int64_t> ids_of_symbols(const graph::Graph& graph) {
  std::vector<int64_t> ids;
  for (const Expr& symbol : graph::symbols_of(graph)) ids.push_back(symbol.variable_id());
  return ids;
}

int64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += static_cast<int64_t>(tensor.storage().nbytes());
  return bytes;
}

}  // namespace

SizeConstants::SizeConstants(graph::Graph graph, std::vector<at::Tensor> inputs, Compile compile)
    : graph_(std::move(graph)),
      inputs_(std::move(inputs)),
      compile_(std::move(compile)),
      symbols_(ids_of_symbols(graph_)),
      devices_(devices_of(graph_)),
      until_compiled_(kInterpretedSets) {}

std::optional<std::vector<int64_t>> SizeConstants::current_queues() const {
  std::vector<int64_t> queues;
  for (const c10::Device& device : devices_) {
    const std::optional<int64_t> queue = device_runtime(device.type()).current_queue(device.index());
    if (!queue) return std::nullopt;
    queues.push_back(*queue);
  }
  return queues;
}

SizeConstants::Tensors SizeConstants::get(SymbolValues symbols) {
  const std::optional<std::vector<int64_t>> queues = current_queues();
  if (!queues) return compute(symbols);
  const auto fits = [&](const Kept& kept) {
    for (size_t i = 0; i < symbols_.size(); ++i)
      if (kept.key.values[i] != symbols[static_cast<size_t>(symbols_[i])]) return false;
    return kept.key.queues == *queues;
  };
  for (const int64_t id : symbols_)
    check(id >= 0 && static_cast<size_t>(id) < symbols.size(), "a symbol of a graph has no value");
  {
    const std::scoped_lock lock(mutex_);
    if (!kept_.empty() && fits(kept_.back())) return kept_.back().tensors;
    if (const auto it = std::ranges::find_if(kept_, fits); it != kept_.end()) {
      std::rotate(it, it + 1, kept_.end());
      return kept_.back().tensors;
    }
  }
  Tensors tensors = compute(symbols);
  Key key{.values = {}, .queues = *queues};
  for (const int64_t id : symbols_) key.values.push_back(symbols[static_cast<size_t>(id)]);
  keep(std::move(key), tensors);
  return tensors;
}

SizeConstants::Tensors SizeConstants::compute(SymbolValues symbols) {
  const at::NoGradGuard no_grad;
  const c10::InferenceMode normal_tensors(false);  // calls in and out of inference mode use them
  const c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                                 c10::autocast_dispatch_keyset);
  std::vector<at::Tensor> tensors;
  if (CompiledGraph* const graph = compiled()) {
    std::vector<int64_t> values(symbols.begin(), symbols.end());
    tensors = graph->run(inputs_, values);
  } else {
    tensors = interpreted(symbols);
  }
  return std::make_shared<const std::vector<at::Tensor>>(std::move(tensors));
}

CompiledGraph* SizeConstants::compiled() {
  CompiledGraph* const found = find_compiled();
  // May take the GIL: not under the lock.
  return found != nullptr && found->readiness() == Readiness::Ready ? found : nullptr;
}

CompiledGraph* SizeConstants::find_compiled() {
  {
    const std::scoped_lock lock(mutex_);
    if (compiled_) return compiled_.get();
    if (until_compiled_ > 0) --until_compiled_;
    if (until_compiled_ > 0 || was_compiled_) return nullptr;
    was_compiled_ = true;
  }
  std::unique_ptr<CompiledGraph> made = compile_();  // takes the GIL: not under the lock
  const std::scoped_lock lock(mutex_);
  compiled_ = std::move(made);
  return compiled_.get();
}

std::vector<at::Tensor> SizeConstants::interpreted(SymbolValues symbols) const {
  std::vector<at::Tensor> tensors = interpret(graph_, inputs_, {}, symbols);
  // What reads them relies on the layouts that the graph has.
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorMeta& meta = graph_.meta(graph_.outputs[i].value);
    const TensorSpec spec{dtype_to_torch(meta.dtype), numbers_of(meta.sizes, symbols),
                          numbers_of(meta.strides, symbols), 0};
    check(tensors[i].scalar_type() == spec.dtype && tensors[i].sizes() == c10::IntArrayRef(spec.sizes),
          "an operator gave another tensor than its graph says");
    if (!has_layout(tensors[i], spec))
      tensors[i] = at::empty_strided(spec.sizes, spec.strides, tensors[i].options()).copy_(tensors[i]);
  }
  return tensors;
}

SizeConstants::Held SizeConstants::held() const {
  const std::scoped_lock lock(mutex_);
  return {kept_.size(), bytes_};
}

void SizeConstants::keep(Key key, const Tensors& tensors) {
  const std::scoped_lock lock(mutex_);
  const bool is_kept = std::ranges::any_of(kept_, [&](const Kept& kept) { return kept.key == key; });
  if (is_kept) return;  // another thread was faster
  kept_.push_back({std::move(key), tensors, bytes_of(*tensors)});
  bytes_ += kept_.back().bytes;
  while (kept_.size() > 1 && (kept_.size() > kMostSets || bytes_ > kMostBytes)) {
    bytes_ -= kept_.front().bytes;
    kept_.erase(kept_.begin());
  }
}

}  // namespace oxy::runtime
