// Backends of the user's: a callable that takes a torch.fx.GraphModule and example inputs and returns what is
// to be run.
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

// Gives `capture`, which has a torch program, to the `backend`. `examples`: the graph inputs of
// this call. What the backend raises becomes a RuntimeError that names it, as do results that are not
// callable: eval::Interrupted with the Python error set.
//
// The graph runs the callable with the inputs and expects a tuple or list of the outputs. run() throws
// eval::Interrupted with the error that the callable raised, or a TypeError or ValueError about what it
// returned; inputs may have been written to by then.
std::unique_ptr<CompiledGraph> compile_with_backend(const eval::Capture& capture,
                                                    std::span<const at::Tensor> examples,
                                                    const CustomBackend& backend, const std::string& name);

}  // namespace oxy::driver
