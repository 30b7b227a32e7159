// Work of a thread that must not disturb captures of the program's on other threads.
#pragma once

#include "backend/cuda/load/driver.h"

namespace oxy::backend::cuda {

// While it lives, this thread may allocate and free memory though others capture streams in the global mode
// (CUstreamCaptureMode). Nothing is changed where the driver has no such modes.
class RelaxedCaptures {
 public:
  explicit RelaxedCaptures(const Driver& driver) : driver_(driver) { exchange(); }
  ~RelaxedCaptures() { exchange(); }
  RelaxedCaptures(const RelaxedCaptures&) = delete;
  RelaxedCaptures& operator=(const RelaxedCaptures&) = delete;

 private:
  void exchange() {
    if (driver_.timing.is_complete()) driver_.timing.exchange_capture_mode(&mode_);
  }

  const Driver& driver_;
  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
};

}  // namespace oxy::backend::cuda
