// Which results of a region are views of which, as autograd sees them, and how each view was made.
//
// This is about results that share memory and do not require grad. The others have a history that says it.
#pragma once

#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <vector>

#include "autograd/recording/joint.h"
#include "graph/graph.h"
#include "runtime/execution/compiled_graph.h"
#include "trace/recorder/recorder.h"

namespace oxy::autograd {

using runtime::CompiledGraph;

// Results are numbered as the caller of the recording asked for them.
struct Relations {
  struct View {
    size_t result = 0;
    torch::autograd::CreationMeta made{};  // how: some may not be written to
    int32_t input = -1;                    // of which it is a view; -1: of another tensor
    // Of which it has to be made a view, where the plan makes it one of something else. At most one is given.
    int32_t base_result = -1;  // another result
    int32_t hidden_base = -1;  // a tensor of which the caller sees several views
  };
  std::vector<size_t> detached;  // no view
  std::vector<View> views;
  std::vector<size_t> data;              // with version counters of their own
  std::vector<TensorMeta> hidden_bases;  // storage_offset from the beginning of the storage
  bool empty() const { return detached.empty() && views.empty() && data.empty(); }
};

// `recorded`: the graph of `recording` before it was functionalised; empty if it was not.
// `joint`: null if there is none. `keeps_views`: what runs the graph gives views where the program made some.
Relations relations_of(const trace::Recording& recording, const Joint* joint, const graph::Graph& recorded,
                       bool keeps_views);

// A view of `base`, as autograd knows views, that lies where `tensor` lies. The two share their memory.
at::Tensor view_like(const at::Tensor& base, const at::Tensor& tensor);

// `compiled`, which gives the results of the recording, with the relations between them; `compiled` itself
// where there are none.
std::unique_ptr<CompiledGraph> relate(std::unique_ptr<CompiledGraph> compiled, Relations relations);

}  // namespace oxy::autograd
