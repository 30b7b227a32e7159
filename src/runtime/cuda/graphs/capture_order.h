// The order in a capture: parts that need not follow each other are recorded side by side.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "runtime/cuda/graphs/captured_graph.h"

namespace oxy::runtime {

class CaptureOrder {
 public:
  CaptureOrder(const backend::cuda::Driver& driver, CudaHandle stream) : driver_(driver), stream_(stream) {}

  // A capture of the stream begins.
  void begin();
  // See DeviceGraphMaker::begin_part(). A part that records nothing stands for those that it follows.
  void begin_part(size_t part, std::span<const size_t> after);
  // Throws NotReplayable if the nodes are not listed in the order in which they were recorded: what is known
  // of a node is known by its place.
  void check_order(const std::vector<CapturedNode>& nodes) const;

 private:
  struct Part {
    size_t end = 0;                 // nodes recorded so far
    std::vector<CudaHandle> nodes;  // those that nothing of the part follows
  };
  Part present() const;

  const backend::cuda::Driver& driver_;
  CudaHandle stream_;
  std::map<size_t, Part> parts_;
  size_t current_ = 0;
  bool is_in_part_ = false;
};

}  // namespace oxy::runtime
