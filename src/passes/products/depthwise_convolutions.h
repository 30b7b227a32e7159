#pragma once

#include <functional>

#include "graph/graph.h"

namespace oxy::passes {

// Whether the device convolves each channel with a window of its own by generated kernels, for this type.
// Without this function the pass does nothing.
using GeneratesDepthwiseConvolutions = std::function<bool(DType dtype)>;

// Convolutions of images in which each channel has a small window of its own become
// oxyfuel::depthwise_convolution: a generated kernel, which computes what follows as well. So does the
// gradient of the input, where the window moves by one element at a time: it is such a convolution itself,
// with the window turned around.
graph::Graph generate_depthwise_convolutions(const graph::Graph& source,
                                             const GeneratesDepthwiseConvolutions& generates);

}  // namespace oxy::passes
