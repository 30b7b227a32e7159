// Which passes run, and in which order.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/dump.h"
#include "passes/attention/recognise_attention.h"
#include "passes/products/depthwise_convolutions.h"
#include "passes/products/pad_products.h"
#include "passes/products/product_activations.h"
#include "passes/products/vector_products.h"
#include "passes/products/widened_products.h"
#include "passes/random/draw_in_kernels.h"
#include "passes/weights/channels_last.h"
#include "passes/weights/fold_constants.h"
#include "passes/weights/pack_convolution.h"
#include "passes/weights/pack_linear.h"

namespace oxy::passes {

struct Options {
  // What the target can do with constants. Passes whose function is empty do nothing.
  EvaluateConstants evaluate_constants;
  // Of values that depend on sizes besides (separate_size_constants).
  EvaluateConstants keep_size_constants;
  FoldOptions folding;
  LinearPacking linear;
  ConvolutionPacking convolution;
  ChooseLayout choose_layout;
  ProductPadding products;
  GeneratesVectorProducts generates_vector_products;
  GeneratesDepthwiseConvolutions generates_depthwise_convolutions;
  WidensProducts widens_products;
  ProductAppliesActivation product_applies_activation;
  ChooseAttention choose_attention;
  bool separates_bias = false;          // the library of the device adds the bias of a convolution separately
  FindDropoutThreads dropout_threads;   // where kernels draw eager's random numbers themselves
  double activation_memory_budget = 1;  // of backward passes of the program's own: passes::BackwardPass
};

// What a pass is given besides the graph.
struct PassContext {
  const Options& options;
  std::vector<bool> had_own_memory;  // by output, as recorded: passes::outputs_with_own_memory()
};

// A pass takes a verified functional graph and gives one with the same meaning. It has nothing left to do on
// what it gives, once dead code is removed.
struct Pass {
  std::string_view stage;  // "passes.<name>", for ever: its golden file is tests/golden/passes/<name>.txt
  Graph (*run)(const Graph& graph, const PassContext& context);
  bool (*applies)(const Graph& graph, const PassContext& context) = nullptr;  // null: to every graph

  std::string_view name() const { return stage.substr(std::string_view("passes.").size()); }
};

// Each pass that the pipeline runs, once.
std::span<const Pass* const> all_passes();

// From a functional graph as recorded to one that lowering takes. Every pass is timed ("passes.<name>"); in
// strict mode its result is verified; `dump`, if given, gets each result that differs, as
// "<nn>_passes.<name>.txt".
graph::Graph run_passes(graph::Graph graph, const Options& options, const Dump* dump = nullptr);

}  // namespace oxy::passes
