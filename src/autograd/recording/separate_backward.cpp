#include "autograd/recording/separate_backward.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <utility>

#include "autograd/recording/backward_network.h"
#include "autograd/recording/engine.h"
#include "base/number_set.h"

namespace oxy::autograd {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Node;

// Each part is a graph to be compiled, and a call at every backward pass.
constexpr int32_t kMostParts = 32;
// The search for parts takes time with the square of the number of results.
constexpr size_t kMostResults = 64;

using Leaves = std::vector<NetworkId>;

std::vector<bool> reached(const Leaves& leaves, const Stretch& stretch) {
  std::vector<bool> result;
  for (const NetworkId leaf : leaves) result.push_back(leaf.is_valid() && stretch.has[leaf]);
  return result;
}

void unite(std::vector<int32_t>& groups, int32_t gone, int32_t kept) {
  for (int32_t& group : groups)
    if (group == gone) group = kept;
}

using Test = std::function<bool(NetworkId)>;

// Whether a node saves tensors, which the first pass through it frees.
Test saves_tensors(BackwardNetwork& network) {
  return [&network](NetworkId id) { return network.saves_tensors(id); };
}

// Whether what comes from several results has to go through a node at once. Eager frees what it saves. And
// the program's own code need not give the sum of the gradients for the sum of two.
Test wants_one_pass(BackwardNetwork& network) {
  return [&network](NetworkId id) {
    Node& node = network.node(id);
    const bool is_leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(&node) != nullptr;
    return network.saves_tensors(id) || dynamic_cast<ProgramNode*>(&node) != nullptr ||
           (!is_leaf && has_hooks(node));
  };
}

// The number of the first result with which each shares a node that passes the test; -1 where it has none.
std::vector<int32_t> sharing(const std::vector<Stretch>& stretches, const BackwardNetwork& network,
                             const Test& test) {
  std::vector<int32_t> group(stretches.size(), -1);
  IdVector<NetworkId, int32_t> first(network.size(), -1);
  for (size_t t = 0; t < stretches.size(); ++t)
    for (const NetworkId id : stretches[t].nodes) {
      if (!test(id)) continue;
      if (group[t] < 0) group[t] = static_cast<int32_t>(t);
      if (first[id] < 0) first[id] = static_cast<int32_t>(t);
      const int32_t owner = group[static_cast<size_t>(first[id])];
      if (group[t] != owner) unite(group, group[t], owner);
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
                            const Leaves& leaves) {
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

using ResultsByNode = IdVector<NetworkId, NumberSet>;

// Whether an edge leads out of what the results reach, or to one of them.
bool is_end(const NetworkEdge& edge, const ResultsByNode& reached_by) {
  return !edge.to.is_valid() || edge.place.is_valid() || reached_by[edge.to].empty();
}

// Whether a node that is reached, or one behind it, passes the test.
IdVector<NetworkId, bool> leads_to(const ResultsByNode& reached_by, const BackwardNetwork& network,
                                   const Test& test) {
  IdVector<NetworkId, bool> leads(network.size()), is_known(network.size());
  std::vector<NetworkId> stack;
  for (const NetworkId id : network.ids())
    if (!reached_by[id].empty()) stack.push_back(id);
  while (!stack.empty()) {
    const NetworkId id = stack.back();
    if (is_known[id]) {
      stack.pop_back();
      continue;
    }
    bool leads_there = test(id), is_ready = true;
    for (const NetworkEdge& edge : network.edges(id)) {
      if (is_end(edge, reached_by)) continue;
      if (is_known[edge.to]) {
        leads_there = leads_there || leads[edge.to];
      } else {
        stack.push_back(edge.to);
        is_ready = false;
      }
    }
    if (!is_ready) continue;
    leads[id] = leads_there;
    is_known[id] = true;
    stack.pop_back();
  }
  return leads;
}

// The edges by which gradients come from nodes that some of the results share to nodes that more of them do,
// down to the last that wants one pass. Empty if there is a hook at one: it is recorded where it is.
edge_list joins_between(const std::vector<bool>& chosen, const std::vector<Stretch>& stretches,
                        BackwardNetwork& network) {
  ResultsByNode reached_by(network.size());
  for (size_t t = 0; t < stretches.size(); ++t)
    if (chosen[t])
      for (const NetworkId id : stretches[t].nodes) reached_by[id].add(t);
  const IdVector<NetworkId, bool> leads = leads_to(reached_by, network, wants_one_pass(network));
  edge_list joins;
  for (const NetworkId id : network.ids()) {
    if (reached_by[id].empty()) continue;
    for (const NetworkEdge& edge : network.edges(id)) {
      if (is_end(edge, reached_by) || !leads[edge.to] || reached_by[edge.to] == reached_by[id]) continue;
      Node& next = network.node(edge.to);
      if (has_hooks(next) || next.input_metadata(edge.input).was_default_constructed()) return {};
      Edge join(next.getptr(), edge.input);
      if (std::ranges::find(joins, join) == joins.end()) joins.push_back(std::move(join));
    }
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

Parts parts_at(edge_list places, const Leaves& leaves, BackwardNetwork& network) {
  network.set_places(places);
  const std::vector<size_t> made = in_order_made(places);
  Parts parts{.places = std::move(places)};
  const size_t count = parts.places.size();
  for (const Edge& place : parts.places) parts.ends.push_back(!has_hooks(*place.function));
  for (size_t t = 0; t < count; ++t) parts.stretches.push_back(stretch_of(PlaceId(t), network, parts.ends));
  const std::vector<Stretch>& stretches = parts.stretches;
  parts.number = sharing(stretches, network, wants_one_pass(network));
  // What goes through no such node and has nothing to do with other results shares a part with what flows
  // into the same leaves: a leaf's hooks would be called for the others, too.
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
std::optional<Parts> parts_of(const edge_list& results, const Leaves& leaves, BackwardNetwork& network) {
  const auto are_too_many = [](const Parts& parts) {
    return *std::ranges::max_element(parts.number) >= kMostParts;
  };
  if (results.size() < 2 || results.size() > kMostResults) return std::nullopt;
  Parts parts = parts_at(results, leaves, network);
  const std::vector<bool> chosen = entangled(parts.number, parts.stretches, leaves);
  if (std::ranges::find(chosen, true) != chosen.end()) {
    edge_list places = results;
    for (const Edge& join : joins_between(chosen, parts.stretches, network)) places.push_back(join);
    if (places.size() <= kMostResults) {
      Parts finer = parts_at(std::move(places), leaves, network);
      if (!are_too_many(finer)) return finer;
    }
  }
  if (are_too_many(parts)) return std::nullopt;
  return parts;
}

}  // namespace

SeparateBackward separate_backward(const edge_list& results, const edge_list& leaf_edges) {
  SeparateBackward separate;
  BackwardNetwork network(results);
  Leaves leaves;
  for (const Edge& leaf : leaf_edges) leaves.push_back(network.id_of(leaf.function.get()));
  const std::optional<Parts> parts = parts_of(results, leaves, network);
  const edge_list& places = parts ? parts->places : results;
  network.set_places(places);
  const size_t count = places.size();
  separate.joins.assign(places.begin() + static_cast<std::ptrdiff_t>(results.size()), places.end());
  separate.made = in_order_made(places);
  separate.places.resize(count);
  std::vector<Stretch> whole, stretches;
  for (size_t t = 0; t < count; ++t) {
    whole.push_back(stretch_of(PlaceId(t), network, std::vector<bool>(count, false)));
    separate.places[t].flows = reached(leaves, whole[t]);
    if (parts) separate.places[t].tangent.part = passes::PartId(parts->number[t]);
  }
  const auto part = [&](size_t t) { return separate.places[t].tangent.part; };
  for (size_t t = 0; t < count; ++t) {
    // Within a part a gradient goes on through its places.
    std::vector<bool> ends(count);
    for (size_t u = 0; u < count; ++u) ends[u] = part(u) != part(t) && parts->ends[u];
    stretches.push_back(stretch_of(PlaceId(t), network, ends));
  }
  const Test frees = saves_tensors(network);
  const std::vector<int32_t> freed_with = sharing(whole, network, frees),
                             own = sharing(stretches, network, frees);
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
