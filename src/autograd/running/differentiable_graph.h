// Training: a forward graph whose results take part in autograd as eager's do, with the parts of its backward
// pass.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "autograd/recording/joint.h"
#include "autograd/running/backward_half.h"
#include "passes/training/partition.h"
#include "runtime/execution/compiled_graph.h"

namespace oxy::autograd {

using runtime::CompiledGraph;

// What a node of autograd's graph is made of at each call.
struct Part {
  struct Saved {
    passes::SavedValue value;
    bool is_own = false;      // a result of this part
    bool is_foreign = false;  // a result of another part: its history might come to hold the node
  };
  std::shared_ptr<BackwardHalf> program;  // none: the part is one view
  int32_t parent = -1;                    // then: the output into which its gradient flows; -1: an input
  std::vector<Saved> saved;
  std::vector<size_t> watched;    // outputs that eager saves as well
  std::vector<size_t> tangents;   // of the joint graph's
  std::vector<size_t> made;       // places in `tangents`, in the order in which the program made the results
  std::vector<size_t> gradients;  // of the joint graph's
};

// `outputs`: those of the forward graph that are the caller's, or that a backward pass begins at. `devices`:
// of the region, without the host.
std::unique_ptr<CompiledGraph> make_differentiable_graph(std::unique_ptr<CompiledGraph> forward,
                                                         std::vector<Part> parts, Joint joint,
                                                         std::vector<graph::Output> outputs,
                                                         std::vector<c10::Device> devices);

}  // namespace oxy::autograd
