#include "autograd/running/compile_differentiable.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <ranges>

#include "autograd/recording/kept_by_parts.h"
#include "autograd/running/differentiable_graph.h"
#include "base/config.h"
#include "base/error.h"
#include "base/timing.h"
#include "passes/simplification/separate_results.h"
#include "passes/training/backward_parts.h"
#include "passes/training/softmax_rows.h"
#include "runtime/values/convert.h"
#include "trace/functional/overlap.h"

namespace oxy::autograd {
namespace {

using graph::OutputKind;
using passes::SavedValue;

// A view is made anew by where its elements lie, which of such a base does not say whose gradient is whose.
void check_base_of_view(const TensorMeta& base) {
  if (trace::may_overlap(base))
    throw Unsupported("a result is a view of a tensor whose elements share memory");
}

// Every tensor with a gradient has to be one that the graph makes, and every other a view of such a one.
void check_histories(const graph::Graph& graph, const Joint& joint) {
  for (size_t i = 0; i < joint.outputs.size(); ++i) {
    const graph::Output& output = graph.outputs[i];
    const bool carries_tangent = i < joint.carriers();
    if (!joint.outputs[i].spent.empty()) {
      if (output.kind != OutputKind::Value)
        throw Unsupported("a result whose backward pass has been run shares memory");
      continue;
    }
    if (carries_tangent != (output.kind == OutputKind::Value && joint.outputs[i].requires_grad))
      throw Unsupported("results share memory in a way that autograd does not know as views");
    if (!carries_tangent && joint.outputs[i].requires_grad && output.kind == OutputKind::OutputAlias &&
        static_cast<size_t>(output.alias) >= joint.carriers())
      throw Unsupported("a result shares memory with one that does not require grad");
    if (joint.outputs[i].requires_grad && output.kind != OutputKind::Value) {
      const auto alias = static_cast<size_t>(output.alias);
      check_base_of_view(graph.meta(output.kind == OutputKind::InputAlias ? graph.inputs[alias]
                                                                          : graph.outputs[alias].value));
    }
  }
}

bool has_parts(const Joint& joint) {
  return std::ranges::any_of(joint.tangents,
                             [&](const Tangent& tangent) { return tangent.part != joint.tangents[0].part; });
}

graph::Graph with_totals_apart(const graph::Graph& graph, const Joint& joint) {
  std::vector<passes::Total> totals;
  for (const auto& gradient : joint.gradients)
    if (gradient.result >= 0 && gradient.output >= 0)
      totals.push_back({static_cast<size_t>(gradient.output), static_cast<size_t>(gradient.result)});
  return passes::hold_totals_apart(graph, totals);
}

std::vector<passes::BackwardPart> parts_of(graph::Graph backward, const passes::BackwardRoles& roles,
                                           bool has_parts) {
  const std::vector<passes::PartId>& numbers = roles.part_of_tangent;
  if (numbers.empty()) return {};
  if (has_parts) return passes::backward_parts(backward, roles);
  passes::BackwardPart whole{
      std::move(backward), std::vector<size_t>(roles.saved), std::vector<size_t>(numbers.size()), {}};
  std::iota(whole.saved.begin(), whole.saved.end(), 0);
  std::iota(whole.tangents.begin(), whole.tangents.end(), 0);
  for (const auto& gradient : roles.gradients)
    whole.gradients.push_back(gradient.result < 0 ? gradient.output : -1);
  std::vector<passes::BackwardPart> parts;
  parts.push_back(std::move(whole));
  return parts;
}

passes::BackwardRoles backward_roles(const passes::Partition& halves, const Joint& joint) {
  passes::BackwardRoles roles{.saved = halves.saved.size()};
  for (const Tangent& tangent : joint.tangents) roles.part_of_tangent.push_back(tangent.part);
  for (const auto& gradient : joint.gradients) {
    const auto index = static_cast<size_t>(gradient.output) - joint.outputs.size();
    roles.gradients.push_back(
        {gradient.output < 0 ? -1 : halves.gradients.at(index), gradient.result, gradient.tangents_of_part});
  }
  return roles;
}

// By saved value: how many parts read it.
std::vector<int> readers_of(const passes::Partition& halves, const std::vector<passes::BackwardPart>& parts) {
  std::vector<int> readers(halves.saved.size());
  for (const passes::BackwardPart& part : parts)
    for (const size_t saved : part.saved) ++readers[saved];
  return readers;
}

// Its program is yet to be made.
Part part_of(const passes::BackwardPart& source, const passes::Partition& halves, const Joint& joint) {
  Part part;
  part.tangents = source.tangents;
  for (const size_t t : joint.made)
    if (const auto place = std::ranges::find(part.tangents, t);
        t < joint.carriers() && place != part.tangents.end())
      part.made.push_back(static_cast<size_t>(place - part.tangents.begin()));
  for (size_t g = 0; g < source.gradients.size(); ++g)
    if (source.gradients[g] >= 0) part.gradients.push_back(g);
  for (const size_t g : part.gradients)
    if (joint.gradients[g].result < static_cast<int32_t>(joint.with_tangents()))
      part.parent = std::max(part.parent, joint.gradients[g].result);
  for (const size_t number : source.saved) {
    Part::Saved& saved = part.saved.emplace_back();
    saved.value = halves.saved[number];
    const auto index = static_cast<size_t>(saved.value.index);
    const bool is_result = saved.value.kind == SavedValue::Kind::Output && index < joint.with_tangents();
    saved.is_own = is_result && index < joint.carriers() &&
                   std::ranges::find(part.tangents, index) != part.tangents.end();
    saved.is_foreign = is_result && !saved.is_own;
  }
  for (size_t i = 0; i < joint.outputs.size(); ++i) {
    const bool is_saved = std::ranges::any_of(part.saved, [&](const Part::Saved& saved) {
      return saved.value.kind == SavedValue::Kind::Output && static_cast<size_t>(saved.value.index) == i;
    });
    const bool is_kept =
        std::ranges::any_of(part.tangents, [&](size_t t) { return joint.kept[t].outputs[i]; });
    if (is_kept && !is_saved && halves.forward.outputs[i].kind == OutputKind::Value)
      part.watched.push_back(i);
  }
  return part;
}

struct Cut {
  passes::Partition halves;
  std::vector<passes::BackwardPart> parts;  // of the backward half
};

Cut cut(const graph::Graph& graph, const Joint& joint, double activation_memory_budget) {
  passes::JointRoles roles{.forward_inputs = joint.forward_inputs,
                           .forward_outputs = joint.outputs.size(),
                           .keeps_input = joint.keeps_input,
                           .keeps_output = {},
                           .memory_budget = activation_memory_budget,
                           .made_once = {}};
  for (const ForwardOutput& output : joint.outputs) roles.keeps_output.push_back(output.is_kept);
  Cut result;
  do {
    result.halves = passes::partition(graph, roles);
    if (strict()) {
      graph::verify(result.halves.forward, true);
      graph::verify(result.halves.backward, true);
    }
    result.parts = parts_of(result.halves.backward, backward_roles(result.halves, joint), has_parts(joint));
  } while (keep_apart(graph, result.halves, result.parts, joint, roles));
  return result;
}

// By input: whether nobody else holds the tensor. `readers`: by saved value, the parts that read it.
std::vector<bool> released_inputs(const passes::BackwardPart& source, const Part& part,
                                  const std::vector<int>& readers) {
  std::vector<bool> released(source.graph.inputs.size(), true);
  for (size_t i = 0; i < source.saved.size(); ++i)
    released[i] = part.saved[i].value.kind == SavedValue::Kind::Extra && readers[source.saved[i]] == 1;
  return released;
}

std::vector<TensorMeta> tangents_of(const passes::BackwardPart& source) {
  std::vector<TensorMeta> tangents;
  for (size_t i = source.saved.size(); i < source.graph.inputs.size(); ++i)
    tangents.push_back(source.graph.meta(source.graph.inputs[i]));
  return tangents;
}

std::vector<size_t> outputs_of_gradients(const passes::BackwardPart& source, const Part& part) {
  std::vector<size_t> outputs;
  for (const size_t g : part.gradients) outputs.push_back(static_cast<size_t>(source.gradients[g]));
  return outputs;
}

// By forward input: whether something that the part saves depends on it. The part's gradients do not depend
// on the others.
std::vector<bool> inputs_behind(const Part& part, const passes::Partition& halves, size_t forward_outputs) {
  const graph::Graph& forward = halves.forward;
  IdVector<graph::ValueId, bool> is_read(forward.values.size());
  const auto read = [&](graph::ValueId id) { is_read[id] = true; };
  for (const Part::Saved& saved : part.saved) {
    const auto index = static_cast<size_t>(saved.value.index);
    switch (saved.value.kind) {
      case SavedValue::Kind::Input:
        read(forward.inputs[index]);
        break;
      case SavedValue::Kind::Output:
      case SavedValue::Kind::Shared:
        read(forward.outputs[index].value);
        break;
      case SavedValue::Kind::Extra:
        read(forward.outputs[forward_outputs + index].value);
        break;
    }
  }
  for (const graph::Node& node : forward.nodes | std::views::reverse)
    if (std::ranges::any_of(node.outputs,
                            [&](graph::ValueId id) { return id != graph::kNoValue && is_read[id]; }))
      graph::for_each_input(node, read);
  std::vector<bool> behind;
  for (const graph::ValueId id : forward.inputs) behind.push_back(is_read[id]);
  return behind;
}

Replay replay_of(std::shared_ptr<const ForwardReplay> forward, const Part& part, const Joint& joint) {
  Replay replay{std::move(forward), {}, {}};
  replay.slice = replay.forward->slice(part.tangents, part.gradients, joint);
  if (!replay.slice.why_not.empty()) {
    replay.forward.reset();  // with the recorded graph, if no other part can be run again
    return replay;
  }
  for (size_t i = 0; i < replay.slice.inputs.size(); ++i) {
    const size_t input = replay.slice.inputs[i];
    const auto place = std::ranges::find_if(part.saved, [&](const Part::Saved& saved) {
      return saved.value.kind == SavedValue::Kind::Input && static_cast<size_t>(saved.value.index) == input;
    });
    replay.saved.push_back(place == part.saved.end() || replay.slice.is_copied[i]
                               ? std::nullopt
                               : std::optional(static_cast<size_t>(place - part.saved.begin())));
  }
  replay.saved.resize(replay.slice.inputs.size() + replay.slice.results.size());
  return replay;
}

// What stands for the tensors that a node keeps: results and the generators' states are taken as they are.
std::vector<std::optional<TensorMeta>> stand_ins_of(const Replay& replay, const std::vector<bool>& is_behind,
                                                    const graph::Graph& forward) {
  std::vector<std::optional<TensorMeta>> stand_ins;
  const ForwardReplay::Slice& slice = replay.slice;
  for (size_t i = 0; i < replay.saved.size(); ++i) {
    if (replay.saved[i]) continue;
    std::optional<TensorMeta>& stand_in = stand_ins.emplace_back();
    if (i < slice.inputs.size() && !is_behind[slice.inputs[i]])
      stand_in = forward.meta(forward.inputs[slice.inputs[i]]);
  }
  stand_ins.resize(stand_ins.size() + slice.random_devices.size());
  return stand_ins;
}

// What flows where, and what is freed together: of the part alone, unless it is the whole.
void add_flows(BackwardProgram& program, const Part& part, bool is_whole, const Joint& joint) {
  for (const size_t t : part.tangents)
    program.freed_with.push_back(is_whole                       ? joint.tangents[t].freed_with
                                 : joint.tangents[t].part_frees ? 0
                                                                : -1);
  for (const size_t g : part.gradients) {
    const Gradient& gradient = joint.gradients[g];
    program.is_zero_tensor.push_back(gradient.is_zero_tensor);
    std::vector<bool>& flows = program.flows.emplace_back();
    for (const size_t t : part.tangents)
      flows.push_back(is_whole ? gradient.tangents[t] : gradient.tangents_of_part[t]);
  }
}

// A saved tensor counts as read for a tangent if the part's graph reads it, or if eager's nodes do, which
// check it for writes. What nobody else can write to need not be told apart.
Readers readers_of_part(const passes::BackwardPart& source, const Part& part, const Joint& joint) {
  Readers readers{.of_saved = readers_of_saved(source), .of_watched = {}};
  for (size_t i = 0; i < part.saved.size(); ++i) {
    const SavedValue& value = part.saved[i].value;
    for (size_t place = 0; place < part.tangents.size(); ++place) {
      const Kept& kept = joint.kept[part.tangents[place]];
      const std::vector<bool>& keeps = value.kind == SavedValue::Kind::Input ? kept.inputs : kept.outputs;
      if (value.is_apart() || keeps.at(static_cast<size_t>(value.index))) readers.of_saved[i][place] = true;
    }
  }
  for (const size_t output : part.watched) {
    std::vector<bool>& of_output = readers.of_watched.emplace_back();
    for (const size_t t : part.tangents) of_output.push_back(joint.kept[t].outputs[output]);
  }
  return readers;
}

}  // namespace

std::unique_ptr<runtime::CompiledGraph> compile_differentiable(DifferentiableRecording source,
                                                               graph::Graph recorded,
                                                               const GraphCompiler& compiler) {
  auto& [recording, joint] = source;
  std::vector<c10::Device> devices = runtime::devices_of(recording.graph);
  check_histories(recording.graph, joint);
  Cut pieces;
  {
    Span span("partition");
    if (has_parts(joint)) recording.graph = with_totals_apart(recording.graph, joint);
    if (compiler.optimise) recording.graph = compiler.optimise(std::move(recording.graph));
    recording.graph = passes::separate_softmax_rows(recording.graph);
    pieces = cut(recording.graph, joint, compiler.activation_memory_budget);
  }
  auto& [halves, sources] = pieces;
  const auto forward_end = halves.forward.outputs.begin() + static_cast<std::ptrdiff_t>(joint.outputs.size());
  std::vector<graph::Output> outputs(halves.forward.outputs.begin(), forward_end);
  const std::vector<int> readers = readers_of(halves, sources);
  const bool is_whole = sources.size() == 1;
  const auto replay = std::make_shared<ForwardReplay>(std::move(recorded), std::move(recording.histories),
                                                      recording.constants, joint);
  std::vector<Part> parts;
  for (passes::BackwardPart& backward : sources) {
    if (strict()) graph::verify(backward.graph, true);
    Part& part = parts.emplace_back(part_of(backward, halves, joint));
    const size_t first = part.tangents[0];
    if (first >= joint.carriers() && first < joint.with_tangents()) {
      if (part.parent >= 0)
        check_base_of_view(
            halves.forward.meta(halves.forward.outputs[static_cast<size_t>(part.parent)].value));
      continue;
    }
    std::vector<bool> released = released_inputs(backward, part, readers);
    std::vector<TensorMeta> tangents = tangents_of(backward);
    Readers readers_for_tangents = readers_of_part(backward, part, joint);
    part.program = std::make_shared<BackwardHalf>(
        std::move(backward.graph), recording.constants, outputs_of_gradients(backward, part),
        std::move(released), compiler.try_compile,
        is_whole ? "backward_" : fmt::format("backward{}_", parts.size()), replay_of(replay, part, joint));
    part.program->tangents = std::move(tangents);
    part.program->readers = std::move(readers_for_tangents);
    part.program->stand_ins = stand_ins_of(part.program->replay(),
                                           inputs_behind(part, halves, joint.outputs.size()), halves.forward);
    add_flows(*part.program, part, is_whole, joint);
    if (compiler.begin) part.program->begin(compiler.begin);
  }
  // What is saved must not be what the caller writes to; the passes of a native graph see to it.
  if (!compiler.optimise) halves.forward = passes::separate_results(halves.forward, {});
  auto forward = compiler.compile(std::move(halves.forward), std::move(recording.constants), "forward_",
                                  {joint.outputs.size(), {}});
  for (const Part& part : parts) {
    if (!part.program) continue;
    part.program->compile_kernels();
    if (!compiler.wait) part.program->request();
  }
  return make_differentiable_graph(std::move(forward), std::move(parts), std::move(joint), std::move(outputs),
                                   std::move(devices));
}

}  // namespace oxy::autograd
