// The node that compiled forward passes put into PyTorch's autograd graph.
#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aten/tensor_meta.h"
#include "runtime/values/tensors.h"

namespace oxy::autograd {

// For which tangents tensors are read. If none of these comes in, a write to the tensor is no error.
struct Readers {
  std::vector<std::vector<bool>> of_saved;    // by tensor that a node saves
  std::vector<std::vector<bool>> of_watched;  // by tensor that it watches
};

// What every backward call of one compiled graph has in common.
struct BackwardProgram {
  virtual ~BackwardProgram() = default;
  // The gradients of the graph's differentiable inputs, in their order, undefined where there is none. Called
  // without the GIL, below autograd, by one thread or several at once. `absent`: the tangents that did not
  // come in and are undefined; empty: none. `has_stale`: a saved tensor has been written to that only absent
  // tangents would have read, and must not be read.
  virtual std::vector<at::Tensor> run(std::vector<at::Tensor> saved, std::vector<at::Tensor> tangents,
                                      std::vector<bool> absent, bool has_stale,
                                      runtime::SymbolValues symbols) = 0;
  // The same by PyTorch's operators, for tangents of any kind (sparse, batched): `saved` and `kept` are the
  // tensors that the node was given to save and to keep, tangents that do not flow are undefined, and so may
  // be gradients that are not wanted. With `create_graph` they have a history of their own, so that they can
  // be differentiated. Called with grad mode on. Only if why_not_again is empty.
  virtual std::vector<at::Tensor> run_again(std::span<const at::Tensor> saved,
                                            std::span<const at::Tensor> kept,
                                            std::span<const at::Tensor> tangents,
                                            const std::vector<bool>& wanted, bool create_graph,
                                            runtime::SymbolValues symbols) = 0;
  std::string why_not_again;
  // What `run` expects of tangents, over the symbols.
  std::vector<TensorMeta> tangents;
  // For each gradient, the tangents that flow into it: without one of those it is undefined.
  std::vector<std::vector<bool>> flows;
  std::vector<bool> is_zero_tensor;  // by gradient: eager's is zeros without memory, and so is the node's
  // By tangent, a number below that of the tangents: a backward pass through those of one number frees what
  // another one needs, so that it is an error. -1: it frees nothing.
  std::vector<int32_t> freed_with;
  Readers readers;
  // By tensor that a node keeps: what it is like, if zeros stand for it since its elements do not matter.
  std::vector<std::optional<TensorMeta>> stand_ins;
};

// Zeros as `run` expects a tangent.
at::Tensor zero_tangent(const TensorMeta& wanted, runtime::SymbolValues symbols);

// An output's own place in autograd's graph, where several outputs share a BackwardNode: it is only passed,
// and the output's hooks only run, if that output's gradient is asked for.
class OutputNode final : public torch::autograd::Node {
 public:
  explicit OutputNode(torch::autograd::edge_list&& next) : Node(std::move(next)) {}
  std::string name() const override { return "OxyfuelOutputBackward"; }
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    return std::move(gradients);
  }
};

class BackwardNode final : public torch::autograd::Node {
 public:
  // `symbols`: of the forward pass.
  BackwardNode(std::shared_ptr<BackwardProgram> program, runtime::SymbolValues symbols,
               torch::autograd::edge_list&& next)
      : Node(std::move(next)),
        program_(std::move(program)),
        symbols_(symbols.begin(), symbols.end()),
        spent_(program_->freed_with.size()) {}

  // Adds an input of the node for a gradient that no tensor stands for: the tangent of that number.
  void add_input_of(size_t tangent);

  // To be called for each saved tensor in order, after the outputs have got this node as their history. Runs
  // the saved-tensor hooks that the user has set.
  void save(const at::Tensor& tensor, bool is_output);
  // A write to the tensor is an error as if it were saved: eager saves it, `run` does without it.
  void watch(const at::Tensor& tensor);
  // For run_again(), in order: the tensor's memory, if no zeros stand for it. `edge`: the node's one to where
  // the tensor's gradient flows, nothing if it needs none.
  void keep(const at::Tensor& tensor, std::optional<size_t> edge);

  std::string name() const override { return "OxyfuelBackward"; }
  void release_variables() override;
  void will_release_variables() override;
  // RuntimeErrors as eager's: a second backward pass, a saved tensor that was written to. Also one for
  // create_graph=True, and for batched gradients, where the program cannot run again.
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;

 private:
  struct Kept {
    at::Tensor value;  // without a history; undefined if zeros stand for it
    std::optional<size_t> edge;
    uint32_t version;
  };
  struct Saved {
    torch::autograd::SavedVariable variable;
    at::Tensor unchecked;  // its memory, whatever was written to it; undefined where all tangents read it
    uint32_t version = 0;  // of `unchecked`, when it was saved
  };
  struct Inputs {
    std::vector<at::Tensor> saved, kept;
    bool has_stale = false;  // BackwardProgram::run's
  };

  bool is_spent() const;  // no gradient can be asked for any more
  void forget();          // frees what is saved
  // For one backward pass, after which they may be spent. `kept` is empty unless it `runs_again`.
  Inputs take_inputs(const torch::autograd::variable_list& gradients, bool runs_again);
  std::vector<at::Tensor> kept_tensors();

  std::shared_ptr<BackwardProgram> program_;
  std::vector<int64_t> symbols_;
  std::vector<Saved> saved_;
  std::vector<torch::autograd::SavedVariable> watched_;  // without their memory
  std::vector<Kept> kept_;
  std::vector<bool> spent_;  // by number of freed_with
  bool will_release_ = false;
};

}  // namespace oxy::autograd
