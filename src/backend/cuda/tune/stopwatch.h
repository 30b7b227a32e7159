// How long kernels take on the device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/load/driver.h"
#include "backend/cuda/load/relaxed_captures.h"

namespace oxy::backend::cuda {

// What a kernel is launched with for a trial.
struct Operands {
  std::vector<int64_t> bytes;  // of the memory behind each pointer
  std::vector<int64_t> sizes;  // the integers behind the pointers
};

// Memory and a stream of its own on the current device, given back when it goes. Not thread-safe.
class Stopwatch {
 public:
  // Null where the driver lacks a function, no device is current, or no memory is left.
  static std::unique_ptr<Stopwatch> make(const Driver& driver);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Gives the next trials their operands, which are zeros: an index that is read from them is in range.
  // False if no memory is left for them.
  bool set(const Operands& operands);
  // Microseconds of a launch of that many programs: the median of a few, with cold caches. Nothing if the
  // device refuses the launch.
  std::optional<double> time(const GridFunction& function, int64_t programs);

 private:
  explicit Stopwatch(const Driver& driver) : driver_(driver), relaxed_(driver) {}
  bool start();
  Result launch(const GridFunction& function, int64_t programs);

  const Driver& driver_;
  RelaxedCaptures relaxed_;
  Handle stream_ = nullptr;
  Handle begin_ = nullptr;  // an event
  Handle end_ = nullptr;    // likewise
  uint64_t cache_ = 0;      // memory as large as the caches, which are filled with it
  uint64_t memory_ = 0;     // of the operands
  std::vector<uint64_t> pointers_;
  std::vector<int64_t> sizes_;
};

}  // namespace oxy::backend::cuda
