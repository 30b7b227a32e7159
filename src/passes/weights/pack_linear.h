#pragma once

#include <cstdint>
#include <optional>

#include "passes/weights/epilogue.h"

namespace oxy::passes {

// A linear layer with a constant weight, as the pass found it.
struct LinearSite {
  DType dtype = DType::Float32;
  Device device;
  Expr rows;  // of the flattened input
  int64_t in_features = 0;
  int64_t out_features = 0;
  bool has_bias = false;
  // Nothing holds the weight but this graph (it was computed from constants): packing it costs no memory.
  bool owns_weight = false;
};

struct LinearPacking {
  // Whether packing pays. Without this function the pass does nothing.
  std::function<bool(const LinearSite& site)> pays;
  FusesEpilogue fuses;
};

// mm and addmm by a constant matrix become oxyfuel::packed_linear, with the additions and activations that
// follow. The packed weight is an oxyfuel::pack_linear node on constants, which fold_constants evaluates; its
// metadata are those of the weight as [out_features, in_features], its memory is opaque.
graph::Graph pack_linear(const graph::Graph& source, const LinearPacking& packing);

}  // namespace oxy::passes
