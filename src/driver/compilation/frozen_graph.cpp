#include "driver/compilation/frozen_graph.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "aten/operators.h"
#include "base/error.h"
#include "base/log.h"
#include "base/timing.h"
#include "passes/pipeline/pipeline.h"
#include "passes/weights/freeze_inputs.h"
#include "runtime/device/device.h"
#include "runtime/execution/interpreter.h"
#include "runtime/values/convert.h"
#include "sym/hints.h"

namespace oxy::driver {
namespace {

std::vector<int64_t> integers(const graph::Argument& argument) {
  std::vector<int64_t> result;
  for (const Expr& value : std::get<std::vector<Expr>>(argument)) result.push_back(value.constant());
  return result;
}

std::vector<int64_t> integers(const std::vector<Expr>& values) {
  std::vector<int64_t> result;
  for (const Expr& value : values) result.push_back(value.constant());
  return result;
}

// Runs the constant part of a graph once, on the frozen tensors, and keeps the values that the rest reads.
// Nothing if an operator raises.
class ConstantEvaluator {
 public:
  // `packing`: of the device of the constants; not null if the graph packs weights.
  ConstantEvaluator(std::vector<at::Tensor>& constants, size_t frozen_first, size_t frozen_count,
                    const runtime::Packing* packing)
      : constants_(constants), first_(frozen_first), count_(frozen_count), packing_(packing) {}

  std::optional<std::vector<int32_t>> operator()(const graph::Graph& part) {
    at::NoGradGuard no_grad;
    IdVector<graph::ValueId, at::Tensor> values(part.values.size());
    std::map<graph::ValueId, size_t> handle_of;
    for (const graph::Constant& constant : part.constants) {
      const auto handle = static_cast<size_t>(constant.handle);
      values[constant.value] = constants_[handle];
      if (handle >= first_ && handle < first_ + count_) handle_of[constant.value] = handle;
    }
    std::set<size_t> used;
    for (const graph::Node& node : part.nodes)
      graph::for_each_input(node, [&](graph::ValueId id) {
        if (auto it = handle_of.find(id); it != handle_of.end()) used.insert(it->second);
      });
    auto value_of = [&](graph::ValueId id) { return values[id]; };
    std::set<graph::ValueId> packed;
    for (const graph::Node& node : part.nodes) {
      if (node.op == op::pack_linear() || node.op == op::pack_convolution()) {
        const at::Tensor weight = value_of(std::get<graph::ValueRef>(node.args[0]).id).contiguous();
        at::Tensor result;
        if (node.op == op::pack_linear()) {
          runtime::LinearShape shape;
          shape.rows = std::get<Expr>(node.args[1]).constant();
          shape.inputs = weight.size(1);
          shape.outputs = weight.size(0);
          result = packing_->pack_linear(weight, shape);
        } else {
          const std::vector<int64_t> input = integers(node.args[1]), stride = integers(node.args[2]),
                                     padding = integers(node.args[3]), dilation = integers(node.args[4]);
          const std::vector<int64_t> size = weight.sizes().vec();
          runtime::ConvolutionShape shape{input,   size,     stride,
                                          padding, dilation, std::get<Expr>(node.args[5]).constant()};
          result = packing_->pack_convolution(weight, shape);
        }
        values[node.outputs[0]] = result;
        packed.insert(node.outputs[0]);
        continue;
      }
      std::vector<at::Tensor> results;
      try {
        results = runtime::run_node(node, value_of);
      } catch (const c10::Error&) {
        return std::nullopt;  // a call is to raise it, with the line of the user's
      }
      for (size_t i = 0; i < results.size() && i < node.outputs.size(); ++i)
        values[node.outputs[i]] = results[i];
    }
    used_.merge(used);
    std::vector<int32_t> handles;
    for (const graph::Output& output : part.outputs) {
      at::Tensor tensor = value_of(output.value);
      if (!packed.contains(output.value)) {
        const TensorMeta& meta = part.meta(output.value);
        const std::vector<int64_t> strides = integers(meta.strides);
        if (tensor.strides() != at::IntArrayRef(strides)) {
          at::Tensor exact = at::empty_strided(tensor.sizes(), strides, tensor.options());
          tensor = exact.copy_(tensor);
        }
      }
      bytes_ +=
          packing_ != nullptr ? packing_->bytes(tensor) : static_cast<int64_t>(tensor.storage().nbytes());
      handles.push_back(static_cast<int32_t>(constants_.size()));
      constants_.push_back(std::move(tensor));
    }
    return handles;
  }

  bool uses(size_t handle) const { return used_.contains(handle); }
  int64_t bytes() const { return bytes_; }

 private:
  std::vector<at::Tensor>& constants_;
  size_t first_;
  size_t count_;
  const runtime::Packing* packing_;
  std::set<size_t> used_;
  int64_t bytes_ = 0;
};

// The packing of weights on the device of the graph's tensors; null if it takes weights as they are.
const runtime::Packing* packing_of(const graph::Graph& graph) {
  const c10::Device device = runtime::device_to_torch(graph::main_device(graph));
  const runtime::DeviceRuntime* const found = runtime::find_device(device.type());
  return found == nullptr ? nullptr : found->packing();
}

std::vector<int64_t> sizes_at_hand(const TensorMeta& meta) {
  std::vector<int64_t> sizes;
  for (const Expr& size : meta.sizes) sizes.push_back(sym::estimate(size));
  return sizes;
}

bool convolution_pays(const runtime::Packing& packing, const passes::ConvolutionSite& site) {
  const std::vector<int64_t> input = sizes_at_hand(site.input), weight = sizes_at_hand(site.weight);
  return packing
      .should_pack(runtime::ConvolutionShape{input, weight, site.stride, site.padding, site.dilation,
                                             site.groups, site.weight.dtype},
                   site.owns_weight)
      .pack;
}

passes::ConvolutionLayout convolution_layout(const runtime::Packing& packing,
                                             const passes::ConvolutionSite& site) {
  using enum passes::ConvolutionLayout;
  if (site.has_constant_weight && convolution_pays(packing, site)) return ChannelsLast;
  const std::vector<int64_t> input = sizes_at_hand(site.input), weight = sizes_at_hand(site.weight);
  switch (packing.plain_layout(runtime::ConvolutionShape{input, weight, site.stride, site.padding,
                                                         site.dilation, site.groups, site.weight.dtype})) {
    case runtime::PlainLayout::ChannelsLast:
      return PrefersChannelsLast;
    case runtime::PlainLayout::ChannelsLastWithWeight:
      return PrefersChannelsLastWithWeight;
    case runtime::PlainLayout::Contiguous:
      return AsRecorded;
    case runtime::PlainLayout::Either:
      return AsItComes;
  }
  return AsItComes;
}

bool linear_pays(const runtime::Packing& packing, const passes::LinearSite& site) {
  return packing
      .should_pack(
          runtime::LinearShape{sym::estimate(site.rows), site.in_features, site.out_features, site.dtype},
          site.owns_weight)
      .pack;
}

// A copy of weights that the constant part makes: the handles of the weights from which it comes, and its
// bytes.
struct Copy {
  int64_t bytes = 0;
  std::set<int32_t> handles;
};

std::vector<Copy> copies_of(const graph::Graph& part) {
  IdVector<graph::ValueId, std::set<int32_t>> sources(part.values.size());
  for (const graph::Constant& constant : part.constants) sources[constant.value].insert(constant.handle);
  for (const graph::Node& node : part.nodes) {
    std::set<int32_t> all;
    graph::for_each_input(node, [&](graph::ValueId id) {
      const auto& from = sources[id];
      all.insert(from.begin(), from.end());
    });
    for (graph::ValueId id : node.outputs)
      if (id != graph::kNoValue) sources[id] = all;
  }
  std::vector<Copy> copies;
  for (const graph::Output& output : part.outputs) {
    const TensorMeta& meta = part.meta(output.value);
    copies.push_back({sym::estimate(element_count(meta)) * static_cast<int64_t>(item_size(meta.dtype)),
                      sources[output.value]});
  }
  return copies;
}

passes::Options freezing_options(const graph::Graph& graph, passes::EvaluateConstants evaluate) {
  passes::Options options = plain_options(graph);
  options.evaluate_constants = std::move(evaluate);
  const runtime::Packing* const packing = packing_of(graph);
  if (packing == nullptr) return options;
  options.linear.pays = [packing](const passes::LinearSite& site) { return linear_pays(*packing, site); };
  options.linear.fuses = [packing](std::string_view activation, bool with_residual) {
    return packing->has_activation(activation, with_residual) && (!with_residual || activation == "none");
  };
  options.convolution.pays = [packing](const passes::ConvolutionSite& site) {
    return convolution_pays(*packing, site);
  };
  options.convolution.fuses = [packing](std::string_view activation, bool with_residual) {
    return packing->has_activation(activation, with_residual);
  };
  return options;
}

// By input: whether it is to be frozen, so that all copies fit the budget. Runs the passes once without data.
std::vector<bool> choose_weights(const graph::Graph& graph, std::span<const at::Tensor> weights,
                                 double copy_budget, SizeValues size_values) {
  std::vector<int32_t> handles(graph.inputs.size(), -1);
  int64_t total = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!weights[i].defined()) continue;
    handles[i] = static_cast<int32_t>(i);
    total += static_cast<int64_t>(weights[i].nbytes());
  }
  graph::Graph rehearsed = graph;
  // Constants of the recording are not weights. Their handles must not be mistaken for those of inputs.
  for (graph::Constant& constant : rehearsed.constants)
    constant.handle += static_cast<int32_t>(weights.size());
  std::vector<Copy> copies;
  const auto note = [&](const graph::Graph& part) -> std::optional<std::vector<int32_t>> {
    for (Copy& copy : copies_of(part))
      if (!copy.handles.empty()) copies.push_back(std::move(copy));
    return std::nullopt;
  };
  passes::Options options = freezing_options(graph, note);
  if (size_values == SizeValues::Apart) options.keep_size_constants = note;
  passes::run_passes(passes::freeze_inputs(rehearsed, handles).graph, options, nullptr);
  std::sort(copies.begin(), copies.end(), [](const Copy& a, const Copy& b) { return a.bytes < b.bytes; });
  std::vector<bool> chosen(weights.size(), false);
  auto left = static_cast<int64_t>(copy_budget * static_cast<double>(total));
  for (const Copy& copy : copies) {
    if (copy.bytes > left) break;
    left -= copy.bytes;
    for (int32_t input : copy.handles)
      if (static_cast<size_t>(input) < weights.size()) chosen[static_cast<size_t>(input)] = true;
  }
  return chosen;
}

std::optional<loop::DropoutThreads> dropout_threads(DType dtype, Device device) {
  const runtime::DeviceRuntime* const runtime = runtime::find_device(runtime::device_to_torch(device).type());
  if (runtime == nullptr) return std::nullopt;
  return runtime->dropout_threads(runtime::dtype_to_torch(dtype),
                                  static_cast<c10::DeviceIndex>(device.index));
}

// Gathers what depends on sizes alone.
class SizePartKeeper {
 public:
  explicit SizePartKeeper(std::vector<at::Tensor>& constants) : constants_(constants) {}

  // The results get handles, and no tensors.
  std::vector<int32_t> keep(const graph::Graph& part) {
    part_.emplace(SizePart{part, {}});
    graph::Graph& graph = part_->graph;
    for (const graph::Constant& constant : std::exchange(graph.constants, {})) {
      const bool is_read = std::ranges::any_of(graph.nodes, [&](const graph::Node& node) {
        bool reads = false;
        graph::for_each_input(node, [&](graph::ValueId id) { reads = reads || id == constant.value; });
        return reads;
      });
      if (!is_read) continue;
      graph.inputs.push_back(constant.value);
      part_->inputs.push_back(constants_[static_cast<size_t>(constant.handle)]);
      used_.insert(static_cast<size_t>(constant.handle));
    }
    first_ = static_cast<int32_t>(constants_.size());
    std::vector<int32_t> handles(graph.outputs.size());
    std::iota(handles.begin(), handles.end(), first_);
    constants_.resize(constants_.size() + handles.size());
    return handles;
  }

  // Makes inputs of the results, behind all others.
  void finish(FrozenGraph& frozen) {
    if (!part_) return;
    std::vector<graph::ValueId> values(part_->graph.outputs.size(), graph::kNoValue);
    std::erase_if(frozen.graph.constants, [&](const graph::Constant& constant) {
      if (constant.handle < first_) return false;
      values[static_cast<size_t>(constant.handle - first_)] = constant.value;
      return true;
    });
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] == graph::kNoValue)
        frozen.graph.add_input(part_->graph.meta(part_->graph.outputs[i].value));
      else
        frozen.graph.inputs.push_back(values[i]);
    }
    frozen.size_part = std::move(part_);
  }

  bool uses(size_t handle) const { return used_.contains(handle); }

 private:
  std::vector<at::Tensor>& constants_;
  std::optional<SizePart> part_;
  int32_t first_ = 0;
  std::set<size_t> used_;
};

}  // namespace

passes::Options plain_options(const graph::Graph& graph) {
  passes::Options options;
  options.dropout_threads = dropout_threads;
  const runtime::Packing* const packing = packing_of(graph);
  if (packing == nullptr) return options;
  options.choose_layout = [packing](const passes::ConvolutionSite& site) {
    return convolution_layout(*packing, site);
  };
  options.separates_bias = packing->separates_bias();
  options.generates_vector_products = [packing](DType dtype) {
    return packing->generates_vector_products(dtype);
  };
  options.generates_depthwise_convolutions = [packing](DType dtype) {
    return packing->generates_depthwise_convolutions(dtype);
  };
  options.widens_products = [packing](DType dtype) { return packing->widens_products(dtype); };
  options.product_applies_activation = [packing](std::string_view activation, DType dtype) {
    return packing->product_applies(activation, dtype);
  };
  options.choose_attention = [packing](const passes::AttentionSite& site) {
    const runtime::AttentionOperator found = packing->attention(
        {site.dtype, site.batches, site.heads, site.rows, site.keys, site.width, site.is_masked});
    return passes::AttentionKernel{found.op, found.takes_float_mask, found.takes_nothing, found.alignment};
  };
  options.products.alignment = [packing](DType dtype) { return packing->product_alignment(dtype); };
  options.products.pays = [packing](const passes::ProductSite& site) {
    const runtime::ProductShape shape{site.rows, site.inner, site.columns, site.dtype, site.divisor};
    return packing->should_pad(shape, site.copied_bytes, site.copies);
  };
  return options;
}

FrozenGraph optimise(graph::Graph graph, std::vector<at::Tensor> constants,
                     std::span<const at::Tensor> weights, const MemoryBudgets& budgets,
                     SizeValues size_values, const Dump* dump) {
  FrozenGraph result;
  result.constants = std::move(constants);
  std::vector<int32_t> handles(graph.inputs.size(), -1);
  const size_t first = result.constants.size();
  std::vector<std::pair<int32_t, runtime::FrozenTensor>> frozen;
  if (!weights.empty()) {
    Span span("freeze");
    const std::vector<bool> chosen = choose_weights(graph, weights, budgets.copies, size_values);
    for (size_t i = 0; i < weights.size(); ++i) {
      if (!chosen[i]) continue;
      runtime::FreezeAttempt attempt = runtime::try_freeze(weights[i]);
      if (!attempt.frozen) {
        log(Channel::Graph, "input {} is not frozen: {}", i, attempt.reason);
        continue;
      }
      handles[i] = static_cast<int32_t>(result.constants.size());
      result.constants.push_back(attempt.frozen->contents());
      frozen.emplace_back(static_cast<int32_t>(i), std::move(*attempt.frozen));
    }
  }
  result.inputs.resize(graph.inputs.size());
  std::iota(result.inputs.begin(), result.inputs.end(), 0);
  passes::Options options = plain_options(graph);
  ConstantEvaluator evaluator(result.constants, first, frozen.size(), packing_of(graph));
  if (!frozen.empty()) {
    passes::FrozenGraph with_constants = passes::freeze_inputs(graph, handles);
    graph = std::move(with_constants.graph);
    result.inputs = std::move(with_constants.kept);
    options = freezing_options(graph, [&](const graph::Graph& part) { return evaluator(part); });
  }
  options.activation_memory_budget = budgets.activations;
  SizePartKeeper keeper(result.constants);
  if (size_values == SizeValues::Apart)
    options.keep_size_constants = [&](const graph::Graph& part) { return keeper.keep(part); };
  result.graph = passes::run_passes(std::move(graph), options, dump);
  result.constant_bytes = evaluator.bytes();

  // A weight that is read unchanged need not be frozen. It becomes an input again.
  const auto is_used = [&](size_t handle) { return evaluator.uses(handle) || keeper.uses(handle); };
  std::erase_if(result.graph.constants, [&](const graph::Constant& constant) {
    const auto handle = static_cast<size_t>(constant.handle);
    if (handle < first || handle >= first + frozen.size() || is_used(handle)) return false;
    result.graph.inputs.push_back(constant.value);
    result.inputs.push_back(frozen[handle - first].first);
    return true;
  });
  keeper.finish(result);
  for (size_t i = 0; i < frozen.size(); ++i) {
    if (is_used(first + i))
      result.weights.push_back(std::move(frozen[i]));
    else
      result.constants[first + i] = at::Tensor();
  }
  return result;
}

}  // namespace oxy::driver
