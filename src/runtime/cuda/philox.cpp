#include "runtime/cuda/philox.h"

#include <ATen/Context.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/ones.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "loop/random_bits.h"
#include "runtime/device/draw_lock.h"
#include "runtime/device/generator_position.h"
#include "runtime/device/generators.h"
#include "runtime/device/launch.h"

namespace oxy::runtime {

using loop::DropoutThreads;
using loop::kPhiloxWords;

namespace {

constexpr int kMultiprocessors = 16, kThreadsOfMultiprocessor = 39;  // CU_DEVICE_ATTRIBUTE_…
constexpr int64_t kBlock = 256;                                      // threads
constexpr int64_t kVectorBytes = 16;
constexpr double kDropped = 0.5;

c10::Device device_of(c10::DeviceIndex index) {
  return {c10::DeviceType::CUDA, index};
}

void* current_stream(c10::DeviceIndex index) {
  return c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getStream(device_of(index)).native_handle();
}

bool is_capturing(const backend::cuda::Driver& driver, c10::DeviceIndex index) {
  int status = 0;
  return driver.graphs.is_capturing == nullptr ||
         driver.graphs.is_capturing(current_stream(index), &status) != 0 || status != 0;
}

// By how much a dropout of so many elements moves the offset of the generator.
int64_t offset_step(int64_t count, int64_t threads) {
  if (count == 0) return 0;
  const int64_t used = std::min(threads, (count + kBlock - 1) / kBlock * kBlock);
  return ((count - 1) / (used * kPhiloxWords) + 1) * kPhiloxWords;
}

// Whether PyTorch's kernel keeps the elements [begin, end) as it should of what draws from `seed` at
// `offset`.
bool draws_alike(const at::Tensor& mask, const DropoutThreads& threads, uint64_t seed, uint64_t offset,
                 int64_t begin, int64_t end) {
  const at::Tensor part = mask.slice(0, begin, end).cpu();
  const bool* const kept = part.const_data_ptr<bool>();
  const auto counter = static_cast<int64_t>(offset) / kPhiloxWords;
  for (int64_t i = begin; i < end; ++i) {
    const loop::DropoutPlace place = loop::dropout_place(i, mask.numel(), threads.width, threads.threads);
    const float number = loop::philox_uniform(static_cast<int64_t>(seed), counter + place.counter.constant(),
                                              place.position.constant());
    if ((number < 1 - kDropped) != kept[i - begin]) return false;
  }
  return true;
}

bool is_right(const DropoutThreads& threads, c10::ScalarType dtype, c10::Device device) {
  const KeepsGenerators keeps({&device, 1});
  const int64_t round = threads.width * threads.threads;
  for (const int64_t count : {8 * kBlock, 2 * round + 8 * kBlock}) {
    const auto [seed, offset] = generator_position(device);
    const at::Tensor mask = std::get<1>(
        at::native_dropout(at::ones({count}, at::TensorOptions(dtype).device(device)), kDropped, true));
    if (generator_position(device).offset - offset !=
        static_cast<uint64_t>(offset_step(count, threads.threads)))
      return false;
    for (const int64_t place : {kBlock, round, 2 * round, count})
      if (place <= count &&
          !draws_alike(mask, threads, seed, offset, place - kBlock, std::min(count, place + kBlock)))
        return false;
  }
  return true;
}

}  // namespace

std::optional<DropoutThreads> cuda_dropout_threads(const backend::cuda::Driver& driver, c10::ScalarType dtype,
                                                   c10::DeviceIndex index) {
  static std::mutex mutex;
  static std::map<std::pair<c10::DeviceIndex, c10::ScalarType>, std::optional<DropoutThreads>> known;
  const auto is_tried = [&] {
    const std::scoped_lock lock(mutex);
    return known.contains({index, dtype});
  };
  const auto result = [&] {
    const std::scoped_lock lock(mutex);
    return known.at({index, dtype});
  };
  if (is_tried()) return result();
  const c10::DeviceGuard guard(device_of(index));
  if (is_capturing(driver, index)) return std::nullopt;
  const DrawsAlone draws;
  if (!draws.is_alone()) return std::nullopt;  // another time
  if (is_tried()) return result();
  int processors = 0, threads = 0;
  if (driver.device_attribute(&processors, kMultiprocessors, index) != 0 ||
      driver.device_attribute(&threads, kThreadsOfMultiprocessor, index) != 0)
    return std::nullopt;
  const DropoutThreads tried{kVectorBytes / static_cast<int64_t>(c10::elementSize(dtype)),
                             processors * (threads / kBlock) * kBlock, kBlock};
  const c10::impl::ExcludeDispatchKeyGuard plain(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
  try {
    const bool is_known = is_right(tried, dtype, device_of(index));
    const std::scoped_lock lock(mutex);
    return known[{index, dtype}] = is_known ? std::optional(tried) : std::nullopt;
  } catch (const c10::OutOfMemoryError&) {
    return std::nullopt;  // another time
  }
}

Invoke prepare_philox_states(const backend::cuda::Driver& driver, const CallSite& site) {
  // Where nobody reads what is drawn, the generator goes on all the same.
  const ResultSlot where = site.results.at(0);
  const bool is_read = where.slot != kNoSlot;
  const TensorSpec* const spec = is_read ? &site.spec(where.slot) : nullptr;
  const auto threads = static_cast<int64_t>(site.number(1));
  const auto index = static_cast<c10::DeviceIndex>(std::get<Device>(site.call.args.at(2)).index);
  std::vector<int64_t> steps;
  for (const int64_t count : site.integers(0)) steps.push_back(offset_step(count, threads));
  return [&driver, where, is_read, spec, index, steps = std::move(steps)](at::Tensor* tensors) {
    const c10::DeviceGuard current(device_of(index));  // whose default stream a default stream is
    if (is_capturing(driver, index)) throw LeftToEager();
    std::vector<int64_t> states;
    states.reserve(steps.size() + 1);
    {
      at::Generator generator = at::globalContext().defaultGenerator(device_of(index));
      const std::scoped_lock lock(generator.mutex());
      auto offset = static_cast<int64_t>(generator.get_offset());
      states.push_back(static_cast<int64_t>(generator.current_seed()));
      for (const int64_t step : steps) {
        states.push_back(offset / kPhiloxWords);
        offset += step;
      }
      generator.set_offset(static_cast<uint64_t>(offset));
    }
    if (!is_read) return;
    if (!where.planned) tensors[where.slot] = empty_tensor(*spec, device_of(index));
    backend::cuda::check_call(
        driver,
        driver.copy_to_device(reinterpret_cast<uint64_t>(tensors[where.slot].data_ptr()), states.data(),
                              states.size() * sizeof(int64_t), current_stream(index)),
        "a copy to the card");
  };
}

}  // namespace oxy::runtime
