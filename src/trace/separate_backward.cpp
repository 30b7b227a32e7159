#include "trace/separate_backward.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/python_cpp_function.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "cpy/ref.h"
#include "trace/engine.h"

namespace oxy::trace {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Node;

// Each part is a graph to be compiled, and a call at every backward pass.
constexpr int32_t kMostParts = 32;
// The search for parts takes time with the square of the number of results.
constexpr size_t kMostResults = 64;

// Whether the node keeps tensors, which a backward pass frees: to go through it again is an error then. The
// Python class of each of eager's nodes names them.
bool saves_tensors(Node& node) {
  if (dynamic_cast<torch::autograd::AccumulateGrad*>(&node) != nullptr ||
      dynamic_cast<torch::autograd::Error*>(&node) != nullptr)
    return false;
  if (const auto* program = dynamic_cast<const ProgramNode*>(&node)) return program->saves_tensors();
  const cpy::Ref object = cpy::Ref::steal(torch::autograd::functionToPyObject(node.getptr()));
  if (!object) {
    PyErr_Clear();
    return true;
  }
  const PyGetSetDef* field = Py_TYPE(object.get())->tp_getset;
  for (; field != nullptr && field->name != nullptr; ++field)
    if (std::string_view(field->name).starts_with("_raw_saved_")) return true;
  const bool is_described = Py_TYPE(object.get())->tp_name == node.name();
  return !is_described;
}

// What a gradient of one result flows through.
struct Stretch {
  std::unordered_set<Node*> nodes;
  std::vector<bool> behind;  // by result: it is where the stretch ends
};

// A gradient goes on through results for which `ends` is false.
Stretch stretch_of(size_t result, const edge_list& results, const std::vector<bool>& ends) {
  Stretch stretch;
  stretch.behind.resize(results.size());
  std::vector<Node*> stack = {results[result].function.get()};
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (node == nullptr || !stretch.nodes.insert(node).second) continue;
    for (const Edge& next : node->next_edges()) {
      const auto place = std::find(results.begin(), results.end(), next);
      const auto u = static_cast<size_t>(place - results.begin());
      if (place != results.end() && ends[u])
        stretch.behind[u] = true;
      else
        stack.push_back(next.function.get());
    }
  }
  return stretch;
}

std::vector<bool> reached(const edge_list& leaves, const Stretch& stretch) {
  std::vector<bool> result;
  for (const Edge& leaf : leaves) result.push_back(stretch.nodes.contains(leaf.function.get()));
  return result;
}

void unite(std::vector<int32_t>& groups, int32_t gone, int32_t kept) {
  for (int32_t& group : groups)
    if (group == gone) group = kept;
}

// The number of the first result with which each shares a node that saves tensors; -1 where it has none.
std::vector<int32_t> sharing(const std::vector<Stretch>& stretches) {
  std::vector<int32_t> group(stretches.size(), -1);
  std::unordered_map<Node*, int32_t> first;
  std::unordered_map<Node*, bool> saves;
  for (size_t t = 0; t < stretches.size(); ++t)
    for (Node* node : stretches[t].nodes) {
      const auto [known, is_new] = saves.try_emplace(node, false);
      if (is_new) known->second = saves_tensors(*node);
      if (!known->second) continue;
      if (group[t] < 0) group[t] = static_cast<int32_t>(t);
      const int32_t owner = first.emplace(node, static_cast<int32_t>(t)).first->second;
      unite(group, group[t], group[static_cast<size_t>(owner)]);
    }
  return group;
}

// Parts that a gradient would flow out of and back into are one.
void unite_cycles(std::vector<int32_t>& part, const std::vector<Stretch>& stretches) {
  const size_t count = part.size();
  for (bool changed = true; changed;) {
    changed = false;
    // reach[p][q]: a gradient of part p, numbered by one of its results, flows into part q.
    std::vector<std::vector<bool>> reach(count, std::vector<bool>(count));
    for (size_t t = 0; t < count; ++t)
      for (size_t u = 0; u < count; ++u)
        if (stretches[t].behind[u] && part[t] != part[u])
          reach[static_cast<size_t>(part[t])][static_cast<size_t>(part[u])] = true;
    for (size_t k = 0; k < count; ++k)
      for (size_t p = 0; p < count; ++p)
        for (size_t q = 0; reach[p][k] && q < count; ++q) reach[p][q] = reach[p][q] || reach[k][q];
    for (size_t p = 0; p < count && !changed; ++p)
      for (size_t q = 0; q < p && !changed; ++q)
        if (reach[p][q] && reach[q][p]) {
          unite(part, static_cast<int32_t>(p), static_cast<int32_t>(q));
          changed = true;
        }
  }
}

std::vector<size_t> in_order_made(const edge_list& results) {
  std::vector<size_t> made(results.size());
  std::iota(made.begin(), made.end(), 0);
  std::ranges::stable_sort(made, {}, [&](size_t t) { return results[t].function->sequence_nr(); });
  return made;
}

// Numbers the parts in the order of the last result of each: autograd's engine goes through what was made
// last first.
std::vector<int32_t> numbered(std::vector<int32_t> part, const std::vector<size_t>& made) {
  std::map<int32_t, int32_t> from_last;
  for (const size_t t : made | std::views::reverse)
    from_last.try_emplace(part[t], static_cast<int32_t>(from_last.size()));
  for (int32_t& number : part) number = static_cast<int32_t>(from_last.size()) - 1 - from_last.at(number);
  return part;
}

}  // namespace

SeparateBackward separate_backward(const edge_list& results, const edge_list& leaves) {
  const size_t count = results.size();
  SeparateBackward separate;
  separate.made = in_order_made(results);
  std::vector<Stretch> whole;
  for (size_t t = 0; t < count; ++t) {
    whole.push_back(stretch_of(t, results, std::vector<bool>(count, false)));
    separate.flows.push_back(reached(leaves, whole[t]));
  }
  separate.freed_with = sharing(whole);

  std::vector<Stretch> stretches;
  if (count > 1 && count <= kMostResults) {
    std::vector<bool> ends;
    for (const Edge& result : results) ends.push_back(!has_hooks(*result.function));
    for (size_t t = 0; t < count; ++t) stretches.push_back(stretch_of(t, results, ends));
    separate.part = sharing(stretches);
    // What saves nothing and has nothing to do with other results shares a part with what flows into the same
    // leaves: a leaf's hooks would be called for the others, too.
    std::map<std::vector<bool>, int32_t> alone;
    for (size_t t = 0; t < count; ++t) {
      if (separate.part[t] >= 0) continue;
      const auto own = static_cast<int32_t>(t);
      const bool is_alone =
          std::ranges::none_of(stretches[t].behind, [](bool is_behind) { return is_behind; }) &&
          std::ranges::none_of(stretches, [&](const Stretch& other) { return other.behind[t]; });
      separate.part[t] = is_alone ? alone.emplace(reached(leaves, stretches[t]), own).first->second : own;
    }
    unite_cycles(separate.part, stretches);
    separate.part = numbered(std::move(separate.part), separate.made);
    if (*std::ranges::max_element(separate.part) >= kMostParts) stretches.clear();
    // Within a part a gradient goes on through its results.
    for (size_t t = 0; t < stretches.size(); ++t) {
      std::vector<bool> others = ends;
      for (size_t u = 0; u < count; ++u)
        if (separate.part[u] == separate.part[t]) others[u] = false;
      stretches[t] = stretch_of(t, results, others);
    }
  }
  if (stretches.empty()) {
    stretches = std::move(whole);
    separate.part.assign(count, 0);
  }
  const std::vector<int32_t> own = sharing(stretches);
  separate.part_frees.resize(count);
  for (size_t t = 0; t < count; ++t) {
    separate.flows_of_part.push_back(reached(leaves, stretches[t]));
    separate.behind.push_back(stretches[t].behind);
    for (size_t u = 0; u < count; ++u)
      if (separate.part[u] == separate.part[t] && own[u] >= 0) separate.part_frees[t] = true;
  }
  return separate;
}

}  // namespace oxy::trace
