#include "runtime/cuda/graphs/cuda_graph_maker.h"

#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/cuda/graphs/address_places.h"
#include "runtime/cuda/graphs/capture_order.h"
#include "runtime/cuda/graphs/captured_graph.h"
#include "runtime/cuda/graphs/cuda_graph.h"
#include "runtime/cuda/graphs/decoy_memory.h"
#include "runtime/cuda/graphs/draw_places.h"
#include "runtime/cuda/graphs/generator_capture.h"
#include "runtime/cuda/graphs/graph_pool.h"
#include "runtime/device/draw_lock.h"

namespace oxy::runtime {

namespace {

using backend::cuda::Driver;

constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
constexpr int64_t kLargeArena = int64_t{32} << 20;

// A stream that nobody else has: those of PyTorch's pool are the program's as well. PyTorch names streams of
// others by their addresses.
c10::Stream new_stream(const Driver& driver, c10::Device device) {
  const c10::DeviceGuard guard(device);
  CudaHandle stream = nullptr;
  backend::cuda::check_call(driver, driver.graphs.create_stream(&stream, kNonBlocking), "a stream");
  return c10::Stream(c10::Stream::UNSAFE, device,
                     static_cast<c10::StreamId>(reinterpret_cast<intptr_t>(stream)));
}

// What plans need that will be recorded soon, by DeviceGraphMaker::announce().
struct Announced {
  std::mutex mutex;
  std::multiset<int64_t> sizes;

  int64_t largest() {
    const std::scoped_lock lock(mutex);
    return sizes.empty() ? 0 : *sizes.rbegin();
  }
};

class CudaGraphMaker : public DeviceGraphMaker {
 public:
  CudaGraphMaker(const Driver& driver, c10::Device device, c10::Stream stream)
      : driver_(driver),
        device_(device),
        stream_(stream),
        capturing_(new_stream(driver, device)),
        order_(driver, capturing_.native_handle()),
        pool_(driver, device.index()) {}

  std::shared_ptr<void> announce(int64_t bytes) override {
    {
      const std::scoped_lock lock(announced_->mutex);
      announced_->sizes.insert(bytes);
    }
    return {nullptr, [bytes, all = announced_](void* /*unused*/) {
              const std::scoped_lock lock(all->mutex);
              all->sizes.erase(all->sizes.find(bytes));
            }};
  }

  std::shared_ptr<const Arena> arena(int64_t bytes) override {
    std::shared_ptr<const Arena> arena = arena_.lock();
    if (arena == nullptr || arena->bytes < bytes) {
      try {
        arena = new_arena(std::max(bytes, announced_->largest()));
      } catch (const c10::OutOfMemoryError&) {
        arena = new_arena(bytes);  // a larger plan makes its own later
      }
      arena_ = arena;
    }
    return arena;
  }

  std::shared_ptr<void> recording_memory() override {
    std::shared_ptr<GraphPool> pool = decoy_pool_.lock();
    if (pool == nullptr) {
      pool = std::make_shared<GraphPool>(driver_, device_.index());
      decoy_pool_ = pool;
    }
    return pool;
  }

  void warm_up(const std::function<void()>& work) override {
    wait(capturing_, stream_);
    {
      const c10::StreamGuard guard(capturing_);
      const GraphPool::Use use(pool_);
      work();
    }
    wait(stream_, capturing_);
  }

  std::unique_ptr<DeviceGraph> record(std::span<const MovableMemory> memories,
                                      std::span<const uint64_t> draws, const Enqueue& enqueue) override {
    const std::shared_ptr<GraphPool> decoy_pool = decoy_pool_.lock();
    check(decoy_pool != nullptr, "nobody holds the memory of a recording");
    const c10::StreamGuard guard(capturing_);
    const DecoyMemory decoys(driver_, device_.index(), memories);
    std::vector<uintptr_t> addresses;
    for (const MovableMemory& memory : memories) addresses.push_back(memory.address);
    // The generator has the same addresses in both passes as long as the first capture of it exists.
    std::optional<DrawsAlone> alone;
    std::optional<GeneratorCapture> of_decoy, of_real;
    if (!draws.empty()) {
      if (!alone.emplace().is_alone())
        throw NotReplayable{"it draws random numbers, and so do other threads", {}, true};
      of_decoy.emplace(driver_, beside());
    }
    const CapturedPass decoy = capture_in(*decoy_pool, decoys.addresses(), memories, of_decoy, enqueue);
    if (of_decoy) of_decoy->finish();
    if (!draws.empty()) of_real.emplace(driver_, beside());
    CapturedPass real = capture_in(pool_, addresses, memories, of_real, enqueue);
    check(draw_nodes_.size() == draws.size(), "recorded work draws otherwise than was said");
    std::vector<DrawPlace> places;
    if (of_real) places = find_draws(real.nodes, draw_nodes_, draws, of_real->finish());
    std::vector<MovableNode> nodes = find_places(decoy, real);
    return make_graph(driver_, device_.index(), std::move(real), std::move(nodes), std::move(places));
  }

  void draw(const std::function<void()>& enqueue_operator) override {
    const size_t first = enqueued();
    check(generator_ != nullptr, "recorded work draws, and nobody has said so");
    generator_->draw(enqueue_operator);
    draw_nodes_.push_back({first, enqueued()});
  }

  void begin_part(size_t part, std::span<const size_t> after) override { order_.begin_part(part, after); }

  size_t enqueued() override { return node_count(driver_, capturing_.native_handle()); }

 private:
  // Calls without graphs have left memory in pieces that a large arena does not fit into, and that calls with
  // graphs do not need any more.
  std::shared_ptr<const Arena> new_arena(int64_t bytes) {
    if (bytes >= kLargeArena && bytes > emptied_for_) {
      empty_cache(driver_, device_.index());
      emptied_for_ = bytes;
    }
    const c10::DeviceGuard guard(device_);
    return std::make_shared<Arena>(
        Arena{c10::GetAllocator(device_.type())->allocate(static_cast<size_t>(bytes)), bytes});
  }

  CapturedPass capture_in(GraphPool& pool, std::span<const uintptr_t> addresses,
                          std::span<const MovableMemory> memories, std::optional<GeneratorCapture>& generator,
                          const Enqueue& enqueue) {
    const GraphPool::Use use(pool);
    std::vector<MovableMemory> placed;
    for (size_t i = 0; i < memories.size(); ++i) placed.push_back({addresses[i], memories[i].bytes});
    order_.begin();
    draw_nodes_.clear();
    generator_ = generator ? &*generator : nullptr;
    CapturedPass pass =
        capture(driver_, capturing_.native_handle(), std::move(placed), [&] { return enqueue(addresses); });
    order_.check_order(pass.nodes);
    return pass;
  }

  const c10::Stream& beside() {
    if (!beside_) beside_ = new_stream(driver_, device_);
    return *beside_;
  }

  // What `waiting` is given from here on is done after what `stream` has been given.
  static void wait(const c10::Stream& waiting, const c10::Stream& stream) {
    c10::Event event(stream.device_type());
    event.record(stream);
    event.block(waiting);
  }

  const Driver& driver_;
  c10::Device device_;
  c10::Stream stream_;                     // the caller's
  c10::Stream capturing_;                  // records for it, since the default stream cannot be captured
  CaptureOrder order_;                     // of what it records
  std::optional<c10::Stream> beside_;      // captures the generator meanwhile
  GeneratorCapture* generator_ = nullptr;  // of the present pass, if it draws
  std::vector<DrawNodes> draw_nodes_;      // of the present pass
  GraphPool pool_;                         // workspaces of libraries lie in it, too, and stay
  std::weak_ptr<GraphPool> decoy_pool_;    // of passes with decoys; those that record hold it
  std::weak_ptr<const Arena> arena_;       // the largest; those that replay hold it
  std::shared_ptr<Announced> announced_ = std::make_shared<Announced>();
  int64_t emptied_for_ = 0;  // the largest arena for which the cache was emptied
};

}  // namespace

std::shared_ptr<DeviceGraphMaker> cuda_graph_maker(const Driver& driver, c10::DeviceIndex device) {
  const c10::Device whole(c10::DeviceType::CUDA, device);
  const c10::DeviceGuard current(whole);  // whose default stream a default stream is
  const c10::Stream stream = c10::impl::VirtualGuardImpl(whole.type()).getStream(whole);
  if (is_capturing(driver, stream.native_handle())) return nullptr;
  static std::mutex& mutex = *new std::mutex;
  static auto& makers =
      *new std::map<std::pair<c10::DeviceIndex, c10::StreamId>, std::shared_ptr<CudaGraphMaker>>;
  const std::pair key(device, stream.id());
  {
    const std::scoped_lock lock(mutex);
    if (const auto it = makers.find(key); it != makers.end()) return it->second;
  }
  auto made =
      std::make_shared<CudaGraphMaker>(driver, whole, stream);  // its pool takes the GIL: not under the lock
  const std::scoped_lock lock(mutex);
  return makers.try_emplace(key, std::move(made)).first->second;
}

}  // namespace oxy::runtime
