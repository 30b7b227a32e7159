// PyTorch's autograd engine on trace tensors: what it runs is recorded.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <string>
#include <unordered_set>
#include <vector>

#include "base/error.h"

namespace oxy::autograd {

struct BackwardOptions {
  bool keep_graph = false;
  bool create_graph = false;
  bool accumulate = false;  // into .grad of the leaves, and not into the result
};

// A node of autograd's graph that runs code of the traced program.
struct ProgramNode : torch::autograd::Node {
  // That a backward pass frees.
  virtual bool saves_tensors() const = 0;
};

// Whether somebody sees or changes what comes to the node.
bool has_hooks(torch::autograd::Node& node);

// It raises in eager too, with this message.
class BackwardRaises : public Unsupported {
 public:
  explicit BackwardRaises(std::string message);
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

// The gradients that come to `leaves` (with `accumulate`: the edges that are let to; none: all) when
// `tangents` come into `roots`; undefined where none comes. Needs the GIL. Hooks and user-defined functions
// of the traced program may run. Unsupported if it cannot be recorded.
std::vector<at::Tensor> run_engine(const torch::autograd::edge_list& roots,
                                   const std::vector<at::Tensor>& tangents,
                                   const torch::autograd::edge_list& leaves, const BackwardOptions& options);

// The nodes of autograd's graph that gradients of `roots` flow through.
std::unordered_set<torch::autograd::Node*> reached_from(const torch::autograd::edge_list& roots);

}  // namespace oxy::autograd
