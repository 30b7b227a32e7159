#include "passes/training/maximum_flow.h"

#include <algorithm>

namespace oxy::passes {

void FlowNetwork::add_edge(int32_t from, int32_t to, int64_t capacity) {
  edges_of_[static_cast<size_t>(from)].push_back(static_cast<int32_t>(edges_.size()));
  edges_.push_back({to, capacity});
  edges_of_[static_cast<size_t>(to)].push_back(static_cast<int32_t>(edges_.size()));
  edges_.push_back({from, 0});
}

bool FlowNetwork::find_levels(int32_t source, int32_t sink) {
  level_.assign(edges_of_.size(), -1);
  level_[static_cast<size_t>(source)] = 0;
  std::vector<int32_t> queue = {source};
  for (size_t head = 0; head < queue.size(); ++head) {
    const auto vertex = static_cast<size_t>(queue[head]);
    for (const int32_t e : edges_of_[vertex]) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      if (edge.left <= 0 || level_[static_cast<size_t>(edge.to)] >= 0) continue;
      level_[static_cast<size_t>(edge.to)] = level_[vertex] + 1;
      queue.push_back(edge.to);
    }
  }
  return level_[static_cast<size_t>(sink)] >= 0;
}

// Pushes flow along one path of the level graph; 0 if there is none left. A loop, not a recursion: paths are
// as long as the model is deep.
int64_t FlowNetwork::push_flow(int32_t source, int32_t sink) {
  std::vector<int32_t> path;
  int32_t vertex = source;
  while (vertex != sink) {
    const auto v = static_cast<size_t>(vertex);
    bool advanced = false;
    for (; next_[v] < edges_of_[v].size(); ++next_[v]) {
      const int32_t e = edges_of_[v][next_[v]];
      const Edge& edge = edges_[static_cast<size_t>(e)];
      if (edge.left <= 0 || level_[static_cast<size_t>(edge.to)] != level_[v] + 1) continue;
      path.push_back(e);
      vertex = edge.to;
      advanced = true;
      break;
    }
    if (advanced) continue;
    if (path.empty()) return 0;
    const int32_t back = path.back();
    path.pop_back();
    vertex = edges_[static_cast<size_t>(back ^ 1)].to;
    ++next_[static_cast<size_t>(vertex)];
  }
  int64_t flow = kUnbounded;
  for (const int32_t e : path) flow = std::min(flow, edges_[static_cast<size_t>(e)].left);
  for (const int32_t e : path) {
    edges_[static_cast<size_t>(e)].left -= flow;
    edges_[static_cast<size_t>(e ^ 1)].left += flow;
  }
  return flow;
}

std::vector<bool> FlowNetwork::minimum_cut(int32_t source, int32_t sink) {
  int64_t total = 0;
  while (total < kUnbounded && find_levels(source, sink)) {
    next_.assign(edges_of_.size(), 0);
    for (int64_t flow = push_flow(source, sink); flow > 0 && total < kUnbounded;
         flow = push_flow(source, sink))
      total += flow;
  }
  std::vector<bool> sink_side(edges_of_.size(), false);
  if (total >= kUnbounded) return sink_side;
  // Backwards from the sink along edges that could carry more.
  std::vector<int32_t> queue = {sink};
  sink_side[static_cast<size_t>(sink)] = true;
  for (size_t head = 0; head < queue.size(); ++head) {
    for (const int32_t e : edges_of_[static_cast<size_t>(queue[head])]) {
      const int32_t from = edges_[static_cast<size_t>(e)].to;
      if (edges_[static_cast<size_t>(e ^ 1)].left <= 0 || sink_side[static_cast<size_t>(from)]) continue;
      sink_side[static_cast<size_t>(from)] = true;
      queue.push_back(from);
    }
  }
  return sink_side;
}

}  // namespace oxy::passes
