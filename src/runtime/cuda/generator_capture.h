// PyTorch's generator on a GPU while operators that draw from it are captured.
//
// Outside of a capture the generator passes an operator the numbers at which it starts; in a capture it
// passes addresses of them, and the operators of one capture start where those before them have ended. It
// does so for captures by PyTorch's own class, so one of these runs meanwhile, on a stream of its own.
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>

#include "backend/cuda/load/driver.h"
#include "cpy/gil.h"
#include "cpy/ref.h"
#include "runtime/cuda/draw_places.h"

namespace oxy::runtime {

// Nobody else draws while it lives: it has the GIL and `draw_mutex()`. Throws NotReplayable if that takes
// long.
class DrawsAlone {
 public:
  DrawsAlone();
  ~DrawsAlone();
  DrawsAlone(const DrawsAlone&) = delete;
  DrawsAlone& operator=(const DrawsAlone&) = delete;

 private:
  cpy::WithGil gil_;
};

// From its construction to finish() operators that draw may be captured on other streams of the device.
// Precondition: the thread is alone (DrawsAlone).
class GeneratorCapture {
 public:
  // `beside`: a stream of `device` with which nobody does anything. Throws NotReplayable if PyTorch refuses.
  GeneratorCapture(const backend::cuda::Driver& driver, const c10::Stream& beside);
  ~GeneratorCapture();
  GeneratorCapture(const GeneratorCapture&) = delete;
  GeneratorCapture& operator=(const GeneratorCapture&) = delete;

  // Throws NotReplayable if what the generator passes is not what is known here.
  CapturedGenerator finish();

 private:
  void end() noexcept;

  const backend::cuda::Driver& driver_;
  c10::Stream beside_;
  cpy::Ref graph_;  // PyTorch's
  bool is_capturing_ = false;
  uint64_t drawn_ = 0;  // by an operator of ours that the capture begins with
};

}  // namespace oxy::runtime
