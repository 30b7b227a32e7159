// Reductions over the columns of a block.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/print/block_printer.h"

namespace oxy::backend::cuda {

// Of a row that is in the block as a whole: the results of `kind` over `value`, one a row. `counted`:
// Reduction's.
std::vector<Value> reduce_row(BlockPrinter& block, loop::ReductionKind kind, DType accumulate,
                              const std::optional<Expr>& counted, const Value& value);

// Of a row that a loop walks in steps: each element of the block accumulates a part, and the parts are
// joined.
class LoopedReduction {
 public:
  // Before the loop: prints the accumulators.
  LoopedReduction(BlockPrinter& block, loop::ReductionKind kind, DType accumulate,
                  std::optional<Expr> counted);
  void add(const Value& value, const std::string& start);  // in the loop, whose variable is `start`
  std::vector<Value> join();                               // after it

 private:
  void update(const std::string& accumulator, const std::string& value);

  BlockPrinter& block_;
  loop::ReductionKind kind_;
  DType accumulate_;
  std::optional<Expr> counted_;
  std::string first_;
  std::string second_;
};

}  // namespace oxy::backend::cuda
