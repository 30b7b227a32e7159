// Gradients of gradients: the operators of a region's forward pass run again, under autograd, and PyTorch's
// own engine makes the gradients, which have a history then.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/recording/joint.h"
#include "runtime/values/tensors.h"
#include "trace/recorder/recorder.h"

namespace oxy::autograd {

class ForwardReplay {
 public:
  // `recorded` is the recording's graph before it was made functional, `joint` its joint.
  ForwardReplay(graph::Graph recorded, IdVector<graph::NodeId, trace::NodeHistory> histories,
                std::vector<at::Tensor> constants, const Joint& joint);

  // What lies between some of the region's results and what their gradients flow into.
  struct Slice {
    std::string why_not;               // not empty: it cannot be run again, and the rest does not count
    std::vector<graph::NodeId> nodes;  // in their order
    std::vector<size_t> inputs;        // numbers of the region's inputs that are read
    std::vector<size_t> results;       // numbers of other results that are read, or flowed into
    // By gradient: where among `inputs`, then `results`, its tensor is; nothing if it is not read.
    std::vector<std::optional<size_t>> ends;
    std::vector<size_t> roots;  // numbers of the results that have tangents
    // By input: the region writes to it, so that what counts is a copy that was made before.
    std::vector<bool> is_copied;
    // It draws random numbers there, as all nodes before those that do.
    std::vector<c10::Device> random_devices;
  };

  // Of the tangents with these numbers and the gradients with these numbers of the joint.
  Slice slice(const std::vector<size_t>& tangents, const std::vector<size_t>& gradients,
              const Joint& joint) const;

  // The slice's gradients, undefined where none flows or none is wanted. `kept` are the tensors of `inputs`,
  // then `results`, then the states that the generators of `random_devices` had before the region; undefined
  // tangents do not flow. Called without the GIL, by one thread or several at once. Throws what the operators
  // throw.
  std::vector<at::Tensor> gradients(const Slice& slice, std::span<const at::Tensor> kept,
                                    std::span<const at::Tensor> tangents, const std::vector<bool>& wanted,
                                    bool create_graph, runtime::SymbolValues symbols) const;

 private:
  struct Values {
    IdVector<graph::ValueId, at::Tensor> by_id;
    // Those of what is kept: aliases, so that gradients go no further than these.
    std::vector<at::Tensor> ends;
  };

  // Why a write makes it impossible to run the slice again; empty if none does.
  // `others`: results that the slice takes as they are; `ends`: values into which gradients flow. Says of the
  // slice's inputs which are to be copied.
  std::string settle_writes(Slice& slice, const IdVector<graph::ValueId, bool>& is_read,
                            const std::vector<size_t>& others, const std::vector<graph::ValueId>& ends) const;
  Values run(const Slice& slice, std::span<const at::Tensor> kept, runtime::SymbolValues symbols) const;

  graph::Graph graph_;  // the forward pass alone
  IdVector<graph::NodeId, trace::NodeHistory> histories_;
  std::vector<at::Tensor> constants_;
  IdVector<graph::ValueId, graph::ValueId> storage_;
  bool writes_ = false;  // a node writes to what another one has made
  size_t inputs_ = 0;
};

}  // namespace oxy::autograd
