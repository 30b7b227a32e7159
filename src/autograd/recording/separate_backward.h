// Which results of a recording have backward passes of their own.
//
// In eager each result has its own place in autograd's graph: a backward pass of one frees the history of
// those alone that it meets, and what is computed from another result sends its gradient through that one,
// where hooks see it. A recorded backward pass is cut accordingly.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <vector>

#include "autograd/recording/joint.h"

namespace oxy::autograd {

struct SeparateBackward {
  // Where what comes from several results meets in front of what they share, if a hook of one result has to
  // see what comes from another, or one of a leaf what comes from some of them.
  torch::autograd::edge_list joins;
  struct Place {
    Tangent tangent;
    std::vector<bool> flows;          // by leaf: the tangent flows into it
    std::vector<bool> flows_of_part;  // likewise, through no place of another part
    std::vector<bool> behind;         // by place, of another part: likewise, into it
  };
  std::vector<Place> places;  // first those of the results, then those of the joins
  std::vector<size_t> made;   // their numbers in the order in which the program made them
};

// `results`: their gradient edges in autograd's graph of trace tensors; `leaves` likewise, where it ends.
// Needs the GIL.
SeparateBackward separate_backward(const torch::autograd::edge_list& results,
                                   const torch::autograd::edge_list& leaves);

}  // namespace oxy::autograd
