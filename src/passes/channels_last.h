#pragma once

#include "passes/pack_convolution.h"

namespace oxy::passes {

// Lets convolutions take and give channels-last tensors where `prefers` says so, and keeps that layout
// through the operators between them (their shape rules say what they make of it); copies stand only where
// the layout changes. Graph outputs and mutations keep their recorded layout. Nothing happens without
// `prefers`.
graph::Graph use_channels_last(const graph::Graph& source,
                               const std::function<bool(const ConvolutionSite& site)>& prefers);

}  // namespace oxy::passes
