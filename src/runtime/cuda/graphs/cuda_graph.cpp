#include "runtime/cuda/graphs/cuda_graph.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace oxy::runtime {

namespace {

using backend::cuda::check_call;
using backend::cuda::Driver;

constexpr size_t kAddressBytes = sizeof(uintptr_t);
constexpr uintptr_t kAlignment = 256;  // as far as a library may look at an address

uintptr_t word_at(const ParameterBytes& bytes) {
  uintptr_t result = 0;
  std::memcpy(&result, bytes.data(), kAddressBytes);
  return result;
}

class CudaGraph : public DeviceGraph {
 public:
  CudaGraph(const Driver& driver, c10::DeviceIndex device, CapturedPass pass, std::vector<MovableNode> nodes,
            std::vector<DrawPlace> draws)
      : driver_(driver),
        guard_(c10::DeviceType::CUDA),
        device_(c10::DeviceType::CUDA, device),
        graph_(std::move(pass.graph)),
        nodes_(std::move(nodes)),
        draws_(std::move(draws)),
        users_(pass.memories.size()) {
    for (const MovableMemory& memory : pass.memories) addresses_.push_back(memory.address);
    for (DrawPlace& place : draws_) place.node = index_of(place.node, pass.nodes);
    for (size_t n = 0; n < nodes_.size(); ++n)
      for (const Place& place : nodes_[n].places)
        if (users_[place.movable].empty() || users_[place.movable].back() != n)
          users_[place.movable].push_back(n);
    // As recorded, operators write their results to memory of their own.
    is_stale_.resize(nodes_.size(), true);
    stale_.resize(nodes_.size());
    std::iota(stale_.begin(), stale_.end(), size_t{0});
    check_call(driver_, driver_.graphs.instantiate(&executable_, graph_.handle(), 0), "a recorded graph");
    check_call(driver_, driver_.current_context(&context_), "to tell the current context");
  }
  ~CudaGraph() override {
    if (executable_ != nullptr) driver_.graphs.destroy_executable(executable_);
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  bool fits(std::span<const uintptr_t> addresses) const override {
    check(addresses.size() == addresses_.size(), "a graph is replayed with another number of addresses");
    for (size_t i = 0; i < addresses.size(); ++i)
      if ((addresses[i] ^ addresses_[i]) % kAlignment != 0 && !users_[i].empty()) return false;
    return true;
  }

  void replay(std::span<const uintptr_t> addresses, std::span<const GeneratorPosition> draws) override {
    for (size_t i = 0; i < addresses.size(); ++i) {
      if (addresses[i] == addresses_[i]) continue;
      addresses_[i] = addresses[i];
      for (const size_t n : users_[i]) make_stale(n);
    }
    for (const DrawPlace& place : draws_) {
      set_draw(nodes_[place.node].node.parameters[place.parameter], place.offset, draws[place.draw]);
      make_stale(place.node);
    }
    for (const size_t n : stale_) {
      update(nodes_[n]);
      is_stale_[n] = false;
    }
    stale_.clear();
    const c10::DeviceGuard current(device_);  // whose default stream a default stream is
    check_call(driver_, driver_.graphs.launch(executable_, guard_.getStream(device_).native_handle()),
               "to replay recorded work");
  }

 private:
  // The place among nodes_ of a node of the pass, which is added if it is not there.
  size_t index_of(size_t number, const std::vector<CapturedNode>& of_pass) {
    const auto index =
        static_cast<size_t>(std::ranges::find(nodes_, number, &MovableNode::number) - nodes_.begin());
    if (index == nodes_.size()) nodes_.push_back({number, of_pass[number], {}});
    return index;
  }

  void make_stale(size_t n) {
    if (is_stale_[n]) return;
    is_stale_[n] = true;
    stale_.push_back(n);
  }

  void update(MovableNode& movable) {
    CapturedNode& node = movable.node;
    for (const Place& place : movable.places) {
      const uintptr_t address = addresses_[place.movable] + place.distance;
      std::memcpy(node.parameters[place.parameter].data() + place.offset, &address, kAddressBytes);
    }
    if (node.kind == NodeKind::Copy) {
      node.copy.source = word_at(node.parameters[0]);
      node.copy.target = word_at(node.parameters[1]);
      check_call(driver_, driver_.graphs.set_copy(executable_, node.handle, &node.copy, context_),
                 "other addresses for a recorded copy");
    } else if (node.kind == NodeKind::Fill) {
      node.fill.target = word_at(node.parameters[0]);
      check_call(driver_, driver_.graphs.set_fill(executable_, node.handle, &node.fill, context_),
                 "other addresses for a recorded fill");
    } else {
      update_kernel(node);
    }
  }

  void update_kernel(CapturedNode& node) {
    backend::cuda::KernelNode kernel = node.kernel;
    size_t size = 0;
    void* extra[5] = {backend::cuda::kParameterBuffer, nullptr, backend::cuda::kParameterBytes, &size,
                      nullptr};
    pointers_.clear();
    if (node.is_one_buffer) {
      size = node.parameters[0].size();
      extra[1] = node.parameters[0].data();
      kernel.extra = extra;
    } else {
      for (ParameterBytes& parameter : node.parameters) pointers_.push_back(parameter.data());
      kernel.parameters = pointers_.data();
    }
    check_call(driver_, driver_.graphs.set_kernel(executable_, node.handle, &kernel),
               "other addresses for a recorded launch");
  }

  const Driver& driver_;
  c10::impl::VirtualGuardImpl guard_;
  c10::Device device_;
  CapturedGraph graph_;
  CudaHandle executable_ = nullptr;
  CudaHandle context_ = nullptr;
  std::vector<MovableNode> nodes_;          // those with places, and those that draw
  std::vector<DrawPlace> draws_;            // their nodes by place in nodes_
  std::vector<std::vector<size_t>> users_;  // by movable memory: the nodes with its address
  std::vector<uintptr_t> addresses_;        // by movable memory, as the executable has them
  std::vector<size_t> stale_;
  std::vector<char> is_stale_;   // by node
  std::vector<void*> pointers_;  // of one node
};

}  // namespace

std::unique_ptr<DeviceGraph> make_graph(const Driver& driver, c10::DeviceIndex device, CapturedPass pass,
                                        std::vector<MovableNode> nodes, std::vector<DrawPlace> draws) {
  return std::make_unique<CudaGraph>(driver, device, std::move(pass), std::move(nodes), std::move(draws));
}

}  // namespace oxy::runtime
