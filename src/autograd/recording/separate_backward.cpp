#include "autograd/recording/separate_backward.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/python_cpp_function.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "autograd/recording/engine.h"
#include "cpy/ref.h"

namespace oxy::autograd {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Node;

// Each part is a graph to be compiled, and a call at every backward pass.
constexpr int32_t kMostParts = 32;
// The search for parts takes time with the square of the number of results.
constexpr size_t kMostResults = 64;

// Whether the node holds a tensor in this field of its Python class. Eager's nodes leave those undefined that
// only gradients nobody asks for would need.
bool is_saved(PyObject* node, std::string_view raw_field) {
  const std::string field(raw_field.substr(std::string_view("_raw").size()));
  const cpy::Ref value = cpy::Ref::steal(PyObject_GetAttrString(node, field.c_str()));
  if (!value) PyErr_Clear();  // it is freed or written to, so it was there
  return value.get() != Py_None;
}

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
    if (std::string_view(field->name).starts_with("_raw_saved_") && is_saved(object.get(), field->name))
      return true;
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

// Results that share their backward pass with others, where a hook could tell: one lies behind another one,
// or a leaf behind some but not all of them.
std::vector<bool> entangled(const std::vector<int32_t>& part, const std::vector<Stretch>& stretches,
                            const edge_list& leaves) {
  std::vector<bool> parts(part.size()), result(part.size());
  std::map<int32_t, std::vector<bool>> leaves_of_part;
  for (size_t t = 0; t < part.size(); ++t) {
    std::vector<bool> own = reached(leaves, stretches[t]);
    const auto [first, is_first] = leaves_of_part.try_emplace(part[t], own);
    if (first->second != own) parts[static_cast<size_t>(part[t])] = true;
    for (size_t u = 0; u < part.size(); ++u)
      if (stretches[t].behind[u] && part[t] == part[u]) parts[static_cast<size_t>(part[t])] = true;
  }
  for (size_t t = 0; t < part.size(); ++t) result[t] = parts[static_cast<size_t>(part[t])];
  return result;
}

using ResultsByNode = std::unordered_map<Node*, std::vector<size_t>>;

// Whether a node, or one behind it, saves tensors; by node, `is_end` says which edges are not followed.
template <typename IsEnd>
std::unordered_map<Node*, bool> leads_to_saved(const ResultsByNode& nodes, const IsEnd& is_end) {
  std::unordered_map<Node*, bool> leads_by_node;
  std::vector<Node*> stack;
  for (const auto& [node, results] : nodes) stack.push_back(node);
  while (!stack.empty()) {
    Node* node = stack.back();
    if (leads_by_node.contains(node)) {
      stack.pop_back();
      continue;
    }
    bool leads = saves_tensors(*node), is_ready = true;
    for (const Edge& next : node->next_edges()) {
      if (is_end(next)) continue;
      const auto known = leads_by_node.find(next.function.get());
      if (known == leads_by_node.end()) {
        stack.push_back(next.function.get());
        is_ready = false;
      } else {
        leads = leads || known->second;
      }
    }
    if (!is_ready) continue;
    leads_by_node.emplace(node, leads);
    stack.pop_back();
  }
  return leads_by_node;
}

// The edges by which gradients come from nodes that some of the results share to nodes that more of them do,
// down to the last that saves something. Empty if there is a hook at one: it is recorded where it is.
edge_list joins_between(const std::vector<bool>& chosen, const edge_list& results,
                        const std::vector<Stretch>& stretches) {
  ResultsByNode reached_by;
  for (size_t t = 0; t < stretches.size(); ++t)
    if (chosen[t])
      for (Node* node : stretches[t].nodes) reached_by[node].push_back(t);
  const auto is_end = [&](const Edge& edge) {
    return !edge.is_valid() || !reached_by.contains(edge.function.get()) ||
           std::ranges::find(results, edge) != results.end();
  };
  const std::unordered_map<Node*, bool> leads = leads_to_saved(reached_by, is_end);
  edge_list joins;
  for (const auto& [node, results_before] : reached_by)
    for (const Edge& next : node->next_edges()) {
      if (is_end(next) || !leads.at(next.function.get())) continue;
      if (reached_by.at(next.function.get()) == results_before) continue;
      if (has_hooks(*next.function) || next.function->input_metadata(next.input_nr).was_default_constructed())
        return {};
      if (std::ranges::find(joins, next) == joins.end()) joins.push_back(next);
    }
  std::ranges::sort(joins, std::greater<>(),
                    [](const Edge& join) { return std::pair(join.function->sequence_nr(), join.input_nr); });
  return joins;
}

// Places in autograd's graph, and the parts that they belong to.
struct Parts {
  edge_list places;
  std::vector<int32_t> number;     // by place
  std::vector<Stretch> stretches;  // by place: up to other places
  std::vector<bool> ends;          // by place: a gradient that comes from another part ends there
};

Parts parts_at(edge_list places, const edge_list& leaves, const std::vector<size_t>& made) {
  Parts parts{.places = std::move(places)};
  const size_t count = parts.places.size();
  for (const Edge& place : parts.places) parts.ends.push_back(!has_hooks(*place.function));
  for (size_t t = 0; t < count; ++t) parts.stretches.push_back(stretch_of(t, parts.places, parts.ends));
  const std::vector<Stretch>& stretches = parts.stretches;
  parts.number = sharing(stretches);
  // What saves nothing and has nothing to do with other results shares a part with what flows into the same
  // leaves: a leaf's hooks would be called for the others, too.
  std::map<std::vector<bool>, int32_t> alone;
  for (size_t t = 0; t < count; ++t) {
    if (parts.number[t] >= 0) continue;
    const auto own = static_cast<int32_t>(t);
    const bool is_alone =
        std::ranges::none_of(stretches[t].behind, [](bool is_behind) { return is_behind; }) &&
        std::ranges::none_of(stretches, [&](const Stretch& other) { return other.behind[t]; });
    parts.number[t] = is_alone ? alone.emplace(reached(leaves, stretches[t]), own).first->second : own;
  }
  unite_cycles(parts.number, stretches);
  parts.number = numbered(std::move(parts.number), made);
  return parts;
}

// None if there are too many.
std::optional<Parts> parts_of(const edge_list& results, const edge_list& leaves) {
  const auto are_too_many = [](const Parts& parts) {
    return *std::ranges::max_element(parts.number) >= kMostParts;
  };
  if (results.size() < 2 || results.size() > kMostResults) return std::nullopt;
  Parts parts = parts_at(results, leaves, in_order_made(results));
  const std::vector<bool> chosen = entangled(parts.number, parts.stretches, leaves);
  if (std::ranges::find(chosen, true) != chosen.end()) {
    edge_list places = results;
    for (const Edge& join : joins_between(chosen, results, parts.stretches)) places.push_back(join);
    if (places.size() <= kMostResults) {
      const std::vector<size_t> made = in_order_made(places);
      Parts finer = parts_at(std::move(places), leaves, made);
      if (!are_too_many(finer)) return finer;
    }
  }
  if (are_too_many(parts)) return std::nullopt;
  return parts;
}

}  // namespace

SeparateBackward separate_backward(const edge_list& results, const edge_list& leaves) {
  SeparateBackward separate;
  const std::optional<Parts> parts = parts_of(results, leaves);
  const edge_list& places = parts ? parts->places : results;
  const size_t count = places.size();
  separate.joins.assign(places.begin() + static_cast<std::ptrdiff_t>(results.size()), places.end());
  separate.made = in_order_made(places);
  separate.places.resize(count);
  std::vector<Stretch> whole, stretches;
  for (size_t t = 0; t < count; ++t) {
    whole.push_back(stretch_of(t, places, std::vector<bool>(count, false)));
    separate.places[t].flows = reached(leaves, whole[t]);
    if (parts) separate.places[t].tangent.part = passes::PartId(parts->number[t]);
  }
  const auto part = [&](size_t t) { return separate.places[t].tangent.part; };
  for (size_t t = 0; t < count; ++t) {
    // Within a part a gradient goes on through its places.
    std::vector<bool> ends(count);
    for (size_t u = 0; u < count; ++u) ends[u] = part(u) != part(t) && parts->ends[u];
    stretches.push_back(stretch_of(t, places, ends));
  }
  const std::vector<int32_t> freed_with = sharing(whole), own = sharing(stretches);
  for (size_t t = 0; t < count; ++t) {
    SeparateBackward::Place& place = separate.places[t];
    place.tangent.freed_with = freed_with[t];
    place.flows_of_part = reached(leaves, stretches[t]);
    place.behind = stretches[t].behind;
    for (size_t u = 0; u < count; ++u)
      if (part(u) == part(t) && own[u] >= 0) place.tangent.part_frees = true;
  }
  return separate;
}

}  // namespace oxy::autograd
