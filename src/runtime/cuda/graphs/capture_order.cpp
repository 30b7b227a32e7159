#include "runtime/cuda/graphs/capture_order.h"

#include <algorithm>
#include <unordered_map>

namespace oxy::runtime {

namespace {

using backend::cuda::check_call;

constexpr unsigned kReplace = 1;  // CU_STREAM_SET_CAPTURE_DEPENDENCIES

}  // namespace

void CaptureOrder::begin() {
  parts_.clear();
  is_in_part_ = false;
}

CaptureOrder::Part CaptureOrder::present() const {
  int status = 0;
  uint64_t id = 0;
  CudaHandle graph = nullptr;
  const CudaHandle* nodes = nullptr;
  size_t count = 0;
  check_call(driver_, driver_.graphs.capture_info(stream_, &status, &id, &graph, &nodes, &count),
             "to tell what was recorded last");
  return {node_count(driver_, stream_), {nodes, nodes + count}};
}

void CaptureOrder::begin_part(size_t part, std::span<const size_t> after) {
  if (is_in_part_) parts_[current_] = present();
  std::vector<CudaHandle> followed;
  for (const size_t before : after) {
    const std::vector<CudaHandle>& nodes = parts_.at(before).nodes;
    followed.insert(followed.end(), nodes.begin(), nodes.end());
  }
  std::ranges::sort(followed);
  followed.erase(std::ranges::unique(followed).begin(), followed.end());
  check_call(driver_, driver_.graphs.follow(stream_, followed.data(), followed.size(), kReplace),
             "to order what is recorded");
  current_ = part;
  is_in_part_ = true;
}

void CaptureOrder::check_order(const std::vector<CapturedNode>& nodes) const {
  std::unordered_map<CudaHandle, size_t> places;
  for (size_t n = 0; n < nodes.size(); ++n) places[nodes[n].handle] = n;
  size_t begin = 0;
  for (const auto& [number, part] : parts_) {
    // A part that has recorded nothing has nodes of earlier ones.
    const auto is_outside = [&](CudaHandle node) {
      const auto place = places.find(node);
      return place == places.end() || place->second < begin || place->second >= part.end;
    };
    if (part.end > begin && std::ranges::any_of(part.nodes, is_outside))
      throw NotReplayable{"the driver lists what was recorded in another order", {}};
    begin = part.end;
  }
}

}  // namespace oxy::runtime
