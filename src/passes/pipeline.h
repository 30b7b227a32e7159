// Which passes run, and in which order.
#pragma once

#include "base/dump.h"
#include "passes/channels_last.h"
#include "passes/fold_constants.h"
#include "passes/pack_convolution.h"
#include "passes/pack_linear.h"

namespace oxy::passes {

struct Options {
  // What the target can do with constants. Passes whose function is empty do nothing.
  EvaluateConstants evaluate_constants;
  FoldOptions folding;
  LinearPacking linear;
  ConvolutionPacking convolution;
  ChooseLayout choose_layout;
  double activation_memory_budget = 1;  // of backward passes of the program's own: passes::BackwardPass
};

// From a functional graph as recorded to one that lowering takes. Every pass is timed ("passes.<name>"); in
// strict mode its result is verified; `dump`, if given, gets each result that differs, as
// "passes/<nn>_<name>".
graph::Graph run_passes(graph::Graph graph, const Options& options, const Dump* dump = nullptr);

}  // namespace oxy::passes
