#include "autograd/recording/kept_by_parts.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>

#include "base/number_set.h"
#include "graph/storage.h"

namespace oxy::autograd {
namespace {

using graph::Node;
using graph::ValueId;
using passes::SavedValue;

bool is_any(const std::vector<ValueId>& ids, const IdVector<ValueId, bool>& marked) {
  return std::ranges::any_of(ids, [&](ValueId id) { return id != graph::kNoValue && marked[id]; });
}

std::vector<ValueId> inputs_of(const Node& node) {
  std::vector<ValueId> ids;
  graph::for_each_input(node, [&](ValueId id) { ids.push_back(id); });
  return ids;
}

// Whether it follows from one of these tangents.
IdVector<ValueId, bool> following(const graph::Graph& graph, const Joint& joint,
                                  const std::vector<size_t>& tangents) {
  IdVector<ValueId, bool> follows(graph.values.size());
  for (const size_t t : tangents) follows[graph.inputs[joint.forward_inputs + t]] = true;
  for (const Node& node : graph.nodes)
    if (is_any(inputs_of(node), follows))
      for (const ValueId id : node.outputs)
        if (id != graph::kNoValue) follows[id] = true;
  return follows;
}

// The values as which a saved input or output is read, besides views of them.
std::vector<ValueId> values_of(const graph::Graph& graph, const SavedValue& saved) {
  const auto index = static_cast<size_t>(saved.index);
  if (saved.kind == SavedValue::Kind::Output) return {graph.outputs[index].value};
  std::vector<ValueId> values = {graph.inputs[index]};
  for (const graph::Mutation& mutation : graph.mutations)
    if (mutation.input == saved.index) values.push_back(mutation.value);
  return values;
}

// The nodes of the forward pass by which the part may compute something again from the values: from now on
// they are not. False if `before`, made_once as it was when the part was made, has them all.
bool make_once(const graph::Graph& graph, const Joint& joint, const passes::BackwardPart& part,
               const std::vector<ValueId>& values, const IdVector<graph::NodeId, bool>& before,
               IdVector<graph::NodeId, bool>& made_once) {
  std::vector<size_t> all;
  for (size_t t = 0; t < joint.tangents.size(); ++t) all.push_back(t);
  const auto is_late = following(graph, joint, all);
  const auto is_of_part = following(graph, joint, part.tangents);
  const auto root = graph::storage_roots(graph);
  IdVector<ValueId, bool> is_read(graph.values.size());
  for (const ValueId id : values) is_read[root[id]] = true;
  IdVector<ValueId, bool> is_needed(graph.values.size());
  bool changed = false;
  for (const graph::NodeId n : graph.nodes.ids() | std::views::reverse) {
    const Node& node = graph.nodes[n];
    const bool late = is_any(node.outputs, is_late);
    if (!is_any(node.outputs, late ? is_of_part : is_needed)) continue;
    const std::vector<ValueId> inputs = inputs_of(node);
    for (const ValueId id : inputs) is_needed[id] = true;
    const bool reads = std::ranges::any_of(inputs, [&](ValueId id) { return is_read[root[id]]; });
    if (late || node.op->is_view() || !reads || before[n]) continue;
    made_once[n] = changed = true;
  }
  return changed;
}

bool is_kept_by(const Joint& joint, passes::PartId part, std::vector<bool> Kept::* kept, size_t i) {
  for (size_t t = 0; t < joint.tangents.size(); ++t)
    if (joint.tangents[t].part == part && (joint.kept[t].*kept)[i]) return true;
  return false;
}

// Whether a gradient of the part flows out of the result, or into it.
bool has_to_do_with(const passes::BackwardPart& part, size_t result, const Joint& joint) {
  if (std::ranges::find(part.tangents, result) != part.tangents.end()) return true;
  for (const auto& gradient : joint.gradients)
    if (gradient.result == static_cast<int32_t>(result))
      return std::ranges::any_of(part.tangents, [&](size_t t) { return gradient.tangents_of_part[t]; });
  return false;
}

}  // namespace

bool keep_apart(const graph::Graph& joint_graph, const passes::Partition& halves,
                const std::vector<passes::BackwardPart>& parts, const Joint& joint,
                passes::JointRoles& roles) {
  roles.made_once.resize(joint_graph.nodes.size());
  const auto made_once_before = roles.made_once;
  bool changed = false;
  for (const passes::BackwardPart& part : parts) {
    const passes::PartId number = joint.tangents.at(part.tangents.at(0)).part;
    for (const size_t s : part.saved) {
      const SavedValue& saved = halves.saved[s];
      if (saved.is_apart()) continue;
      const auto index = static_cast<size_t>(saved.index);
      const bool is_input = saved.kind == SavedValue::Kind::Input;
      const bool is_alien = !is_input && index < joint.carriers() && !has_to_do_with(part, index, joint);
      const bool keeps = is_kept_by(joint, number, is_input ? &Kept::inputs : &Kept::outputs, index);
      if (keeps && !is_alien) continue;
      if (keeps || !make_once(joint_graph, joint, part, values_of(joint_graph, saved), made_once_before,
                              roles.made_once))
        (is_input ? roles.keeps_input : roles.keeps_output)[index] = false;
      changed = true;
    }
  }
  return changed;
}

namespace {

// By node that computes gradients: the tangents from which a gradient flows to it without leaving their part.
IdVector<graph::NodeId, NumberSet> tangents_of_nodes(const graph::Graph& graph, const Joint& joint) {
  IdVector<ValueId, NumberSet> tangents_of_value(graph.values.size());
  for (size_t t = 0; t < joint.tangents.size(); ++t)
    tangents_of_value[graph.inputs[joint.forward_inputs + t]] = NumberSet(t);
  std::unordered_map<ValueId, size_t> goes_on_as;
  for (const Gradient& gradient : joint.gradients)
    if (gradient.result >= 0)
      goes_on_as.emplace(graph.outputs[static_cast<size_t>(gradient.output)].value,
                         static_cast<size_t>(gradient.result));
  IdVector<graph::NodeId, NumberSet> result(graph.nodes.size());
  // Some formulas write the gradient into zeros.
  const auto root = graph::storage_roots(graph);
  IdVector<ValueId, NumberSet> written(graph.values.size());
  const auto backward = graph.nodes.ids_from(joint.first_backward);
  for (const graph::NodeId n : backward) {
    NumberSet& tangents = result[n];
    graph::for_each_input(graph.nodes[n], [&](ValueId id) {
      tangents.add(tangents_of_value[id]);
      tangents.add(written[root[id]]);
    });
    graph::for_each_written(graph.nodes[n], [&](ValueId id) { written[root[id]].add(tangents); });
    for (const ValueId id : graph.nodes[n].outputs) {
      if (id == graph::kNoValue) continue;
      const auto total = goes_on_as.find(id);
      tangents_of_value[id] = total == goes_on_as.end() ? tangents : NumberSet(total->second);
    }
  }
  // What is computed of saved values alone belongs to those that read it.
  IdVector<ValueId, NumberSet> readers(graph.values.size());
  for (const graph::NodeId n : backward | std::views::reverse) {
    NumberSet& tangents = result[n];
    if (tangents.empty())
      for (const ValueId id : graph.nodes[n].outputs)
        if (id != graph::kNoValue) tangents.add(readers[id]);
    graph::for_each_input(graph.nodes[n], [&](ValueId id) { readers[id].add(tangents); });
  }
  return result;
}

}  // namespace

void note_what_autograd_keeps(const trace::Recording& recording, Joint& joint) {
  const graph::Graph& graph = recording.graph;
  const auto root = graph::storage_roots(graph);
  const auto version_root = graph::storage_roots(graph, [&](graph::NodeId n) {
    return n < recording.histories.next_id() && recording.histories[n].is_unsafe_view;
  });
  const auto tangents = tangents_of_nodes(graph, joint);
  IdVector<ValueId, bool> is_read(graph.values.size()), is_checked(graph.values.size());
  IdVector<ValueId, NumberSet> readers(graph.values.size());
  for (const graph::NodeId n : graph.nodes.ids_from(joint.first_backward))
    graph::for_each_input(graph.nodes[n], [&](ValueId id) {
      is_read[root[id]] = true;
      is_checked[version_root[id]] = true;
      readers[root[id]].add(tangents[n]);
    });
  joint.kept.assign(joint.tangents.size(),
                    {std::vector<bool>(joint.forward_inputs), std::vector<bool>(joint.outputs.size())});
  const auto note = [&](ValueId id, size_t i, std::vector<bool> Kept::* kept) {
    readers[root[id]].for_each([&](size_t tangent) { (joint.kept[tangent].*kept)[i] = true; });
    return bool{is_read[root[id]]};
  };
  for (size_t i = 0; i < joint.forward_inputs; ++i)
    joint.keeps_input.push_back(note(graph.inputs[i], i, &Kept::inputs));
  for (size_t i = 0; i < joint.outputs.size(); ++i) {
    const ValueId id = graph.outputs[i].value;
    // Writes to what is read through unsafe views alone are not noticed, so it is kept apart from them.
    if (is_read[root[id]] && !is_checked[version_root[id]]) continue;
    joint.outputs[i].is_kept = note(id, i, &Kept::outputs);
  }
}

std::vector<std::vector<bool>> readers_of_saved(const passes::BackwardPart& part) {
  const graph::Graph& graph = part.graph;
  const size_t saved = part.saved.size();
  IdVector<ValueId, NumberSet> tangents(graph.values.size()), made_of(graph.values.size());
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    (i < saved ? made_of : tangents)[graph.inputs[i]] = NumberSet(i < saved ? i : i - saved);
  std::vector<std::vector<bool>> readers(saved, std::vector<bool>(part.tangents.size()));
  for (const Node& node : graph.nodes) {
    NumberSet comes_in, of_saved;  // of those that no gradient comes to
    graph::for_each_input(node, [&](ValueId id) {
      comes_in.add(tangents[id]);
      if (tangents[id].empty()) of_saved.add(made_of[id]);
    });
    of_saved.for_each([&](size_t i) { comes_in.for_each([&](size_t t) { readers[i][t] = true; }); });
    for (const ValueId id : node.outputs) {
      if (id == graph::kNoValue) continue;
      tangents[id] = comes_in;
      if (comes_in.empty()) made_of[id] = of_saved;
    }
  }
  for (const graph::Output& output : graph.outputs)
    if (output.value != graph::kNoValue)
      made_of[output.value].for_each([&](size_t i) { readers[i].assign(part.tangents.size(), true); });
  return readers;
}

}  // namespace oxy::autograd
