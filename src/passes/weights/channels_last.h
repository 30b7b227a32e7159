#pragma once

#include <cstdint>

#include "passes/weights/pack_convolution.h"

namespace oxy::passes {

enum class ConvolutionLayout : uint8_t {
  ChannelsLast,
  // If the copies that the graph then needs at its borders move less than half of what its convolutions read
  // and write; as it comes otherwise.
  PrefersChannelsLast,
  PrefersChannelsLastWithWeight,  // and the weight is to have it as well
  AsRecorded,
  AsItComes,  // that of the input as the operators before make it
};
using ChooseLayout = std::function<ConvolutionLayout(const ConvolutionSite& site)>;

// Lets convolutions take and give tensors in the layout that `choose` wants, and keeps it through the
// operators between them (their shape rules say what they make of it); copies stand only where the layout
// changes. Graph outputs and mutations keep their recorded layout. Nothing happens without `choose`.
graph::Graph use_channels_last(const graph::Graph& source, const ChooseLayout& choose);

}  // namespace oxy::passes
