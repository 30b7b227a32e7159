#pragma once

#include <cstdint>
#include <optional>

#include "passes/weights/epilogue.h"

namespace oxy::passes {

// A convolution or the backward pass of one (transposed ones are left alone).
struct ConvolutionSite {
  TensorMeta input, weight, output;
  std::vector<int64_t> stride, padding, dilation;
  int64_t groups = 1;
  bool is_backward = false;
  bool has_constant_weight = false;
  // Nothing holds the weight but this graph (a batch norm was folded into it): packing it costs no memory.
  bool owns_weight = false;
};

struct ConvolutionPacking {
  // Whether packing pays. Without this function the pass does nothing.
  std::function<bool(const ConvolutionSite& site)> pays;
  FusesEpilogue fuses;
};

// The site of a node; nothing unless it is one, of an input that is not constant, with known parameters.
std::optional<ConvolutionSite> convolution_site(const Graph& graph, const Node& node,
                                                const IdVector<graph::ValueId, bool>& is_constant);

// Convolutions with constant weights, if they take and give channels-last tensors, become
// oxyfuel::packed_convolution, with the addition and the activation that follow. The packed weight is an
// oxyfuel::pack_convolution node on constants, which fold_constants evaluates; its metadata are those of the
// weight, its memory is opaque.
graph::Graph pack_convolution(const graph::Graph& source, const ConvolutionPacking& packing);

}  // namespace oxy::passes
