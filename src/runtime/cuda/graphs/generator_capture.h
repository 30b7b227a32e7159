// PyTorch's generator on a GPU while operators that draw from it are captured.
//
// Outside of a capture the generator passes an operator the numbers at which it starts; in a capture it
// passes addresses of them, and the operators of one capture start where those before them have ended. It
// does so for captures by PyTorch's own class, so one of these runs meanwhile, on a stream of its own. The
// generator has another state for that: its own one would refuse whoever draws for a result.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <functional>

#include "backend/cuda/load/driver.h"
#include "cpy/ref.h"
#include "runtime/cuda/graphs/draw_places.h"

namespace oxy::runtime {

// From its construction to finish() operators that draw may be captured on other streams of the device.
// Precondition: the thread draws alone (runtime/device/draw_lock.h), which includes that it has the GIL.
class GeneratorCapture {
 public:
  // `beside`: a stream of the device with which nobody does anything. Throws NotReplayable if PyTorch
  // refuses.
  GeneratorCapture(const backend::cuda::Driver& driver, const c10::Stream& beside);
  ~GeneratorCapture();
  GeneratorCapture(const GeneratorCapture&) = delete;
  GeneratorCapture& operator=(const GeneratorCapture&) = delete;

  // Calls what enqueues an operator that draws.
  void draw(const std::function<void()>& enqueue_operator);
  // Throws NotReplayable if what the generator passes is not what is known here.
  CapturedGenerator finish();

 private:
  void begin();
  void set_state(const at::Generator& state);
  void end() noexcept;

  const backend::cuda::Driver& driver_;
  c10::Stream beside_;
  at::Generator generator_;  // the device's default one
  at::Generator original_;   // has the state of the default one
  at::Generator captured_;   // has the state for captures
  uint64_t drawn_ = 0;       // by an operator of ours that the capture begins with
  cpy::Ref graph_;           // PyTorch's
  bool is_capturing_ = false;
};

}  // namespace oxy::runtime
