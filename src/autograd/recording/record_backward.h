// The backward pass of a recording, made by PyTorch's own autograd engine on trace tensors.
#pragma once

#include <Python.h>

#include <vector>

#include "autograd/recording/joint.h"
#include "trace/recorder/recorder.h"

namespace oxy::autograd {

// The recorded graph is a joint one: results and, behind them, gradients.
struct DifferentiableRecording {
  trace::Recording recording;
  Joint joint;
};

// Ends the recording as Recorder::finish() does, and then records the backward pass: for each output that
// carries gradients an input, its tangent, and the gradients of the inputs that require them as outputs.
// Needs the GIL. Unsupported if gradients flow in a way that a graph with outputs cannot express (a write to
// an input that takes part in autograd).
DifferentiableRecording finish_with_backward(trace::Recorder& recorder,
                                             const std::vector<PyObject*>& outputs);

}  // namespace oxy::autograd
