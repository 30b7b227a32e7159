// The backward pass of a recording, made by PyTorch's own autograd engine on trace tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace oxy::trace {

struct Session;

// Autograd's history of an input begins with it: Unsupported if a write gave an input another one, which a
// graph's outputs cannot express.
void check_inputs_keep_history(const Session& session);

// Adds `outputs` to the recorded graph, then for each that carries gradients an input (its tangent), the
// backward pass and its results; sets Recording::joint. Needs the GIL. Unsupported if gradients flow in a way
// that a graph with outputs cannot express (a write to an input that takes part in autograd).
void record_backward(Session& session, const std::vector<at::Tensor>& outputs);

}  // namespace oxy::trace
