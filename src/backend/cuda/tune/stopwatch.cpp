#include "backend/cuda/tune/stopwatch.h"

#include <algorithm>
#include <array>

namespace oxy::backend::cuda {

namespace {

constexpr size_t kCacheBytes = 128 << 20;  // more than the second level's of any card
constexpr size_t kAlignment = 512;
constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
constexpr int kTrials = 7;
constexpr double kMicroseconds = 1000;  // of a millisecond

}  // namespace

std::unique_ptr<Stopwatch> Stopwatch::make(const Driver& driver) {
  if (!driver.timing.is_complete()) return nullptr;
  std::unique_ptr<Stopwatch> made(new Stopwatch(driver));
  return made->start() ? std::move(made) : nullptr;
}

bool Stopwatch::start() {
  const TimingFunctions& timing = driver_.timing;
  return timing.create_stream(&stream_, kNonBlocking) == 0 && timing.create_event(&begin_, 0) == 0 &&
         timing.create_event(&end_, 0) == 0 && timing.allocate(&cache_, kCacheBytes) == 0;
}

Stopwatch::~Stopwatch() {
  const TimingFunctions& timing = driver_.timing;
  if (stream_ != nullptr) timing.wait_for_stream(stream_);
  if (memory_ != 0) timing.free(memory_);
  if (cache_ != 0) timing.free(cache_);
  for (const Handle event : {begin_, end_})
    if (event != nullptr) timing.destroy_event(event);
  if (stream_ != nullptr) timing.destroy_stream(stream_);
}

bool Stopwatch::set(const Operands& operands) {
  const TimingFunctions& timing = driver_.timing;
  if (memory_ != 0) timing.free(std::exchange(memory_, 0));
  pointers_.clear();
  sizes_ = operands.sizes;
  size_t total = 0;
  for (const int64_t bytes : operands.bytes) {
    pointers_.push_back(total);
    total += (static_cast<size_t>(std::max<int64_t>(bytes, 1)) + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (timing.allocate(&memory_, std::max(total, kAlignment)) != 0) {
    memory_ = 0;
    return false;
  }
  for (uint64_t& pointer : pointers_) pointer += memory_;
  return timing.fill(memory_, 0, total, stream_) == 0;
}

Result Stopwatch::launch(const GridFunction& function, int64_t programs) {
  std::vector<void*> arguments;
  for (uint64_t& pointer : pointers_) arguments.push_back(&pointer);
  for (int64_t& size : sizes_) arguments.push_back(&size);
  void* null = nullptr;
  for (int32_t i = 0; i < function.null_pointers; ++i) arguments.push_back(&null);
  const LaunchConfig config{.grid = {static_cast<unsigned>(programs), 1, 1},
                            .block = {static_cast<unsigned>(function.threads), 1, 1},
                            .shared_bytes = static_cast<unsigned>(function.shared_bytes),
                            .stream = stream_,
                            .attributes = nullptr,
                            .attribute_count = 0};
  return driver_.launch(&config, function.handle, arguments.data(), nullptr);
}

std::optional<double> Stopwatch::time(const GridFunction& function, int64_t programs) {
  const TimingFunctions& timing = driver_.timing;
  std::array<float, kTrials> trials;
  if (launch(function, programs) != 0) return std::nullopt;
  for (float& milliseconds : trials) {
    const bool is_timed = timing.fill(cache_, 0, kCacheBytes, stream_) == 0 &&
                          timing.record(begin_, stream_) == 0 && launch(function, programs) == 0 &&
                          timing.record(end_, stream_) == 0 && timing.wait_for_event(end_) == 0 &&
                          timing.elapsed(&milliseconds, begin_, end_) == 0;
    if (!is_timed) return std::nullopt;
  }
  std::ranges::nth_element(trials, trials.begin() + kTrials / 2);
  return trials[kTrials / 2] * kMicroseconds;
}

}  // namespace oxy::backend::cuda
