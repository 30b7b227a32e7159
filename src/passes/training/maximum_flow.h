// Minimum cuts of directed graphs with capacities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace oxy::passes {

// Dinic's algorithm: O(V^2 E) at worst, near linear on the shallow graphs of models.
class FlowNetwork {
 public:
  static constexpr int64_t kUnbounded = int64_t{1} << 60;

  explicit FlowNetwork(int32_t vertices) : edges_of_(static_cast<size_t>(vertices)) {}

  void add_edge(int32_t from, int32_t to, int64_t capacity);
  // The minimum cut between the two: for each vertex, whether it lies on the sink's side. Of several minimum
  // cuts the one nearest to the sink. False for all if no finite cut exists.
  std::vector<bool> minimum_cut(int32_t source, int32_t sink);

 private:
  struct Edge {
    int32_t to;
    int64_t left;  // capacity not used yet
  };
  bool find_levels(int32_t source, int32_t sink);
  int64_t push_flow(int32_t source, int32_t sink);

  std::vector<Edge> edges_;  // edge e and its reverse e ^ 1
  std::vector<std::vector<int32_t>> edges_of_;
  std::vector<int32_t> level_;
  std::vector<std::size_t> next_;
};

}  // namespace oxy::passes
