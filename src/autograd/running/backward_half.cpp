#include "autograd/running/backward_half.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "base/config.h"
#include "base/error.h"
#include "cpy/gil.h"
#include "hook/hook.h"
#include "passes/training/absent_gradients.h"
#include "runtime/execution/executable.h"
#include "runtime/execution/interpreter.h"

namespace oxy::autograd {
namespace {

using graph::OutputKind;

// So many sets of absent gradients get a backward pass of their own; the others are passed zeros.
constexpr size_t kMostVariants = 4;

}  // namespace

BackwardHalf::BackwardHalf(graph::Graph graph, std::vector<at::Tensor> constants,
                           std::vector<size_t> gradients, std::vector<bool> released_inputs,
                           GraphCompiler::Compile compile, std::string stage, Replay replay)
    : graph_(std::move(graph)),
      constants_(std::move(constants)),
      gradients_(std::move(gradients)),
      ownership_{runtime::kAllOutputs, std::move(released_inputs)},
      compile_(std::move(compile)),
      stage_(std::move(stage)),
      replay_(std::move(replay)) {
  why_not_again = replay_.slice.why_not;
}

std::vector<at::Tensor> BackwardHalf::run(std::vector<at::Tensor> saved, std::vector<at::Tensor> tangents,
                                          std::vector<bool> absent, bool has_stale,
                                          runtime::SymbolValues symbols) {
  Variant made_now;
  const Variant& variant =
      has_stale ? exact_for(std::move(absent), made_now) : variant_for(std::move(absent));
  for (size_t t = 0; t < tangents.size(); ++t)
    if (!tangents[t].defined() && (variant.reads_all_tangents || is_passed_on(saved.size() + t)))
      tangents[t] = zero_tangent(this->tangents[t], symbols);
  // A tangent passed on must stay the same tensor: autograd then knows that others hold it too.
  std::vector<at::Tensor> gradients(gradients_.size());
  for (size_t i = 0; i < gradients.size(); ++i)
    if (const graph::Output& output = output_of(i); output.kind == OutputKind::InputAlias)
      gradients[i] = tangents[static_cast<size_t>(output.alias) - saved.size()];
  for (at::Tensor& tangent : tangents) saved.push_back(std::move(tangent));
  tangents.clear();
  const std::vector<at::Tensor> results = run_compiled(variant, std::move(saved), symbols);
  for (size_t i = 0; i < gradients.size(); ++i)
    if (output_of(i).kind != OutputKind::InputAlias) gradients[i] = results[gradients_[i]];
  return gradients;
}

std::vector<at::Tensor> BackwardHalf::run_again(std::span<const at::Tensor> saved,
                                                std::span<const at::Tensor> kept,
                                                std::span<const at::Tensor> tangents,
                                                const std::vector<bool>& wanted, bool create_graph,
                                                runtime::SymbolValues symbols) {
  std::vector<at::Tensor> tensors;
  for (const std::optional<size_t>& place : replay_.saved) {
    tensors.push_back(place ? saved[*place] : kept.front());
    if (!place) kept = kept.subspan(1);
  }
  tensors.insert(tensors.end(), kept.begin(), kept.end());
  return replay_.forward->gradients(replay_.slice, tensors, tangents, wanted, create_graph, symbols);
}

bool BackwardHalf::is_passed_on(size_t input) const {
  return std::ranges::any_of(graph_.outputs, [&](const graph::Output& output) {
    return output.kind == OutputKind::InputAlias && static_cast<size_t>(output.alias) == input;
  });
}

const BackwardHalf::Variant& BackwardHalf::variant_for(std::vector<bool> absent) {
  const Variant& wanted = compiled_for(std::move(absent));
  if (wanted.reads_all_tangents || wanted.is_ready()) return wanted;
  const Variant* const general = for_all_tangents();
  return general != nullptr && general->is_ready() ? *general : wanted;
}

const BackwardHalf::Variant& BackwardHalf::exact_for(std::vector<bool> absent, Variant& made_now) {
  const Variant& known = compiled_for(absent);
  if (!known.reads_all_tangents) return known;
  made_now.reads_all_tangents = false;
  made_now.graph = without(absent);
  return made_now;
}

void BackwardHalf::begin(const GraphCompiler::Begin& begin) {
  std::vector<bool> absent;
  for (const TensorMeta& tangent : tangents) absent.push_back(tangent.rank() != 0);
  if (std::ranges::count(absent, false) != 1 || absent.size() == 1) absent.clear();
  auto compilation = begin(absent.empty() ? graph_ : without(absent), constants_, stage_, ownership_);
  if (compilation) begun_ = {std::move(absent), std::move(compilation)};
}

void BackwardHalf::compile_kernels() {
  if (begun_) begun_->compilation->compile_kernels();
}

void BackwardHalf::request() {
  compiled_for({});
}

bool BackwardHalf::is_pending() {
  const Variant* const general = for_all_tangents();
  return general != nullptr && general->compiled &&
         general->compiled->readiness() == runtime::Readiness::Pending;
}

const BackwardHalf::Variant* BackwardHalf::for_all_tangents() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return find({});
}

const BackwardHalf::Variant& BackwardHalf::compiled_for(std::vector<bool> absent) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const Variant* known = find(absent)) return *known;
  }
  const cpy::WithGil gil;  // one compilation at a time
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const Variant* known = find(absent)) return *known;
    if (variants_.size() >= kMostVariants) absent.clear();
    if (const Variant* known = find(absent)) return *known;
  }
  auto variant = std::make_unique<Variant>();
  variant->reads_all_tangents = absent.empty();
  graph::Graph graph = absent.empty() ? graph_ : without(absent);
  std::optional<Begun> begun = std::exchange(begun_, std::nullopt);
  if (begun && begun->absent != absent) begun.reset();  // it would delay the one that is waited for
  variant->compiled = begun ? begun->compilation->take() : compile_(graph, constants_, stage_, ownership_);
  if (!variant->is_ready() || variant->compiled->may_refuse_sizes()) variant->graph = std::move(graph);
  const std::lock_guard<std::mutex> lock(mutex_);
  return *variants_.emplace(std::move(absent), std::move(variant)).first->second;
}

const BackwardHalf::Variant* BackwardHalf::find(const std::vector<bool>& absent) const {
  const auto it = variants_.find(absent);
  return it == variants_.end() ? nullptr : it->second.get();
}

graph::Graph BackwardHalf::without(const std::vector<bool>& absent) const {
  const size_t saved = graph_.inputs.size() - absent.size();
  std::vector<bool> is_gradient(graph_.inputs.size()), is_absent(graph_.inputs.size());
  for (size_t t = 0; t < absent.size(); ++t) {
    is_gradient[saved + t] = true;
    is_absent[saved + t] = absent[t];
  }
  graph::Graph result = passes::without_gradients(graph_, is_gradient, is_absent);
  if (strict()) graph::verify(result, true);
  return result;
}

std::vector<at::Tensor> BackwardHalf::run_compiled(const Variant& variant, std::vector<at::Tensor> inputs,
                                                   runtime::SymbolValues symbols) const {
  const hook::HookPause pause;  // kernels of the program's operators are not captured
  if (!variant.is_ready()) return runtime::interpret(variant.graph, inputs, constants_, symbols);
  // Nobody else holds some of them: they are needed once more if the sizes are refused.
  const bool may_be_refused = variant.compiled->may_refuse_sizes();
  const std::vector<at::Tensor> kept = may_be_refused ? inputs : std::vector<at::Tensor>();
  try {
    std::vector<int64_t> values(symbols.begin(), symbols.end());
    return variant.compiled->run_and_release(std::move(inputs), values);
  } catch (const runtime::LeftToEager&) {
    // The forward pass took the index. What reads it is gone, so that eager's own words are not to be had.
    TORCH_CHECK(
        may_be_refused,
        "an index is out of bounds in the backward pass: a tensor of indices was written to since the "
        "forward pass, in a way that autograd does not see (x.data)");
  }
  return runtime::interpret(variant.graph, kept, constants_, symbols);
}

runtime::DeviceGraphState BackwardHalf::device_graph_state() {
  const std::scoped_lock lock(mutex_);
  runtime::DeviceGraphState state;
  for (const auto& [absent, variant] : variants_)
    if (variant->compiled) state.add(variant->compiled->device_graph_state());
  return state;
}

}  // namespace oxy::autograd
