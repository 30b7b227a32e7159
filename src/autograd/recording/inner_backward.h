// A backward pass that the traced program runs itself: `.backward()` and torch.autograd.grad().
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "trace/recorder/recorder.h"

namespace oxy::autograd {

struct InnerBackward {
  std::vector<at::Tensor> roots;     // trace tensors that require grad
  std::vector<at::Tensor> tangents;  // one for each
  std::vector<at::Tensor> inputs;    // whose gradients are asked for; none: all leaves
  bool keep_graph = false;
  bool create_graph = false;
};

// The leaves that a gradient of the roots flows into, those among the inputs if there are any. Unsupported if
// it flows out of the recording: into what was computed before it, or into a tensor that is no trace tensor.
std::vector<at::Tensor> leaves_of(const trace::Recorder& recorder, const InnerBackward& pass);

// Records the pass; the gradients are added to .grad of the leaves, as autograd does it. Needs the GIL.
// Unsupported where eager would raise.
void accumulate_gradients(trace::Recorder& recorder, const InnerBackward& pass);

// Records the pass; returns the inputs' gradients, undefined where none comes. As above.
std::vector<at::Tensor> gradients_of(trace::Recorder& recorder, const InnerBackward& pass);

}  // namespace oxy::autograd
