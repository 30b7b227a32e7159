// Which results of a recording have backward passes of their own.
//
// In eager each result has its own place in autograd's graph: a backward pass of one frees the history of
// those alone that it meets, and what is computed from another result sends its gradient through that one,
// where hooks see it. A recorded backward pass is cut accordingly.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <vector>

namespace oxy::trace {

// The vectors are by tangent: first those of the results, then those of the joins.
struct SeparateBackward {
  // Where what comes from several results meets in front of what they share, if a hook of one result has to
  // see what comes from another, or one of a leaf what comes from some of them.
  torch::autograd::edge_list joins;
  // The number of one: a backward pass through results of one number frees what another one
  // needs. -1: it frees nothing.
  std::vector<int32_t> freed_with;
  // Those of one part share their backward pass. Numbered in the order in which the program made
  // them; all of them 0 if there would be too many parts.
  std::vector<int32_t> part;
  std::vector<bool> part_frees;  // the backward pass of its part frees something
  std::vector<size_t> made;      // the tangents in the order in which the program made them
  // flows[t][i]: tangent t flows into leaf i.
  std::vector<std::vector<bool>> flows;
  // Likewise, through no result of another part.
  std::vector<std::vector<bool>> flows_of_part;
  // behind[t][u]: likewise, into the place of tangent u, which is of another part.
  std::vector<std::vector<bool>> behind;
};

// `results`: their gradient edges in autograd's graph of trace tensors; `leaves` likewise, where it ends.
// Needs the GIL.
SeparateBackward separate_backward(const torch::autograd::edge_list& results,
                                   const torch::autograd::edge_list& leaves);

}  // namespace oxy::trace
