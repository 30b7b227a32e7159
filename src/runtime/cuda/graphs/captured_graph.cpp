#include "runtime/cuda/graphs/captured_graph.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"

namespace oxy::runtime {

namespace {

using backend::cuda::check_call;
using backend::cuda::Driver;

// As the driver's headers have them.
constexpr int kThreadLocalCapture = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
constexpr int kKernelNode = 0, kCopyNode = 1, kFillNode = 2, kEmptyNode = 5;  // CU_GRAPH_NODE_TYPE_*
constexpr unsigned kDeviceMemory = 2, kUnifiedMemory = 4;                     // CU_MEMORYTYPE_*
constexpr int kMemoryType = 2;  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE

ParameterBytes bytes_at(const void* begin, size_t count) {
  const auto* const first = static_cast<const std::byte*>(begin);
  return {first, first + count};
}

void read_kernel(const Driver& driver, CapturedNode& node) {
  const backend::cuda::KernelNode& kernel = node.kernel;
  if (kernel.parameters == nullptr) {
    const void* buffer = nullptr;
    size_t size = 0;
    for (void** extra = kernel.extra; extra != nullptr && *extra != nullptr; extra += 2) {
      if (extra[0] == backend::cuda::kParameterBuffer) buffer = extra[1];
      if (extra[0] == backend::cuda::kParameterBytes) size = *static_cast<const size_t*>(extra[1]);
    }
    if (buffer != nullptr) node.parameters.push_back(bytes_at(buffer, size));
    node.is_one_buffer = buffer != nullptr;
    return;
  }
  for (size_t i = 0;; ++i) {
    size_t offset = 0, size = 0;
    const auto found = kernel.kernel != nullptr
                           ? driver.graphs.kernel_parameter(kernel.kernel, i, &offset, &size)
                           : driver.graphs.function_parameter(kernel.function, i, &offset, &size);
    if (found != 0) return;  // there are no more
    node.parameters.push_back(bytes_at(kernel.parameters[i], size));
  }
}

CapturedNode read(const Driver& driver, CudaHandle handle, size_t number) {
  const backend::cuda::GraphFunctions& graphs = driver.graphs;
  CapturedNode node;
  node.handle = handle;
  int type = 0;
  check_call(driver, graphs.node_type(handle, &type), "to tell what was recorded");
  if (type == kKernelNode) {
    node.kind = NodeKind::Kernel;
    check_call(driver, graphs.get_kernel(handle, &node.kernel), "to read a recorded launch");
    read_kernel(driver, node);
  } else if (type == kCopyNode) {
    node.kind = NodeKind::Copy;
    check_call(driver, graphs.get_copy(handle, &node.copy), "to read a recorded copy");
    const auto is_on_device = [&](unsigned kind, uint64_t pointer) {
      if (kind == kDeviceMemory) return true;
      unsigned found = 0;
      return kind == kUnifiedMemory && graphs.pointer_attribute(&found, kMemoryType, pointer) == 0 &&
             found == kDeviceMemory;
    };
    if (!is_on_device(node.copy.source_type, node.copy.source) ||
        !is_on_device(node.copy.target_type, node.copy.target))
      throw NotReplayable{"it copies between the host and the device", number};
    node.parameters = {bytes_at(&node.copy.source, sizeof node.copy.source),
                       bytes_at(&node.copy.target, sizeof node.copy.target)};
  } else if (type == kFillNode) {
    node.kind = NodeKind::Fill;
    check_call(driver, graphs.get_fill(handle, &node.fill), "to read a recorded fill");
    node.parameters = {bytes_at(&node.fill.target, sizeof node.fill.target)};
  } else if (type != kEmptyNode) {
    throw NotReplayable{fmt::format("it enqueues more than kernels, copies and fills (node type {})", type),
                        number};
  }
  return node;
}

}  // namespace

std::vector<CapturedNode> nodes_of(const Driver& driver, CudaHandle graph) {
  size_t count = 0;
  check_call(driver, driver.graphs.nodes(graph, nullptr, &count), "to count what was recorded");
  std::vector<CudaHandle> handles(count);
  check_call(driver, driver.graphs.nodes(graph, handles.data(), &count), "to list what was recorded");
  std::vector<CapturedNode> result;
  result.reserve(count);
  for (size_t n = 0; n < count; ++n) result.push_back(read(driver, handles[n], n));
  return result;
}

CapturedGraph::CapturedGraph(const Driver& driver, CudaHandle graph) : driver_(driver), graph_(graph) {}

CapturedGraph::CapturedGraph(CapturedGraph&& other) noexcept
    : driver_(other.driver_), graph_(std::exchange(other.graph_, nullptr)) {}

CapturedGraph::~CapturedGraph() {
  if (graph_ != nullptr) driver_.graphs.destroy(graph_);
}

CapturedPass capture(const Driver& driver, CudaHandle stream, std::vector<MovableMemory> memories,
                     const std::function<std::vector<MadeResult>()>& enqueue) {
  check_call(driver, driver.graphs.begin_capture(stream, kThreadLocalCapture), "to record a stream");
  CudaHandle graph = nullptr;
  std::vector<MadeResult> results;
  std::vector<LoggedAllocation> allocations;
  try {
    const AllocationLog log([&] { return node_count(driver, stream); });
    results = enqueue();
    allocations = log.allocations();
  } catch (...) {
    driver.graphs.end_capture(stream, &graph);
    if (graph != nullptr) driver.graphs.destroy(graph);
    throw;
  }
  if (driver.graphs.end_capture(stream, &graph) != 0 || graph == nullptr)
    throw NotReplayable{"it waits for the device", {}};
  CapturedGraph captured(driver, graph);
  std::vector<CapturedNode> nodes = nodes_of(driver, captured.handle());
  return {std::move(captured), std::move(nodes), std::move(allocations), std::move(memories),
          std::move(results)};
}

size_t node_count(const Driver& driver, CudaHandle stream) {
  int status = 0;
  uint64_t id = 0;
  CudaHandle graph = nullptr;
  const CudaHandle* dependencies = nullptr;
  size_t count = 0;
  if (driver.graphs.capture_info(stream, &status, &id, &graph, &dependencies, &count) != 0 ||
      graph == nullptr || driver.graphs.nodes(graph, nullptr, &count) != 0)
    return 0;  // the capture has failed, and its end will say so
  return count;
}

bool is_capturing(const Driver& driver, CudaHandle stream) {
  int status = 0;
  return driver.graphs.is_capturing(stream, &status) != 0 || status != 0;
}

}  // namespace oxy::runtime
