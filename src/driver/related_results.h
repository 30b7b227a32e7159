// Results of a region that share memory, as autograd is to see them: which is a view of which, and how it was
// made. Those that require grad have a history that says it; this is about the others.
#pragma once

#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <vector>

#include "driver/pipeline.h"
#include "graph/graph.h"
#include "trace/recorder.h"

namespace oxy::driver {

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
Relations relations_of(const trace::Recording& recording, const graph::Graph& recorded, Backend backend);

// `compiled`, which gives the results of the recording, with the relations between them; `compiled` itself
// where there are none.
std::unique_ptr<CompiledGraph> relate(std::unique_ptr<CompiledGraph> compiled, Relations relations);

}  // namespace oxy::driver
