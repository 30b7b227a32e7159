// Backends of the user's: callables that take a torch.fx.GraphModule and example inputs, and return the
// callable that is run at each call.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cpy/ref.h"
#include "driver/compilation/pipeline.h"
#include "eval/rebuild/capture.h"

namespace oxy::driver {

struct CustomBackend {
  cpy::Ref callable;  // null: there is none
  std::string name;
  explicit operator bool() const { return static_cast<bool>(callable); }
};

// Calls the backend. Precondition: capture.torch_program is set. `examples`: the graph inputs of the present
// call; those of the capture's guards are the present ones, too. If the backend raises, or returns something
// that is not callable, throws eval::Interrupted with a RuntimeError set that names the backend.
//
// run() of the result calls the callable with the symbols and the inputs and expects a tuple or list of the
// outputs. It throws eval::Interrupted with the error that the callable raised, or with a TypeError or
// ValueError about what it returned. Inputs may have been written to by then, so the region must not run
// again in eager.
std::unique_ptr<CompiledGraph> compile_with_backend(const eval::Capture& capture,
                                                    std::span<const at::Tensor> examples,
                                                    const CustomBackend& backend, const std::string& name);

}  // namespace oxy::driver
