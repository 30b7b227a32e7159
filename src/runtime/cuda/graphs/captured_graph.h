// A CUDA graph as captured from a stream: its nodes with the bytes that may hold addresses.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "backend/cuda/load/driver.h"
#include "runtime/cuda/graphs/allocation_log.h"
#include "runtime/device/device_graph.h"

namespace oxy::runtime {

using CudaHandle = backend::cuda::Handle;

using ParameterBytes = std::vector<std::byte>;

enum class NodeKind : uint8_t { Kernel, Copy, Fill, Empty };

struct CapturedNode {
  CudaHandle handle = nullptr;
  NodeKind kind = NodeKind::Empty;
  backend::cuda::KernelNode kernel = {};  // Kernel; its parameters are in `parameters`
  backend::cuda::CopyNode copy = {};      // Copy
  backend::cuda::FillNode fill = {};      // Fill
  // Kernel: one an argument, or one for all of them if `is_one_buffer`. Copy: source, target. Fill: target.
  std::vector<ParameterBytes> parameters;
  bool is_one_buffer = false;
};

// The nodes of a graph, in the order in which they were enqueued. Throws NotReplayable for nodes that cannot
// be replayed with other addresses.
std::vector<CapturedNode> nodes_of(const backend::cuda::Driver& driver, CudaHandle graph);

// Owns the graph.
class CapturedGraph {
 public:
  CapturedGraph(const backend::cuda::Driver& driver, CudaHandle graph);
  ~CapturedGraph();
  CapturedGraph(CapturedGraph&& other) noexcept;
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  CapturedGraph& operator=(CapturedGraph&&) = delete;

  CudaHandle handle() const { return graph_; }

 private:
  const backend::cuda::Driver& driver_;
  CudaHandle graph_;
};

// What one pass has recorded.
struct CapturedPass {
  CapturedGraph graph;
  std::vector<CapturedNode> nodes;
  std::vector<LoggedAllocation> allocations;
  std::vector<MovableMemory> memories;
  std::vector<MadeResult> results;
};

// Captures what `enqueue` enqueues on `stream`, which is current; it returns the results. If it throws, the
// capture ends and the stream is as before.
CapturedPass capture(const backend::cuda::Driver& driver, CudaHandle stream,
                     std::vector<MovableMemory> memories,
                     const std::function<std::vector<MadeResult>()>& enqueue);

// How many nodes the capture of `stream` has so far.
size_t node_count(const backend::cuda::Driver& driver, CudaHandle stream);

// True if somebody captures what is enqueued on `stream`.
bool is_capturing(const backend::cuda::Driver& driver, CudaHandle stream);

}  // namespace oxy::runtime
